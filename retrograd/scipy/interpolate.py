"""Piecewise polynomials of ``scipy.interpolate`` at traced points: CubicSpline, PPoly and similar, created before.

>>> import numpy as np, retrograd as rg
>>> from scipy.interpolate import CubicSpline
>>> spline = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
>>> float(rg.grad(lambda x: spline(x)[()])(1.5))
3.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from ..ir.types import Aval
from ..numpy.creation import asarray
from ..ops.elementwise import cast
from ..tracer.array import apply
from ..tracer.class_methods import Method, methods
from ..tracer.operands import lifted
from ..tracer.trace import unsupported
from .dispatch import Lazy, answered, inexact, rest_of

__getattr__ = rest_of("scipy.interpolate")

_interpolate = Lazy("scipy.interpolate")


def evaluated(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """The polynomial of the interval that each point is in, or its derivative of order ``nu``, by Horner's scheme."""
    if not isinstance(self, _interpolate.PPoly):
        raise unsupported(f"a {type(self).__name__} at traced points", "convert it: PPoly.from_bernstein_basis(...)")
    widths = np.diff(self.x)
    if not (np.all(widths[:-1] > 0) and widths[-1] >= 0):
        raise unsupported("a piecewise polynomial whose breakpoints decrease", "reverse the axis")
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    x, knots, coefficients = lifted(inexact(x), self.x, self.c)
    if extrapolate == "periodic":
        x = knots[0] + np.remainder(x - knots[0], knots[-1] - knots[0])
    interval = np.clip(np.searchsorted(knots, x, "right") - 1, 0, len(self.x) - 2)
    order = len(self.c) - 1
    rest = (1,) * (self.c.ndim - 2)
    step = np.reshape(x - knots[interval], (*x.shape, *rest))
    out = np.zeros((*x.shape, *self.c.shape[2:]))
    if nu > order:
        out = out + np.where(np.isnan(step), np.nan, 0.0)
    for k in range(order + 1 - nu):
        out = out * step + coefficients[k][interval] * math.perm(order - k, nu)
    if extrapolate is False or extrapolate == 0:
        outside = np.reshape((x < knots[0]) | (x > knots[-1]), np.shape(step))
        out = np.where(outside, np.nan, out)
    if not np.ndim(out):
        return apply(cast, [out], aval=Aval((), out.dtype))  # SciPy gives an array also at a number
    n, axis = x.ndim, self.axis
    return np.transpose(out, (*range(n, n + axis), *range(n), *range(n + axis, np.ndim(out)))) if axis else out


def _b_spline(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """A B-spline as the polynomials of its intervals."""
    n, (columns, rest) = len(self.t) - self.k - 1, (self.c.reshape(len(self.c), -1).T, self.c.shape[1:])
    last = [n - 1] if self.k == 0 else []  # that of the last value of a step function, which has no width
    inside = [j for j in range(self.k, n) if self.t[j + 1] > self.t[j] or j in last]
    pieces = [_interpolate.PPoly.from_spline((self.t, c, self.k)).c[:, inside] for c in columns]
    polynomials = np.stack(pieces, axis=-1).reshape(self.k + 1, len(inside), *rest)
    knots = np.append(self.t[inside], self.t[n])
    whole = _interpolate.PPoly.construct_fast(polynomials, knots, self.extrapolate, self.axis)
    return evaluated(whole, x, nu, extrapolate)


def integral(values: Callable[..., Any], ends: tuple[Any, Any], a: Any, b: Any, extrapolate: Any) -> Any:
    """The integral from ``a`` to ``b``, by the values of an antiderivative, for a spline that lies between two ends."""
    if extrapolate != "periodic":
        return values(b, 0, extrapolate) - values(a, 0, extrapolate)
    first, last = ends
    turns = np.floor_divide(np.subtract(b, first), last - first) - np.floor_divide(np.subtract(a, first), last - first)
    whole = values(last, 0, True) - values(first, 0, True)
    return turns * whole + values(b, 0, "periodic") - values(a, 0, "periodic")


def _integral_of_b_spline(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """``BSpline.integrate``; beyond its ends, a spline that is not extrapolated counts as zero."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    ends = self.t[self.k], self.t[len(self.t) - self.k - 1]
    if not extrapolate:
        a, b, extrapolate = np.clip(a, *ends), np.clip(b, *ends), True
    whole = self.antiderivative()
    found = integral(lambda *options: _b_spline(whole, *options), ends, a, b, extrapolate)
    return np.reshape(asarray(found), self.c.shape[1:])


@methods("scipy.interpolate")
def _of_interpolate(interpolate: ModuleType) -> Iterable[Method]:
    yield Method(interpolate.BSpline, "__call__", answered(_b_spline))
    yield Method(interpolate.BSpline, "integrate", answered(_integral_of_b_spline))
