"""Later: the second half of a derivative at a point, such as a pullback, which runs when the user asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..ir.graph import Graph
from ..passes.control.merge_paths import without_guards
from ..passes.remat.split import divide, halves, together, turned, with_own_inputs
from ..tracer.outside import trace_here
from ..tracer.trace import Capture
from .executable import Executable
from .inside import inserted
from .settings import Settings
from .stages import PIPELINE, PLANS, run, settled

Run = Callable[[Sequence[Any]], Sequence[Any]]
Evaluate = Callable[[Graph, Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Later:
    """A graph (residuals…, more…) → results, beside the first half, ``forward``, which hands on the residuals.

    ``forward`` returns ``outs`` results and then the residuals. Halves that are ``joined``, by a ``budget`` in bytes
    or by loops that follow plans, are planned as one graph: their code hands on what the plan keeps.
    """

    forward: Graph
    graph: Graph
    outs: int
    joined: bool = False
    budget: int | None = None

    def planned(self, settings: Settings) -> Graph:
        """The graph of the first half, or of both joined, before it is divided."""
        if self.joined:
            forward, back = settled(self.forward, settings), settled(without_guards(self.graph), settings)
            joint = together(forward, self.outs, back, self.budget)
            return run(joint, PLANS, settings, until="divide")
        stacks = any(v.aval.steps is not None for v in self.forward.outputs[self.outs :])
        return run(with_own_inputs(self.forward) if stacks else self.forward, PIPELINE, settings, until="divide")

    def first(self, planned: Graph) -> Graph:
        """The first half of what was planned."""
        return halves(_divided(planned))[0] if self.joined else divide(planned)

    def second(self, planned: Graph, settings: Settings) -> Graph:
        """The second half."""
        return halves(_divided(planned))[1] if self.joined else run(without_guards(self.graph), PIPELINE, settings)

    def on_kept(self, code: Callable[[], Executable], kept: Sequence[Any]) -> Run:
        """The second half on what the code of the first one handed on."""

        def continued(more: Sequence[Any]) -> Sequence[Any]:
            trace = trace_here()
            if trace is None:
                found: Sequence[Any] = code()(*kept, *more)
                return found
            residuals = kept
            if self.joined:  # both halves become part of that trace, where the plans hold again
                residuals = inserted(trace, self.forward, kept[: len(self.forward.inputs)])[self.outs :]
            return inserted(trace, turned(self.graph, self.budget), [*residuals, *more])

        return continued

    def on_residuals(self, evaluated: Evaluate) -> Callable[[Sequence[Any]], Run]:
        """The second half on residuals: part of the trace that is recording, if any, else as ``evaluated`` says."""
        return partial(self._on_residuals, evaluated)

    def _on_residuals(self, evaluated: Evaluate, residuals: Sequence[Any]) -> Run:
        def continued(more: Sequence[Any]) -> Sequence[Any]:
            trace = trace_here()
            if trace is None:
                return evaluated(self.graph, [*residuals, *more])
            return inserted(trace, turned(self.graph, self.budget), [*residuals, *more])

        return continued


def _divided(planned: Graph) -> Graph:
    """The planned graph divided, once for both halves."""
    return planned.once("divided", lambda: divide(planned))


def on_operands(graph: Graph, first: Sequence[Any]) -> Run:
    """A graph applied to its first operands: it runs on the others, or goes into the trace that is recording."""
    code: list[Executable] = []

    def applied(more: Sequence[Any]) -> Sequence[Any]:
        trace = trace_here()
        if trace is not None:
            return inserted(trace, graph, [*first, *more])
        if not code:
            code.append(Executable(run(without_guards(graph))))
        found: Sequence[Any] = code[0](*(x.payload if isinstance(x, Capture) else x for x in first), *more)
        return found

    return applied
