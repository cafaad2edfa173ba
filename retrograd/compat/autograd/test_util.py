"""check_grads and combo_check: derivatives against finite differences, as autograd's tests call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ...api.check_grads import check_grads as check
from ...api.restricted import restricted
from .compiled_operators import Argnum, chosen, label, positions, with_floats

Function = Callable[..., Any]
MODES = ("fwd", "rev")


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
