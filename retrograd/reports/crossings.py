"""The crossing of a turn, in a gradient with a budget: values kept for its adjoint, nodes that run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..compiler.compilation import Compilation
from ..compiler.garbage import paused
from ..compiler.memory.budgets import with_budget
from ..compiler.stages import PIPELINE, Rest
from ..ir.graph import Graph, Node, Value
from ..ir.layouts import copies
from ..ops.structural.region import turn
from ..passes.remat.search import work


class Crossed(NamedTuple):
    """A value that is kept across a turn, the node that makes it, and the first later node that reads it."""

    value: Value
    producer: Node
    reader: Node


def unplanned(compilation: Compilation) -> Graph:
    """The graph of a derivative before anything is planned or chosen, as a budget gets it."""
    with paused:
        return Rest(PIPELINE, compilation.settings)(with_budget(compilation.derived.graph, 1), until="share_budget")


def halves(graph: Graph) -> tuple[Sequence[Node], Sequence[Node]]:
    """The nodes before the first turn and after it; if there is no turn, all nodes and none."""
    at = next((i for i, node in enumerate(graph.nodes) if node.prim is turn), len(graph.nodes))
    return graph.nodes[:at], graph.nodes[at + 1 :]


def sides(graph: Graph) -> tuple[Sequence[Node], Sequence[Node]]:
    """The nodes before and after the turn; nodes that were only moved to right behind the turn count as before it."""
    first, second = halves(graph)
    adjoint = (i for i, node in enumerate(second) if node.replica >= 0 and (node.inputs or node.effect))
    at = next(adjoint, len(second))
    return (*first, *second[:at]), second[at:]


def crossing(graph: Graph) -> list[Crossed]:
    """The values that are kept across the turn, in the order in which they are made; for a view, the array it shows."""
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
    """The nodes after the turn that run again, without views and constants, which cost nothing."""
    return [node for node in _moved(graph) if node.replica > 0]


def deferred(graph: Graph) -> list[Node]:
    """The nodes of the forward pass that run only amid the adjoint, without views and constants."""
    return [node for node in _moved(graph) if node.replica < 0]


def _moved(graph: Graph) -> list[Node]:
    results = set(graph.outputs)  # these may be copies made for the results alone
    return [node for node in sides(graph)[1] if work(node) and not any(v in results for v in node.outputs)]


def price(value: Value, made: Mapping[Value, Node], kept: Sequence[Value]) -> int:
    """The number of operations that would compute a value again from the other kept values."""
    others, again = set(kept) - {value}, dict[Node, None]()
    stack = [value]
    while stack:
        node = made.get(stack.pop())
        if node is not None and node not in again and not node.effect:
            again[node] = None
            stack += [v for v in node.inputs if v not in others]
    return sum(map(work, again))
