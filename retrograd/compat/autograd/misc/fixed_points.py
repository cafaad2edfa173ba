"""fixed_point: iteration to a fixed point, with the derivative of the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....api.implicit import implicit
from ....api.stop_gradient import stop_gradient
from ..vspaces import vspace

Function = Callable[..., Any]


def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """The x with ``f(a)(x) = x``, by iteration from ``x0`` until ``distance(x, x_before)`` is at most ``tol``.

    ``a`` is differentiated, and so is what ``f`` closes over; ``x0`` has the derivative zero. Derivatives are as exact
    as x. Raises SolutionError where a derivative is wanted and the equations are singular.

    >>> from retrograd.compat.autograd import grad
    >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
    >>> root = lambda a: fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)
    >>> round(float(root(2.0)), 9), round(float(grad(root)(2.0)), 9)
    (1.414213562, 0.353553391)
    """

    def left(x: Any, a: Any, start: Any) -> Any:
        space = vspace(x)
        return space.add(f(a)(x), space.scalar_mul(x, -1.0))

    @implicit(left)
    def solved(a: Any, start: Any) -> Any:
        step = f(a)
        x, before = step(start), start
        while distance(x, before) > tol:
            x, before = step(x), x
        return x

    return solved(a, stop_gradient(x0))
