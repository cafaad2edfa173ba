"""early_views: Graph → Graph in which parts of a value that is written into are taken before the write, not after.

A view is free, and what it shows often lies beside the write, which can then happen in place.
"""

from __future__ import annotations

from ..ir.graph import Graph, Node, Value
from ..ops.index import getitem


def early_views(graph: Graph) -> Graph:
    """Move each basic index with a fixed place in front of the first write into its operand."""
    written: dict[Value, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.prim.writes is not None:
            written.setdefault(node.inputs[node.prim.writes], i)
    moved: dict[int, list[Node]] = {}
    for i, node in enumerate(graph.nodes):
        if node.prim is getitem and len(node.inputs) == 1 and written.get(node.inputs[0], i) < i:
            moved.setdefault(written[node.inputs[0]], []).append(node)
    if not moved:
        return graph
    late = {node for nodes in moved.values() for node in nodes}
    nodes = [n for i, node in enumerate(graph.nodes) if node not in late for n in (*moved.get(i, ()), node)]
    return Graph(graph.name, graph.inputs, tuple(nodes), graph.outputs)
