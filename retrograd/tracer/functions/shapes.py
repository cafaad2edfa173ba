"""Functions that move elements: reshape, transpose, broadcast, concatenate, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.types import Aval
from ...ops import shape as shapes
from ..array import apply, shadow_of
from ..ufuncs import as_operand, astype
from .table import Axis, as_array, axes_of, implements, only_default, shadow_dtype


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    only_default("reshape", order=(order, "C"), copy=(copy, None))
    target = np.reshape(np.broadcast_to(np.empty(()), np.shape(shadow_of(a))), shape).shape
    if target == () and isinstance(shadow_of(a), np.generic):
        return a  # as NumPy does
    return apply(shapes.reshape, [a], aval=Aval(target, shadow_dtype(a)))


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    return reshape(a, (-1,), order)


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    n = np.ndim(shadow_of(a))
    order = tuple(range(n))[::-1] if axes is None else tuple(k % n for k in axes)
    np.transpose(shadow_of(a), axes)
    return apply(shapes.permute, [as_array(a)], axes=order)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    (i,), (j,) = axes_of(a, axis1), axes_of(a, axis2)
    order[i], order[j] = j, i
    return transpose(a, order)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    src, dst = axes_of(a, source), axes_of(a, destination)
    order = [k for k in range(a.ndim) if k not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return transpose(a, order)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    return reshape(a, np.expand_dims(shadow_of(a), axis).shape)


@implements(np.squeeze)
def squeeze(a: Any, axis: Axis = None) -> Any:
    return reshape(a, np.squeeze(shadow_of(a), axis).shape)


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    target = np.broadcast_to(shadow_of(array), shape).shape
    return apply(shapes.broadcast, [as_array(array)], aval=Aval(target, shadow_dtype(array)))


@implements(np.concatenate)
def concatenate(
    arrays: Sequence[Any], /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = None
) -> Any:
    only_default("concatenate", out=(out, None), casting=(casting, None))
    parts = [as_operand(x) for x in arrays]
    joined = np.concatenate([shadow_of(x) for x in parts], axis, dtype=dtype)
    if axis is None:
        parts, axis = [np.ravel(x) for x in parts], 0
    parts = [x if shadow_dtype(x) == joined.dtype else astype(x, joined.dtype) for x in parts]
    return apply(shapes.concatenate, parts, axis=axis % joined.ndim)


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    only_default("stack", out=(out, None), casting=(casting, None))
    parts = [as_operand(x) for x in arrays]
    n = np.ndim(shadow_of(parts[0])) + 1
    return concatenate([np.expand_dims(x, axis % n) for x in parts], axis % n, dtype=dtype)
