"""``x[...]`` and ``x[...] = v`` on tracers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..ir.builder import attr_key
from ..ir.texts import Arg
from ..ir.types import Aval, aval_of
from ..ops import index as ops
from ..ops.index import shifted
from ..ops.shape import reshape
from ..where import user_site
from .array import Tracer, apply, cast_to, shadow_of, symbol_in, tracers_in, wrap
from .creation import joined
from .mutation import check_writable, make_traced, read, write
from .trace import CURRENT, Trace, owner, unsupported
from .ufuncs import as_operand, copy

# How to write where a traced mask says; each takes the array, the items of the index and the value, and tells
# whether it has written.
PUT_BY_MASK: list[Callable[[Tracer, tuple[Any, ...], Any], bool]] = []


class Index:
    """An index taken apart: ``parts`` are ints, slices, None and ``Arg``, which names one of ``operands``.

    ``basic`` says that the index makes a view, ``unique`` that it names no element twice. A single bool becomes None in
    ``parts``; if it is False, ``empty`` is the axis of the result that must have no element.
    """

    def __init__(self, given: Any, x: Tracer) -> None:
        self.parts: tuple[Any, ...] = ()
        self.operands: list[Any] = []
        self.empty: int | None = None
        self.by_bool = False
        self.named = 0  # the number of operands that hold the positions of one traced mask
        self.basic, self.unique = True, False
        items = given if isinstance(given, tuple) else (given,)
        if is_plain(given):
            self.parts = self._without_ellipsis([_bounded(i) if type(i) is slice else i for i in items], x.ndim)
            return
        self.trace = owner([x, *tracers_in(items)])
        parts: list[Any] = []
        for item in items:
            parts.extend(self._part(item, parts))
        self.parts = self._without_ellipsis(parts, x.ndim)
        self.basic = not any(isinstance(shadow_of(i), ndarray) for i in self.operands)
        self.unique = not self.basic and self._unique(x.shape)
        if self.by_bool and self.operands:
            raise unsupported("indexing by a bool together with arrays", "index by None, or by arrays only")

    def _part(self, item: Any, before: list[Any]) -> list[Any]:
        if item is None or item is Ellipsis:
            return [item]
        if isinstance(item, slice):
            return [_bounded(item)]
        if isinstance(item, (list, range)):
            item = joined(item) if len(item) else np.zeros(0, np.intp)
            item = item if isinstance(item, Tracer) else wrap(self.trace, None, np.asarray(item), None)
        shadow = shadow_of(item)
        if isinstance(shadow, (bool, np.bool_)) or getattr(shadow, "dtype", None) == np.bool_:
            return self._mask(item, before)
        if is_traced(item) or isinstance(shadow, ndarray):
            self.operands.append(item)
            return [Arg(len(self.operands) - 1)]
        return [shadow.__index__()]

    def _mask(self, item: Any, before: list[Any]) -> list[Any]:
        if is_traced(item) and np.ndim(item.shadow):
            found = np.nonzero(item)
            self.operands.extend(found)
            self.named = len(found)
            return [Arg(len(self.operands) - len(found) + k) for k in range(len(found))]
        if not np.ndim(shadow_of(item)):
            self.empty = None if bool(item) else sum(not isinstance(p, (int, Arg)) for p in before)
            self.by_bool = True
            return [None]
        found = np.nonzero(shadow_of(item))
        self.operands.extend(wrap(self.trace, None, places, None) for places in found)
        return [Arg(len(self.operands) - len(found) + k) for k in range(len(found))]

    def _without_ellipsis(self, parts: list[Any], ndim: int) -> tuple[Any, ...]:
        at = [k for k, p in enumerate(parts) if p is Ellipsis]
        if not at:
            return tuple(parts)
        full = ndim - sum(p is not None for p in parts) + 1
        scalar = all(isinstance(p, (int, Arg)) or p is Ellipsis for p in parts)
        if full == 0 and scalar and all(np.ndim(shadow_of(i)) == 0 for i in self.operands):
            return tuple(parts)  # x[0, ...] is a 0-d array, x[0] a scalar: the ellipsis stays
        return (*parts[: at[0]], *(slice(None),) * full, *parts[at[0] + 1 :])

    def _unique(self, shape: tuple[int, ...]) -> bool:
        """Whether no element is surely named twice: single elements, lists, masks, arrays made in the trace."""
        if all(np.size(shadow_of(i)) <= 1 for i in self.operands):
            return True
        if any(not isinstance(i, Tracer) or not i.const for i in self.operands):
            return self.named == len(self.operands)
        axes = [sum(q is not None for q in self.parts[:k]) for k, p in enumerate(self.parts) if isinstance(p, Arg)]
        places = [np.asarray(i.shadow) % shape[k] for i, k in zip(self.operands, axes, strict=True)]
        flat = np.ravel_multi_index(tuple(np.broadcast_arrays(*places)), tuple(shape[k] for k in axes))
        return np.unique(flat).size == flat.size

    def known(self, value: Any) -> bool:
        """Whether the operands and ``value`` are plain numbers; an array of the user's is not, since it may change."""
        return all(i.const if isinstance(i, Tracer) else not isinstance(i, ndarray) for i in (value, *self.operands))

    def symbols(self, trace: Trace) -> list[Any]:
        """The operands in ``trace``."""
        return [symbol_in(trace, i) for i in self.operands]


