"""Equations and minimisations as graphs of a vector of unknowns, for the solvers of ``optimize``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..compiler.prepared import ForAllValues, code_of, prepared
from ..compiler.record_body import label_of, operand, put, recorded_body, strong
from ..compiler.unknowns import Unknowns, flat
from ..errors import OptionError, ShapeError
from ..ir.graph import Graph
from ..ops import implicit
from ..tracer.array import Tracer, is_known, shadow_of
from ..tracer.outside import trace_here
from ..tracer.trace import unsupported
from ..tracer.tree import Spec, flatten, unflatten

Bodies = dict[str, Graph]


class Problem(NamedTuple):
    """A user's function as a graph of the vector of unknowns and of operands: arguments, then captures."""

    graph: Graph
    operands: list[Any]

    def solved(self, solver: str, start: Any, bodies: Bodies, options: dict[str, Any], **more: Any) -> Any:
        """The vector of unknowns in a trace; outside, what SciPy returns."""
        trace = trace_here()
        given = tuple((name, _plain(name, value)) for name, value in options.items() if value is not None)
        if trace is not None:
            attrs = {**bodies, "solver": solver, "options": given, "symmetric": False, **more}
            operands = [operand(trace, x) for x in (start, *self.operands)]
            return put(trace, implicit.solution, attrs, operands)[0]
        functions = [_called(bodies.get(name), self.operands) for name in ("value", "slope", "product")]
        return implicit.helper("search")(solver, start, tuple(self.operands), *functions, given)


def _called(graph: Graph | None, operands: Sequence[Any]) -> Callable[..., Any] | None:
    """A graph as a function; None stays None."""
    if graph is None:
        return None
    run, single = code_of(graph, operands), len(graph.outputs) == 1

    def call(*args: Any) -> Any:
        found = run(*args)
        return found[0] if single else found

    return call


def _plain(name: str, value: Any) -> Any:
    """An option as plain data, which source can hold."""
    if isinstance(value, dict):
        return tuple((str(key), _plain(f"{name}[{key!r}]", x)) for key, x in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(_plain(name, x) for x in value)
    if isinstance(value, Tracer) and is_known(value):
        value = value.shadow
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(name, value.tolist())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise OptionError(
        f"{name}= is {type(value).__name__}",
        remedy="give plain numbers and strings as options; pass differentiated values as arguments of the function",
    )


@dataclass(frozen=True)
class Equations(ForAllValues):
    """A function of a tree and of arguments as one of a vector; it returns ``numbers`` numbers, or any number."""

    shapes: tuple[tuple[int, ...], ...] = ()
    spec: Spec | None = None
    numbers: int | None = None
    alone: bool = False  # one number is returned bare

    def body(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of the vector."""

        def equation(x: Any, *args: Any) -> Any:
            found = flat(function(Unknowns(x, list(self.shapes), self.spec).tree(x), *args), self.label)
            if self.numbers is not None and found.shape != (self.numbers,):
                few = "one number" if self.alone else "one number for each unknown; rg.scipy.least_squares takes more"
                of = "" if self.alone else f" for {self.numbers} unknowns"
                raise ShapeError(f"{self.label}: the function returns {found.size} numbers{of}", remedy=f"return {few}")
            return found[0] if self.alone else found

        equation.__name__ = label_of(function, "equation")
        return equation


def problem_of(f: Callable[..., Any], x: Any, args: Sequence[Any], equations: Equations) -> Problem:
    """Record the equations; outside of a trace once for each signature."""
    leaves, spec = flatten(tuple(args))
    leaves = [strong(y) if isinstance(y, (Tracer, bool, float, complex)) else y for y in leaves]
    if trace_here() is None:
        graph, operands = prepared(f, equations, x, *unflatten(spec, leaves))
        return Problem(graph, operands[1:])
    body = equations.body(f)

    def together(x: Any, args: Any) -> Any:
        return body(x, *args)

    together.__name__ = body.__name__
    recorded = recorded_body(together, "equation", [flatten(x), (leaves, spec)])
    given = [y for y in leaves if isinstance(y, (Tracer, np.ndarray, np.generic)) or type(y) is int]
    return Problem(recorded.graph, [*given, *recorded.captures])


def vector_problem(
    what: str, f: Callable[..., Any], unknowns: Unknowns, args: Sequence[Any], numbers: int | None, alone: bool = False
) -> Problem:
    """The problem of a function that returns so many numbers, as a vector or a tree."""
    equations = Equations(what, shapes=tuple(unknowns.shapes), spec=unknowns.spec, numbers=numbers, alone=alone)
    return problem_of(f, np.array(shadow_of(unknowns.start)), args, equations)


def refuse(what: str, options: dict[str, Any], refused: dict[str, str]) -> None:
    """UnsupportedError for options that have a value and a reason here."""
    for name, remedy in refused.items():
        value = options.get(name)
        if value is not None and value is not False and not (isinstance(value, tuple) and not value):
            raise unsupported(f"rg.scipy.{what} with {name}=", remedy)
