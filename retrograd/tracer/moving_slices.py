"""Slices between traced ints whose distance is known: ``x[i * n : (i + 1) * n]`` holds for every ``i``.

Such a slice is traced by its start, with guards that it lies within the axis. NumPy cuts other slices short: one of
these is a path of its own, at the bounds that it has in the trace.
"""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import ControlFlowError
from ..ir.builder import Builder
from ..ir.graph import Value
from ..ops.elementwise import add, cast, constant_of, mul, neg, sub
from ..ops.slice_at import INT, slice_at
from . import indexing
from .array import Tracer, apply, is_known, shadow_of, symbol_in, tracers_in
from .mutation import read
from .sequences import check_parts
from .table import METHODS
from .trace import CURRENT, owner

DEPTH = 32  # operations behind a bound that are looked at
FULL = slice(None)
Form = tuple[dict[Value, int], int]  # an integer: multiples of values, and a number


def get(x: Tracer, index: Any) -> Any:
    """``x[index]``."""
    if not _moves(index):
        return indexing.get(x, index)
    view, rest = _at_starts(x, index)
    return view if view is not x and _full(rest) else indexing.get(view, rest)


def put(x: Tracer, index: Any, value: Any) -> None:
    """``x[index] = value``."""
    if _moves(index) and isinstance(x.shadow, ndarray):
        x, index = _at_starts(x, index, value)
        if value is x and _full(index):  # the end of ``x[i : i + n] += v``
            return
    if type(value) is not Tracer:
        check_parts(value, x.dtype)
    indexing.put(x, index, value)


def _moves(index: Any) -> bool:
    """Whether an index has a slice with a traced bound."""
    if type(index) is tuple:
        return any(type(item) is slice and _bounded_by_traced(item) for item in index)
    return type(index) is slice and _bounded_by_traced(index)


def _bounded_by_traced(item: slice) -> bool:
    return type(item.start) is Tracer or type(item.stop) is Tracer


def _full(index: tuple[Any, ...]) -> bool:
    return all(type(item) is slice and item == FULL for item in index)


def _at_starts(x: Tracer, index: Any, value: Any = None) -> tuple[Tracer, tuple[Any, ...]]:
    """A view of ``x`` at its moving slices, and the index that is left; of ``x[index] += v``, the view of before."""
    items = list(index) if type(index) is tuple else [index]
    for k, item in enumerate(items):
        if type(item) is slice and _bounded_by_traced(item):
            axis = _axis(items, k, x.ndim)
            if axis is not None:
                x, items[k] = _sliced(x, item, axis, value)
    return x, tuple(items)


def _axis(items: list[Any], k: int, ndim: int) -> int | None:
    """The axis that an item of an index is for; None if that is not known, or if there is none."""
    after = any(item is Ellipsis for item in items[:k])
    counts = [_axes(item) for item in (items[k:] if after else items[:k])]
    if None in counts:
        return None
    found = sum(n for n in counts if n is not None)
    axis = ndim - found if after else found
    return axis if 0 <= axis < ndim else None