def is_traced(x: Any) -> bool:
    """Whether the value of an operand is known only at run time."""
    return isinstance(x, Tracer) and not x.const


PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})


def is_plain(index: Any) -> bool:
    """Whether an index is made of whole numbers, slices, None and ``...`` only."""
    return type(index) in PLAIN or (type(index) is tuple and PLAIN.issuperset(map(type, index)))


def _bounded(s: slice) -> slice:
    return slice(*[None if x is None else x.__index__() for x in (s.start, s.stop, s.step)])


def _shadows(index: Any) -> Any:
    """The index with example values in place of tracers."""
    if isinstance(index, tuple):
        return tuple(map(_shadows, index))
    if isinstance(index, list):
        return [_shadows(i) for i in index]
    return shadow_of(index)


def example_index(x: Tracer, index: Any) -> Any:
    """The index with example values; in a branch that may not be taken, zeros replace those that are out of bounds."""
    if is_plain(index):
        return index
    trace, found = CURRENT.get(), _shadows(index)
    if trace is None or trace.concrete:
        return found
    try:
        x.shadow[found]
    except IndexError:
        return _shadows(_first(index))
    return found


def _first(index: Any) -> Any:
    """The index with zeros in place of traced numbers."""
    if isinstance(index, (tuple, list)):
        return type(index)(map(_first, index))
    return np.zeros_like(index.shadow)[()] if is_traced(index) and index.dtype.kind in "iu" else index


def get(x: Tracer, index: Any) -> Any:
    """``x[index]``."""
    found = x.shadow[example_index(x, index)]  # NumPy's own error for a bad index, on the user's line
    at = Index(index, x)
    if at.basic:
        parts = shifted(at.parts, 1) if at.operands else at.parts
        out = apply(ops.getitem, [x, *at.operands], None if at.by_bool else found, index=parts)
        if at.by_bool:
            out = copy(out if at.empty is None else out[(*(slice(None),) * at.empty, slice(0, 0))])
        return out
    parts = tuple(p for p in at.parts if p is not Ellipsis)
    out = apply(ops.gather, [x, *at.operands], index=shifted(parts, 1), **ops.once(at.unique))
    if isinstance(found, ndarray) and not found.ndim:
        return apply(reshape, [out], aval=Aval((), out.dtype))
    return out


def put(x: Tracer, index: Any, value: Any) -> None:
    """``x[index] = value``, seen through every view of ``x``."""
    if not isinstance(x.shadow, ndarray):
        raise TypeError(f"{type(x.shadow).__name__!r} object does not support item assignment")
    items = index if isinstance(index, tuple) else (index,)
    value = as_operand(value)
    if any(is_traced(i) and i.dtype == np.bool_ for i in items) and any(
        write_there(x, items, value) for write_there in PUT_BY_MASK
    ):
        return
    place = example_index(x, index)
    part = x.shadow[place]  # NumPy's own error for a bad index
    at = Index(index, x)
    trace = owner([x, *tracers_in([value, *at.operands])])
    check_writable(x, trace)
    if not _is_own_view(value, x, at) and at.empty is None:
        _write(x, place, at, value, part.shape, trace)


def _write(x: Tracer, place: Any, at: Index, value: Any, shape: tuple[int, ...], trace: Trace) -> None:
    b = trace.builder
    b.where = user_site(3)[0]
    source = shadow_of(value)
    if x.const and at.known(value):
        x.shadow[place] = source
        x.storage.version += 1
        return
    make_traced(x)
    aval = Aval(shape, x.dtype)
    x.shadow[place] = source
    if isinstance(source, ndarray) and source.ndim > len(shape):
        value = np.reshape(value, source.shape[source.ndim - len(shape) :])
    v = cast_to(value, aval, trace)
    if at.basic:
        if ops.whole(at.parts):
            write(x, b.coerce(v, aval))
            return
        operands = [s.value for s in (read(x), v, *at.symbols(trace))]
        attrs = {"index": shifted(at.parts, 2) if at.operands else at.parts}
        write(x, b.emit(ops.setitem, operands, attrs, avals=(aval_of(x.shadow),))[0])
    else:
        parts = tuple(p for p in at.parts if p is not Ellipsis)
        new = ops.scatter(read(x), v, *at.symbols(trace), index=shifted(parts, 2), **ops.once(at.unique))
        write(x, new)


def _is_own_view(value: Any, x: Tracer, at: Index) -> bool:
    """Whether ``value`` is ``x[index]`` itself: ``x[index] += v`` ends in such an assignment."""
    if not isinstance(value, Tracer) or value.parent is not x or value.op is None or not at.basic:
        return False
    prim, rest, attrs = value.op
    same = [s.value for s in rest] == [s.value for s in at.symbols(value.home)]
    return prim is ops.getitem and same and attr_key(attrs["index"]) == attr_key(shifted(at.parts, 1))
