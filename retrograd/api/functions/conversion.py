"""fn and closure_convert: closure conversion as the user calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...compiler.signature import Call, take_apart
from ...errors import CapturedTracerError, OptionError
from ...ir.builder import Symbol
from ...tracer.record import record
from ...tracer.tree import flatten, unflatten
from .closures import Fn, converted, is_inexact


def fn(function: Callable[..., Any], *examples: Any) -> Fn:
    """A function as a value that can be differentiated: a callable with its captures.

    Captured are floating-point numbers and arrays, and trees of them, in the variables of enclosing functions, the
    globals that it names, default arguments, the arguments of a ``functools.partial``, and the attributes of a callable
    object or of a method's instance. If a function among these captures something, it becomes a function value in turn.
    A variable that the function itself rebinds is not captured, and neither are values that it reaches in other ways,
    such as attributes of other objects.

    Parameters
    ----------
    function : callable
        The function.
    *examples : tree
        Arguments on which the function is traced at once, so that an operation that cannot be traced is refused here.

    Returns
    -------
    Fn
        It is called like the function. ``.captures`` is a dict by name, and ``.over(captures)`` the same function with
        other values. As an argument of a transform its captures are traced, and another closure of the same definition
        is not compiled again.

    Raises
    ------
    OptionError
        If ``function`` is not callable.

    Examples
    --------
    >>> import retrograd as rg
    >>> def line(a, b):
    ...     return lambda x: a * x + b
    >>> f = rg.functions.fn(line(2.0, 1.0))
    >>> f(3.0), f.captures
    (7.0, {'a': 2.0, 'b': 1.0})
    >>> f.over({"a": 5.0, "b": 0.0})(3.0)
    15.0
    """
    _check(function, "fn")
    value = converted(function)
    if examples:
        call = take_apart(function, examples, {})
        record(lambda tracers: value(*call.rebuild(tracers)[0]), "fn", call.values(), call.hints)
    return value


def closure_convert(function: Callable[..., Any], *examples: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Separate a function from the values that it captures.

    Parameters
    ----------
    function : callable
        The function.
    *examples : tree
        Arguments, to check that the function uses no other value of an enclosing trace.

    Returns
    -------
    tuple
        ``(pure, captures)``: a flat tuple of the floating-point numbers and arrays that ``rg.functions.fn`` finds, and
        ``pure(*captures, *args)``, which captures nothing.

    Raises
    ------
    CapturedTracerError
        If the function uses another value of an enclosing trace.
    OptionError
        If ``function`` is not callable, or ``pure`` gets too few arguments.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> w = np.array([1.0, 2.0])
    >>> pure, captures = rg.functions.closure_convert(lambda x: w @ x, w)
    >>> captures
    (array([1., 2.]),)
    >>> float(pure(np.array([0.0, 1.0]), np.array([3.0, 4.0])))
    4.0
    """
    _check(function, "closure_convert")
    value = converted(function)
    leaves, spec = flatten(value)
    places = [i for i, x in enumerate(leaves) if is_inexact(x)]
    captures = tuple(leaves[i] for i in places)

    def pure(*args: Any) -> Any:
        if len(args) < len(places):
            raise OptionError(
                f"the converted function takes {len(places)} captures first, but {len(args)} arguments are given",
                remedy="call pure(*captures, *args)",
            )
        filled = list(leaves)
        for i, x in zip(places, args, strict=False):  # the function's own arguments follow
            filled[i] = x
        return unflatten(spec, filled)(*args[len(places) :])

    _check_closed(pure, take_apart(pure, (*captures, *examples), {}))
    return pure, captures


def _check_closed(pure: Callable[..., Any], call: Call) -> None:
    """Raise CapturedTracerError if the function uses values of an enclosing trace that are not arguments."""

    def run(tracers: Sequence[Any]) -> Any:
        return pure(*call.rebuild(tracers)[0])

    recorded = record(run, "pure", call.values(), call.hints)
    for c in recorded.captures:
        if isinstance(c.payload, Symbol):
            raise CapturedTracerError(
                f"the function uses a traced value ({c.payload.aval}) that is not found among its captures",
                remedy="name it in a variable that the function reads, or pass it as an argument",
            )


def _check(function: Any, label: str) -> None:
    if not callable(function):
        raise OptionError(
            f"{label} needs a function, got {type(function).__name__}",
            remedy=f"write {label}(f, *examples)",
        )
