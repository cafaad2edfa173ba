"""open_calls: Graph → Graph with calls inlined, but for closed ones."""

from __future__ import annotations

from ..ir.builder import Builder
from ..ir.graph import Graph
from .inline import body_in_place, inline_into


def open_calls(graph: Graph) -> Graph:
    """The graph with calls inlined, but for closed ones."""
    if not any(map(body_in_place, graph.nested)):
        return graph
    b = Builder()
    return b.graph(graph.name, inline_into(b, graph, b.share_inputs(graph), opening=True))
