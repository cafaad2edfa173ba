"""complete: Graph → Graph in which the last iteration of a loop also reads what only a next one would have needed.

The components of a state are read at the head of an iteration, those of the start from an input. So a copy of the loop
begins after these reads and ends with those of the next iteration, which the last one lacks: nothing reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import with_nodes
from ...ops.index import getitem
from .nodes_of_copies import counted, kinds, repeating


def complete(graph: Graph) -> Graph:
    """Add the reads that the last copies of repeating stretches lack; the graph itself if there are none."""
    nodes, _ = counted(graph)
    alike = kinds(graph)
    place = {node.out: i for i, node in enumerate(nodes) if not node.prim.multi}
    added: dict[Node, list[Node]] = {}
    for start, period, copies in repeating(graph):
        end = start + period * copies
        begun = alike[end : end + period]
        same = begun == alike[end - period : end - period + len(begun)]
        n = len(same) if same.all() else int(same.argmin())
        reads = _reads(nodes[end - period + n : end], nodes, place, (end - period, end + n), period)
        if n and reads:
            added.setdefault(nodes[end + n - 1], reads)
    return with_nodes(graph, [n for node in graph.nodes for n in (node, *added.get(node, ()))]) if added else graph


def _reads(
    lacked: Sequence[Node], nodes: Sequence[Node], place: dict[Value, int], span: tuple[int, int], period: int
) -> list[Node]:
    """The same reads one period later, if all are reads of results of these copies; else none."""
    reads = []
    for node in lacked:
        if node.prim is not getitem or len(node.inputs) != 1:
            return []
        source = place.get(node.inputs[0], -1)
        if not span[0] <= source < span[1] - period:
            return []
        out = Value(node.out.aval, node.out.hint)
        reads.append(Node(node.prim, (nodes[source + period].out,), node.attrs, (out,), node.where, node.replica))
    return reads
