"""longest_chain: how many operations of a stretch need each other's results, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.graph import Node, Value
from ...ops.index import additem, getitem, setitem


def longest_chain(nodes: Sequence[Node]) -> int:
    """The operations of the longest chain; elements of a vector are followed from where they are written."""
    place: dict[Value, int] = {}
    elements: dict[Any, int] = {}  # of all vectors together, which can only make a chain longer
    for node in nodes:
        found = max((place.get(v, 0) for v in node.inputs), default=0)
        index = node.attrs.get("index")
        at = index[0] if index is not None and len(index) == 1 and type(index[0]) is int else None
        if node.prim is getitem and at is not None:
            place[node.out] = max(found, elements.get(at, 0))
        elif node.prim in (setitem, additem) and at is not None:
            added = elements.get(at, 0) + 1 if node.prim is additem else 0
            elements[at] = max(place.get(node.inputs[1], 0), added)
            place[node.out] = place.get(node.inputs[0], 0)
        else:
            place.update(dict.fromkeys(node.outputs, found + 1))
    return max([*place.values(), *elements.values()], default=0)
