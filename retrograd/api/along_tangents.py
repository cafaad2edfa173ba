"""jvp and linearize: derivatives at a point, along tangents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from ..compiler.compilation import Derived
from ..compiler.compiled import Compiled
from ..compiler.composed import Composed
from ..compiler.debug_nans import DERIVATIVE, FUNCTION, inspect
from ..compiler.inside import inserted
from ..compiler.later import Later, Run
from ..compiler.members import members
from ..compiler.recording import results_of
from ..compiler.settings import config
from ..compiler.signature import Argnums, Call, Wanted, take_apart
from ..compiler.stages import settled
from ..compiler.transform import Transform
from ..errors import TreeError
from ..ir.graph import Graph
from ..ir.types import Aval
from ..passes.jvp import jvp as jvp_graph
from ..passes.linearize import linearize as linearize_graph
from ..tracer.containers import flatten_like
from ..tracer.outside import trace_here
from ..tracer.record import Recorded
from ..tracer.trace import Capture
from ..tracer.tree import flatten, unflatten
from .at_a_point import chosen_of, split_aux
from .functions.closures import Fn, is_function
from .gradients import before_derivatives


def jvp(
    function: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    *,
    backend: str | None = None,
) -> tuple[Any, ...]:
    """The value at a point, and the derivative along tangents; ``derivative_docstrings`` has its parameters."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TreeError(
            "jvp takes a tuple of primals and a tuple of tangents",
            remedy="write jvp(f, (x,), (x_dot,))",
        )
    along = [is_function(p) and not isinstance(t, Fn) for p, t in zip(primals, tangents, strict=False)]
    if any(along):
        return _jvp_along_functions(function, tuple(primals), tuple(tangents), along, has_aux, backend)
    if config.debug_nans and trace_here() is None:
        return _pushed(function, tuple(primals), tuple(tangents), has_aux, _inspected)
    made = Composed("jvp", make=_pushing, options=(has_aux,), inline=sys.maxsize, backend=backend)
    found: tuple[Any, ...] = Compiled(function, made)(tuple(primals), tuple(tangents))
    return found


def _pushing(has_aux: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of primals and tangents that gives the value and its tangent, for a trace."""

    def pushed(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
        return _pushed(function, primals, tangents, has_aux, _inserted)

    return pushed


def _pushed(
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    has_aux: bool,
    run: Callable[[Graph, Graph, list[Any], list[Any]], Sequence[Any]],
) -> tuple[Any, ...]:
    call = take_apart(function, primals, {})
    chosen = chosen_of(function, call)
    recorded, _ = Transform("jvp").record(function, call)
    split_aux(recorded, has_aux)
    active = [*chosen.active, *(False for _ in recorded.captures)]
    graph = jvp_graph(before_derivatives(recorded.graph), active, nan_safe=config.nan_safe)
    dots = _tangents(chosen, recorded, tangents)
    results = run(recorded.graph, graph, [*call.values(), *recorded.captures], dots)
    n, assemble = len(recorded.graph.outputs), results_of(recorded)
    value, dot = assemble(results[:n]), assemble(results[n:])
    return (value[0], dot[0], value[1]) if has_aux else (value, dot)


def _inserted(function: Graph, derivative: Graph, operands: list[Any], dots: list[Any]) -> Sequence[Any]:
    trace = trace_here()
    assert trace is not None
    return inserted(trace, derivative, [*operands, *dots])


def _inspected(function: Graph, derivative: Graph, operands: list[Any], dots: list[Any]) -> Sequence[Any]:
    plain = [x.payload if isinstance(x, Capture) else x for x in operands]
    inspect(function, plain, FUNCTION)
    return inspect(settled(derivative), [*plain, *dots], DERIVATIVE)


def _jvp_along_functions(
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    on: Sequence[bool],
    has_aux: bool,
    backend: str | None,
) -> tuple[Any, ...]:
    """``jvp`` if the tangents of function values are functions: the derivative in ε of the values f + ε g."""
    if len(primals) != len(tangents):
        raise TreeError(
            f"jvp is given {len(primals)} primals and {len(tangents)} tangents",
            remedy="give one tangent for each primal",
        )
    for is_f, t in zip(on, tangents, strict=True):
        if is_f and not callable(t):
            raise TreeError(
                f"the tangent of a function value is a function, not a {type(t).__name__}",
                remedy="pass a function g; the derivative is that of f + eps * g by eps",
            )

    def moved(eps: Any, *others: Any) -> Any:
        rest = iter(others)
        both = zip(primals, tangents, on, strict=True)
        return function(*(_shifted(p, t, eps) if is_f else next(rest) for p, t, is_f in both))

    plain = [[x for x, is_f in zip(side, on, strict=True) if not is_f] for side in (primals, tangents)]
    return jvp(moved, (0.0, *plain[0]), (1.0, *plain[1]), has_aux, backend=backend)


def _shifted(f: Callable[..., Any], g: Callable[..., Any], eps: Any) -> Callable[..., Any]:
    """f + ε g."""

    def shifted(*args: Any) -> Any:
        leaves, spec = flatten(f(*args))
        moves = flatten_like(spec, g(*args), "the tangent of a function value")
        return unflatten(spec, [y + eps * d for y, d in zip(leaves, moves, strict=True)])

    return shifted


def _tangents(chosen: Wanted, recorded: Recorded, tangents: Sequence[Any]) -> list[Any]:
    avals = [recorded.graph.inputs[k].aval for k, on in enumerate(chosen.active) if on]
    wanted_leaves = [avals[i] if i >= 0 else None for i in chosen.leaves]
    filled = flatten(tuple(tangents))
    if filled[1] != chosen.spec:
        own = [aval for aval in wanted_leaves if aval is not None]
        return members(flatten(chosen.tree([0.0] * len(avals)))[1], tuple(tangents), own, "the tangents")
    return members(chosen.spec, tuple(tangents), wanted_leaves, "the tangents")


def linearize(
    function: Callable[..., Any], *primals: Any, backend: str | None = None
) -> tuple[Any, Callable[..., Any]]:
    """Value and linear derivative at a point; ``derivative_docstrings`` has its parameters."""
    found: tuple[Any, Callable[..., Any]] = Compiled(function, Linearization("linearize", backend=backend))(*primals)
    return found


@dataclass(frozen=True)
class Linearization(Transform):
    """``linearize``; with ``argnums`` in these arguments alone."""

    argnums: Argnums | None = None

    def check(self, function: Callable[..., Any], call: Call) -> None:
        chosen_of(function, call, self.argnums)

    def derive(self, function: Callable[..., Any], recorded: Recorded, call: Call) -> Derived:
        chosen = chosen_of(function, call, self.argnums)
        active = [*chosen.active, *(False for _ in recorded.captures)]
        lin = linearize_graph(before_derivatives(recorded.graph), active, nan_safe=config.nan_safe)
        results, avals = results_of(recorded), recorded.graph.out_avals

        def assemble(found: Sequence[Any], run: Run) -> Any:
            def linear(*tangents: Any) -> Any:
                given = zip((i for i in chosen.leaves if i >= 0), _tangents(chosen, recorded, tangents), strict=True)
                dots = iter(run([dot for _, dot in sorted(given, key=itemgetter(0))]))  # in the order of arguments
                return results([next(dots) if on else _zero(a) for on, a in zip(lin.out_active, avals, strict=True)])

            return results(found), linear

        return Derived(lin.forward, assemble, lin=lin, later=Later(lin.forward, lin.linear, len(avals)))


def _zero(aval: Aval) -> Any:
    return np.zeros(aval.shape, aval.dtype) if aval.kind == "array" else aval.dtype.type(0)
