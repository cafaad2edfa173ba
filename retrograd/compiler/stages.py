"""The passes that every compiled graph goes through, as data, and the one driver that runs them.

A stage is a pass, Graph → Graph, or a planner, (Graph, rest) → Graph, where ``rest`` is what follows: a planner decides
by the memory of the code that its choice becomes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from ..errors import InternalError, UnusedPlanWarning
from ..ir.graph import Graph
from ..ir.parser import parse
from ..ir.printer import to_text
from ..ir.target import TARGETS
from ..ir.verify import verify
from ..passes.checkpoint.checkpoint import checkpoint, keeping_all
from ..passes.inline import open_calls
from ..passes.jvp import jvp
from ..passes.linearize import linearize
from ..passes.lower import lower
from ..passes.own_outputs import own_outputs
from ..passes.patterns import Rule
from ..passes.prune import prune
from ..passes.remat.split import divide, splits
from ..passes.rules import FAST, REASSOCIATE
from ..passes.simplify import simplify
from ..passes.transpose import transpose
from ..where import warn
from .memory.budgets import budget_of, keep_within_budget
from .memory.loops import plan_loops
from .memory.shared import share_budget
from .settings import Settings, config

Pass = Callable[[Graph], Graph]
Watch = Callable[[str, Graph, float], None]


@dataclass(frozen=True)
class Rest:
    """The stages that follow, with the settings that they go by: what they make of a graph is what will run."""

    stages: tuple[Stage, ...]
    settings: Settings

    def __call__(self, graph: Graph, until: str = "") -> Graph:
        """The graph after these stages, or after those in front of the stage named ``until``."""
        for k, stage in enumerate(self.stages):
            if stage.name == until:
                break
            graph = stage.run(graph, Rest(self.stages[k + 1 :], self.settings))
        return graph

    def after(self, name: str) -> Rest:
        """The stages behind one of them."""
        at = [stage.name for stage in self.stages].index(name)
        return Rest(self.stages[at + 1 :], self.settings)

    def without(self, name: str) -> Rest:
        """The stages but one of them."""
        return Rest(tuple(stage for stage in self.stages if stage.name != name), self.settings)


@dataclass(frozen=True)
class Stage:
    """A pass or a planner by its name."""

    name: str
    run: Callable[[Graph, Rest], Graph]
    plans: bool = False


def _pass(function: Pass) -> Stage:
    return Stage(function.__name__, lambda graph, rest: function(graph))


def _rules(settings: Settings) -> list[Rule]:
    """The tables of rewrites that are on beside the exact one."""
    return [*([] if settings.exact else REASSOCIATE), *(FAST if settings.fast else [])]


REWRITES = (
    _pass(prune),
    _pass(lower),
    Stage("simplify", lambda graph, rest: simplify(graph, _rules(rest.settings))),
)
PLANS = (
    Stage("open_calls", lambda graph, rest: open_calls(graph) if budget_of(graph) is not None else graph),
    Stage("share_budget", share_budget, plans=True),
    Stage("plan_loops", plan_loops, plans=True),
    Stage("checkpoint", lambda graph, rest: checkpoint(graph, rest.settings.counters)),
    Stage("keep_within_budget", keep_within_budget, plans=True),
    Stage("own_outputs", lambda graph, rest: graph if splits(graph) else own_outputs(graph)),  # each half has its own
    _pass(divide),
)
PIPELINE = (*REWRITES, *PLANS)


def run(graph: Graph, stages: Iterable[Stage] = PIPELINE, settings: Settings | None = None, until: str = "") -> Graph:
    """The graph after all stages, or after those in front of the stage named ``until``.

    It is verified: at ``verify`` 1 and more after each stage, else at the end.

    At ``verify`` 2 the text of each outcome must round trip, and at 3 it is printed.
    """
    settings = settings or config.now()
    rest = Rest(tuple(stages), settings)
    for k, stage in enumerate(rest.stages):
        if stage.name == until:
            break
        start = time.perf_counter()
        graph = stage.run(graph, Rest(rest.stages[k + 1 :], settings))
        if settings.verify >= 1:
            verify(graph)
        if settings.verify >= 2:
            _watch(stage.name, graph, time.perf_counter() - start, aloud=settings.verify >= 3)
    return verify(graph)


def _watch(name: str, graph: Graph, seconds: float, aloud: bool) -> None:
    text = to_text(graph)
    if to_text(parse(text)) != text:
        raise InternalError(f"the text of {graph.name} after {name} does not round trip")
    if aloud:
        sys.stderr.write(f"--- {name}: {len(graph.nodes)} nodes, {1e3 * seconds:.2f} ms\n{text}")


def settled(graph: Graph, settings: Settings | None = None) -> Graph:
    """The graph as it is before anything is planned."""
    return run(graph, REWRITES, settings)


def warn_of_unused_plans(graph: Graph) -> None:
    """UnusedPlanWarning for loops of a finished graph that keep all residuals in spite of their plans."""
    for where in dict.fromkeys(node.where for node in keeping_all(graph)):
        warn(
            f"the plan of memory for the loop at {where} is not followed: all its residuals are kept, since something "
            "else than a loop reads them; put it on a loop around rg.cond, or use rg.vjp instead of rg.linearize",
            UnusedPlanWarning,
        )


def _inexact(graph: Graph) -> list[bool]:
    return [v.aval.inexact for v in graph.inputs]


def _absorbed(graph: Graph) -> Graph:
    return TARGETS["numpy"].legalise(graph)


# Every pass on whole graphs by its name: the command line, the golden files and the pipeline read these tables.
PASSES: dict[str, Pass] = {
    "absorb": _absorbed,
    "jvp": lambda graph: jvp(graph, _inexact(graph), nan_safe=config.nan_safe),
    "linearize": lambda graph: linearize(graph, _inexact(graph), nan_safe=config.nan_safe).linear,
    "transpose": lambda graph: transpose(graph, 0),
    **{stage.name: partial(run, stages=(stage,)) for stage in PIPELINE if not stage.plans},
}
