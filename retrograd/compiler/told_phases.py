"""The compiler's phases, reported to listeners: traces, loops that fold, stages, and source."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..ir.graph import Graph
from ..ir.primitive import TRANSFORMS
from ..ir.target import TARGETS
from ..tracer.record import RECORDERS, Recorded
from ..tracer.trace import CURRENT, Trace
from .phases import during
from .stages import STAGES, Stage


def _recording(run: Callable[..., Recorded]) -> Callable[..., Recorded]:
    """Wrap recordings: the outermost one tells how many operations it has."""

    @functools.wraps(run)
    def record(function: Callable[[Sequence[Any]], Any], name: str, *options: Any) -> Recorded:
        if CURRENT.get() is not None:
            return run(function, name, *options)
        traces: list[Trace] = []

        def noted(tracers: Sequence[Any]) -> Any:
            traces.extend(filter(None, [CURRENT.get()]))
            return function(tracers)

        with during("tracing", name, lambda: len(traces[0].builder.nodes) if traces else 0):
            return run(noted, name, *options)

    return record


def _of_graph(phase: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a graph or of a plan, as a phase."""

    @functools.wraps(run)
    def told(graph: Any, *rest: Any, **options: Any) -> Any:
        name = graph.name if isinstance(graph, Graph) else graph.order.name
        with during(phase, name):
            return run(graph, *rest, **options)

    return told


def _stage(stage: Stage) -> Stage:
    return replace(stage, run=_of_graph("planning" if stage.plans else "compilation", stage.run))


RECORDERS.append(_recording)
TRANSFORMS.register("reroll")(_of_graph("folding", TRANSFORMS.reroll))
STAGES.update({name: _stage(stage) for name, stage in STAGES.items()})
for target in TARGETS.values():
    for method in ("plan", "emit"):
        setattr(target, method, _of_graph("compilation", getattr(target, method)))
