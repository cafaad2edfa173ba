"""The door for targets: what a backend says of a graph, so that planning and budgets need not know which it is."""

from __future__ import annotations

from typing import Protocol

from .graph import Graph


class Target(Protocol):
    """What turns graphs into code."""

    def legalise(self, graph: Graph) -> Graph:
        """The graph in the form that is planned and emitted: what the target does by itself has no node."""


TARGETS: dict[str, Target] = {}
