"""lower: Graph → Graph in which nodes that stand for a graph, or only for differentiation, are replaced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node
from ..ir.rewrite import Env, rebuild, with_bodies


def lower(graph: Graph, done: dict[Graph, Graph] | None = None) -> Graph:
    """Replace each node whose primitive says how, also in bodies. The result is to be run, not differentiated."""
    done = {} if done is None else done  # each body once
    if graph not in done:
        plain = not any(prim.lower or prim.structure for prim in graph.prims)
        done[graph] = graph if plain else rebuild(graph, partial(_rule, done))
    return done[graph]


def _rule(done: dict[Graph, Graph], b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    if node.prim.lower is not None:
        return node.prim.lower(b, node, [env[v] for v in node.inputs])
    if node.prim.structure is None:
        return None
    return b.copy_node(with_bodies(node, partial(lower, done=done)), [env[v].value for v in node.inputs])
