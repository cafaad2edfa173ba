"""custom_jvp and custom_vjp: functions with derivative rules of the user's own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .custom import CustomJvp, CustomVjp


def custom_jvp(function: Callable[..., Any] | None = None, nondiff_argnums: int | Sequence[int] = ()) -> Any:
    """A function whose forward derivative is given by ``f.defjvp(rule)``.

    ``rule(primals, tangents) -> (out, tangent)`` takes tuples, and the tangent must be linear in the tangents. Reverse
    mode follows by transposition. Values that the rule captures get no tangent through it.

    Parameters
    ----------
    function : callable, optional
        The function. Without it, the result is a decorator.
    nondiff_argnums : int or sequence of int
        Positions of arguments that count as constants. ``rule(*nondiff, primals, tangents)`` takes them first, in this
        order, and tuples of the others.

    Returns
    -------
    CustomJvp
        The same function, with ``defjvp``.

    Raises
    ------
    OptionError
        If it is called without a rule.
    TreeError
        If the results of the rule do not fit.
    CapturedTracerError
        If the rule captures a traced value.
    ArgnumsError
        If there is no such argument.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t / (1.0 + np.exp(-x))
    >>> float(rg.grad(log1pexp)(0.0))
    0.5
    """
    if function is None:
        return functools.partial(custom_jvp, nondiff_argnums=nondiff_argnums)
    return CustomJvp(function, (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums)


def custom_vjp(function: Callable[..., Any] | None = None, nondiff_argnums: int | Sequence[int] = ()) -> Any:
    """A function whose pullback is given by ``f.defvjp(fwd, bwd)``.

    ``fwd(*args) -> (out, residuals)``; ``bwd(residuals, ct) -> tuple`` returns one cotangent for each argument, None
    for zero. Forward mode transposes ``bwd``, which must be linear in ``ct``.

    Parameters
    ----------
    function : callable, optional
        The function. Without it, the result is a decorator.
    nondiff_argnums : int or sequence of int
        Positions of arguments that count as constants. ``bwd(*nondiff, residuals, ct)`` takes them first, in this
        order, and returns cotangents of the others.

    Returns
    -------
    CustomVjp
        The same function, with ``defvjp``.

    Raises
    ------
    OptionError
        If it is called without rules.
    TreeError
        If the results of the rules do not fit.
    CapturedTracerError
        If a rule captures a traced value.
    ArgnumsError
        If there is no such argument.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.custom_vjp
    ... def clipped(x):
    ...     return x * 1.0
    >>> clipped.defvjp(lambda x: (x * 1.0, ()), lambda residuals, ct: (np.minimum(ct, 1.0),))
    >>> float(rg.grad(lambda x: 5.0 * clipped(x))(2.0))
    1.0
    """
    if function is None:
        return functools.partial(custom_vjp, nondiff_argnums=nondiff_argnums)
    return CustomVjp(function, (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums)
