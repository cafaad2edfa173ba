"""Kernels that are alike, as those of the steps of a program, have one body, and so one function of NumPy and one of C.

A plan may let a result lie in an operand at one of them and not at another. The others then get a body of their own.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial

from ...ir.builder import attr_key
from ...ir.graph import Graph, Node, Value
from ...ir.plan import Plan
from ...ir.rewrite import mapped, with_bodies, with_nodes
from ...ops.structural.kernel import STORAGE, kernel
from .in_operands import Pairs

FOR_C = "for C"  # under which a body knows what it was before the target for the rest changed it
KEPT = "kept"  # likewise, the bytes that its function of C keeps between calls
KNOWN = (FOR_C, KEPT, STORAGE)


def is_kernel(node: Node) -> bool:
    """Whether a node is a kernel for C: not one that the target for the rest runs on blocks."""
    return node.prim is kernel and not node.attrs.get("size")


def structure_of(body: Graph) -> Hashable:
    """Equal for graphs that are alike in all but the names of their values, and where constants stand."""
    known: dict[Value, Hashable] = {v: k for k, v in enumerate(body.inputs)}
    nodes: list[Hashable] = []
    for node in body.nodes:
        attrs = tuple(
            [(name, structure_of(x) if isinstance(x, Graph) else attr_key(x)) for name, x in node.attrs.items()]
        )
        if node.prim.name == "const":
            known[node.out] = attrs
            continue
        known.update({v: (len(nodes), k) for k, v in enumerate(node.outputs)})
        operands, avals = tuple([known[v] for v in node.inputs]), tuple([v.aval for v in node.outputs])
        nodes.append((node.prim, node.where, node.replica, attrs, operands, avals))
    return body.in_avals, tuple(nodes), tuple([known[v] for v in body.outputs])


def with_alike_as_one(graph: Graph) -> Graph:
    """The graph in which kernels that are alike have the body of the first of them."""
    first: dict[Hashable, Graph] = {}

    def one(inner: Graph) -> Graph:
        def body_of(body: Graph) -> Graph:
            return first.setdefault(structure_of(body), body)

        return with_nodes(inner, [with_bodies(node, body_of) if is_kernel(node) else node for node in inner.nodes])

    return mapped(graph, one)


def pairs_of(plan: Plan, node: Node) -> Pairs:
    """The pairs of a result and an operand of a kernel that have one storage."""
    held = [(k, plan.into.get(v)) for k, v in enumerate(node.outputs)]
    return tuple((k, node.inputs.index(v)) for k, v in held if v is not None)


def apart_by_storage(plan: Plan) -> Plan:
    """The plan with one body for those kernels whose results lie in the same operands."""
    return _apart(plan, {}, {})


def _apart(plan: Plan, first: dict[Graph, Pairs], others: dict[tuple[Graph, Pairs], Graph]) -> Plan:
    bodies = {body: _apart(inner, first, others) for body, inner in plan.bodies.items()}

    def own(node: Node) -> Node:
        if not is_kernel(node):
            return node
        (_, body), pairs = node.graphs[0], pairs_of(plan, node)
        if first.setdefault(body, pairs) == pairs:
            return node
        other = others[body, pairs] = others.get((body, pairs)) or _copied(body)
        bodies[other] = bodies[body]
        return with_bodies(node, {body: other}.__getitem__)

    order = with_nodes(plan.order, map(own, plan.order.nodes))
    same = order is plan.order and all(bodies[body] is inner for body, inner in plan.bodies.items())
    return plan if same else replace(plan, order=order, bodies=bodies)


def _copied(body: Graph) -> Graph:
    """Another graph with the same nodes, which knows what is known of the body."""
    own = replace(body)
    for key in filter(body.knows, KNOWN):
        own.once(key, partial(body.once, key, tuple))
    return own
