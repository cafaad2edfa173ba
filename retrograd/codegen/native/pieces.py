"""Values that are made of pieces, of which each element comes from one: where they need storage."""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import filterfalse

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import loop_of
from .decided_places import writes_at
from .elements import FEW
from .indices import count

SEVERAL = 3  # pieces
SHALLOW = 4  # pieces in a row, from which on what is read twice is stored
IN_A_ROW = 12  # ... and what is read once
PIECES = frozenset({"additem", "concatenate", "getitem", "roll", "setitem", "subitem"})


def stored_between_pieces(graph: Graph, stored: Container[Value], chained: Container[Node]) -> set[Value]:
    """What is made of pieces and read in several: else each step of a stencil repeats all that precede it."""
    found: set[Value] = set()
    deep: dict[Value, int] = {}  # the pieces in a row, from what is stored
    for node in filterfalse(chained.__contains__, graph.nodes):
        rows = max((deep.get(x, 0) for x in node.inputs), default=0) + (node.prim.name in PIECES)
        for out in node.outputs if rows and loop_of(node) is None else ():
            users = graph.uses.get(out, ())
            readers = [user for user in users if user.prim.name in PIECES and not writes_at(user)]
            several = len(readers) >= SEVERAL or (rows >= SHALLOW and len(users) > 1) or rows >= IN_A_ROW
            if several and count(out) > FEW:
                found.add(out)
            elif out not in stored:
                deep[out] = rows
    return found


def made_of_pieces(graph: Graph, value: Value, stored: Callable[[Node], bool]) -> Value | None:
    """The value itself, or what its elements are computed from, if that is made of pieces and has no storage.

    Which piece an element comes from must be known where it is read. At the step of a loop it is not.
    """
    todo, seen = [value], set[Value]()
    while todo:
        x = todo.pop()
        node = graph.producer.get(x)
        if node is None or x in seen or stored(node):
            continue
        if node.prim.name in PIECES and node.prim.name != "getitem":
            return x
        seen.add(x)
        todo += node.inputs
    return None
