"""NumPy functions that are not ufuncs, written as compositions of primitives and of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops import elementwise as ops
from ..ops import linear, reduce
from ..ops import shape as shapes
from .array import Tracer, apply, shadow_of
from .creation import full
from .trace import unsupported
from .ufuncs import as_operand, astype, copy

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
Axis = Any


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorated function stands for these NumPy functions when an argument is traced."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.update((f, handler) for f in functions)
        return handler

    return register


def axes_of(x: Any, axis: Axis) -> tuple[int, ...]:
    """Axes as a tuple of non-negative ints; None means all."""
    n = np.ndim(shadow_of(x))
    if axis is None:
        return tuple(range(n))
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, n))


def _no(name: str, **given: Any) -> None:
    for option, (value, default) in given.items():
        if value is not default:
            raise unsupported(f"np.{name} with {option}=", f"leave {option}= out")


def _dims(value: Any) -> bool:
    return bool(value) if value is not np._NoValue else False


@implements(np.sum)
def sum_(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    _no("sum", out=(out, None), initial=(initial, np._NoValue), where=(where, np._NoValue))
    wanted = np.dtype(dtype) if dtype is not None else np.add.reduce(np.zeros(1, shadow_dtype(a))).dtype
    a = a if a.dtype == wanted else astype(a, wanted)
    return _reduce(reduce.sum_, a, axis, keepdims)


def shadow_dtype(x: Any) -> np.dtype[Any]:
    return np.asarray(shadow_of(x)).dtype


def _reduce(prim: Any, a: Any, axis: Axis, keepdims: Any) -> Any:
    return apply(prim, [as_array(a)], axis=axes_of(a, axis), keepdims=_dims(keepdims))


def as_array(x: Any) -> Any:
    """A Python number as a 0-d array, as NumPy functions see it."""
    if isinstance(x, Tracer) and not isinstance(x.shadow, (np.ndarray, np.generic)):
        return apply(ops.cast, [x], aval=Aval((), x.dtype))
    return x


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    _no("max", out=(out, None), initial=(initial, np._NoValue), where=(where, np._NoValue))
    return _reduce(reduce.max_, a, axis, keepdims)


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = np._NoValue,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    _no("min", out=(out, None), initial=(initial, np._NoValue), where=(where, np._NoValue))
    return _reduce(reduce.min_, a, axis, keepdims)


@implements(np.mean)
def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = np._NoValue
) -> Any:
    _no("mean", out=(out, None), where=(where, np._NoValue))
    count = int(np.prod([np.shape(shadow_of(a))[i] for i in axes_of(a, axis)], dtype=int))
    kind = np.dtype(dtype) if dtype is not None else np.mean(np.zeros(1, shadow_dtype(a))).dtype
    wide = np.dtype(np.float32) if kind == np.float16 and dtype is None else kind
    total = sum_(a, axis, wide, keepdims=keepdims)
    return astype(total / count, kind) if wide != kind else total / count


@implements(np.argmax)
def argmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return _arg(reduce.argmax, a, axis, out, keepdims)


@implements(np.argmin)
def argmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return _arg(reduce.argmin, a, axis, out, keepdims)


def _arg(prim: Any, a: Any, axis: Axis, out: Any, keepdims: Any) -> Any:
    _no(prim.name, out=(out, None))
    x = ravel(a) if axis is None else a
    (k,) = axes_of(x, 0 if axis is None else axis)
    found = apply(prim, [x], axis=k)
    if not _dims(keepdims):
        return found
    return reshape(found, tuple(1 if axis is None or i == k else n for i, n in enumerate(a.shape)))


@implements(np.matmul)
def matmul(a: Any, b: Any) -> Any:
    a, b = as_operand(a), as_operand(b)
    result = np.result_type(shadow_dtype(a), shadow_dtype(b))
    a, b = (x if shadow_dtype(x) == result else astype(x, result) for x in (a, b))
    m, n = np.ndim(shadow_of(a)), np.ndim(shadow_of(b))
    if not (m and n):
        raise ValueError("matmul: Input operand does not have enough dimensions")
    if max(m, n) > 2 or min(m, n) == 2:
        return _stacked_matmul(a, b, m, n)
    return apply(linear.matmul, [a, b])


def _stacked_matmul(a: Any, b: Any, m: int, n: int) -> Any:
    np.matmul(shadow_of(a), shadow_of(b))  # NumPy's own error where the shapes do not fit
    if m <= 2 and n <= 2:
        return apply(linear.matmul, [a, b])
    if m > 2 and n == 2:
        flat = matmul(reshape(a, (-1, a.shape[-1])), b)
        return reshape(flat, (*a.shape[:-1], b.shape[-1]))
    if m == 1:
        out = _stacked_matmul(reshape(a, (1, -1)), b, 2, n)
        return reshape(out, (*out.shape[:-2], out.shape[-1]))
    if n == 1:
        out = matmul(a, reshape(b, (-1, 1)))
        return reshape(out, out.shape[:-1])
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
    return apply(linear.matmul, [a, b])


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    _no("dot", out=(out, None))
    m, n = np.ndim(shadow_of(a)), np.ndim(shadow_of(b))
    if m == 0 or n == 0:
        return np.multiply(a, b)
    if n <= 2:
        return matmul(a, b)
    raise unsupported("np.dot with an operand of three or more axes", "use np.matmul or np.tensordot")


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: Any = None) -> Any:
    _no("reshape", order=(order, "C"), copy=(copy, None))
    target = np.reshape(np.broadcast_to(np.empty(()), np.shape(shadow_of(a))), shape).shape
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
    _no("concatenate", out=(out, None), casting=(casting, None))
    parts = [as_operand(x) for x in arrays]
    joined = np.concatenate([shadow_of(x) for x in parts], axis, dtype=dtype)
    if axis is None:
        parts, axis = [np.ravel(x) for x in parts], 0
    parts = [x if shadow_dtype(x) == joined.dtype else astype(x, joined.dtype) for x in parts]
    return apply(shapes.concatenate, parts, axis=axis % joined.ndim)


@implements(np.stack)
def stack(arrays: Sequence[Any], axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Any:
    _no("stack", out=(out, None), casting=(casting, None))
    parts = [as_operand(x) for x in arrays]
    n = np.ndim(shadow_of(parts[0])) + 1
    return concatenate([np.expand_dims(x, axis % n) for x in parts], axis % n, dtype=dtype)


@implements(np.where)
def where(condition: Any, /, *choices: Any) -> Any:
    if len(choices) != 2:
        raise unsupported("np.where with one argument: its shape depends on data", "give the two choices")
    x, y = map(as_operand, choices)
    condition = as_operand(condition)
    shadow = np.where(shadow_of(condition), shadow_of(x), shadow_of(y))
    if shadow_dtype(condition) != np.bool_:
        condition = np.not_equal(condition, 0)
    return apply(
        ops.where, [_spread(condition, shadow.shape, None), *(_spread(v, shadow.shape, shadow.dtype) for v in (x, y))]
    )


def _spread(x: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An operand with the dtype and shape of a result; numbers become arrays."""
    if not isinstance(x, Tracer):
        x = np.asarray(x, dtype)
        return x if x.shape == shape else np.broadcast_to(x, shape)
    if dtype is not None and x.dtype != dtype:
        x = astype(x, dtype)
    return x if x.shape == shape else broadcast_to(x, shape)


@implements(np.copy)
def copy_(a: Any, order: str = "K", subok: bool = False) -> Any:
    return copy(as_array(a))


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return full_like(a, 1, dtype, order, subok, shape)


@implements(np.empty_like)
def empty_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    return full_like(a, 0, dtype, order, subok, shape)


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    like = np.empty_like(shadow_of(a), dtype, shape=shape)
    return full(like.shape, fill_value, like.dtype)


@implements(np.shape)
def shape_of(a: Any) -> Any:
    return a.shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return int(a.ndim)


@implements(np.size)
def size(a: Any, axis: Axis = None) -> int:
    return int(np.size(shadow_of(a), axis))


@implements(np.result_type)
def result_type(*operands: Any) -> Any:
    return np.result_type(*map(shadow_of, operands))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    return bool(np.iscomplexobj(shadow_of(x)))
