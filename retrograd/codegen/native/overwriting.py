"""Writes at known slices that go into the array they change: long chains of them would otherwise copy it each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...ir.graph import Graph, Node, Value
from .elements import FEW
from .indices import Indices, at, count, full, in_whole

LONG = 8  # writes one after the other, from which on they have storage
LARGEST = 2**17  # elements: writes into larger arrays may share loops with others, and these have threads
BASIC = frozenset({"setitem", "additem", "subitem"})

Box = tuple[tuple[int, int], ...]  # the first element along each axis, and the one behind the last


def known_write(node: Node) -> bool:
    """Whether a node writes at slices and ints."""
    return node.prim.name in BASIC and len(node.inputs) == 2


def long_chains(graph: Graph) -> set[Node]:
    """The writes at known slices of which many follow each other."""
    before: dict[Value, int] = {}
    behind: dict[Node, int] = {}
    writes = [n for n in graph.nodes if known_write(n) and FEW < count(n.out) <= LARGEST]
    for node in writes:
        before[node.out] = before.get(node.inputs[0], 0) + 1
    for node in reversed(writes):
        nexts = (user for user in graph.uses.get(node.out, ()) if user.inputs[0] is node.out)
        behind[node] = 1 + max((behind.get(user, 0) for user in nexts), default=0)
    return {node for node in writes if before[node.out] + behind[node] > LONG}


@dataclass
class ChangedArray:
    """An array that writes change: the value that it is now, and the readers of what it was before."""

    now: Value
    readers: list[Node] = field(default_factory=list)


@dataclass
class Writes:
    """What may be written where its array stands, with the numbers that are read before; and what must be stored."""

    numbers: dict[Node, list[Value]] = field(default_factory=dict)
    wanted: set[Value] = field(default_factory=set)
    last: dict[Node, Value] = field(default_factory=dict)  # of the writes into one storage, by the first of them


def writes_in_place(graph: Graph, chained: set[Node], roots: Iterable[Value | Node]) -> Writes:
    """Which of the chained writes need no copy of their array: nobody reads later what they change.

    Roots are written one after the other, and read what they need then. So a reader of an array is done if the roots
    that need it precede the write. Of other readers, numbers are read before the write, and a slice gets storage if the
    write changes some of it.
    """
    found, ends = Writes(), _LastReaders(graph, list(roots))
    order = order_of(graph)
    boxes: dict[Node, Box] = {}
    stores: dict[Value, tuple[Node, ChangedArray]] = {}
    for node in roots:
        if not isinstance(node, Node) or node not in chained:
            continue
        base = node.inputs[0]
        first, store = stores.get(base, (node, ChangedArray(node.out)))
        if first is not node and store.now is base:
            readers = [*store.readers, *(r for r in graph.uses[base] if r is not node)]
            readers = [r for r in readers if ends.until(r) >= ends.place[node]]
            numbers = [r.out for r in readers if _number(r) and base in r.inputs and r.out not in ends.place]
            others = [r for r in readers if r.prim.multi or r.out not in numbers]
            changed = [r for r in others if _meet(boxes, r, node)]
            if all(_slice(r) and order[r] < order[node] for r in changed):
                found.wanted.update(r.out for r in changed)
                found.numbers[node] = numbers
                found.last[first] = store.now = node.out
                store.readers = others
                stores[node.out] = first, store
                continue
        stores[node.out] = node, ChangedArray(node.out)
    return found


def order_of(graph: Graph) -> dict[Node, int]:
    """The places of the nodes of a graph."""
    found: dict[Node, int] = graph.once("order of nodes", lambda: {n: k for k, n in enumerate(graph.nodes)})
    return found


class _LastReaders:
    """Where in the order of roots a node is needed last."""

    def __init__(self, graph: Graph, roots: list[Value | Node]) -> None:
        self.place: dict[Value | Node, int] = {root: k for k, root in enumerate(roots)}
        self.needed: dict[Value, int] = dict.fromkeys(graph.outputs, len(roots))
        for node in reversed(graph.nodes):
            until = self.until(node)
            for v in node.inputs:
                self.needed[v] = max(self.needed.get(v, -1), until)

    def until(self, node: Node) -> int:
        """The place of the last root that needs the node.

        A root needs its operands itself. Results of a loop or a choice may be its operands, which are needed as long.
        """
        own = [self.place[x] for x in (node, *node.outputs) if x in self.place]
        if own and not node.graphs:
            return own[0]
        return max([*own, *(self.needed.get(v, -1) for v in node.outputs)])


def _slice(node: Node) -> bool:
    return node.prim.name == "getitem" and len(node.inputs) == 1


def _number(node: Node) -> bool:
    return node.prim.name == "getitem" and node.out.aval.shape == ()


def _meet(boxes: dict[Node, Box], reader: Node, write: Node) -> bool:
    """Whether a reader may read what a write changes."""
    if not _slice(reader):
        return True
    for node in (reader, write):
        if node not in boxes:
            boxes[node] = _box(node)
    return all(a < d and c < b for (a, b), (c, d) in zip(boxes[reader], boxes[write], strict=True))


def _box(node: Node) -> Box:
    shape, found = node.inputs[0].aval.shape, []
    items = (item for item in full(node.attrs["index"], len(shape)) if item is not None)
    for item, n in zip(items, shape, strict=True):
        places = range(n)[item] if isinstance(item, slice) else range(item % n, item % n + 1)
        found.append((min(places), max(places) + 1) if places else (0, 0))
    return tuple(found)


def known_places(node: Node, index: Indices) -> Indices:
    """Where in the first operand an element of the part lies that a node reads or writes at slices and ints."""
    shape = node.inputs[0].aval.shape
    return in_whole(full(node.attrs["index"], len(shape)), shape, index, lambda item, n: at(item % n))
