"""Reductions and running totals that skip NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import further_reductions as ops
from ..tracer.operands import Axis, into, shadow_dtype, truth
from ..tracer.table import implements
from .reductions import (
    ABSENT,
    array_of,
    as_dtype,
    deviation,
    divided,
    extremum,
    extremum_place,
    freedom,
    given,
    magnitude,
)


def _filled(a: Any, value: float, *others: Any) -> tuple[Any, Any]:
    """``a`` with NaN replaced, and a mask of their positions; None if its dtype holds no NaN."""
    a = array_of(a, *others)
    if a.dtype.kind not in "fc":
        return a, None
    nan = np.isnan(a)
    return np.where(nan, np.asarray(value, a.dtype)[()], a), nan


@implements(np.nansum)
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = ABSENT,
    initial: Any = ABSENT,
    where: Any = ABSENT,
) -> Any:
    return np.sum(_filled(a, 0, initial, where)[0], axis, dtype, out, truth(keepdims), initial, where)


@implements(np.nanprod)
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = ABSENT,
    initial: Any = ABSENT,
    where: Any = ABSENT,
) -> Any:
    return np.prod(_filled(a, 1, initial, where)[0], axis, dtype, out, truth(keepdims), initial, where)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumsum(_filled(a, 0)[0], axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None) -> Any:
    return np.cumprod(_filled(a, 1)[0], axis, dtype, out)


@implements(np.nanmax)
def nanmax(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    return extremum(ops.nanmax, np.fmax, (a, axis, out, keepdims, initial, where))


@implements(np.nanmin)
def nanmin(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    return extremum(ops.nanmin, np.fmin, (a, axis, out, keepdims, initial, where))


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = ABSENT) -> Any:
    return into(out, extremum_place(ops.nanargmax, a, axis, keepdims))


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = ABSENT) -> Any:
    return into(out, extremum_place(ops.nanargmin, a, axis, keepdims))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = ABSENT, *, where: Any = ABSENT
) -> Any:
    np.nanmean(np.zeros(1, shadow_dtype(a)), dtype=dtype)  # NumPy's own error
    filled, nan = _filled(a, 0, where)
    if nan is None:
        return np.mean(filled, axis, dtype, out, truth(keepdims), where=where)
    count = np.sum(np.logical_not(nan), axis, np.intp, keepdims=truth(keepdims), where=where)
    return into(out, divided(np.sum(filled, axis, dtype, keepdims=truth(keepdims), where=where), count))


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = ABSENT,
    *,
    where: Any = ABSENT,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    np.nanvar(np.zeros(1, shadow_dtype(a)), dtype=dtype)  # NumPy's own error
    filled, nan = _filled(a, 0, where, mean)
    ddof = freedom(ddof, correction)
    if nan is None:
        return np.var(filled, axis, dtype, out, ddof, truth(keepdims), where=where, mean=mean)
    present = np.logical_not(nan)
    if given(mean):
        center = mean
    else:
        count = np.sum(present, axis, np.intp, keepdims=True, where=where)
        center = divided(np.sum(filled, axis, dtype, keepdims=True, where=where), count)
    off = np.where(nan, 0, as_dtype(filled - center, filled.dtype))
    total = np.sum(magnitude(off), axis, dtype, keepdims=truth(keepdims), where=where)
    free = as_dtype(np.sum(present, axis, np.intp, keepdims=truth(keepdims), where=where) - ddof, total.dtype)
    return into(out, divided(total, np.where(free <= 0, np.asarray(np.nan, total.dtype)[()], free)))


@implements(np.nanstd)
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = ABSENT,
    *,
    where: Any = ABSENT,
    mean: Any = ABSENT,
    correction: Any = ABSENT,
) -> Any:
    spread = nanvar(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    return into(out, deviation(spread))
