"""copy_again: Graph → Graph whose adjoint copies parts of arrays again, in place of keeping the copies that it reads.

A reshape of a slice is a copy, such as the windows of a convolution. To copy again takes as long as to fetch a copy
that no cache holds any more, and costs no memory between the function and its adjoint.
"""

from __future__ import annotations

from ...ir.graph import Graph, Node, Value
from ...ir.layouts import copies
from ...ir.rewrite import with_nodes
from ...ops.structural.region import turn
from ..place_buffers import POOL
from .order import Recomputation
from .search import peak_of_order

LESS = 0.9  # of the peak, if it is worth it


def copy_again(graph: Graph) -> Graph:
    """The graph that copies twice; the graph itself if its peak is hardly lower, or if its parts are divided later."""
    if turn not in graph.prims or not any(_is_large_copy(node, graph) for node in graph.nodes):
        return graph
    parts = Recomputation(graph)
    again = {v for v in parts.needed if _is_large_copy(parts.made[v], graph) and _stays(v, parts)}
    if parts.stays or not again:
        return graph
    twice = parts.again(frozenset(parts.needed) - again)
    if peak_of_order(twice) > LESS * peak_of_order(graph):
        return graph
    at = len(parts.first)
    return with_nodes(graph, (*twice.nodes[:at], graph.nodes[at], *twice.nodes[at:]))


def _is_large_copy(node: Node, graph: Graph) -> bool:
    return len(node.outputs) == 1 and node.out.aval.nbytes >= POOL and copies(node, graph.producer)


def _stays(copy: Value, parts: Recomputation) -> bool:
    """Whether the array that a value is a copy of lives as long as the adjoint in any case."""
    value = copy
    while value in parts.made and (alias := parts.made[value].prim.alias) is not None:
        value = parts.made[value].inputs[alias]
    return value not in parts.made or value in parts.held
