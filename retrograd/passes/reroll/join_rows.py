"""join_rows: Graph → Graph that reads consecutive steps of a loop, put together again, as one part of its result.

So results that Python collected in a list, and stacked or joined, are not taken apart. The part lies in memory as the
result of the concatenation would: only so do sums over it keep their bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import loop_of
from ...ops.concatenate import array, concatenate
from ...ops.index import getitem
from ...ops.shape import reshape, reshape_to
from .find_repeats import COPIES


def join_rows(graph: Graph) -> Graph:
    """Replace concatenations of consecutive steps; values keep their bits."""
    if not any(loop_of(node) is not None for node in graph.nodes):
        return graph
    b = Builder()
    env = dict(zip(graph.inputs, b.share_inputs(graph), strict=True))
    for node in graph.nodes:
        b.where = node.where
        together = node.prim is array or (node.prim is concatenate and node.attrs["axis"] == 0)
        parts = list(_parts(graph, node.inputs)) if together else []
        if any(first is not None for first, _ in parts):
            env[node.out] = _joined(env, node, parts)
        else:
            env.update(zip(node.outputs, b.copy_node(node, [env[v].value for v in node.inputs]), strict=True))
    return b.graph(graph.name, [env[v] for v in graph.outputs])


Part = tuple[tuple[Value, int] | None, list[Value]]  # the array and first row of values that follow each other there


def _parts(graph: Graph, values: Sequence[Value]) -> Iterator[Part]:
    """Group values that are consecutive rows of one array; other values come in groups with None."""

    def start(item: tuple[int, Value]) -> tuple[Value, int] | None:
        row = _row(graph, item[1])
        return None if row is None else (row[0], row[1] - item[0])

    at = 0
    rest: list[Value] = []
    for found, group in groupby(enumerate(values), start):
        run = [value for _, value in group]
        if found is None or len(run) < COPIES:
            rest += run
        else:
            if rest:
                yield None, rest
            yield (found[0], found[1] + at), run
            rest = []
        at += len(run)
    if rest:
        yield None, rest


def _row(graph: Graph, value: Value) -> tuple[Value, int] | None:
    """The results of a loop's steps, and the step, if the value is one step, with or without a new first axis."""
    node = graph.producer.get(value)
    if node is not None and node.prim is reshape and value.aval.shape == (1, *node.inputs[0].aval.shape):
        node = graph.producer.get(node.inputs[0])
    if node is None or node.prim is not getitem or len(node.inputs) != 1 or len(node.attrs["index"]) != 1:
        return None
    (at,), steps = node.attrs["index"], node.inputs[0]
    made = graph.producer.get(steps)
    loop = loop_of(made) if made is not None else None
    if type(at) is not int or at < 0 or loop is None or loop.condition is not None:
        return None
    return steps, at


def _joined(env: Mapping[Value, Symbol], node: Node, parts: Sequence[Part]) -> Symbol:
    joined: list[Symbol] = []
    for found, values in parts:
        if found is not None:
            joined.append(_rows(env[found[0]], found[1], len(values), node.out.aval.ndim))
        elif node.prim is array:
            joined.append(array(*(env[v] for v in values)))
        else:
            joined += [env[v] for v in values]
    return concatenate(*joined, axis=0) if len(joined) > 1 else joined[0]


def _rows(x: Symbol, first: int, count: int, ndim: int) -> Symbol:
    """Some rows of x, stacked or, with fewer axes, end to end."""
    part: Symbol = x if count == x.shape[0] else getitem(x, index=(slice(first, first + count),))
    return part if part.ndim == ndim else reshape_to(part, (count * x.shape[1], *x.shape[2:]))
