"""unary_to_nary: the user's operators ``op(f, argnum)``, built from operators on functions of one argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .compiled_operators import Argnum, chosen, label

Function = Callable[..., Any]


def unary_to_nary(unary_operator: Function) -> Function:
    """Make ``op(f, argnum=0, *options)(*args, **kwargs)`` of an operator ``op(f_of_one_argument, x, *options)``.

    >>> from retrograd.compat.autograd.core import make_vjp
    >>> from retrograd.compat.autograd.wrap_util import unary_to_nary
    >>> @unary_to_nary
    ... def slope(f, x):
    ...     return make_vjp(f, x)[0](1.0)
    >>> float(slope(lambda a, b: a * b, 1)(3.0, 2.0))
    3.0
    """

    @wraps(unary_operator)
    def nary(fun: Function, argnum: Argnum = 0, *options: Any, **named: Any) -> Function:
        at = chosen(argnum)

        def called(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                given = list(args)
                for k, value in zip(
                    (at,) if isinstance(at, int) else at, (x,) if isinstance(at, int) else x, strict=True
                ):
                    given[k] = value
                return fun(*given, **kwargs)

            x = args[at] if isinstance(at, int) else tuple(args[k] for k in at)
            return unary_operator(of_one, x, *options, **named)

        made: Function = label(called, getattr(unary_operator, "__name__", "operator"), fun, at)
        return made

    return nary
