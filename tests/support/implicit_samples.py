"""Samples of solutions: a solver and a way of solving the linear equations each."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd.ir import Aval
from retrograd.ops import slopes

from .graphs import built, op
from .sampling import a, between, case, declare, positive

NUMBER = Aval((), np.dtype(float), "scalar")
ONE, TWO = Aval((1,), np.dtype(float)), Aval((2,), np.dtype(float))


def cubic(x: Any, p: Any, c: Any) -> Any:
    """x³ + p x - c, as symbols."""
    return x * x * x + p * x - c


def energy(x: Any, p: Any, c: Any) -> Any:
    """The number whose gradient is the cubic."""
    return op("sum", x * x * (x * x * 0.25 + p * 0.5) - c * x, axis=(0,), keepdims=False)


CUBIC, SINGLE = built(cubic, TWO, TWO, TWO, name="cubic"), built(cubic, ONE, ONE, ONE, name="cubic")
OF_NUMBER = built(
    lambda x, p, c: op("sum", cubic(op("reshape", x, aval=ONE), p, c), axis=(0,), keepdims=False),
    NUMBER,
    ONE,
    ONE,
    name="cubic",
)
STEP = built(lambda x, p, c: x - 0.2 * cubic(x, p, c), TWO, TWO, TWO, name="step")
ENERGY = built(energy, TWO, TWO, TWO, name="energy")
GRADIENT = slopes.gradient_of(ENERGY)
SLOPE = slopes.result_of(GRADIENT, 1)
NORMAL = built(lambda x, p, c: (3.0 * x * x + p) * cubic(x, p, c), TWO, TWO, TWO, name="normal")
POINT = (a((2,), "d", between(0.5, 1.0)), a((2,), "d", positive), a((2,)))


def attrs(equation: Any, solver: str, *options: tuple[str, Any], **bodies: Any) -> dict[str, Any]:
    """The attributes of a solution."""
    return {"equation": equation, "solver": solver, "options": options, "symmetric": solver == "minimize", **bodies}


declare(
    "solution",
    case(
        *POINT,
        **attrs(slopes.result_of(CUBIC, 0), "root", ("tol", 1e-14), value=CUBIC, slope=slopes.jacobian_of(CUBIC)),
    ),
    case(
        lambda rng: np.array([-9.0, 9.0]),
        a((1,), "d", positive),
        a((1,)),
        **attrs(SINGLE, "brentq", ("xtol", 1e-15), value=OF_NUMBER),
    ),
    case(*POINT, **attrs(CUBIC, "fixed_point", ("xtol", 1e-14), ("maxiter", 5000), value=STEP)),
    case(
        *POINT,
        **attrs(
            SLOPE,
            "minimize",
            ("method", "trust-ncg"),
            ("tol", 1e-13),
            slope=GRADIENT,
            product=slopes.product_of(SLOPE),
        ),
    ),
    case(
        *POINT,
        **attrs(
            NORMAL,
            "least_squares",
            *((name, 1e-15) for name in ("xtol", "ftol", "gtol")),
            value=CUBIC,
            slope=slopes.jacobian_of(CUBIC),
        ),
    ),
)


def newton(p: Any, c: Any) -> Any:
    """The root of the cubic, by some steps of Newton's method."""
    x = c / (p + 1.0)
    for _ in range(9):
        x = x - cubic(x, p, c) / (3.0 * x * x + p)
    return x


declare("implicit", case(*POINT[1:], body=built(newton, TWO, TWO, name="newton"), equation=CUBIC))
declare(
    "solve_krylov",
    *(
        case(a((2,)), *POINT, forward=slopes.pushed(CUBIC), backward=slopes.pulled(CUBIC), symmetric=symmetric)
        for symmetric in (False, True)
    ),
)
near = lambda rng: np.array([[3.0, 1.0], [-1.0, 2.0]]) + rng.uniform(-0.1, 0.1, (2, 2))  # noqa: E731 - a draw
declare("certified", case(near, near))
