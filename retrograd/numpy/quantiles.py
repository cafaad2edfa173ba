"""Medians, percentiles and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import quantile as ops
from ..tracer.array import Tracer, apply, shadow_of
from ..tracer.creation import joined
from ..tracer.operands import Axis, axes_of, only_default, truth
from ..tracer.python_numbers import number
from ..tracer.table import implements
from ..tracer.trace import unsupported
from .creation import asarray
from .own_errors import check_by_numpy
from .reductions import ABSENT, array_of, as_dtype, reduced_into, refuse_unsigned
from .shapes import ravel, reshape


class Lines:
    """An array with the axes of a reduction joined into one; it also gives the result its shape."""

    def __init__(self, a: Any, axis: Axis, *, whole: bool = False) -> None:
        x = a if whole or a.dtype.kind not in "iub" else as_dtype(a, np.dtype(float))
        axes = axes_of(x, axis)
        self.kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        if len(axes) == x.ndim:
            self.array, self.axis = x if x.ndim == 1 else ravel(x), 0
        elif len(axes) == 1:
            self.array, self.axis = x, axes[0]
        else:
            moved = np.moveaxis(x, axes, range(-len(axes), 0))
            self.array = reshape(moved, (*moved.shape[: x.ndim - len(axes)], -1))
            self.axis = self.array.ndim - 1

    def shaped(self, found: Any, levels: tuple[int, ...], keepdims: Any, out: Any) -> Any:
        """Shape a result: the axes of levels in front, and kept axes if wanted."""
        rest = self.kept if truth(keepdims) else found.shape[1:] if levels else found.shape
        found = found if found.shape == (*levels, *rest) else reshape(found, (*levels, *rest))
        return reduced_into(out, asarray(found) if truth(keepdims) else found)


@implements(np.median)
def median(a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    a = array_of(a)
    refuse_unsigned("np.median", a, out)
    lines = Lines(a, axis)
    if not a.size:
        return np.mean(a, axis, out=out, keepdims=truth(keepdims))  # so does NumPy
    return lines.shaped(apply(ops.median, [lines.array], axis=lines.axis), (), keepdims, out)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Axis = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = ABSENT) -> Any:
    a = array_of(a)
    refuse_unsigned("np.nanmedian", a, out)
    lines = Lines(a, axis)
    return lines.shaped(apply(ops.nanmedian, [lines.array], axis=lines.axis), (), keepdims, out)


def _quantile(options: tuple[Any, ...], scale: int, skip: bool) -> Any:
    a, q, axis, out, method, keepdims, weights, interpolation = options
    name = f"{'nan' if skip else ''}{'quantile' if scale == 1 else 'percentile'}"
    only_default(name, weights=(weights, None), interpolation=(interpolation, None))
    if method not in (ops.METHODS if not skip else ("linear",)):
        raise unsupported(f"np.{name} with method={method!r}", "use method='linear'")
    q = joined(q)
    if isinstance(q, np.ndarray) and method == "linear" and not skip:
        q = array_of(q, a)  # read at each call
    a = array_of(a, q)
    if a.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    if skip and a.size == 0:
        return np.nanmean(a, axis, None, out, keepdims)  # so does NumPy, whatever the levels
    if out is not None:
        check_by_numpy(getattr(np, name), a, q, axis, out, method=method, keepdims=truth(keepdims))
    example = getattr(np, name)(a.shadow, shadow_of(q), axis, method=method)
    whole = a.dtype.kind in "iub" and example.dtype == a.dtype
    lines = Lines(a, axis, whole=whole)
    if isinstance(q, Tracer) and not q.const:
        if skip or method != "linear":
            raise unsupported(f"np.{name} with a traced level", "use np.quantile with method='linear'")
        levels: Any = q if scale == 1 else np.divide(q, scale)
        weak = not levels.ndim and example.dtype == a.dtype and a.dtype.char in "ef"
        if weak:
            levels = number(levels)  # which counts less than the array
        flat = levels if levels.ndim < 2 else ravel(levels)
        found = apply(ops.quantile_at, [lines.array, flat], axis=lines.axis, weak=weak)
    else:
        levels = np.true_divide(shadow_of(q), scale)
        picked = whole and np.size(levels)
        found = _of_whole(lines, levels, method) if picked else _at_known(lines, levels, method, skip, example.dtype)
    return lines.shaped(as_dtype(found, example.dtype), levels.shape, keepdims, out)


def _at_known(lines: Lines, levels: Any, method: str, skip: bool, dtype: Any) -> Any:
    """Quantiles at plain numbers; of narrow numbers NumPy interpolates in double, but takes differences in theirs."""
    rows = np.asarray(levels, float).reshape(-1).tolist()
    if not skip or not rows:
        several = levels.ndim or dtype != lines.array.dtype
        found = apply(
            ops.quantile, [lines.array], axis=lines.axis, q=tuple(rows) if several else rows[0], method=method
        )
        return found[0] if several and not levels.ndim else found
    array = as_dtype(lines.array, dtype)
    each = [apply(ops.nanquantile, [array], axis=lines.axis, q=row) for row in rows]
    return np.stack(each) if levels.ndim else each[0]


def _of_whole(lines: Lines, levels: Any, method: str) -> Any:
    """Elements of an array of integers or bools, where NumPy gives these and no number between two."""
    ordered: Any = np.sort(lines.array, axis=lines.axis)
    places = [ops.position(ordered.shape[lines.axis], q, method)[0] for q in np.asarray(levels, float).reshape(-1)]
    found = [ordered[(*(slice(None),) * lines.axis, int(k))] for k in places]
    return np.stack(found) if levels.ndim else found[0]


@implements(np.quantile)
def quantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
    interpolation: Any = None,
) -> Any:
    return _quantile((a, q, axis, out, method, keepdims, weights, interpolation), 1, skip=False)


@implements(np.percentile)
def percentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
    interpolation: Any = None,
) -> Any:
    return _quantile((a, q, axis, out, method, keepdims, weights, interpolation), 100, skip=False)


@implements(np.nanquantile)
def nanquantile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = ABSENT,
    *,
    weights: Any = None,
    interpolation: Any = None,
) -> Any:
    return _quantile((a, q, axis, out, method, keepdims, weights, interpolation), 1, skip=True)


@implements(np.nanpercentile)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Axis = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = ABSENT,
    *,
    weights: Any = None,
    interpolation: Any = None,
) -> Any:
    return _quantile((a, q, axis, out, method, keepdims, weights, interpolation), 100, skip=True)
