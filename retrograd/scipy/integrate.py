"""Quadrature of samples under the names of ``scipy.integrate``, for traced samples and points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numpy.reductions import as_dtype
from ..tracer.array import shadow_of
from ..tracer.operands import shadow_dtype
from ..tracer.ufuncs import as_operand
from .dispatch import double, inexact, rest_of, stands_for
from .ode import odeint, solve_ivp

__all__ = ["cumulative_trapezoid", "odeint", "simpson", "solve_ivp", "trapezoid"]
__getattr__ = rest_of("scipy.integrate")


def _steps(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """The distances between samples along the last axis, which ``y`` must have there; dx if no points are given."""
    n = np.shape(shadow_of(y))[-1]
    if x is None:
        return dx
    x = inexact(x)
    x = x if x.ndim == 1 else np.moveaxis(x, axis, -1)
    if x.shape[-1] != n:
        raise ValueError(f"x has {x.shape[-1]} points, but y has {n} samples")
    return np.diff(x)


@stands_for("scipy.integrate.trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The trapezoidal rule."""
    y = np.moveaxis(as_operand(y), axis, -1)
    dtype = shadow_dtype(y) if shadow_dtype(y).kind in "fc" else float
    pairs = y[..., 1:] + y[..., :-1]  # of bools and of integers in their own dtype
    return np.sum(_steps(y, x, dx, axis) * pairs / 2.0, axis=-1, dtype=dtype)


@stands_for("scipy.integrate.cumulative_trapezoid")
def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The running trapezoidal rule; ``initial``, None or 0, is put before it."""
    if initial not in (None, 0):
        raise ValueError("`initial` must be `None` or `0`.")
    y = np.moveaxis(inexact(y), axis, -1)
    if not y.shape[-1]:
        raise ValueError("At least one point is required along `axis`.")
    found = np.cumsum(_steps(y, x, dx, axis) * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial == 0:
        found = np.concatenate([np.zeros((*found.shape[:-1], 1), found.dtype), found], axis=-1)
    return np.moveaxis(found, -1, axis)


@stands_for("scipy.integrate.simpson")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Simpson's rule for points at any distances; if the number of intervals is odd, a parabola covers the last one.

    Cartwright, Simpson's rule cumulative integration with MS Excel and irregularly-spaced data (2017).
    """
    n = np.shape(shadow_of(y))[axis]
    if n < 2:
        return trapezoid(y, x, dx, axis)
    y = np.moveaxis(inexact(y), axis, -1)
    h = _steps(y, x, dx, axis)
    if n == 2:
        return 0.5 * (h if x is None else h[..., 0]) * (y[..., 1] + y[..., 0])
    h = h if x is None else double(h)
    even = n if n % 2 else n - 1
    h0, h1 = (h, h) if x is None else (h[..., 0 : even - 1 : 2], h[..., 1 : even - 1 : 2])
    y0, y1, y2 = (y[..., k : even - 2 + k : 2] for k in range(3))
    both = h0 + h1
    total = np.sum(both / 6.0 * (y0 * (2.0 - h1 / h0) + y1 * (both * both / (h0 * h1)) + y2 * (2.0 - h0 / h1)), axis=-1)
    if n % 2:
        return total
    a, b = (double(h),) * 2 if x is None else (h[..., -2], h[..., -1])
    last = (2 * b * b + 3 * a * b) / (6 * (a + b)) * y[..., -1] + (b * b + 3 * a * b) / (6 * a) * y[..., -2]
    last = last - b * b * b / (6 * a * (a + b)) * y[..., -3]
    return total + (as_dtype(last, total.dtype) if total.ndim else last)  # SciPy adds it in place
