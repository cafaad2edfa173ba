"""Compilation: all that is known of one way through a function under a transform, from its recording to its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.plan import Plan
from ..passes.control.merge_paths import without_guards
from ..passes.linearize import Linearized
from ..passes.remat.split import divide, halves, together, turned, with_own_inputs
from ..tracer.record import Recorded, enclosing
from ..tracer.trace import Capture
from .debug_nans import DERIVATIVE, FUNCTION, inspect
from .executable import Executable
from .garbage import paused
from .inside import continued_in, inserted
from .settings import Settings
from .signature import Call
from .stages import PIPELINE, PLANS, run, settled, warn_of_unused_plans

if TYPE_CHECKING:
    from .paths import Paths

Run = Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Later:
    """The second half of a derivative at a point, which runs when the user asks: (residuals…, more…) → results.

    The first half returns ``outs`` results and then the residuals. Halves that are ``joined``, by a ``budget`` in bytes
    or by loops that follow plans, are planned as one graph: their code hands on what the plan keeps.
    """

    graph: Graph
    outs: int
    joined: bool = False
    budget: int | None = None


@dataclass(frozen=True, eq=False)
class Derived:
    """What a transform makes of a recorded function: a graph, and how its results become the user's.

    ``assemble`` takes the list of results; if there is a second half, the results of the function and what runs that
    half on more operands. Ways whose ``form`` is equal are assembled alike; without one, each in its own way.
    ``graphs`` makes earlier graphs by name, for inspection, and ``lin`` says what a derivative keeps.
    """

    graph: Graph
    assemble: Callable[..., Any]
    form: Any = None
    graphs: Mapping[str, Callable[[], Graph]] = field(default_factory=dict)
    lin: Linearized | None = None
    later: Later | None = None

    def assembled(self, results: Sequence[Any], run: Callable[[Sequence[Any]], Run]) -> Any:
        """The user's result; ``run`` tells, of what the first half hands on, how the second runs."""
        if self.later is None:
            return self.assemble(results)
        return self.assemble(results[: self.later.outs], run(results[self.later.outs :]))


@dataclass(frozen=True, eq=False)
class Compilation:
    """One way through a function for one signature: the call, its recording, its graphs by stage, its code.

    ``signature`` holds all ways of the signature, which run in one piece of code. Graphs and code are made when they
    are asked for.
    """

    name: str
    call: Call
    recorded: Recorded
    derived: Derived
    settings: Settings
    signature: Paths

    @cached_property
    def planned(self) -> Graph:
        """What is compiled, still with the turn between the forward and the adjoint part of a derivative."""
        later = self.derived.later
        with paused:
            if later is None or not later.joined:
                graph = self.derived.graph
                stacks = later is not None and any(v.aval.steps is not None for v in graph.outputs[later.outs :])
                found = run(with_own_inputs(graph) if stacks else graph, PIPELINE, self.settings, until="divide")
            else:
                forward, back = (settled(g, self.settings) for g in (self.derived.graph, without_guards(later.graph)))
                found = run(together(forward, later.outs, back, later.budget), PLANS, self.settings, until="divide")
        warn_of_unused_plans(found)
        return found

    @cached_property
    def graph(self) -> Graph:
        """What is compiled; of a derivative at a point, the first half."""
        return self._halves[0]

    @cached_property
    def _halves(self) -> tuple[Graph, Graph | None]:
        later = self.derived.later
        with paused:
            graph = divide(self.planned)
            if later is None:
                return graph, None
            return halves(graph) if later.joined else (graph, run(without_guards(later.graph), PIPELINE, self.settings))

    @cached_property
    def graphs(self) -> dict[str, Callable[[], Graph]]:
        """The graph at each stage, by name, made when it is called."""
        return {"traced": lambda: self.recorded.graph, **self.derived.graphs, "optimised": lambda: self.graph}

    @property
    def executable(self) -> Executable:
        """The code of all ways of the signature."""
        return self.signature.code

    @property
    def plan(self) -> Plan:
        """How the code lays values out in memory."""
        return self.executable.plan

    @property
    def source(self) -> str:
        """The generated module, which runs alone."""
        return self.executable.source()

    @cached_property
    def _second(self) -> Executable:
        graph = self._halves[1]
        assert graph is not None
        return Executable(graph)

    def assemble(self, results: Sequence[Any]) -> Any:
        """The user's result out of what the code of this way returned."""
        return self.derived.assembled(results, self._continued)

    def _continued(self, kept: Sequence[Any]) -> Run:
        """How the second half runs on what the code of the first one handed on."""
        later, forward = self.derived.later, self.derived.graph
        assert later is not None

        def continued(more: Sequence[Any]) -> Sequence[Any]:
            trace = enclosing()
            if trace is None:
                found: Sequence[Any] = self._second(*kept, *more)
                return found
            residuals = kept
            if later.joined:  # both halves become part of that trace, where the plans hold again
                residuals = inserted(trace, forward, kept[: len(forward.inputs)])[later.outs :]
            return inserted(trace, turned(later.graph, later.budget), [*residuals, *more])

        return continued

    def results(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """What the first half gives, by plain interpretation; Miss if these arguments go another way."""
        return evaluate(self.derived.graph, self._arguments(leaves))

    def interpret(self, leaves: Sequence[Any]) -> Any:
        """The user's result, by plain interpretation."""
        return self.derived.assembled(self.results(leaves), continued_in(self.derived, evaluate))

    def inspect(self, leaves: Sequence[Any]) -> Any:
        """The same; NanError at the first operation that makes a nan or an infinity, of the function first."""
        args = self._arguments(leaves)
        inspect(self.recorded.graph, args, FUNCTION)
        found = inspect(settled(self.derived.graph), args, DERIVATIVE)
        return self.derived.assembled(found, continued_in(self.derived, _inspected))

    def _arguments(self, leaves: Sequence[Any]) -> list[Any]:
        return [*leaves, *(c.payload for c in self.recorded.captures)]


def _inspected(graph: Graph, args: Sequence[Any]) -> Sequence[Any]:
    return inspect(settled(graph), args, DERIVATIVE)


def on_operands(graph: Graph, first: Sequence[Any]) -> Run:
    """A graph applied to its first operands: it runs on the others, or goes into the trace that is recording."""
    code: list[Executable] = []

    def applied(more: Sequence[Any]) -> Sequence[Any]:
        trace = enclosing()
        if trace is not None:
            return inserted(trace, graph, [*first, *more])
        if not code:
            code.append(Executable(run(without_guards(graph))))
        found: Sequence[Any] = code[0](*(x.payload if isinstance(x, Capture) else x for x in first), *more)
        return found

    return applied
