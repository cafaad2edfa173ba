"""Reductions: sum, prod, max, any, argmax, ..., and the statistics that are made of them."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..ir.types import Aval
from ..ops import further_reductions as ops
from ..ops import reduce
from ..ops.cumulative import prod as prod_
from ..ops.elementwise import cast
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.operands import Axis, as_array, astype, axes_of, axis_of, into, lifted, shadow_dtype, truth
from ..tracer.table import implements
from ..tracer.trace import MADE_UP, unsupported
from ..tracer.ufuncs import name_of
from .shapes import ravel, reshape

ABSENT = np._NoValue


def given(value: Any) -> bool:
    """Whether an option was given; ``initial=None`` counts as not given."""
    return value is not ABSENT and value is not None


def masking(where: Any) -> bool:
    """Whether ``where=`` leaves elements out; ``where=True`` does not."""
    return given(where) and where is not True


def array_of(a: Any, *others: Any) -> Any:
    """The operand as a traced array; if it is not traced, one of ``others`` is."""
    if type(a) is Tracer and isinstance(a.shadow, ndarray):
        return a
    return lifted(a, *(x for x in others if isinstance(x, Tracer)))[0]


def as_dtype(a: Any, dtype: Any) -> Any:
    """Cast ``a`` to a dtype, unless it has that already."""
    if not isinstance(a, Tracer):
        return np.asarray(a, dtype)[()]
    return a if a.dtype == dtype else astype(a, dtype)


def axes_over(a: Any, axis: Axis) -> tuple[int, ...]:
    """The axes of a ufunc's reduction in their order, which accepts 0 and -1 for a 0-d array."""
    if isinstance(axis, list):
        np.add.reduce(np.zeros(1), axis=axis)  # NumPy's own error
    return () if axis in (0, -1) and np.ndim(shadow_of(a)) == 0 else tuple(sorted(axes_of(a, axis)))


def over(prim: Any, a: Any, axis: Axis, keepdims: Any) -> Any:
    """Record a reduction primitive over axes as NumPy's functions take them."""
    return apply(prim, [as_array(a)], axis=axes_over(a, axis), keepdims=truth(keepdims))


def masked(a: Any, where: Any, neutral: Any) -> Any:
    """``a``, with the neutral element where ``where`` is False."""
    if not masking(where):
        return a
    np.broadcast_to(shadow_of(where), a.shape)  # NumPy's own error: a mask does not stretch the array
    return np.where(where, a, np.asarray(neutral).astype(a.dtype)[()])


def begun(ufunc: Any, result: Any, initial: Any) -> Any:
    """Combine the initial value of the reduction with the result, in this order: it decides which zero is taken."""
    if not given(initial):
        return result
    dtype = shadow_dtype(result)
    ufunc.reduce(np.ones(1, dtype), initial=shadow_of(initial))  # NumPy's own error for a number of another kind
    return ufunc(as_dtype(initial, dtype), result)


