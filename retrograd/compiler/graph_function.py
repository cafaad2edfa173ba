"""Graphs as functions of values, and the pullback of one at a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.types import Aval
from ..passes.checkpoint.checkpoint import limited
from ..passes.control.expose_calls import at_rest
from ..passes.control.merge_paths import without_guards
from ..passes.differentiate import pullback as pullback_graph
from ..passes.inline import inline_into
from ..passes.linearize import Linearized
from ..passes.linearize import linearize as linearize_graph
from ..tracer.array import Tracer, shadow_of
from ..tracer.record import Recorded, enclosing, insert
from ..tracer.trace import Capture, traceable
from ..tracer.tree import Spec, flatten_like
from .example_values import examples
from .executable import Executable
from .memory.loops import with_default
from .nans import DERIVATIVE, FUNCTION, inspect
from .settings import config


class GraphFunction:
    """A graph as a function of flat operands: compiled at its first plain call, inserted into a trace in one.

    Its guards hold, for it is applied at the point where it was recorded; in a trace they go into that trace.
    """

    def __init__(self, graph: Graph, of: Graph | None = None) -> None:
        """``of`` is the function of whose derivative this is a part; ``rg.debug_nans`` looks at it first."""
        self.graph, self.of = graph, of
        self._executable: Executable | None = None

    def __call__(self, operands: Sequence[Any]) -> Sequence[Any]:
        trace = enclosing()
        if trace is not None:
            shadows = [x.shadow if isinstance(x, Capture) else shadow_of(x) for x in operands]
            found = examples(trace, lambda: evaluate(self.graph, shadows), self.graph.out_avals)
            return insert(trace, self.graph, operands, found, inline_into)
        plain = [x.payload if isinstance(x, Capture) else x for x in operands]
        if config.debug_nans:
            if self.of is not None:
                inspect(self.of, plain[: len(self.of.inputs)], FUNCTION)
            return inspect(config.settled(without_guards(self.graph)), plain, DERIVATIVE)
        if self._executable is None:
            self._executable = Executable(config.optimised(without_guards(self.graph)))
        results: Sequence[Any] = self._executable(*plain)
        return results


def linearized_at(
    graph: Graph,
    active: Sequence[bool],
    operands: Sequence[Any],
    deltas: int = 0,
    seeds: int | None = None,
    memory: tuple[Any, ...] | None = None,
) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Sequence[Any]]]:
    """The results of a graph, and its pullback there: from one cotangent per inexact result to one per active input.

    The last ``deltas`` inputs, beyond ``operands``, are active too, and at rest. With ``seeds``, only so many results
    have cotangents. ``memory`` is a plan for loops that have none, or a budget for both together.
    """
    budget = memory[1] if memory is not None and memory[0] == "bytes" else None
    if budget is None:
        graph = with_default(graph, memory)
    lin = linearize_graph(graph, [*active, *[True] * deltas])
    n = len(graph.outputs)
    seeded = [aval.inexact and (seeds is None or i < seeds) for i, aval in enumerate(graph.out_avals)]
    ahead, back = at_rest(lin.forward, deltas), pullback_graph(lin, seeded, budget)
    forward, backward = GraphFunction(ahead, graph), GraphFunction(back)
    if enclosing() is None and not config.debug_nans:
        if budget is not None:
            return _within_at(forward, backward, n, _own_arrays(operands))
        if limited(ahead):
            return _checkpointed_at(forward, backward, n, with_own_arrays(lin, operands))
    operands = with_own_arrays(lin, operands) if enclosing() is None else operands
    results = forward(operands)
    residuals = results[n:]
    return results[:n], lambda cts: backward([*residuals, *cts])


def with_own_arrays(lin: Linearized, operands: Sequence[Any]) -> list[Any]:
    """Operands that the caller cannot change before the pullback runs, if loops keep references to them."""
    if all(r.aval.steps is None for r in lin.residuals):
        return [x.payload if isinstance(x, Capture) else x for x in operands]
    return _own_arrays(operands)


def _own_arrays(operands: Sequence[Any]) -> list[Any]:
    """Operands that the caller cannot change."""
    plain = [x.payload if isinstance(x, Capture) else x for x in operands]
    return [np.array(x, order="K") if isinstance(x, np.ndarray) else x for x in plain]


def _checkpointed_at(
    forward: GraphFunction, backward: GraphFunction, n: int, operands: Sequence[Any]
) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Sequence[Any]]]:
    """The same where loops have plans of memory: what is left for the pullback are the states that they keep."""
    head, tail = config.optimised_apart(without_guards(forward.graph), n, without_guards(backward.graph))
    results = Executable(head)(*operands)
    return results[:n], _pulled_back(forward, backward, n, operands, Executable(tail), results[n:])


def _within_at(
    forward: GraphFunction, backward: GraphFunction, n: int, operands: Sequence[Any]
) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Sequence[Any]]]:
    """The same within a budget: what is left for the pullback are the operands, and what is kept beside them."""
    head, tail = config.optimised_within(without_guards(forward.graph), n, without_guards(backward.graph))
    results = Executable(head)(*operands)
    return results[:n], _pulled_back(forward, backward, n, operands, Executable(tail), [*operands, *results[n:]])


def _pulled_back(
    forward: GraphFunction,
    backward: GraphFunction,
    n: int,
    operands: Sequence[Any],
    tail: Executable,
    kept: Sequence[Any],
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    def pullback(cts: Sequence[Any]) -> Sequence[Any]:
        if enclosing() is None:
            found: Sequence[Any] = tail(*kept, *cts)
            return found
        return backward([*forward(operands)[n:], *cts])  # both become part of that trace, where the plans hold again

    return pullback


def as_member(x: Any, aval: Aval, what: str) -> Any:
    """A tangent or cotangent for a value of this aval: its shape must be equal, its dtype is converted."""
    try:
        found = traceable(shadow_of(x))
    except TypeError:
        raise ShapeError(
            f"{what}: a {type(x).__name__} is no array of numbers",
            remedy=f"pass an array of shape {aval.shape}",
        ) from None
    if found.shape != aval.shape or (found.dtype.kind == "c" and aval.dtype.kind != "c"):
        raise ShapeError(
            f"{what}: {found} is given, but the value it belongs to is {aval}",
            remedy=f"pass an array of shape {aval.shape} and a dtype that becomes {aval.dtype}",
        )
    if isinstance(x, Tracer):
        return x if found.dtype == aval.dtype else x.astype(aval.dtype)
    if aval.kind == "array":
        return np.asarray(x, aval.dtype)
    return aval.dtype.type(x) if aval.kind == "scalar" else np.asarray(x, aval.dtype).item()


def members(spec: Spec, tree: Any, avals: Sequence[Aval | None], what: str) -> list[Any]:
    """The leaves of a tangent or cotangent that belong to values of these avals; None where there is none."""
    leaves = flatten_like(spec, tree, what)
    return [as_member(x, a, what) for x, a in zip(leaves, avals, strict=True) if a is not None]


def leaf_avals(recorded: Recorded, head: Spec) -> list[Aval | None]:
    """The aval of each leaf of the output; None where it has no cotangent."""
    rest = iter(recorded.graph.out_avals)
    avals = [None if i in recorded.statics else next(rest) for i in range(head.num_leaves)]
    return [a if a is not None and a.inexact else None for a in avals]
