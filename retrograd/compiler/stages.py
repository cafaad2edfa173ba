"""The passes that every compiled graph goes through, as data, and the one driver that runs them.

A stage is a pass, Graph → Graph, or a planner, (Graph, rest) → Graph, where ``rest`` is what follows: a planner decides
by the memory of the code that its choice becomes. ``STAGES`` has them in their order; extensions fill in their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile

from ..ir.graph import Graph
from ..ir.verify import verify
from ..passes.lower import lower
from ..passes.patterns import Rule
from ..passes.prune import prune
from ..passes.rules import FAST, NATIVE, NUMPY, REASSOCIATE
from ..passes.simplify import simplify
from .settings import Settings, config

Pass = Callable[[Graph], Graph]


@dataclass(frozen=True)
class Rest:
    """The stages that follow, by name, with the settings that they go by: what they make of a graph will run."""

    names: tuple[str, ...]
    settings: Settings

    def __call__(self, graph: Graph, until: str = "") -> Graph:
        """The graph after these stages, or after those in front of the stage ``until``."""
        for name in takewhile(until.__ne__, self.names):
            graph = STAGES[name].run(graph, self.after(name))
        return graph

    def after(self, name: str) -> Rest:
        """The stages behind one of them."""
        return Rest(self.names[self.names.index(name) + 1 :], self.settings)

    def without(self, name: str) -> Rest:
        """The stages but one of them."""
        return Rest(tuple(n for n in self.names if n != name), self.settings)


@dataclass(frozen=True)
class Stage:
    """A pass or a planner. A planner is no pass on a graph alone."""

    run: Callable[[Graph, Rest], Graph]
    plans: bool = False


def of_pass(function: Pass) -> Stage:
    """A pass as a stage; planners have it run on what they choose, and so does the pipeline after them."""
    return Stage(lambda graph, rest: graph.once(("stage", function), lambda: function(graph)))


def _rules(settings: Settings) -> list[Rule]:
    """The tables of rewrites that are on beside the exact one."""
    rules = [] if settings.exact else [*REASSOCIATE, *(NATIVE if settings.backend == "native" else NUMPY)]
    return [*rules, *(FAST if settings.fast else [])]


IDLE = Stage(lambda graph, rest: graph)  # the place of a stage that an extension registers
STAGES: dict[str, Stage] = {
    "prune": of_pass(prune),
    "lower": of_pass(lower),
    "rows_apart": IDLE,
    "simplify": Stage(lambda graph, rest: simplify(graph, _rules(rest.settings))),
    "hoist_invariants": IDLE,
    "sums_behind_loops": IDLE,
    "final_states": IDLE,
    "sums_in_products": IDLE,
    "packed_factors": IDLE,
    "short_axes": IDLE,
    "narrow_stacks": IDLE,
    "rows_in_blocks": IDLE,
    "stacks_in_blocks": IDLE,
    "stencils_in_blocks": IDLE,
    "fewer_rows": IDLE,
    "packed_residuals": IDLE,
    "open_calls": IDLE,
    "share_budget": IDLE,
    "plan_loops": IDLE,
    "checkpoint": IDLE,
    "keep_within_budget": IDLE,
    "own_outputs": IDLE,
    "divide": IDLE,
}
PIPELINE = tuple(STAGES)
PLANS = PIPELINE[PIPELINE.index("packed_residuals") + 1 :]  # what keeps every bit; REWRITES may change a rounding
REWRITES = PIPELINE[: -len(PLANS)]
WATCHERS: list[Callable[[str, Graph, float, int], None]] = []  # told the stage, its outcome, seconds, and `verify`


def run(graph: Graph, names: Iterable[str] = PIPELINE, settings: Settings | None = None, until: str = "") -> Graph:
    """The graph after these stages, or after those in front of the stage ``until``.

    It is verified: at ``verify`` 1 and more after each stage, else at the end. At 2 watchers look at each outcome.
    """
    rest = Rest(tuple(names), settings or config.now())
    for name in takewhile(until.__ne__, rest.names):
        start = time.perf_counter()
        graph = STAGES[name].run(graph, rest.after(name))
        if rest.settings.verify >= 1:
            verify(graph)
        for watch in WATCHERS if rest.settings.verify >= 2 else ():
            watch(name, graph, time.perf_counter() - start, rest.settings.verify)
    return verify(graph)


def settled(graph: Graph, settings: Settings | None = None) -> Graph:
    """The graph as it is before anything is planned."""
    return run(graph, REWRITES, settings)
