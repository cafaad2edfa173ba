"""What a transform makes of a recorded function, and one way through that function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..ir.evaluate import evaluate
from ..ir.graph import Graph
from ..passes.linearize import Linearized
from ..passes.remat.search import without_turn
from ..tracer.record import Recorded
from .garbage import paused
from .settings import config


@dataclass(frozen=True, eq=False)
class Derived:
    """What a transform makes of a recorded function: a graph, and how its results become the user's.

    ``stages`` makes earlier graphs by name, for inspection; ``assemble`` takes the list of results. Paths whose
    ``form`` is equal are assembled alike; without one, each in its own way. ``lin`` says what a derivative keeps,
    and ``within`` makes the graph with another budget of bytes.
    """

    graph: Graph
    assemble: Callable[[Sequence[Any]], Any]
    stages: dict[str, Callable[[], Graph]]
    form: Any = None
    lin: Linearized | None = None
    within: Callable[[int], Graph] | None = None


@dataclass(frozen=True, eq=False)
class Path:
    """One way through the function: its recording, and what the transform made of that."""

    recorded: Recorded
    derived: Derived

    @cached_property
    def divided(self) -> Graph:
        """What is compiled, still with the turn of a gradient that has a budget."""
        with paused:
            return config.divided(self.derived.graph)

    @cached_property
    def graph(self) -> Graph:
        """What is compiled; a path that is only interpreted never asks."""
        return without_turn(self.divided)

    def results(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """What the transform gives, by plain interpretation; Miss if these arguments go another way."""
        return evaluate(self.derived.graph, [*leaves, *(c.payload for c in self.recorded.captures)])

    def run(self, leaves: Sequence[Any]) -> Any:
        """The user's result, by plain interpretation."""
        return self.derived.assemble(self.results(leaves))
