"""Which nodes belong to the copies of a loop, and where they repeat themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.graph import Graph, Node
from ...ops.index import getitem
from .find_repeats import COPIES, kinds_of, stretches, width


def is_number(node: Node | None) -> bool:
    """Whether a node is a number filled into an aval: such nodes belong to no copy."""
    return node is not None and node.prim.name == "const"


def is_read(graph: Graph, node: Node) -> bool:
    """Whether a node reads an input at known positions: one node stands for all such reads, and belongs to no copy."""
    if node.prim is not getitem or len(node.inputs) != 1 or node.inputs[0] in graph.producer:
        return False
    return any(type(item) is int or width(item) for item in node.attrs["index"])


def counted(graph: Graph) -> tuple[list[Node], list[int]]:
    """The nodes that belong to copies, and their positions among all nodes but numbers."""
    return graph.once("counted", lambda: _counted(graph))


def _counted(graph: Graph) -> tuple[list[Node], list[int]]:
    nodes = [node for node in graph.nodes if not is_number(node)]
    shared = _shared(graph, nodes)
    at = [i for i, node in enumerate(nodes) if node not in shared and not is_read(graph, node)]
    return [nodes[i] for i in at], at


def _shared(graph: Graph, nodes: Sequence[Node]) -> set[Node]:
    """Views of inputs that as many nodes read as a loop has copies, and the views between.

    They stand in the first copy, which would differ from the others.
    """
    fixed, views = set(graph.inputs), list[Node]()
    for node in nodes:
        if node.prim.alias is not None and fixed.issuperset(node.inputs):
            fixed.update(node.outputs)
            views.append(node)
    found: set[Node] = set()
    for node in reversed(views):
        readers = graph.uses.get(node.out, [])
        if len(readers) >= COPIES or (readers and found.issuperset(readers)):
            found.add(node)
    return found


def kinds(graph: Graph) -> np.ndarray[Any, Any]:
    """The kinds of the nodes that belong to copies."""
    return graph.once("kinds", lambda: kinds_of(counted(graph)[0]))


def repeating(graph: Graph) -> list[tuple[int, int, int]]:
    """The stretches of these nodes that repeat."""
    return graph.once("repeating", lambda: list(stretches(kinds(graph), counted(graph)[1])))
