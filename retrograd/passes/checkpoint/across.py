"""across: apply a pass to two graphs at once, of which the second reads results of the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...errors import InternalError
from ...ir.builder import Builder
from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import with_nodes
from ..inline import inline_into

TAIL = 1 << 32  # greater than any number of replicas


def of_tail(graph: Graph) -> Graph:
    """The graph with each of its nodes marked as one of the tail."""
    return with_nodes(graph, (replace(node, replica=node.replica + TAIL) for node in graph.nodes))


def in_tail(node: Node) -> bool:
    """Whether a node is marked as one of the tail."""
    return node.replica > TAIL // 2  # the tag was negative if the original does not run


def across(head: Graph, outs: int, tail: Graph, at: int, treat: Callable[[Graph], Graph]) -> tuple[Graph, Graph]:
    """Apply a pass to both graphs together.

    The results of ``head`` after the first ``outs`` are inputs of ``tail`` from position ``at`` on. Only these may
    change: the pass may choose other values to hand over. Meanwhile nodes of the tail have replica tags beyond all
    others, so that they never merge with nodes of the head.
    """
    n = len(head.outputs) - outs
    b = Builder()
    found = inline_into(b, head, b.inputs_like(head.inputs))
    before, after = b.inputs_like(tail.inputs[:at]), b.inputs_like(tail.inputs[at + n :])
    rest = inline_into(b, of_tail(tail), [*before, *found[outs:], *after])
    joint = treat(b.graph("joint", [*found[:outs], *rest]))

    ours = tuple(node for node in joint.nodes if not in_tail(node))
    theirs = tuple(replace(node, replica=node.replica - TAIL) for node in joint.nodes if in_tail(node))
    constants = {v: node for node in ours if not node.inputs and not node.prim.effect for v in node.outputs}
    split = len(head.inputs), len(head.inputs) + len(before)
    h_in, b_in, a_in = joint.inputs[: split[0]], joint.inputs[split[0] : split[1]], joint.inputs[split[1] :]
    known: set[Value] = {*h_in, *(v for node in ours for v in node.outputs)}
    if any(v not in known for node in ours for v in node.inputs):
        raise InternalError(f"{head.name} reads results of {tail.name}")
    read = [*(v for node in theirs for v in node.inputs), *joint.outputs[outs:]]
    copied = dict.fromkeys(constants[v] for v in read if v in constants)
    crossing = list(dict.fromkeys(v for v in read if v in known and v not in constants))
    return (
        Graph(head.name, h_in, ours, (*joint.outputs[:outs], *crossing)),
        Graph(tail.name, (*b_in, *crossing, *a_in), (*copied, *theirs), joint.outputs[outs:]),
    )
