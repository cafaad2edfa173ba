"""Indices with traced numbers, arrays, lists and masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..ir.texts import Arg
from ..ir.types import Aval
from ..ops.gather import gather, once, scatter
from ..ops.index import getitem, shifted
from ..ops.shape import reshape
from .array import Tracer, apply, settled, shadow_of, symbol_in, tracers_in, wrap
from .creation import joined
from .indexing import (
    ACCESS,
    Access,
    bounded,
    is_own_view,
    is_plain,
    plain_parts,
    record_write,
    stored,
    without_ellipsis,
)
from .mutation import check_writable, read, write
from .trace import CURRENT, Trace, owner, unsupported
from .ufuncs import copy

# How to write where a traced mask says; each takes the array, the items of the index and the value, and tells
# whether it has written.
PUT_BY_MASK: list[Callable[[Tracer, tuple[Any, ...], Any], bool]] = []


class Index:
    """An index taken apart: ``parts`` are ints, slices, None and ``Arg``, which names one of ``operands``.

    ``basic`` says that the index makes a view, ``unique`` that it names no element twice. Single bools become one None
    in ``parts``; if one of them is False, the result is ``empty``.
    """

    def __init__(self, given: Any, x: Tracer) -> None:
        self.parts: tuple[Any, ...] = ()
        self.operands: list[Any] = []
        self.by_bool = self.empty = False
        self.named = 0  # the number of operands that hold the positions of one traced mask
        self.basic, self.unique = True, False
        if is_plain(given):
            self.parts = plain_parts(given, x.ndim)
            return
        items = given if isinstance(given, tuple) else (given,)
        self.trace = owner([x, *tracers_in(items)])
        parts: list[Any] = []
        for item in items:
            parts.extend(self._part(item))
        if any(isinstance(p, bool) for p in parts):
            parts, self.by_bool, self.empty = _one_axis(parts), True, any(p is False for p in parts)
        self.basic = not any(isinstance(shadow_of(i), ndarray) for i in self.operands)
        self.parts = without_ellipsis(parts, x.ndim, (int, Arg) if self.basic else ())
        self.unique = not self.basic and self._unique(x.shape)
        if self.by_bool and self.operands:
            raise unsupported("indexing by a bool together with arrays", "index by None, or by arrays only")

    def _part(self, item: Any) -> list[Any]:
        if item is None or item is Ellipsis:
            return [item]
        if isinstance(item, slice):
            return [bounded(item)]
        if isinstance(item, (list, tuple, range)):
            item = joined(item) if len(item) else np.zeros(0, np.intp)
            item = item if isinstance(item, Tracer) else wrap(self.trace, None, np.asarray(item), None)
        shadow = shadow_of(item)
        if isinstance(shadow, (bool, np.bool_)) or getattr(shadow, "dtype", None) == np.bool_:
            return self._mask(item)
        if is_traced(item) or isinstance(shadow, ndarray):
            self.operands.append(item)
            return [Arg(len(self.operands) - 1)]
        return [shadow.__index__()]

    def _mask(self, item: Any) -> list[Any]:
        if not np.ndim(shadow_of(item)):
            return [bool(item)]
        first = len(self.operands)
        if is_traced(item):
            self.operands.extend(np.nonzero(item))
            self.named = len(self.operands) - first
        else:
            self.operands.extend(wrap(self.trace, None, places, None) for places in np.nonzero(shadow_of(item)))
        return [Arg(k) for k in range(first, len(self.operands))]

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

    def symbols(self, trace: Trace) -> list[Any]:
        """The operands in ``trace``."""
        return [symbol_in(trace, i) for i in self.operands]


def _one_axis(parts: list[Any]) -> list[Any]:
    """The parts with None for all bools: with the ints, they make one axis, in front unless they stand together."""
    group = [k for k, p in enumerate(parts) if isinstance(p, int)]  # as bools are
    first = group[0] if group[-1] - group[0] < len(group) else 0
    return [*parts[:first], None, *(p for p in parts[first:] if not isinstance(p, bool))]


def is_traced(x: Any) -> bool:
    """Whether the value of an operand is known only at run time."""
    return isinstance(x, Tracer) and not x.const


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
    if trace is None or trace.runs:
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


def _get(x: Tracer, index: Any) -> Any:
    """``x[index]``."""
    found = x.shadow[example_index(x, index)]  # NumPy's own error for a bad index, on the user's line
    at = Index(index, x)
    if at.basic:
        out = apply(getitem, [x, *at.operands], None if at.by_bool else found, index=shifted(at.parts, 1))
        if at.by_bool:
            out = copy(out[tuple(map(slice, found.shape))] if at.empty else out)
        return out
    out = apply(gather, [x, *at.operands], index=shifted(at.parts, 1), **once(at.unique))
    if isinstance(found, ndarray) and not found.ndim:
        return apply(reshape, [out], aval=Aval((), out.dtype))
    return out


def _put(x: Tracer, index: Any, value: Any) -> None:
    """``x[index] = value``."""
    items = index if isinstance(index, tuple) else (index,)
    if any(is_traced(i) and i.dtype == np.bool_ for i in items) and any(
        write_there(x, items, value) for write_there in PUT_BY_MASK
    ):
        return
    place = example_index(x, index)
    part = x.shadow[place]  # NumPy's own error for a bad index
    at = Index(index, x)
    trace = owner([x, *tracers_in([value, *at.operands])])
    check_writable(x, trace)
    if at.basic and is_own_view(value, x, at.parts, (symbol_in(value.home, i) for i in at.operands)):
        return
    new = stored(x, place, value, part.shape, trace, known=settled([value, *at.operands]))
    if new is None or at.empty:
        return
    if at.basic:
        record_write(x, new, at.parts, (symbol_in(trace, i) for i in at.operands))
    else:
        write(x, scatter(read(x), new, *at.symbols(trace), index=shifted(at.parts, 2), **once(at.unique)))


ACCESS.append(Access(_get, _put))
