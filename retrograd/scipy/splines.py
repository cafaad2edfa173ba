"""``scipy.interpolate.CubicSpline`` through traced values, with its derivatives and integrals.

The slopes at the knots solve a banded system, whose entries are traced as well as the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ..numpy.creation import asarray
from ..tracer.array import Tracer, shadow_of, tracers_in
from ..tracer.class_methods import Method, methods
from ..tracer.operands import astype, axis_of, lifted
from ..tracer.trace import owner
from ..tracer.tree import flatten, map_leaves
from .dispatch import Lazy
from .interpolate import evaluated, integral
from .linalg import solve_banded

_interpolate = Lazy("scipy.interpolate")
Function = Callable[..., Any]


def _same(x: Any) -> Any:
    return x


def _filled(spline: Any, c: Any, x: Any, extrapolate: Any, axis: int) -> Any:
    """Set what a piecewise polynomial consists of."""
    spline._c, spline._x, spline._asarray = c, x, _same
    spline.extrapolate, spline.axis = extrapolate, axis
    return spline


def _traced(*values: Any) -> bool:
    return any(not t.const for t in tracers_in(flatten(values)[0]))


def _through(
    original: Function, self: Any, x: Any, y: Any, axis: Any = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> None:
    """``CubicSpline.__init__``."""
    if not _traced(x, y, bc_type):
        original(self, *map_leaves(shadow_of, (x, y, axis, bc_type, extrapolate)))
        return
    x, y = lifted(x, y)
    if owner([x, y]).runs:
        examples = (u.shadow.copy() for u in (x, y))
        original(self, *examples, axis, map_leaves(shadow_of, bc_type), extrapolate)  # SciPy's own errors
    x, y = astype(x, float), astype(y, complex if y.dtype.kind == "c" else float)
    k = axis_of(y, axis)
    y = np.moveaxis(y, k, 0)
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if periodic and not np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
        raise ValueError("the first and the last value of a periodic spline must be equal")
    steps = np.reshape(np.diff(x), (-1, *(1,) * (y.ndim - 1)))
    slopes = np.diff(y, axis=0) / steps
    if periodic and len(x) > 2:
        s = _around(x, steps, slopes)
    else:
        start, end = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
        s = _between(x, y, steps, slopes, _end(start, len(x), slopes), _end(end, len(x), slopes))
    bend = (s[:-1] + s[1:] - 2 * slopes) / steps
    c = np.stack([bend / steps, (slopes - s[:-1]) / steps - bend, s[:-1], y[:-1]])
    choice = ("periodic" if periodic else True) if extrapolate is None else extrapolate
    _filled(self, c, x, choice if choice == "periodic" else bool(choice), k)


def _end(condition: Any, n: int, slopes: Any) -> Any:
    """A condition at an end: "not-a-knot", or the order of a derivative and its value."""
    if n == 2 and condition in ("not-a-knot", "periodic"):
        return (1, slopes[0])
    return {"clamped": (1, 0.0), "natural": (2, 0.0)}.get(condition, condition) if _text(condition) else condition


def _text(condition: Any) -> bool:
    return isinstance(condition, str)


def _around(x: Any, steps: Any, slopes: Any) -> Any:
    """The slopes of a periodic spline at its knots."""
    m = len(x) - 1
    dx, eye = np.diff(x), np.eye(m)
    before = np.roll(dx, 1)
    a = eye * (2 * (before + dx))[:, None] + eye[np.arange(m) - 1] * dx[:, None]
    a = a + eye[(np.arange(m) + 1) % m] * before[:, None]
    b = 3 * (steps * np.roll(slopes, 1, axis=0) + np.roll(steps, 1, axis=0) * slopes)
    s = np.reshape(np.linalg.solve(a, np.reshape(b, (m, -1))), b.shape)
    return np.concatenate([s, s[:1]])


def _between(x: Any, y: Any, steps: Any, slopes: Any, start: Any, end: Any) -> Any:
    """The slopes of a spline at its knots, from conditions at both ends."""
    n, dx = len(x), np.diff(x)
    inner = 3 * (steps[1:] * slopes[:-1] + steps[:-1] * slopes[1:])
    if n == 3 and _text(start) and _text(end):
        rows = [[1.0, 1.0, 0.0], [dx[1], 2 * (dx[0] + dx[1]), dx[0]], [0.0, 1.0, 1.0]]
        a = np.stack([np.stack([entry + 0 * dx[0] for entry in row]) for row in rows])
        b = np.concatenate([2 * slopes[:1], inner, 2 * slopes[1:]])
        return np.reshape(np.linalg.solve(a, np.reshape(b, (3, -1))), b.shape)
    first, beside_first, b_first = _row(start, dx, steps, slopes, y, 1)
    last, beside_last, b_last = _row(end, dx[::-1], steps[::-1], slopes[::-1], y[::-1], -1)
    none = np.zeros_like(dx[:1])
    bands = [
        np.concatenate([none, beside_first, dx[:-1]]),
        np.concatenate([first, 2 * (dx[:-1] + dx[1:]), last]),
        np.concatenate([dx[1:], beside_last, none]),
    ]
    b = np.concatenate([b_first[None], inner, b_last[None]])
    return np.reshape(solve_banded((1, 1), np.stack(bands), np.reshape(b, (n, -1))), b.shape)


def _row(condition: Any, dx: Any, steps: Any, slopes: Any, y: Any, sign: int) -> tuple[Any, Any, Any]:
    """The equation at an end, seen from there: the coefficient at the end, that beside it, and the right side."""
    h = dx[:1]
    if _text(condition):
        far = steps[0] + steps[1]
        right = ((steps[0] + 2 * far) * steps[1] * slopes[0] + steps[0] ** 2 * slopes[1]) / far
        return dx[1:2], dx[:1] + dx[1:2], right
    order, value = condition
    if order == 1:
        return h * 0 + 1, h * 0, value + slopes[0] * 0
    return 2 * h, h, 3 * sign * (y[1] - y[0]) - sign * 0.5 * value * steps[0] ** 2


def _own(spline: Any) -> bool:
    return isinstance(getattr(spline, "_c", None), Tracer)


def _called(original: Function, self: Any, x: Any, nu: Any = 0, extrapolate: Any = None) -> Any:
    if _own(self) or _traced(x):
        return evaluated(self, x, nu, extrapolate)
    return original(self, shadow_of(x), nu, extrapolate)


def _polynomial(self: Any, c: Any, extrapolate: Any) -> Any:
    return _filled(object.__new__(_interpolate.PPoly), c, self._x, extrapolate, self.axis)


def _derivative(original: Function, self: Any, nu: int = 1) -> Any:
    if not _own(self):
        return original(self, nu)
    if nu < 0:
        return self.antiderivative(-nu)
    order = len(self._c) - 1
    rows = [self._c[j] * math.perm(order - j, nu) for j in range(order + 1 - nu)] or [self._c[0] * 0]
    return _polynomial(self, np.stack(rows), self.extrapolate)


def _antiderivative(original: Function, self: Any, nu: int = 1) -> Any:
    if not _own(self):
        return original(self, nu)
    if nu <= 0:
        return self.derivative(-nu)
    c = self._c
    steps = np.reshape(np.diff(self._x), (-1, *(1,) * (c.ndim - 2)))
    for _ in range(nu):
        rows = [c[j] / (len(c) - j) for j in range(len(c))]
        inside = rows[0]
        for row in rows[1:]:
            inside = inside * steps + row
        before = np.cumsum(inside * steps, axis=0)[:-1]
        c = np.stack([*rows, np.concatenate([np.zeros_like(rows[0][:1]), before])])
    return _polynomial(self, c, False if self.extrapolate == "periodic" else self.extrapolate)


def _integrate(original: Function, self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    if not _own(self) and not _traced(a, b):
        return original(self, a, b, extrapolate)
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    whole = self.antiderivative()
    found = integral(partial(evaluated, whole), (whole.x[0], whole.x[-1]), a, b, extrapolate)
    return np.reshape(asarray(found), self.c.shape[2:])


@methods("scipy.interpolate")
def _of_interpolate(interpolate: ModuleType) -> Iterable[Method]:
    yield Method(interpolate.CubicSpline, "__init__", _through)
    yield Method(interpolate.PPoly, "__call__", _called)
    yield Method(interpolate.PPoly, "derivative", _derivative)
    yield Method(interpolate.PPoly, "antiderivative", _antiderivative)
    yield Method(interpolate.PPoly, "integrate", _integrate)