@cache
def accumulator(ufunc: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which NumPy accumulates elements of a dtype by default."""
    return ufunc.reduce(np.zeros(1, dtype)).dtype  # type: ignore[no-any-return]  # NumPy does not say


def summed_in(ufunc: Any, a: Any, dtype: Any, out: Any) -> Any:
    """The dtype in which NumPy sums or multiplies: that of ``out`` if it is wider."""
    if dtype is not None:
        return np.dtype(dtype)
    if out is None:
        return accumulator(ufunc, a.dtype)
    return np.result_type(a.dtype, out.dtype)


def widened(ufunc: Any, a: Any, wanted: np.dtype[Any]) -> Any:
    """``a`` cast to the dtype to sum in, and then to one that NumPy sums in by default.

    Sums and products of narrow integers, cast to their dtype, are what NumPy gives in that dtype.
    """
    a = as_dtype(a, wanted)
    return as_dtype(a, accumulator(ufunc, wanted)) if wanted.kind in "biu" else a


def reduced_into(out: Any, result: Any) -> Any:
    """Write a reduction into ``out``, if one is given; NumPy casts there also where digits or signs are lost."""
    return into(out, as_dtype(result, out.dtype) if isinstance(out, Tracer) else result)


def refuse_unsigned(name: str, a: Any, out: Any) -> None:
    """Refuse to write numbers that may be negative into unsigned ones: NumPy casts some of them before it goes on."""
    if isinstance(out, Tracer) and out.dtype.kind == "u" and not np.can_cast(a.dtype, out.dtype, "same_kind"):
        raise unsupported(f"{name} of {a.dtype} into {out.dtype}", "leave out= out, and cast the result by astype")


def _started(out: Any, dtype: np.dtype[Any], initial: Any) -> Any:
    """The initial value of a reduction in a dtype; NumPy writes it into ``out`` first."""
    if not given(initial) or not isinstance(out, Tracer) or np.can_cast(dtype, out.dtype):
        return initial
    return astype(initial, out.dtype) if isinstance(initial, Tracer) else np.asarray(initial).astype(out.dtype)[()]


def _accumulating(prim: Any, ufunc: Any, neutral: int, options: tuple[Any, ...]) -> Any:
    a, axis, dtype, out, keepdims, initial, where = options
    a = array_of(a, initial, where)
    wanted = summed_in(ufunc, a, dtype, out)
    initial = _started(out, wanted, initial)
    if given(initial) and not math.prod(a.shape[i] for i in axes_over(a, axis)):
        ufunc.reduce(np.ones(1, wanted), initial=shadow_of(initial))  # NumPy's own error for one of another kind
        shape = over(ops.any_, a, axis, keepdims).shape
        alone = as_dtype(initial, wanted)
        return reduced_into(out, np.copy(np.broadcast_to(alone, shape)) if shape else as_array(alone)[()])
    if a.dtype.kind == "b" and prim is reduce.sum_ and wanted == np.intp:
        prim = ops.count
        return reduced_into(out, begun(ufunc, over(prim, masked(a, where, neutral), axis, keepdims), initial))
    found = over(prim, masked(widened(ufunc, a, wanted), where, neutral), axis, keepdims)
    return reduced_into(out, begun(ufunc, as_dtype(found, wanted), initial))


@implements(np.sum)
def sum_(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = ABSENT,
) -> Any:
    return _accumulating(reduce.sum_, np.add, 0, (a, axis, dtype, out, keepdims, initial, where))


@implements(np.prod)
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = ABSENT,
    where: Any = ABSENT,
) -> Any:
    return _accumulating(prod_, np.multiply, 1, (a, axis, dtype, out, keepdims, initial, where))


def extremum(prim: Any, ufunc: Any, options: tuple[Any, ...]) -> Any:
    """``max`` and its like, which have no neutral element: ``initial`` takes its place."""
    a, axis, out, keepdims, initial, where = options
    a = array_of(a, initial, where)
    if masking(where) and not given(initial):
        ufunc.reduce(shadow_of(a), axis, where=shadow_of(where))  # NumPy's own error
    refuse_unsigned(f"{name_of(ufunc)}.reduce", a, out)
    initial = _started(out, a.dtype, initial)
    if given(initial):
        ufunc.reduce(np.ones(1, a.dtype), initial=shadow_of(initial))  # NumPy's own error for one of another kind
    if given(initial) and not math.prod(a.shape[i] for i in axes_over(a, axis)):
        nothing = over(reduce.sum_, as_dtype(a, np.dtype(float)), axis, keepdims)
        return reduced_into(out, as_dtype(nothing + initial, a.dtype))
    if masking(where):
        a = np.where(where, a, as_dtype(initial, a.dtype))
    return reduced_into(out, begun(ufunc, over(prim, a, axis, keepdims), initial))


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    return extremum(ops.max_, np.maximum, (a, axis, out, keepdims, initial, where))


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    return extremum(ops.min_, np.minimum, (a, axis, out, keepdims, initial, where))


@implements(np.ptp)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    keepdims = truth(keepdims)
    return into(out, np.max(a, axis, out, keepdims) - np.min(a, axis, keepdims=keepdims))


@implements(np.any)
def any_(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = ABSENT) -> Any:
    return reduced_into(out, over(ops.any_, masked(array_of(a, where), where, 0), axis, keepdims))


@implements(np.all)
def all_(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = ABSENT) -> Any:
    return reduced_into(out, over(ops.all_, masked(array_of(a, where), where, 1), axis, keepdims))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    a = as_array(a)
    count = np.sum(a if a.dtype == np.bool_ else np.not_equal(a, 0), axis, np.intp, keepdims=keepdims)
    if axis is None and not keepdims and isinstance(np.count_nonzero(()), int):  # not since NumPy 2.4
        return apply(cast, [count], aval=Aval((), count.dtype, "python"))
    return count


def counted(a: Any, axis: Axis, keepdims: Any, where: Any) -> Any:
    """The number of elements that take part: an int, or an array if there is a mask."""
    if not masking(where):
        return math.prod(a.shape[i] for i in axes_of(a, axis))
    mask = np.broadcast_to(array_of(where, a), a.shape)  # read at each call, as the array itself is
    return np.sum(mask, axis, np.intp, keepdims=truth(keepdims))


def divided(total: Any, count: Any) -> Any:
    """A total divided by a count, in the dtype of the total; NumPy divides in the common dtype with integers."""
    dtype = shadow_dtype(total)
    if dtype.kind in "iu" and shadow_dtype(count).kind == "f":  # a count of degrees of freedom
        return as_dtype(total / count, dtype)
    if dtype in (np.float16, np.complex64):  # whose quotients are others, or which cannot hold the count
        return as_dtype(total / (np.float64(count) if isinstance(count, (int, float)) else count), dtype)
    return as_dtype(total / (count if isinstance(count, int) else as_dtype(count, dtype)), dtype)


@implements(np.mean)
def mean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = ABSENT
) -> Any:
    a = array_of(a, where)
    kind = np.dtype(dtype) if dtype is not None else np.mean(np.zeros(1, a.dtype)).dtype
    if dtype is None and kind != a.dtype:
        dtype = kind
    elif dtype is None and kind == np.float16:
        dtype = np.dtype(np.float32)
    total = np.sum(a, axis, dtype, out, keepdims=truth(keepdims), where=where)
    found = divided(total, counted(a, axis, keepdims, where))
    return as_dtype(found, kind) if out is None else reduced_into(out, found)


def magnitude(c: Any) -> Any:
    """The squares of the absolute values."""
    return np.square(np.real(c)) + np.square(np.imag(c)) if c.dtype.kind == "c" else np.square(c)


@implements(np.var)
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = ABSENT,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    a = array_of(a, where, mean)
    if dtype is None and a.dtype.kind in "iub":
        dtype = np.dtype(float)
    if given(mean):
        center = mean
    else:
        kept = axis != 0 or truth(keepdims) or given(where)  # else the same sum as that of a mean beside it
        total = np.sum(a, axis, dtype, keepdims=kept, where=where)
        center = divided(total, counted(a, axis, kept, where))
    off = a - center
    mixed = off.dtype.kind == "c" and a.dtype.kind in "iuf"  # real numbers and a complex mean
    squares = np.multiply(off, off) if mixed else magnitude(off)
    total = np.sum(squares, axis, dtype, out, keepdims=truth(keepdims), where=where)
    free = counted(a, axis, keepdims, where) - freedom(ddof, correction)
    return reduced_into(out, divided(total, max(free, 0) if isinstance(free, (int, float)) else np.maximum(free, 0)))


def freedom(ddof: Any, correction: Any) -> Any:
    """The number to subtract from the count; NumPy has two names for it."""
    if correction is ABSENT:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@implements(np.std)
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = ABSENT,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    spread = var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    return into(out, deviation(spread))


def deviation(spread: Any) -> Any:
    """The root of a variance, which may be an integer; NumPy takes no roots of arrays of those."""
    if spread.dtype.kind == "f":
        return apply(ops.root, [spread])
    if isinstance(spread.shadow, ndarray):
        np.sqrt(np.ones(1), out=np.ones(1, spread.dtype))  # NumPy's own error
    return as_dtype(np.sqrt(spread), spread.dtype)


@implements(np.average)
def average(a: Any, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    a = array_of(a, weights)
    keepdims = truth(keepdims)
    if weights is None:
        found = np.mean(a, axis, keepdims=keepdims)
        scale: Any = a.size / np.size(shadow_of(found))
    else:
        weights = array_of(weights, a)
        np.average(np.ones(a.shape), axis, np.ones(weights.shape))  # NumPy's own error for shapes that do not fit
        kinds = (a.dtype, weights.dtype, *([np.dtype(float)] if a.dtype.kind in "iub" else []))
        weights = _spread_weights(a, weights, axis)
        scale = np.sum(weights, axis, np.result_type(*kinds), keepdims=keepdims)
        if np.any(shadow_of(scale) == 0) and not MADE_UP.get():
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        product = np.multiply(as_dtype(a, np.result_type(*kinds)), as_dtype(weights, np.result_type(*kinds)))
        found = np.sum(product, axis, keepdims=keepdims) / scale
    if not returned:
        return found
    scale = as_dtype(scale, shadow_dtype(found)) if isinstance(scale, Tracer) else shadow_dtype(found).type(scale)
    shape = np.shape(shadow_of(found))
    return found, np.copy(np.broadcast_to(scale, shape)) if shape else scale


def _spread_weights(a: Any, weights: Any, axis: Axis) -> Any:
    """Stretch the weights of some axes over the whole array."""
    if weights.shape == a.shape:
        return weights
    axes = axes_of(a, axis)
    turned = np.transpose(weights, np.argsort(axes))
    shape = tuple(n if i in axes else 1 for i, n in enumerate(a.shape))
    return np.reshape(turned, shape)


@implements(np.argmax)
def argmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return place_into(out, extremum_place(ops.argmax, a, axis, keepdims))


@implements(np.argmin)
def argmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = False) -> Any:
    return place_into(out, extremum_place(ops.argmin, a, axis, keepdims))


def place_into(out: Any, place: Any) -> Any:
    """Write places into ``out``, if one is given: NumPy asks whether its dtype can be cast to theirs."""
    if out is not None:
        np.argmax(np.zeros(1), out=np.zeros((), shadow_dtype(out)))  # NumPy's own error
    return reduced_into(out, place)


def extremum_place(prim: Any, a: Any, axis: Axis, keepdims: Any) -> Any:
    """``argmax`` and its like."""
    x = ravel(a) if axis is None or a.ndim == 0 else as_array(a)
    k = axis_of(x, 0 if axis is None else axis)
    found = apply(prim, [x], axis=k)
    if not truth(keepdims):
        return found
    return reshape(found, tuple(1 if axis is None or i == k else n for i, n in enumerate(a.shape)))
