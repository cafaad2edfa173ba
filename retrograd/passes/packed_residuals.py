"""packed_residuals: Graph → Graph in which products read residuals that lie in C order without gaps.

BLAS rounds a product with a column of a matrix otherwise than one with a copy of that column. A plan decides whether an
adjoint finds a residual as a view of an array that was computed again, or as a copy that was kept: in a stack, or since
the array was overwritten. So such a residual is a copy from the beginning, and no plan changes a bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ..ir.graph import Graph, Node, Value
from ..ir.layouts import copies, shown_array
from ..ir.loop_node import loop_of
from ..ir.rewrite import mapped, with_bodies, with_nodes
from ..ops.linear import matmul, vecdot
from ..ops.shape import copy
from ..ops.structural.region import turn
from .reroll.contiguous import contiguous

PRODUCTS = frozenset({matmul, vecdot})


def packed_residuals(graph: Graph) -> Graph:
    """The graph of a derivative with copies of such residuals, also of those that loops save."""
    if turn not in graph.prims:
        return graph
    graph = mapped(graph, _saving_copies) if graph.nested else graph
    return _with_copies(graph, _crossing(graph))


def _saving_copies(graph: Graph) -> Graph:
    """The graph with loops that save copies."""

    def changed(node: Node) -> Node:
        loop = loop_of(node)
        if loop is None or not loop.stacks:
            return node
        saved = loop.layout.results(loop.body.outputs)[2]
        read = {
            v
            for v, stack in zip(saved, loop.stacks, strict=True)
            if _is_multiplied(loop.body, v) or _may_be_multiplied(graph, stack)
        }
        return with_bodies(node, lambda body: _with_copies(body, read) if body is loop.body else body)

    return with_nodes(graph, map(changed, graph.nodes))


def _may_be_multiplied(graph: Graph, stack: Value) -> bool:
    """Whether a product may read the rows of a stack, in a loop that takes them or elsewhere."""
    rows = [_row(node, stack) for node in graph.uses.get(stack, ())]
    return stack in graph.outputs or any(row is None or _is_multiplied(*row) for row in rows)


def _row(node: Node, stack: Value) -> tuple[Graph, Value] | None:
    """The body of a loop that takes a stack row by row, and the row; None for other readers."""
    loop = loop_of(node)
    if loop is None:
        return None
    stacks, rows = (loop.layout.operands(values)[2] for values in (loop.operands, loop.body.inputs))
    return (loop.body, rows[stacks.index(stack)]) if stack in stacks else None


def _crossing(graph: Graph) -> set[Value]:
    """The parts of arrays that the graph overwrites which both sides of the turn read, and one of them multiplies."""
    made = graph.producer
    written = {shown_array(n.inputs[n.prim.writes], made) for n in graph.nodes if n.prim.writes is not None}
    written -= {*graph.inputs}  # these are never overwritten, but copied before
    if not written:
        return set()
    at = next(k for k, node in enumerate(graph.nodes) if node.prim is turn)
    before = {v for node in graph.nodes[:at] if node.prim.alias is not None for v in node.outputs}
    after = {v for node in graph.nodes[at:] for v in node.inputs}
    return {v for v in before & after if shown_array(v, made) in written and _is_multiplied(graph, v)}


def _is_multiplied(graph: Graph, value: Value) -> bool:
    """Whether a product reads a value, or a view of it."""
    views = [value]
    for view in views:
        for node in graph.uses.get(view, ()):
            if node.prim in PRODUCTS:
                return True
            if node.prim.alias is not None and node.inputs[node.prim.alias] is view:
                views += node.outputs
    return False


def _with_copies(graph: Graph, values: Collection[Value]) -> Graph:
    """The graph with copies of those values that may lie otherwise, which all nodes read."""
    made, lying = graph.producer, contiguous(graph)
    values = {v for v in values if v.aval.shape and v in made and v not in lying and not copies(made[v], made)}
    if not values:
        return graph
    nodes: list[Node] = []
    found: dict[Value, Value] = {}

    def latest(given: Iterable[Value]) -> tuple[Value, ...]:
        return tuple(found.get(v, v) for v in given)

    for node in graph.nodes:
        nodes.append(replace(node, inputs=latest(node.inputs)) if found.keys() & set(node.inputs) else node)
        for value in node.outputs:
            if value in values:
                packed = Node(copy, (value,), {}, (Value(value.aval, value.hint),), node.where)
                found[value] = packed.out
                nodes.append(packed)
    return Graph(graph.name, graph.inputs, tuple(nodes), latest(graph.outputs))
