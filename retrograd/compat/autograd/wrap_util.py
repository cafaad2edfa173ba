"""unary_to_nary: the user's operators ``op(f, argnum)``, built from operators on functions of one argument.

``wraps``, ``wrap_nary_f``, ``get_name`` and ``get_doc`` name what an operator makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps as wrapped_like
from typing import Any

from .compiled_operators import Argnum, chosen, label
from .util import subvals

__all__ = ["get_doc", "get_name", "subvals", "unary_to_nary", "wrap_nary_f", "wraps"]

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

    @wrapped_like(unary_operator)
    def nary(fun: Function, argnum: Argnum = 0, *options: Any, **named: Any) -> Function:
        at = chosen(argnum)

        def called(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                items = [(at, x)] if isinstance(at, int) else zip(at, x, strict=True)
                return fun(*subvals(args, items), **kwargs)

            x = args[at] if isinstance(at, int) else tuple(args[k] for k in at)
            return unary_operator(of_one, x, *options, **named)

        made: Function = label(called, getattr(unary_operator, "__name__", "operator"), fun, at)
        return made

    return nary


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Callable[[Function], Function]:
    """A decorator that names a function after ``fun``: both texts may hold ``{fun}``, ``{doc}`` and the keywords.

    >>> wraps(max, "{op}_of_{fun}", op="grad")(lambda x: x).__name__
    'grad_of_max'
    """

    def named(f: Function) -> Function:
        f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        return f

    return named


def wrap_nary_f(fun: Function, op: Function, argnum: Argnum) -> Callable[[Function], Function]:
    """A decorator that names a function as the operator ``op`` of ``fun`` by ``argnum``."""
    return lambda f: label(f, get_name(op), fun, chosen(argnum))


def get_name(f: Any) -> str:
    """The name of a function, or "[unknown name]"."""
    return str(getattr(f, "__name__", "[unknown name]"))


def get_doc(f: Any) -> str:
    """The docstring of a function, or an empty text."""
    return getattr(f, "__doc__", None) or ""
