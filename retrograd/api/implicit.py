"""implicit: the user's own solver, with the derivative given by the implicit function theorem."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.record_body import check_functions, closed, operand, put, recorded_body, strong
from ..compiler.unknowns import Unknowns, flat, unknowns_of
from ..errors import CapturedTracerError, ShapeError, TracerError
from ..ops.implicit import implicit as primitive
from ..tracer.array import Tracer
from ..tracer.outside import trace_here
from ..tracer.swallowed import forget_since, refusals
from ..tracer.tree import flatten
from .lens_node import by_host

Solver = Callable[..., Any]


def implicit(residual: Callable[..., Any]) -> Callable[[Solver], Solver]:
    """A decorator for solvers, whose derivatives are then those of the implicit function theorem.

    The solver returns x with ``residual(x, *args) == 0``. Nothing is differentiated through its steps: derivatives of
    every order and in both modes follow from the residual at x, so they are as exact as x. A solver that cannot be
    traced (it branches on values, or calls a library) runs as plain Python.

    Parameters
    ----------
    residual : callable
        It takes the solution and the arguments of the solver, and returns as many numbers as the solution has. Its
        captures get derivatives, too.

    Returns
    -------
    callable
        A decorator of ``solver(*args) -> x``. The solution is an array, a number or a tree of these.

    Raises
    ------
    ShapeError
        If the numbers of unknowns and residuals differ.
    SolutionError
        If a derivative is wanted and the Jacobian of the residual is singular.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> @rg.implicit(lambda x, a: x * x - a)
    ... def root(a):
    ...     x = 1.0
    ...     while abs(x * x - a) > 1e-14:
    ...         x = 0.5 * (x + a / x)
    ...     return x
    >>> round(float(rg.grad(root)(2.0)), 9), round(float(rg.grad(rg.grad(root))(2.0)), 9)
    (0.353553391, -0.088388348)
    """
    check_functions("implicit", "rg.implicit(residual)(solver) with residual(x, *args)", residual)

    def of(solver: Solver) -> Solver:
        check_functions("implicit", "rg.implicit(residual)(solver) with solver(*args)", solver)

        @functools.wraps(solver)
        def solved(*args: Any) -> Any:
            return solver(*args) if trace_here() is None else _solution(residual, solver, args)

        return solved

    return of


def _solution(residual: Callable[..., Any], solver: Solver, args: tuple[Any, ...]) -> Any:
    """The solution as one node of the trace."""
    leaves, spec = flatten(args)
    leaves = [strong(x) if isinstance(x, (Tracer, bool, float, complex)) else x for x in leaves]
    forms: list[Unknowns] = []

    def body(args: Any) -> Any:
        forms.append(unknowns_of(solver(*args), "a solution", vectors=False))
        return forms[-1].start

    def called(args: Any) -> Any:
        try:
            x = by_host(solver, args)
        except TracerError as fault:
            raise CapturedTracerError(
                "a solver that cannot be traced captures a traced value",
                remedy="pass it as an argument, to the residual and to the solver",
            ) from fault
        forms.append(unknowns_of(x, "a solution", vectors=False))
        return forms[-1].start

    def equation(x: Any, args: Any) -> Any:
        found = flat(residual(forms[-1].tree(x), *args), "a residual")
        if found.shape != x.shape:
            raise ShapeError(
                f"the residual has {found.size} numbers, but the solution has {x.size}",
                remedy="return one number for each unknown",
            )
        return found

    before = refusals()
    try:
        first = recorded_body(body, "solver", [(leaves, spec)])
    except Exception:  # noqa: BLE001 - a library fails on traced values in its own ways; a fault of the solver comes again
        forget_since(before)
        first = recorded_body(called, "solver", [(leaves, spec)])
    second = recorded_body(equation, "residual", [flatten(np.array(first.shadows[0])), (leaves, spec)])
    given = [x for x in leaves if isinstance(x, (Tracer, np.ndarray, np.generic)) or type(x) is int]
    n = len(given)
    graphs, captures = closed([(first.graph, n, first.captures), (second.graph, n + 1, second.captures)])
    trace = trace_here()
    assert trace is not None
    operands = [operand(trace, x) for x in (*given, *captures)]
    (found,) = put(trace, primitive, {"body": graphs[0], "equation": graphs[1]}, operands)
    return forms[-1].tree(found)
