"""lower: Graph → Graph in which nodes that stand for a graph, or only for differentiation, are replaced."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node
from ..ir.primitive import TRANSFORMS
from ..ir.rewrite import Change, Env, rebuild, recursively, with_bodies


@TRANSFORMS.register("lower")
def lower(graph: Graph) -> Graph:
    """Replace each node whose primitive says how, also in bodies. The result is to be run, not differentiated."""
    return recursively(graph, _lowered)


def _lowered(graph: Graph, inner: Change) -> Graph:
    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol]:
        if node.prim.lower is not None:
            return node.prim.lower(b, node, [env[v] for v in node.inputs])
        return b.copy_node(with_bodies(node, inner), [env[v].value for v in node.inputs])

    return rebuild(graph, rule) if any(prim.lower or prim.structure for prim in graph.prims) else graph
