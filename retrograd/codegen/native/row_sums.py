"""Additions to several parts of one row, one after the other: each element of the row is read and written once.

The adjoint of a stencil adds the same numbers at neighbouring places. In loops of their own, each addition would wait
for what the one before has just written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ...ir.graph import Graph, Node, Value
from .c_texts import SIMD
from .decided_places import places
from .elements import ElementWriter, StandsFor
from .indices import AxisIndex, CArray, full


def joined(to: ElementWriter, graph: Graph, node: Node, todo: deque[Any]) -> list[Node]:
    """An addition, and those that come right after it and add to the same row, which are taken out of what is to do."""
    found = [node]
    while node.prim.name == "additem" and todo and isinstance(todo[0], Node) and _joins(to, graph, found, todo[0]):
        found.append(todo.popleft())
    return found


def _joins(to: ElementWriter, graph: Graph, before: Sequence[Node], node: Node) -> bool:
    """Whether a node goes on with an addition, at a part that meets those of before, of numbers with storage."""
    first, last = before[0], before[-1]
    if node.prim is not first.prim or node.inputs[0] is not last.out or node.inputs[2:] != first.inputs[2:]:
        return False
    if graph.uses[last.out] != [node] or last.out in graph.outputs:
        return False
    if not _has_storage(to, node.inputs[1]):
        return False
    position = _position([*before, node])
    if position is None:
        return False
    *others, own = [_part(n, position) for n in (*before, node)]
    return own.step == 1 and any(p.start < own.stop and own.start < p.stop and p.step == 1 for p in others)


def _has_storage(to: ElementWriter, value: Value) -> bool:
    """Whether a value stands somewhere: what is computed where it is read might read the row."""
    while isinstance(held := to.held.get(value), StandsFor) and not held.lead:
        value = held.value
    return isinstance(held, CArray) and value not in to.pending


def _position(nodes: Sequence[Node]) -> int | None:
    """The only position at which indices differ, if slices stand there."""
    items = [full(node.attrs["index"], node.inputs[0].aval.ndim) for node in nodes]
    differ = [k for k, column in enumerate(zip(*items, strict=True)) if any(item != column[0] for item in column)]
    slices = len(differ) == 1 and all(isinstance(own[differ[0]], slice) for own in items)
    return differ[0] if slices and all(item is not None for own in items for item in own) else None


def _part(node: Node, position: int) -> range:
    shape = node.inputs[0].aval.shape
    found: range = range(shape[position])[full(node.attrs["index"], len(shape))[position]]
    return found


def add_parts(to: ElementWriter, nodes: Sequence[Node], array: CArray) -> None:
    """Write additions to parts of one row as one loop over it."""
    first, position = nodes[0], _position(nodes)
    assert position is not None
    axis = sum(isinstance(item, slice) for item in first.attrs["index"][:position])
    parts = [_part(node, position) for node in nodes]
    low, high = min(part.start for part in parts), max(part.stop for part in parts)
    index = [AxisIndex(to.fresh("z")) for _ in first.inputs[1].aval.shape]

    def of(part: range) -> tuple[AxisIndex, ...]:
        return (*index[:axis], index[axis].moved(low - part.start), *index[axis + 1 :])

    def add() -> None:
        element = text = array.at(places(to, first, of(parts[0])))
        for node, part in zip(nodes, parts, strict=True):
            if to.within(index[axis], part.start - low, part.stop - low):
                text = f"{text} + {to.pull(node.inputs[1], of(part))}"
        to.line(f"{element} = {text};")

    def nest(k: int) -> None:
        if k == len(index):
            add()
        else:
            n = high - low if k == axis else first.inputs[1].aval.shape[k]
            to.loop(str(index[k].var), n, lambda: nest(k + 1), SIMD if k == len(index) - 1 else "")

    nest(0)
