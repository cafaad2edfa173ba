"""check_grads, combo_check and their parts: derivatives against finite differences, as autograd's tests call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...api.check_grads import check_grads as check
from ...api.restricted import restricted
from ...errors import GradientCheckError
from ...tracer.tree import flatten
from .compiled_operators import Argnum, chosen, label, positions, with_floats
from .vspaces import vspace

Function = Callable[..., Any]
MODES = ("fwd", "rev")
TOL = 1e-6  # the difference that scalar_close allows
RTOL = 1e-6  # the same, relative to the sum
EPS = 1e-6  # the step of make_numerical_jvp


def check_grads(fun: Function, argnum: Argnum = 0, modes: Sequence[str] = MODES, order: int = 2) -> Function:
    """``check_grads(f, argnum)(*args)`` compares derivatives of ``f`` with differences, by these arguments.

    Raises GradientCheckError, which is an AssertionError; OptionError.

    >>> import numpy as np
    >>> check_grads(np.sin, modes=["rev"], order=2)(np.array([0.1, 0.2]))
    """
    at = chosen(argnum)

    def checked(*args: Any, **kwargs: Any) -> None:
        of_leaves, leaves, _ = restricted(fun, at, with_floats(args, positions(at)), kwargs)
        check(of_leaves, tuple(leaves), order=order, modes=tuple(modes))

    made: Function = label(checked, "check_grads", fun, at)
    return made


def combo_check(fun: Function, *options: Any, **named: Any) -> Function:
    """``combo_check(f, argnum)(xs, ys, key=zs)`` checks all combinations of the arguments in these lists."""

    def checked(*args: Sequence[Any], **kwargs: Sequence[Any]) -> None:
        for values in product(*args):
            for chosen_values in product(*kwargs.values()):
                check_grads(fun, *options, **named)(*values, **dict(zip(kwargs, chosen_values, strict=True)))

    return checked


def check_vjp(f: Function, x: Any) -> None:
    """Compare the pullback of a function of one argument with differences. Raises GradientCheckError."""
    check_grads(f, modes=["rev"], order=1)(x)


def check_jvp(f: Function, x: Any) -> None:
    """Compare the derivative of a function of one argument with differences. Raises GradientCheckError."""
    check_grads(f, modes=["fwd"], order=1)(x)


def check_equivalent(x: Any, y: Any) -> None:
    """Check that two vectors have one space and are close. Raises GradientCheckError.

    >>> check_equivalent([1.0, np.ones(2)], [1.0, np.ones(2)])
    """
    first, second = vspace(x), vspace(y)
    if first != second:
        raise GradientCheckError(
            f"the values are of {first} and of {second}", remedy="compare values of equal structures and shapes"
        )
    for a, b in zip(flatten(x)[0], flatten(y)[0], strict=True):
        if not np.allclose(a, b, rtol=RTOL, atol=TOL):
            raise GradientCheckError(f"the values are {a} and {b}", remedy="one of them is wrong")


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by less than ``TOL``, or by less than ``RTOL`` times their sum.

    >>> scalar_close(1e9, 1e9 + 1.0), scalar_close(1.0, 1.1)
    (True, False)
    """
    return bool(abs(a - b) < max(TOL, RTOL * abs(a + b)))


def make_numerical_jvp(f: Function, x: Any) -> Callable[[Any], Any]:
    """The derivative of ``f`` at ``x`` as a function of directions, by a central difference with the step ``EPS``.

    >>> round(float(make_numerical_jvp(np.sin, 0.0)(2.0)), 6)
    2.0
    """
    here, there = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        right, left = (f(here.add(x, here.scalar_mul(v, side * EPS / 2))) for side in (1.0, -1.0))
        return there.scalar_mul(there.add(right, there.scalar_mul(left, -1.0)), 1.0 / EPS)

    return jvp
