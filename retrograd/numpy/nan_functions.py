"""Reductions and running totals that skip NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import further_reductions as ops
from ..tracer.array import shadow_of
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
    masking,
    place_into,
    reduced_into,
)


def _filled(a: Any, value: float, *others: Any) -> tuple[Any, Any]:
    """``a`` with NaN replaced, and a mask of their positions; None if its dtype holds no NaN."""
    a = array_of(a, *others)
    if a.dtype.kind not in "fc":
        return a, None
    nan = np.isnan(a)
    return np.where(nan, np.asarray(value, a.dtype)[()], a), nan


def _like(out: Any) -> Any:
    """A number's array of the dtype of ``out``."""
    return None if out is None else np.zeros((), shadow_dtype(out))


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


def _extremum(prim: Any, ufunc: Any, options: tuple[Any, ...]) -> Any:
    """``nanmax`` and its like; of numbers NumPy gives NaN where nothing else is left, whatever ``initial`` is."""
    a, axis, out, keepdims, initial, where = options
    found = extremum(prim, ufunc, options)
    filled, nan = _filled(a, 0, initial, where)
    plain = filled.dtype.kind == "f" and not given(initial) and not masking(where)
    if plain or nan is None or isinstance(shadow_of(a), np.ndarray):
        return found
    nothing = np.all(nan, axis, keepdims=truth(keepdims), where=where)
    marked = np.where(nothing, np.asarray(np.nan, filled.dtype)[()], found)
    return reduced_into(out, marked if found.ndim else marked[()])


@implements(np.nanmax)
def nanmax(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    return _extremum(ops.nanmax, np.fmax, (a, axis, out, keepdims, initial, where))


@implements(np.nanmin)
def nanmin(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = ABSENT, initial: Any = ABSENT, where: Any = ABSENT
) -> Any:
    return _extremum(ops.nanmin, np.fmin, (a, axis, out, keepdims, initial, where))


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = ABSENT) -> Any:
    return place_into(out, extremum_place(ops.nanargmax, a, axis, keepdims))


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Axis = None, out: Any = None, *, keepdims: Any = ABSENT) -> Any:
    return place_into(out, extremum_place(ops.nanargmin, a, axis, keepdims))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: Any = ABSENT, *, where: Any = ABSENT
) -> Any:
    np.nanmean(np.zeros(1, shadow_dtype(a)), dtype=dtype, out=_like(out))  # NumPy's own error
    filled, nan = _filled(a, 0, where)
    if nan is None:
        return np.mean(filled, axis, dtype, out, truth(keepdims), where=where)
    count = np.sum(np.logical_not(nan), axis, np.intp, keepdims=truth(keepdims), where=where)
    total = np.sum(filled, axis, dtype, out, keepdims=truth(keepdims), where=where)
    return reduced_into(out, divided(total, count))


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
    np.nanvar(np.zeros(1, shadow_dtype(a)), dtype=dtype, out=_like(out))  # NumPy's own error
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
    squares = np.real(off * np.conj(off)) if off.dtype.kind == "c" else np.multiply(off, off)
    total = np.sum(squares, axis, dtype, out, keepdims=truth(keepdims), where=where)
    free = np.sum(present, axis, np.intp, keepdims=truth(keepdims), where=where) - ddof
    found = divided(total, np.where(free > 0, free, np.nan))
    if found.dtype.kind == "c":
        found = np.where(free > 0, found, np.nan)
        found = found if found.ndim else found[()]
    return reduced_into(out, found)


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
    spread = nanvar(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    return into(out, deviation(spread))
