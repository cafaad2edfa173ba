"""``x[...]`` and ``x[...] = v`` on tracers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..ir.builder import Symbol, attr_key
from ..ir.types import Aval, aval_of
from ..ops import index as ops
from ..ops.index import shifted
from ..where import user_site
from .array import Tracer, apply, cast_to, settled, shadow_of, tracers_in
from .mutation import check_writable, make_traced, read, write
from .trace import Trace, owner
from .ufuncs import as_operand

PLAIN = frozenset({int, slice, type(None), type(Ellipsis)})


class Access(NamedTuple):
    """How to read and write by an index that is not plain."""

    get: Callable[[Tracer, Any], Any]
    put: Callable[[Tracer, Any, Any], None]


ACCESS: list[Access] = []  # the last is asked


def is_plain(index: Any) -> bool:
    """Whether an index is made of whole numbers, slices, None and ``...`` only."""
    return type(index) in PLAIN or (type(index) is tuple and PLAIN.issuperset(map(type, index)))


def plain_parts(index: Any, ndim: int) -> tuple[Any, ...]:
    """The parts of a plain index of an array with ``ndim`` axes: ints, slices and None."""
    items = index if type(index) is tuple else (index,)
    return without_ellipsis([bounded(i) if type(i) is slice else i for i in items], ndim, scalar=int)


def bounded(s: slice) -> slice:
    """A slice whose bounds are ints or None."""
    return slice(*[None if x is None else x.__index__() for x in (s.start, s.stop, s.step)])


def without_ellipsis(parts: list[Any], ndim: int, scalar: type | tuple[type, ...]) -> tuple[Any, ...]:
    """The parts with full slices in place of ``...``; parts of the type ``scalar`` take an axis away."""
    at = [k for k, p in enumerate(parts) if p is Ellipsis]
    if not at:
        return tuple(parts)
    full = ndim - sum(p is not None for p in parts) + 1
    if full == 0 and all(isinstance(p, scalar) or p is Ellipsis for p in parts):
        return tuple(parts)  # x[0, ...] is a 0-d array, x[0] a scalar: the ellipsis stays
    return (*parts[: at[0]], *(slice(None),) * full, *parts[at[0] + 1 :])


def get(x: Tracer, index: Any) -> Any:
    """``x[index]``."""
    if not is_plain(index):
        return ACCESS[-1].get(x, index)
    found = x.shadow[index]  # NumPy's own error for a bad index, on the user's line
    return apply(ops.getitem, [x], found, index=plain_parts(index, x.ndim))


def put(x: Tracer, index: Any, value: Any) -> None:
    """``x[index] = value``, seen through every view of ``x``."""
    if not isinstance(x.shadow, ndarray):
        raise TypeError(f"{type(x.shadow).__name__!r} object does not support item assignment")
    value = as_operand(value)
    if not is_plain(index):
        ACCESS[-1].put(x, index, value)
        return
    part = x.shadow[index]  # NumPy's own error for a bad index
    parts = plain_parts(index, x.ndim)
    trace = owner([x, *tracers_in([value])])
    check_writable(x, trace)
    if not is_own_view(value, x, parts):
        new = stored(x, index, value, part.shape, trace, known=settled([value]))
        if new is not None:
            record_write(x, new, parts)


def is_own_view(value: Any, x: Tracer, parts: tuple[Any, ...], operands: Iterable[Symbol] = ()) -> bool:
    """Whether ``value`` is ``x[parts]`` itself: ``x[parts] += v`` ends in such an assignment."""
    if not isinstance(value, Tracer) or value.parent is not x or value.op is None:
        return False
    prim, rest, attrs = value.op
    same = [s.value for s in rest] == [s.value for s in operands]
    return prim is ops.getitem and same and attr_key(attrs["index"]) == attr_key(shifted(parts, 1))


def stored(x: Tracer, place: Any, value: Any, shape: tuple[int, ...], trace: Trace, *, known: bool) -> Symbol | None:
    """Write into the example at ``place``; return what to record there, None if plain numbers meet plain numbers."""
    trace.builder.where = user_site(3)[0]
    source = shadow_of(value)
    if x.const and known:
        x.shadow[place] = source
        x.storage.version += 1
        return None
    make_traced(x)
    x.shadow[place] = source
    if isinstance(source, ndarray) and source.ndim > len(shape):
        value = np.reshape(value, source.shape[source.ndim - len(shape) :])
    return cast_to(value, Aval(shape, x.dtype), trace)


def record_write(x: Tracer, new: Symbol, parts: tuple[Any, ...], operands: Iterable[Symbol] = ()) -> None:
    """Record ``x[parts] = new`` for an index that makes a view."""
    b = new.builder
    if ops.whole(parts):
        write(x, b.coerce(new, Aval(new.shape, x.dtype)))
        return
    values = [s.value for s in (read(x), new, *operands)]
    write(x, b.emit(ops.setitem, values, {"index": shifted(parts, 2)}, avals=(aval_of(x.shadow),))[0])
