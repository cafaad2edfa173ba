"""readers_first: Graph → Graph in which formulas that read an array come before the one that changes it.

``f = a[k:, k] / a[k, k]`` may be part of two writes: ``a[k:, k:] -= np.outer(f, a[k, k:])`` and ``b[k:] -= f * b[k]``.
The second one then reads what ``a`` was. Before the first one, it needs no copy of ``a``.
"""

from __future__ import annotations

from ...ir.graph import Graph, Node
from ...ir.rewrite import with_nodes
from ...ops.formulas import value_within, write_within

NEAR = 100  # readers of an array, and nodes that one of them needs, up to which it may move


def readers_first(graph: Graph) -> Graph:
    """The graph with nodes in another order; the graph itself if it has effects, which none may cross."""
    if graph.effect:
        return graph
    order = {node: k for k, node in enumerate(graph.nodes)}
    nodes: dict[Node, None] = {}
    for node in graph.nodes:
        readers = graph.uses[node.inputs[0]] if node.prim is write_within else ()
        if len(readers) <= NEAR:
            for reader in readers:
                if reader is not node and reader not in nodes and reader.prim in (value_within, write_within):
                    first = _missing(graph, reader, nodes, node)
                    nodes.update(dict.fromkeys(sorted(first, key=order.__getitem__)))
        nodes[node] = None
    return with_nodes(graph, nodes)


def _missing(graph: Graph, node: Node, there: dict[Node, None], without: Node) -> set[Node]:
    """What a node needs that is not there yet, with the node; nothing if that is much, or one that it must precede."""
    found, todo = {node}, [node]
    while todo:
        for v in todo.pop().inputs:
            made = graph.producer.get(v)
            if made is without or len(found) > NEAR:
                return set()
            if made is not None and made not in there and made not in found:
                found.add(made)
                todo.append(made)
    return found
