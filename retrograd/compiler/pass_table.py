"""Every pass on whole graphs by its name: the command line and the golden files read this table."""

from __future__ import annotations

from ..ir.graph import Graph
from ..ir.target import TARGETS
from ..passes.jvp import jvp
from ..passes.linearize import linearize
from ..passes.transpose import transpose
from .settings import config
from .stages import STAGES, Pass, run


def _inexact(graph: Graph) -> list[bool]:
    return [v.aval.inexact for v in graph.inputs]


def passes() -> dict[str, Pass]:
    """The table."""
    return {
        "absorb": TARGETS["numpy"].legalise,
        "jvp": lambda graph: jvp(graph, _inexact(graph), nan_safe=config.nan_safe),
        "linearize": lambda graph: linearize(graph, _inexact(graph), nan_safe=config.nan_safe).linear,
        "transpose": lambda graph: transpose(graph, 0),
        **{name: _alone(name) for name, stage in STAGES.items() if not stage.plans},
    }


def _alone(name: str) -> Pass:
    return lambda graph: run(graph, (name,))
