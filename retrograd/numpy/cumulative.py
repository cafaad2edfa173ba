"""Running sums and products, differences, gradients on a grid, and the trapezoidal rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import cumulative
from ..tracer.array import apply, shadow_of
from ..tracer.operands import Axis, as_array, axes_of, axis_of, into, shadow_dtype
from ..tracer.table import implements
from ..tracer.ufuncs import as_operand, copy
from .reductions import ABSENT, array_of, as_dtype, reduced_into, summed_in, widened
from .shapes import ravel


def accumulated(prim: Any, a: Any, axis: Axis) -> Any:
    """A running reduction along an axis, or over the flat array if ``axis`` is None."""
    a = as_array(a)
    x = ravel(a) if axis is None or a.ndim == 0 else a
    return apply(prim, [x], axis=axis_of(x, 0 if axis is None else axis), reverse=False)


def _running(prim: Any, ufunc: Any, a: Any, axis: Axis, dtype: Any, out: Any) -> Any:
    a = as_array(a)
    wanted = summed_in(ufunc, a, dtype, out)
    return reduced_into(out, as_dtype(accumulated(prim, widened(ufunc, a, wanted), axis), wanted))


@implements(np.cumsum)
def cumsum(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None) -> Any:
    return _running(cumulative.cumsum, np.add, a, axis, dtype, out)


@implements(np.cumprod)
def cumprod(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None) -> Any:
    return _running(cumulative.cumprod, np.multiply, a, axis, dtype, out)


def _standard(running: Any, first: int, x: Any, axis: Axis, dtype: Any, include_initial: bool) -> Any:
    """Follow the array standard: ``axis`` is required unless there is only one, and ``first`` may come first."""
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    found = running(x, axis, dtype)
    if axis is None and x.ndim > 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    if not include_initial:
        return found
    k = axis_of(found, 0 if axis is None else axis)
    front = np.full((*found.shape[:k], 1, *found.shape[k + 1 :]), first, found.dtype)
    return np.concatenate([front, found], k)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Axis = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return into(out, _standard(cumsum, 0, x, axis, dtype, include_initial))


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Axis = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    return into(out, _standard(cumprod, 1, x, axis, dtype, include_initial))


def _part(x: Any, axis: int, start: Any, stop: Any) -> Any:
    return x[cumulative.along(axis, slice(start, stop))]


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = ABSENT, append: Any = ABSENT) -> Any:
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = array_of(a, prepend, append)
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    k = axis_of(a, axis)
    ends = [_end(x, a, k) for x in (prepend, append)]
    if any(end is not None for end in ends):
        a = np.concatenate([x for x in (ends[0], a, ends[1]) if x is not None], k)
    for _ in range(n):
        later, earlier = _part(a, k, 1, None), _part(a, k, None, -1)
        a = np.not_equal(later, earlier) if a.dtype == np.bool_ else np.subtract(later, earlier)
    return a


def _end(x: Any, a: Any, axis: int) -> Any:
    """An entry to put before or after the array: a number is repeated along the other axes."""
    if x is ABSENT:
        return None
    x = as_operand(x)
    if np.ndim(shadow_of(x)) == 0:
        return np.broadcast_to(x, (*a.shape[:axis], 1, *a.shape[axis + 1 :]))
    return x


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ends = [None if end is None else np.ravel(as_operand(end)) for end in (to_begin, to_end)]
    x = ravel(array_of(ary, *ends))
    found = np.subtract(x[1:], x[:-1])
    for name, end in zip(("to_begin", "to_end"), ends, strict=True):
        if end is not None and not np.can_cast(shadow_dtype(end), found.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
    parts = [as_dtype(x, found.dtype) for x in (ends[0], found, ends[1]) if x is not None]
    return np.concatenate(parts) if len(parts) > 1 else found


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = array_of(y, x, dx)
    k = axis_of(y, axis)
    steps = dx
    if x is not None:
        x = array_of(x, y)
        steps = _on_axis(diff(x), k, y.ndim) if x.ndim == 1 else diff(x, axis=axis)
    return np.sum(steps * (_part(y, k, 1, None) + _part(y, k, None, -1)) / 2.0, axis)


def _on_axis(v: Any, axis: int, ndim: int) -> Any:
    """Reshape a vector to lie along one axis of arrays with ``ndim`` axes."""
    return np.reshape(v, (-1, *(1,) * (ndim - 1 - axis)))


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Axis = None, edge_order: Any = 1) -> Any:
    varargs = tuple(map(as_operand, varargs))
    f = array_of(f, *varargs)
    axes = axes_of(f, axis)
    np.gradient(
        np.ones(f.shape), *(shadow_of(h) for h in varargs), axis=axis, edge_order=edge_order
    )  # NumPy's own errors
    spacings = varargs * len(axes) if len(varargs) == 1 else varargs or (1.0,) * len(axes)
    x = as_dtype(f, np.dtype(float)) if f.dtype.kind in "iu" else f
    kind = x.dtype if x.dtype.kind in "fc" else np.dtype(float)
    found = tuple(as_dtype(_slope(x, h, k, edge_order), kind) for k, h in zip(axes, spacings, strict=True))
    found = tuple(copy(x, "F" if f.shadow.flags.fnc else "C") for x in found)
    return found[0] if len(found) == 1 else found


def _slope(f: Any, spacing: Any, k: int, edge_order: int) -> Any:
    """The derivative along one axis: of second order inside, of ``edge_order`` at the ends."""
    before, at, after = _part(f, k, None, -2), _part(f, k, 1, -1), _part(f, k, 2, None)
    h = _steps(f, spacing)
    if np.ndim(shadow_of(h)) == 0:
        inside = (after - before) / (2.0 * h)
        first: tuple[Any, ...] = (h,)
        last: tuple[Any, ...] = (h,)
        if edge_order == 2:
            first, last = (-1.5 / h, 2.0 / h, -0.5 / h), (0.5 / h, -2.0 / h, 1.5 / h)
    else:
        h = _on_axis(h, k, f.ndim)
        p, q = h[:-1], h[1:]
        inside = -q / (p * (p + q)) * before + (q - p) / (p * q) * at + p / (q * (p + q)) * after
        first, last = (h[:1],), (h[-1:],)
        if edge_order == 2:
            p, q = h[:1], h[1:2]
            first = (-(2.0 * p + q) / (p * (p + q)), (p + q) / (p * q), -p / (q * (p + q)))
            p, q = h[-2:-1], h[-1:]
            last = (q / (p * (p + q)), -(q + p) / (p * q), (2.0 * q + p) / (q * (p + q)))
    ends = (_at_end(f, k, 0, first), _at_end(f, k, f.shape[k] - len(last) - (edge_order == 1), last))
    return np.concatenate([ends[0], inside, ends[1]], k)


def _at_end(f: Any, k: int, start: int, weights: tuple[Any, ...]) -> Any:
    """The difference of two neighbours, or the sum of three entries with weights."""
    if len(weights) == 1:
        return (_part(f, k, start + 1, start + 2) - _part(f, k, start, start + 1)) / weights[0]
    x, y, z = (weight * _part(f, k, start + i, start + i + 1) for i, weight in enumerate(weights))
    return x + y + z


def _steps(f: Any, spacing: Any) -> Any:
    """The step, or all steps between the coordinates if they are not known to be equal."""
    if np.ndim(shadow_of(spacing)) == 0:
        return spacing
    x = array_of(spacing, f)
    steps = diff(as_dtype(x, np.dtype(float)) if x.dtype.kind in "iu" else x)
    steps = as_dtype(steps, np.dtype(float)) if x.dtype.kind == "b" else steps
    known = shadow_of(steps)
    return known[0] if steps.const and (known == known[0]).all() else steps
