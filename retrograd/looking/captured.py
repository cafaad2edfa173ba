"""Captured: names of the arrays that a function took from outside, or that its compilation made."""

from __future__ import annotations

from collections import Counter

from ..ir.graph import Node, Value
from ..ir.loop_node import loop_of
from ..ops.gather import gather
from .amounts import printable
from .anatomy import Anatomy
from .origins import line_of


def names_of_captures(anatomy: Anatomy) -> list[str]:
    """A name for each capture: the program's, or else what it is for and the line that reads it, told from others."""
    readers = Readers(anatomy)
    seen: Counter[str] = Counter()
    found = []
    first = len(anatomy.call.hints)
    for (name, v), capture in zip(anatomy.leaves[first:], anatomy.way.recorded.captures, strict=True):
        said = name.removeprefix("%")
        if said.isdigit():
            said = readers.role(v, capture.made)
        seen[said] += 1
        found.append(printable(said if seen[said] == 1 else f"{said} ({seen[said]})"))
    return found


class Readers:
    """The operations of a recording that read each of its values."""

    def __init__(self, anatomy: Anatomy) -> None:
        self._nodes: dict[Value, list[Node]] = {}
        for node in anatomy.way.recorded.graph.nodes:
            for v in node.inputs:
                self._nodes.setdefault(v, []).append(node)

    def role(self, value: Value, made: bool) -> str:
        """What a value without a name is for."""
        nodes = self._nodes.get(value, [])
        where = next((w.short for node in nodes if (w := line_of(node.where)) is not None), "")
        at = f" at {where}" if where else ""
        if made and any(node.prim is gather and value in node.inputs[1:] and self._feeds_loop(node) for node in nodes):
            return f"index array of the loop{at}"
        if made and any(loop_of(node) is not None for node in nodes):
            return f"numbers of the loop{at}"
        return f"{'constant' if made else 'array'} read{at}"

    def _feeds_loop(self, node: Node) -> bool:
        return any(loop_of(reader) is not None for out in node.outputs for reader in self._nodes.get(out, []))
