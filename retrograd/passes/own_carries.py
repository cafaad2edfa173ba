"""own_carries: Graph → Graph whose loops own the arrays that their steps write into."""

from __future__ import annotations

from dataclasses import replace

from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import loop_of, shared_bodies
from ..ir.rewrite import mapped, with_nodes
from ..ops.shape import owned
from .place_buffers import carries_in_place


def own_carries(graph: Graph) -> Graph:
    """Copy what a loop starts from, once, where its steps then write into that copy instead of copying it each time.

    No copy is made of an array that nothing else reads: ``place_buffers`` leaves it where it is. Bodies that several
    nodes share stay as they are.
    """
    return mapped(graph, _with_copies) if graph.nested else graph


def _with_copies(graph: Graph) -> Graph:
    shared = shared_bodies(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        loop = loop_of(node)
        if loop is None or loop.body in shared:
            nodes.append(node)
            continue
        consts, carry, _ = loop.layout.operands(loop.operands)
        arrays = [k for k, v in enumerate(carry) if v.aval.kind == "array" and v.aval.steps is None]
        first = len(node.inputs) - len(loop.operands) + len(consts)
        inputs = list(node.inputs)
        for k in carries_in_place(loop, frozenset(arrays)):
            copy = Node(owned, (carry[k],), {}, (Value(carry[k].aval, carry[k].hint),), node.where)
            inputs[first + k] = copy.out
            nodes.append(copy)
        nodes.append(node if inputs == [*node.inputs] else replace(node, inputs=tuple(inputs)))
    return with_nodes(graph, nodes)
