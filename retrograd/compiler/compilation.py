"""Compilation: everything known about one path through a function under a transform, from its trace to its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..ir.plan import Plan
from ..passes.linearize import Linearized
from ..tracer.around import whole
from ..tracer.record import Recorded
from .executable import Executable
from .garbage import paused
from .settings import Settings, config
from .signature import Call
from .stages import PIPELINE, Rest, run

if TYPE_CHECKING:
    from .later import Evaluate, Later

INSPECTORS: dict[str, Callable[..., Any]] = {}  # what extensions do for compiled functions, by name


@dataclass(frozen=True, eq=False)
class Derived:
    """A recorded function under a transform: a graph, and how its results become the user's.

    ``assemble`` takes the list of results; with a second half, ``later``, it takes the results of the function and what
    runs that half on more operands. Ways whose ``form`` is equal are assembled alike; without one, each in its own
    way. ``graphs`` makes earlier graphs by name, for inspection, and ``lin`` says what a derivative keeps.
    """

    graph: Graph
    assemble: Callable[..., Any]
    form: Any = None
    graphs: Mapping[str, Callable[[], Graph]] = field(default_factory=dict)
    lin: Linearized | None = None
    later: Later | None = None

    def interpreted(self, results: Sequence[Any], evaluated: Evaluate = evaluate) -> Any:
        """The user's result, where the second half is interpreted, too, or goes into the trace that is recording."""
        if self.later is None:
            return self.assemble(results)
        continued = self.later.on_residuals(evaluated)
        return self.assemble(results[: self.later.outs], continued(results[self.later.outs :]))


class Ways(Protocol):
    """All ways of a signature."""

    @property
    def code(self) -> Executable: ...
    @property
    def ordered(self) -> bool: ...


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
    signature: Ways

    @cached_property
    @whole
    def planned(self) -> Graph:
        """The graph to compile, still with the turn between the forward and the adjoint part of a derivative."""
        with paused, config(**self.settings._asdict()):
            if self.derived.later is not None:
                found = self.derived.later.planned(self.settings)
            else:
                found = run(self.derived.graph, PIPELINE, self.settings, until="divide")
        INSPECTORS["unused plans"](found)
        return found

    @cached_property
    @whole
    def graph(self) -> Graph:
        """The compiled graph; for a derivative at a point, its first half."""
        with paused, config(**self.settings._asdict()):
            if self.derived.later is not None:
                return self.derived.later.first(self.planned)
            if self.settings.verify:
                return run(self.planned, ("divide",), self.settings)
            return Rest(("divide",), self.settings)(self.planned)

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
        """The layout of values in memory."""
        return self.executable.plan

    @property
    def source(self) -> str:
        """The generated module, which runs alone."""
        return self.executable.source()

    @cached_property
    @whole
    def second(self) -> Executable:
        """The code of the second half of a derivative at a point."""
        assert self.derived.later is not None
        with paused, config(**self.settings._asdict()):
            return Executable(self.derived.later.second(self.planned, self.settings), ordered=self.signature.ordered)

    @property
    def assemble(self) -> Callable[[Sequence[Any]], Any]:
        """The function from the results of this path's code to the user's result."""
        later, assemble = self.derived.later, self.derived.assemble
        if later is None:
            return assemble

        def assembled(results: Sequence[Any]) -> Any:
            kept = results[later.outs :]
            return assemble(results[: later.outs], later.on_kept(lambda: self.second, kept))

        return assembled

    def arguments(self, leaves: Sequence[Any], present: Mapping[int, Any] | None = None) -> list[Any]:
        """The operands of the graph: the leaves of a call, and what the function captured, or what it is now."""
        captured = [c.payload for c in self.recorded.captures]
        return [*leaves, *(captured if present is None else (present[id(x)] for x in captured))]

    def results(self, leaves: Sequence[Any], present: Mapping[int, Any] | None = None) -> tuple[Any, ...]:
        """The results of the first half, by plain interpretation; Miss if these arguments take another path."""
        return evaluate(self.derived.graph, self.arguments(leaves, present))

    def interpret(self, leaves: Sequence[Any]) -> Any:
        """The user's result, by plain interpretation."""
        return self.derived.interpreted(INSPECTORS["interpreted"](self.derived, self.arguments(leaves)))
