"""Functions that give an array another shape or order of axes, mostly as views: reshape, transpose, broadcast, flip."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops import shape as shapes
from ..tracer.array import Tracer, apply, same_memory, shadow_of
from ..tracer.memory_order import walked
from ..tracer.operands import Axis, as_array, axes_of, lifted, only_default, shadow_dtype
from ..tracer.operands import astype as cast_to
from ..tracer.table import implements
from ..tracer.ufuncs import as_operand, copy


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    shadow = shadow_of(a)
    if order == "A":
        flags = np.asarray(shadow).flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    if order == "F":
        target = np.reshape(np.broadcast_to(np.empty(()), np.shape(shadow)), shape).shape
        return transpose(_reshaped(transpose(a), target[::-1], copy))
    only_default("reshape", order=(order, "C"))
    target = np.reshape(np.broadcast_to(np.empty(()), np.shape(shadow)), shape).shape
    if target == () and isinstance(shadow, np.generic):
        return a  # as NumPy does
    return _reshaped(a, target, copy)


def _reshaped(a: Any, shape: tuple[int, ...], copied: Any) -> Any:
    out = apply(shapes.reshape, [a], aval=Aval(shape, shadow_dtype(a)))
    if copied is None or same_memory(out.shadow, shadow_of(a)) != copied:
        return out
    if not copied:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return copy(out)


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Any:
    (a,) = lifted(a)
    if order == "K" and isinstance(a.shadow, np.ndarray):
        return reshape(transpose(a, walked(a.shadow)), (-1,))
    flat = reshape(a, (-1,), "C" if order == "K" else order)
    return flat if shadow_of(flat).flags.c_contiguous else copy(flat)  # unlike reshape, ravel copies a stretched array


def _permuting(function: Any) -> Any:
    """The handler of a function that permutes axes; it runs on a probe whose axis k has length k."""

    def handler(a: Any, *args: Any, **options: Any) -> Any:
        probe = np.broadcast_to(np.empty(()), tuple(range(np.ndim(shadow_of(a)))))
        axes = function(probe, *args, **options).shape
        return a if isinstance(shadow_of(a), np.generic) else apply(shapes.permute, [as_array(a)], axes=axes)

    return implements(function)(handler)


transpose = _permuting(np.transpose)
swapaxes = _permuting(np.swapaxes)
moveaxis = _permuting(np.moveaxis)
for _function in (np.rollaxis, np.matrix_transpose, np.linalg.matrix_transpose):
    _permuting(_function)


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


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    arrays = lifted(*args)
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x if x.shape == shape and isinstance(x.shadow, np.ndarray) else broadcast_to(x, shape) for x in arrays)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    return _each(lambda x: reshape(x, (1,)) if x.ndim == 0 else x, arys)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    return _each(lambda x: reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x, arys)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    def deep(x: Any) -> Any:
        shape = (1, *x.shape, 1) if x.ndim == 1 else (1,) * (2 - x.ndim) + x.shape + (1,)
        return reshape(x, shape) if x.ndim < 3 else x

    return _each(deep, arys)


def _each(function: Any, arrays: Any) -> Any:
    found = tuple(function(x) for x in lifted(*arrays))
    return found[0] if len(found) == 1 else found


@implements(np.flip)
def flip(m: Any, axis: Axis = None) -> Any:
    m = as_array(m)
    axes = axes_of(m, axis)
    return m[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(m.ndim))]


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return m[:, ::-1]


@implements(np.flipud)
def flipud(m: Any) -> Any:
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return m[::-1, ...]


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    np.rot90(shadow_of(m), k, axes)  # NumPy's own error
    first, second = (a % m.ndim for a in axes)
    if k % 4 == 0:
        return m[:]
    if k % 4 == 2:
        return flip(flip(m, first), second)
    return flip(swapaxes(m, first, second), first) if k % 4 == 1 else swapaxes(flip(m, first), first, second)


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    x = as_operand(x)
    return x if isinstance(x, Tracer) and not copy and x.dtype == dtype else cast_to(x, dtype)