def _axes(item: Any) -> int | None:
    """The number of axes that an item of an index takes; None of nested lists, which may be masks."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, (list, tuple, range)):
        return 1 if all(np.ndim(shadow_of(i)) == 0 for i in item) else None
    shadow = shadow_of(item)
    if isinstance(shadow, (bool, np.bool_)) or getattr(shadow, "dtype", None) == np.bool_:
        return int(np.ndim(shadow))
    return 1


def _sliced(x: Tracer, item: slice, axis: int, value: Any) -> tuple[Tracer, slice]:
    """The view of a slice along an axis, with what of the slice is left; or ``x`` and the slice in numbers."""
    start, stop, trace = item.start, item.stop, CURRENT.get()
    step = 1 if item.step is None else item.step
    if type(step) is Tracer or not _is_int(start) or trace is None or is_known(start):
        return x, item
    step, length = as_int(step), _distance(start, stop)
    if length is None or length * step <= 0:
        return x, item
    if not start.home.concrete:
        raise ControlFlowError(
            "a slice between traced ints, which would be shorter at the ends of the axis, in a function that is "
            "compiled for all values",
            remedy=f"if all its elements exist, index by an array: x[start + np.arange(0, {length}, {step})]",
        )
    if not trace.concrete:
        return x, item
    size, n = -(-abs(length) // abs(step)), x.shape[axis]
    least, most = (0, n - length) if step > 0 else (-length, n - 1)
    if not (start >= least and start <= most):
        bool(start == start.shadow)  # a decision: this path is for this start, and so for this stop
        return x, slice(as_int(start.shadow), as_int(stop.shadow), item.step)
    if step < 0:
        start = start + (size - 1) * step
    return _view(x, start, axis, size, abs(step), value), slice(None, None, -1) if step < 0 else FULL


def _view(x: Tracer, start: Tracer, axis: int, size: int, step: int, value: Any) -> Tracer:
    """``size`` elements from ``start`` on; ``value`` is a view of such a view if it ends ``x[i : i + n] += v``."""
    start = start[()] if isinstance(start.shadow, ndarray) else start
    first = as_int(start.shadow)
    found = x.shadow[(*(FULL,) * axis, slice(first, first + (size - 1) * step + 1, step))]
    attrs = {"axis": axis, "size": size, "step": step}
    at = symbol_in(owner(tracers_in([x, start])), start).value
    while type(value) is Tracer and value.parent is not None:
        if value.parent is x and value.op is not None:
            prim, rest, known = value.op
            if prim is slice_at and rest[0].value is at and known == attrs:
                return value
        value = value.parent
    return apply(slice_at, [x, start], found, **attrs)


def _is_int(x: Any) -> bool:
    """Whether this is a traced int, of Python's or of 64 bits."""
    return type(x) is Tracer and x.dtype == INT and not x.ndim


def _distance(start: Tracer, stop: Any) -> int | None:
    """``stop - start`` if that is the same for all values, else None."""
    if not _is_int(stop):
        return None
    if start.home is stop.home:
        b, bounds = start.home.builder, [read(start).value, read(stop).value]
    else:
        trace = owner([start, stop])
        b, bounds = trace.builder, [symbol_in(trace, bound).value for bound in (start, stop)]
    known: dict[Value, Form] = {}
    (before, low), (after, high) = (_form(b, bound, known, DEPTH) for bound in bounds)
    return high - low if before == after else None


def _form(b: Builder, value: Value, known: dict[Value, Form], depth: int) -> Form:
    """A value as a sum of multiples of values, by additions and by multiplications with numbers.

    Integers of NumPy's wrap around, so it holds up to a multiple of 2⁶⁴. Bounds within an axis so are a known distance
    apart, whatever is in between.
    """
    if value not in known:
        known[value] = _summed(b, value, known, depth)
    return known[value]


def _summed(b: Builder, value: Value, known: dict[Value, Form], depth: int) -> Form:
    node, alone = b.made.get(value), ({value: 1}, 0)
    if value.aval.dtype != INT or node is None or not depth:
        return alone
    number = constant_of(b, value)
    if number is not None:
        return {}, int(number)
    if node.prim not in (add, sub, mul, neg, cast):
        return alone
    (left, m), *others = (_form(b, v, known, depth - 1) for v in node.inputs)
    if node.prim is cast:
        return (left, m) if node.inputs[0].aval.dtype == INT else alone
    if node.prim is neg:
        return {v: -k for v, k in left.items()}, -m
    right, n = others[0]
    if node.prim is mul:
        if left and right:
            return alone
        (terms, by), plus = ((left, n), m) if not right else ((right, m), n)
        return {v: k * by for v, k in terms.items() if by}, plus * by
    sign = 1 if node.prim is add else -1
    total = {v: left.get(v, 0) + sign * right.get(v, 0) for v in {**left, **right}}
    return {v: k for v, k in total.items() if k}, m + sign * n


METHODS["__getitem__"] = get
METHODS["__setitem__"] = put
