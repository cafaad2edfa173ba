"""Origins: lines of the user's that also say which operation of a graph a node or a generated statement comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import repeat

from ..ir.graph import Graph, Node
from ..ir.rewrite import Change, recursively, with_bodies
from ..where import Where


class Origin(Where):
    """A user's line, and the numbers of the operations it stands for; passes hand lines on, and so these, too.

    ``traced`` is the number of the operation in the recording that led to this one, None if there is none.
    ``final`` is the number of the operation in the graph that is compiled, None before it is numbered. ``known`` is
    false where no line is known.
    """

    traced: int | None
    final: int | None
    known: bool


def origin(where: Where | None, traced: int | None, final: int | None = None) -> Origin:
    """A line with numbers."""
    made = Origin(*(where or ("", 0)))
    made.traced, made.final = traced, final
    made.known = where is not None and getattr(where, "known", True)
    return made


def line_of(where: Where | None) -> Where | None:
    """The plain line that an origin stands for."""
    return Where(*where) if where is not None and getattr(where, "known", True) else None


def traced_of(where: Where | None) -> int | None:
    """The number of the operation in the recording, if it is known."""
    return where.traced if isinstance(where, Origin) else None


def final_of(where: Where | None) -> int | None:
    """The number of the operation in the compiled graph, if it is known."""
    return where.final if isinstance(where, Origin) else None


def relabelled(graph: Graph, label: Callable[[Node], Origin]) -> Graph:
    """The same graph with other lines, in its bodies, too; ``label`` sees a node before the nodes of its bodies.

    A body that several nodes hold is labelled once and stays one.
    """

    def again(graph: Graph, inner: Change) -> Graph:
        return replace(graph, nodes=tuple(map(changed, graph.nodes, repeat(inner))))

    def changed(node: Node, inner: Change) -> Node:
        where = label(node)
        return replace(with_bodies(node, inner), where=where)

    return recursively(graph, again)
