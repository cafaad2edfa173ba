"""``x[...]`` and ``x[...] = v`` on tracers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import attr_key
from ..ir.primitive import Arg
from ..ir.types import Aval
from ..ops.elementwise import where
from ..ops.index import gather, getitem, scatter, setitem
from .array import Tracer, apply, cast_to, shadow_of, symbol_in, tracers_in
from .mutation import check_writable, make_traced, read, write
from .trace import owner, unsupported
from .where import user_site


def normal(index: Any, ndim: int) -> tuple[tuple[Any, ...], list[Any]]:
    """An index as a tuple of ints, slices, None and ``Arg``, without ellipsis; and its arrays of integers.

    Positions of ``Arg`` count from 0 here.
    """
    items = index if isinstance(index, tuple) else (index,)
    parts: list[Any] = []
    arrays: list[Any] = []
    for given in items:
        item = np.asarray(given or np.zeros(0, np.intp)) if isinstance(given, list) else given
        if isinstance(item, (np.ndarray, Tracer)) and item.dtype == np.bool_ and item.ndim:
            parts.extend(_mask(item, arrays))
        elif isinstance(item, (np.ndarray, Tracer)) and (item.ndim or not _plain(item)):
            parts.append(Arg(len(arrays)))
            arrays.append(item)
        elif item is None or item is Ellipsis:
            parts.append(item)
        elif isinstance(item, slice):
            parts.append(slice(*(None if s is None else s.__index__() for s in (item.start, item.stop, item.step))))
        elif isinstance(item, (bool, np.bool_)):
            raise unsupported("indexing by a single bool", "index by None or by an array")
        else:
            parts.append(item.__index__())
    return _without_ellipsis(parts, ndim, arrays), arrays


def _plain(item: Any) -> bool:
    return not isinstance(item, Tracer) or item.const


def _mask(item: Any, arrays: list[Any]) -> list[Any]:
    if not _plain(item):
        raise unsupported(
            "indexing by a traced mask gives a result whose shape depends on data", "use np.where(mask, x, 0) instead"
        )
    found = np.nonzero(np.asarray(item))
    parts = [Arg(len(arrays) + k) for k in range(len(found))]
    arrays.extend(found)
    return parts


def _without_ellipsis(parts: list[Any], ndim: int, arrays: list[Any]) -> tuple[Any, ...]:
    at = [k for k, p in enumerate(parts) if p is Ellipsis]
    if not at:
        return tuple(parts)
    if len(at) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    full = ndim - sum(p is not None for p in parts) + 1
    if not arrays and not any(isinstance(p, slice) or p is None for p in parts) and full == 0:
        return tuple(parts)  # x[0, ...] is a 0-d array, x[0] a scalar: the ellipsis stays
    return (*parts[: at[0]], *(slice(None),) * full, *parts[at[0] + 1 :])


def shift(parts: tuple[Any, ...], by: int) -> tuple[Any, ...]:
    """The index with its operands ``by`` positions further."""
    return tuple(Arg(p.position + by) if isinstance(p, Arg) else p for p in parts)


def get(x: Tracer, index: Any) -> Any:
    """``x[index]``."""
    shadow_index = _shadows(index)
    x.shadow[shadow_index]  # NumPy's own error for a bad index, on the user's line
    parts, arrays = normal(index, x.ndim)
    if arrays:
        return apply(gather, [x, *arrays], index=shift(parts, 1))
    return apply(getitem, [x], index=parts)


def _shadows(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_shadows, index))
    return shadow_of(index)


def put(x: Tracer, index: Any, value: Any) -> None:
    """``x[index] = value``, seen through every view of ``x``."""
    if isinstance(index, Tracer) and index.dtype == np.bool_ and not index.const:
        _put_where(x, index, value)
        return
    value = value if isinstance(value, (Tracer, np.ndarray, int, float, complex, np.generic)) else np.asarray(value)
    parts, arrays = normal(index, x.ndim)
    trace = owner([x, *tracers_in([value, *arrays])])
    check_writable(x, trace)
    if _is_own_view(value, x, parts):
        return
    part = x.shadow[_shadows(index)]
    trace.builder.where = user_site(2)[0]
    values = [v for v in (value, *arrays) if isinstance(v, Tracer) and not v.const]
    if x.const and not values:
        x.shadow[_shadows(index)] = shadow_of(value)
        x.storage.version += 1
        return
    make_traced(x)
    aval = Aval(np.shape(part), x.dtype)
    source = shadow_of(value)
    if np.ndim(source) > len(aval.shape):
        value = np.reshape(value, np.shape(source)[np.ndim(source) - len(aval.shape) :])
    v = cast_to(value, aval, trace)
    x.shadow[_shadows(index)] = source
    if arrays:
        write(x, scatter(read(x), v, *(symbol_in(trace, a) for a in arrays), index=shift(parts, 2)))
    else:
        write(x, setitem(read(x), v, index=parts))


def _is_own_view(value: Any, x: Tracer, parts: tuple[Any, ...]) -> bool:
    """Whether ``value`` is ``x[index]`` itself: ``x[index] += v`` ends in such an assignment."""
    if not isinstance(value, Tracer) or value.parent is not x or value.op is None:
        return False
    prim, attrs = value.op
    return prim is getitem and attr_key(attrs["index"]) == attr_key(parts)


def _put_where(x: Tracer, mask: Tracer, value: Any) -> None:
    """``x[mask] = number`` for a traced mask of the shape of ``x``."""
    if mask.shape != x.shape or np.ndim(shadow_of(value)):
        raise unsupported(
            "writing an array through a traced mask: how many elements it takes depends on data",
            "use x = np.where(mask, value, x) with a value of the shape of x",
        )
    trace = owner([x, mask, *tracers_in([value])])
    check_writable(x, trace)
    trace.builder.where = user_site(2)[0]
    make_traced(x)
    v = cast_to(value, Aval(x.shape, x.dtype), trace)
    new = where(symbol_in(trace, mask), v, read(x))
    x.shadow[mask.shadow] = shadow_of(value)
    write(x, new)
