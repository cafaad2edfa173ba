"""lower: Graph → Graph in which nodes that stand for a graph, or only for differentiation, are replaced."""

from __future__ import annotations

from ..ir.builder import Builder
from ..ir.graph import Graph, Value


def lower(graph: Graph) -> Graph:
    """Replace nodes whose primitive says how; bodies too. The outcome is for evaluation, not differentiation."""
    return _lowered(graph, {})


def _lowered(graph: Graph, done: dict[Graph, Graph]) -> Graph:
    if graph in done:
        return done[graph]
    if not any(node.prim.lower or node.graphs for node in graph.nodes):
        done[graph] = graph
        return graph
    b = Builder()
    env: dict[Value, Value] = {v: s.value for v, s in zip(graph.inputs, b.inputs_like(graph.inputs), strict=True)}
    for node in graph.nodes:
        ins = [env[v] for v in node.inputs]
        if node.prim.lower is not None:
            b.where, b.replica = node.where, node.replica
            outs = node.prim.lower(b, node, [b.symbol(v) for v in ins])
            b.replica = 0
        else:
            bodies = {name: _lowered(body, done) for name, body in node.graphs}
            outs = b.copy_node(node, ins, **bodies)
        env.update((v, s.value) for v, s in zip(node.outputs, outs, strict=True))
    done[graph] = b.graph(graph.name, [b.symbol(env[v]) for v in graph.outputs])
    return done[graph]
