"""alike_bodies: Graph → Graph whose loops have one body where bodies differ in ints of their indices alone.

An inner loop that works on a row has the number of the row in its indices. As an operand, it is a number that differs
from copy to copy, and the loops over the rows fold as any other stretch.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol, attr_key
from ...ir.graph import Graph, Node
from ...ir.loop_node import LoopNode, loop_of
from ...ir.rewrite import Env, copy_nodes, rebuild
from ...ir.structure import Layout
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.gather import INT
from .find_repeats import COPIES

NUMBER = Aval((), INT, "scalar")

Spot = tuple[int, int]  # the number of a node in a body, and a position in its index


def alike_bodies(graph: Graph) -> Graph:
    """The graph with such ints as operands; the graph itself if fewer loops than fold have bodies that are alike."""
    groups: dict[Hashable, list[Node]] = {}
    for node in graph.nodes:
        loop = loop_of(node)
        if loop is not None and loop.plan is None and len(node.graphs) == 1:
            groups.setdefault(_kind(node, loop), []).append(node)
    changes = {node: new for group in groups.values() if len(group) >= COPIES for node, new in _lifted(group)}

    def change(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node not in changes:
            return None
        body, numbers, loop = *changes[node], loop_of(node)
        assert loop is not None
        n, layout = loop.layout.consts, loop.layout
        given = [env[v] for v in loop.operands]
        operands = [*given[:n], *(b.constant(k, NUMBER) for k in numbers), *given[n:]]
        count = None if loop.count is None else env[loop.count]
        more = Layout(n + len(numbers), layout.carry, layout.arrays)
        return [x for part in loop.remade(b, body, operands, count, layout=more) for x in part]

    return rebuild(graph, change) if changes else graph


def _kind(node: Node, loop: LoopNode) -> Hashable:
    """Equal for loops whose bodies differ in ints of their indices alone."""
    body = loop.body
    number = {v: k for k, v in enumerate((*body.inputs, *(v for n in body.nodes for v in n.outputs)))}
    inner = tuple(
        (
            n.prim,
            n.where,
            n.replica,
            _attrs(n),
            tuple([number[v] for v in n.inputs]),
            tuple([v.aval for v in n.outputs]),
        )
        for n in body.nodes
    )
    attrs = tuple((name, attr_key(x)) for name, x in node.attrs.items() if not isinstance(x, Graph))
    avals = tuple([v.aval for v in (*node.inputs, *node.outputs)])
    return node.prim, node.where, node.replica, attrs, avals, inner, tuple([number[v] for v in body.outputs])


def _attrs(node: Node) -> Hashable:
    """The attributes of a node without the ints of its index."""
    index = tuple(None if type(i) is int else attr_key(i) for i in node.attrs.get("index", ()))
    return index, tuple((name, attr_key(x)) for name, x in node.attrs.items() if name != "index")


def _lifted(nodes: Sequence[Node]) -> list[tuple[Node, tuple[Graph, list[int]]]]:
    """The loops with the body that they all get, and the numbers that each of them gives it."""
    bodies = [loop.body for node in nodes if (loop := loop_of(node)) is not None]
    spots = [
        (i, k)
        for i, node in enumerate(bodies[0].nodes)
        for k, item in enumerate(node.attrs.get("index", ()))
        if type(item) is int
    ]
    table = np.array([[body.nodes[i].attrs["index"][k] for i, k in spots] for body in bodies], INT)
    columns: dict[bytes, int] = {}  # those that differ from loop to loop, by their numbers
    places: dict[Spot, int] = {}
    for spot, column in zip(spots, table.T, strict=True):
        if (column != column[0]).any():
            places[spot] = columns.setdefault(column.tobytes(), len(columns))
    if not places:
        return []
    loop = loop_of(nodes[0])
    assert loop is not None
    body = _with_operands(loop, places, len(columns))
    numbers = np.array([np.frombuffer(column, INT) for column in columns]).T
    return [(node, (body, row.tolist())) for node, row in zip(nodes, numbers, strict=True)]


def _with_operands(loop: LoopNode, places: dict[Spot, int], more: int) -> Graph:
    """The body of a loop with so many further constants, and with these in the places of ints."""
    b, body, n = Builder(), loop.body, loop.layout.consts
    consts = [b.input(v.aval, v.hint) for v in body.inputs[:n]]
    numbers = [b.input(NUMBER) for _ in range(more)]
    env = dict(zip(body.inputs, [*consts, *(b.input(v.aval, v.hint) for v in body.inputs[n:])], strict=True))
    position = {node: i for i, node in enumerate(body.nodes)}

    def placed(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        index = node.attrs.get("index", ())
        here = {k: numbers[places[position[node], k]] for k in range(len(index)) if (position[node], k) in places}
        if not here:
            return None
        ins = [env[v].value for v in node.inputs]
        items: list[Any] = [*index]
        for k, x in here.items():
            items[k] = Arg(len(ins))
            ins.append(x.value)
        return b.emit(node.prim, ins, {**node.attrs, "index": tuple(items)}, [v.hint for v in node.outputs])

    copy_nodes(b, body.nodes, env, placed)
    return b.graph(body.name, [env[v] for v in body.outputs])
