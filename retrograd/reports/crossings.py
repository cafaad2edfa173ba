"""What crosses the turn of a gradient with a budget: the values that its adjoint finds kept, and what it runs again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..ir.graph import Graph, Node, Value
from ..ir.layouts import copies
from ..ops.structural.region import turn
from ..passes.remat.search import work


class Crossed(NamedTuple):
    """A value that is kept across a turn, the node that makes it, and the first one beyond that reads it."""

    value: Value
    producer: Node
    reader: Node


def halves(graph: Graph) -> tuple[Sequence[Node], Sequence[Node]]:
    """The nodes before the first turn and after it; all of them and none if there is no turn."""
    at = next((i for i, node in enumerate(graph.nodes) if node.prim is turn), len(graph.nodes))
    return graph.nodes[:at], graph.nodes[at + 1 :]


def sides(graph: Graph) -> tuple[Sequence[Node], Sequence[Node]]:
    """The same, but that what is computed at once beyond the turn, instead of before, counts as before."""
    first, second = halves(graph)
    adjoint = (i for i, node in enumerate(second) if node.replica >= 0 and (node.inputs or node.effect))
    at = next(adjoint, len(second))
    return (*first, *second[:at]), second[at:]


def crossing(graph: Graph) -> list[Crossed]:
    """What is kept across the turn, in the order in which it is made: for views, what they are views of."""
    first, second = sides(graph)
    made = {v: node for node in first for v in node.outputs}
    readers: dict[Value, Node] = {}
    for node in second:
        for value in node.inputs:
            readers.setdefault(_root(value, made), node)
    return [
        Crossed(value, node, readers[value])
        for value, node in made.items()
        if value in readers and (node.inputs or node.effect)
    ]


def _root(value: Value, made: Mapping[Value, Node]) -> Value:
    while (node := made.get(value)) is not None and node.prim.alias is not None and not copies(node, made):
        value = node.inputs[node.prim.alias]
    return value


def repeated(graph: Graph) -> list[Node]:
    """The nodes after the turn that run again; views and constants, which cost nothing, apart."""
    return [node for node in _moved(graph) if node.replica > 0]


def deferred(graph: Graph) -> list[Node]:
    """The nodes of the forward pass that run amid the adjoint only, views and constants apart."""
    return [node for node in _moved(graph) if node.replica < 0]


def _moved(graph: Graph) -> list[Node]:
    results = set(graph.outputs)  # may be copies that are theirs alone
    return [node for node in sides(graph)[1] if work(node) and not any(v in results for v in node.outputs)]


def price(value: Value, made: Mapping[Value, Node], kept: Sequence[Value]) -> int:
    """The operations that would give a value again from the other ones that are kept."""
    others, again = set(kept) - {value}, dict[Node, None]()
    stack = [value]
    while stack:
        node = made.get(stack.pop())
        if node is not None and node not in again and not node.effect:
            again[node] = None
            stack += [v for v in node.inputs if v not in others]
    return sum(map(work, again))
