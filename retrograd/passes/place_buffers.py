"""place_buffers: Graph → Plan: which results are written into the storage of dead values, and when values die."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from ..ir.graph import Graph, Node, Value
from ..ir.layouts import Layouts
from ..ir.plan import Plan
from ..ir.rewrite import with_nodes
from ..ops.index import getitem

REUSE = 16 * 1024  # bytes from which a result goes into the storage of a dying operand
POOL = 64 * 1024  # bytes from which it goes into any dead storage of its shape
FREED = 1024  # bytes from which dead storage is freed: the next array of its size is then made in a warm cache
STRIDED = frozenset(
    {"broadcast", "diagonal", "getitem", "imag", "permute", "real", "slice_at", "windows"}
)  # views that skip elements
WRITES = frozenset({"additem", "setitem", "subitem"})  # writes whose place is their index
READ_ONLY = frozenset({"broadcast", "diagonal", "windows"})  # views that NumPy does not write through

Index = tuple[Any, ...]


def place_buffers(graph: Graph, ordered: bool = True) -> Plan:
    """Lay a graph out in memory; this changes the order of nodes only for views of storage that is written into.

    ``ordered`` says whether arrays that come in are C-ordered.
    """
    return _BufferPlacer(early_views(graph), ordered).plan()


class _Sharers:
    """The values in one storage; views of the part at an int of an axis are found by it: writes skip other parts."""

    def __init__(self, *values: Value) -> None:
        self.rest = [*values]
        self.parts: dict[int, dict[int, list[Value]]] = {}  # by axis and int

    def add(self, value: Value, part: tuple[int, int] | None) -> None:
        if part is None:
            self.rest.append(value)
        else:
            self.parts.setdefault(part[0], {}).setdefault(part[1], []).append(value)

    def live(self, index: Index, alive: Callable[[Value], bool]) -> list[Value]:
        """The values that are alive, but for views at another int of an axis than the index; dead ones are dropped."""
        self.rest = [v for v in self.rest if alive(v)]
        found = [*self.rest]
        for axis, at in self.parts.items():
            item = index[axis] if axis < len(index) else None
            for n in [item] if isinstance(item, int) else [*at]:
                rest = [v for v in at.get(n, ()) if alive(v)]
                found += rest
                if rest:
                    at[n] = rest
                else:
                    at.pop(n, None)
        return found

    def any(self, alive: Callable[[Value], bool]) -> bool:
        """Whether a value is alive."""
        parts = (values for at in self.parts.values() for values in at.values())
        return any(alive(v) for values in (self.rest, *parts) for v in reversed(values))


class _BufferPlacer:
    """Places results node by node; ``owned`` are roots of storage that this graph made and nothing outside can see."""

    def __init__(self, graph: Graph, ordered: bool) -> None:
        self.graph, self.ordered = graph, ordered
        self.made = graph.producer
        self.layouts = Layouts(graph, ordered)
        self.parent: dict[Value, Value] = {}
        self.into: dict[Value, Value] = {}
        self.copies: set[Value] = set()
        self.owned: set[Value] = set()
        self.members: dict[Value, _Sharers] = {}  # of storage that holds more than the value that made it
        self.pool: dict[object, list[Value]] = {}
        self.last: dict[Value, int] = dict.fromkeys(graph.inputs, -1)
        for i, node in enumerate(graph.nodes):
            for value in (*node.outputs, *node.inputs):
                self.last[value] = i
        for value in graph.outputs:
            self.last[value] = len(graph.nodes)

    def root(self, value: Value) -> Value:
        while value in self.parent and value not in self.copies:
            value = self.parent[value]
        return value

    def live(self, root: Value, after: int, index: Index = ()) -> list[Value]:
        """The values in this storage that nodes after ``after`` read, but for some that lie apart from an index."""
        if root not in self.members:
            return [root] if self.last[root] > after else []
        return self.members[root].live(index, lambda v: self._is_live(v, root, after))

    def dead(self, root: Value, after: int) -> bool:
        """Whether nodes after ``after`` read no value in this storage."""
        if root not in self.members:
            return self.last[root] <= after
        return not self.members[root].any(lambda v: self._is_live(v, root, after))

    def _is_live(self, value: Value, root: Value, after: int) -> bool:
        return self.last[value] > after and self.root(value) is root

    def plan(self) -> Plan:
        large = self.graph.largest >= POOL
        for i, node in enumerate(self.graph.nodes):
            self._place(i, node)
            if large:
                self._retire(i, node)
        return self._finished()

    def _place(self, i: int, node: Node) -> None:
        prim = node.prim
        self.layouts.add(node)
        if prim.multi:
            fresh = {node.outputs[k] for k in (prim.fresh(node) if prim.fresh else ())}
            self.owned |= fresh
            if len(fresh) < len(node.outputs):  # the others may be operands that passed through
                self.owned.difference_update(map(self.root, node.inputs))
            return
        (out,) = node.outputs
        if prim.alias is not None and out.aval.kind == "array":
            self.parent[out] = node.inputs[prim.alias]
            self._hold(out, self._int_of(node))
        elif prim.writes is not None and self._writable(i, node):
            self._share(out, node.inputs[prim.writes])
            self.layouts.add(node, node.inputs[prim.writes])
        elif out.aval.nbytes >= REUSE and (holder := self._reusable(i, node)) is not None:
            self._share(out, holder)
        elif prim.name != "const":
            self.owned.add(out)

    def _share(self, out: Value, holder: Value) -> None:
        self.into[out] = holder
        self.parent[out] = self.parent[holder] if holder in self.into else holder  # chains of writes stay short
        self._hold(out)

    def _hold(self, value: Value, part: tuple[int, int] | None = None) -> None:
        root = self.root(value)
        if root not in self.members:
            self.members[root] = _Sharers(root)
        self.members[root].add(value, part)

    def _int_of(self, view: Node) -> tuple[int, int] | None:
        """The first axis of a whole array at which the view is at an int, and the int."""
        if view.prim.name != "getitem" or not _plain(view.attrs["index"]) or not self._whole(view.inputs[0]):
            return None
        shape = view.inputs[0].aval.shape
        return next(((k, i % shape[k]) for k, i in enumerate(view.attrs["index"]) if isinstance(i, int)), None)

    def _writable(self, i: int, node: Node) -> bool:
        """Whether a write may happen in place; small views that are read later become copies to make that possible."""
        base = node.inputs[node.prim.writes or 0]
        root = self.root(base)
        if root not in self.owned or self.last[base] > i or self._view_by(base, READ_ONLY):
            return False
        if node.prim.name == "scatter_add" and any(self.root(v) is root for v in node.inputs if v is not base):
            return False
        views = [v for v in self.live(root, i, self._written(node)) if not self._beside(v, node)]
        if sum(v.aval.nbytes for v in views) >= base.aval.nbytes:
            return False
        if any(v in self.into or self.parent.get(v) is None for v in views):
            return False
        self.copies.update(views)
        self.owned.update(views)
        return True

    def _written(self, write: Node) -> Index:
        """The index of a write into a whole array, its ints counted from 0; of any other write, none."""
        if write.prim.name not in WRITES or not _plain(write.attrs["index"]) or not self._whole(write.inputs[0]):
            return ()
        items = zip(write.attrs["index"], write.inputs[0].aval.shape, strict=False)
        return tuple([item % n if isinstance(item, int) else item for item, n in items])

    def _beside(self, view: Value, write: Node) -> bool:
        """Whether a view shows other elements of its storage than the write changes."""
        made = self.made.get(view)
        if made is None or made.prim.name != "getitem" or write.prim.name not in WRITES:
            return False
        base, shown = write.inputs[0], made.inputs[0]
        if not (self._whole(base) and self._whole(shown)):
            return False
        return disjoint(made.attrs["index"], write.attrs["index"], base.aval.shape)

    def _whole(self, value: Value) -> bool:
        """Whether a value has the layout of its storage, and so is not a view of it."""
        while value in self.parent and value not in self.copies:
            node = self.made.get(value)
            if node is None or node.prim.alias is not None:
                return False
            value = self.parent[value]
        return True

    def _reusable(self, i: int, node: Node) -> Value | None:
        aval, prim = node.out.aval, node.prim
        if aval.kind != "array" or not prim.into:
            return None
        order = self.layouts.order(node.out)
        if order is None:
            return None
        if prim.over:
            for value in node.inputs:
                root = self.root(value)
                same = value.aval == aval and root in self.owned and self.last[value] <= i
                alike = same and self.layouts.order(value) == order and not self._view_by(value, STRIDED)
                if alike and self.dead(root, i):
                    return value
        free = self.pool.get((aval.shape, aval.dtype, order))
        return free.pop() if free else None

    def _view_by(self, value: Value, names: Container[str]) -> bool:
        """Whether one of the named primitives made one of the views between a value and its storage."""
        while value in self.parent and value not in self.copies:
            node = self.made.get(value)
            if node is not None and node.prim.name in names:
                return True
            value = self.parent[value]
        return False

    def _retire(self, i: int, node: Node) -> None:
        """Put storage whose last reader was this node into the pool, under the value that made it."""
        for root in dict.fromkeys(map(self.root, node.inputs)):
            if root in self.owned and root.aval.nbytes >= POOL and self.dead(root, i):
                order = self.layouts.order(root)
                if order is not None:
                    self.pool.setdefault((root.aval.shape, root.aval.dtype, order), []).append(root)

    def _finished(self) -> Plan:
        order, n = self.graph.nodes, len(self.graph.nodes)
        numbers: dict[Value, int] = {}  # of storage, by the value that made it
        number: dict[Value, int] = {}
        ends: dict[Value, int] = {}  # the last reader of any value in the storage
        members: dict[Value, list[Value]] = {}  # of storage that is freed when it is dead
        for value, last in self.last.items():
            root = self.root(value) if value in self.parent else value
            number[value] = numbers.setdefault(root, len(numbers))
            if last > ends.get(root, -1):
                ends[root] = last
            if root.aval.nbytes >= FREED:
                members.setdefault(root, []).append(value)
        given = {*self.graph.inputs, *[node.out for node in order if node.prim.name == "const"]}
        dies: list[tuple[Value, ...]] = [()] * n
        freed = [0] * n
        for root, end in ends.items():
            if end < n and root not in given:
                freed[end] += _bytes(root)
                if root in members:
                    dies[end] = (*dies[end], *members[root])
        live = peak = scratch = 0
        for i, node in enumerate(order):
            for out in node.outputs:
                if out in numbers and out not in given:
                    live += _bytes(out)
            if node.prim.scratch:
                work = node.prim.scratch(*(v.aval for v in node.inputs), **node.attrs)
                peak, scratch = max(peak, live + work), max(scratch, work)
            elif live > peak:
                peak = live
            live -= freed[i]
        bodies = {body: place_buffers(body, self.ordered) for node in self.graph.nested for _, body in node.graphs}
        return Plan(
            self.graph,
            number,
            self.into,
            frozenset(self.copies),
            self.last,
            tuple(dies),
            scratch,
            peak,
            self._ordered(),
            bodies,
        )

    def _ordered(self) -> frozenset[Value]:
        return frozenset([v for v in self.last if len(v.aval.shape) < 2 or self._in_order(v)])

    def _in_order(self, value: Value) -> bool:
        found = self.layouts.order(value)
        return found is not None and found == tuple(sorted(found))


def _bytes(value: Value) -> int:
    return value.aval.nbytes if value.aval.steps is None else 0


def early_views(graph: Graph) -> Graph:
    """Move each basic index at known positions up, in front of the first write into its operand.

    A view is free, and its elements often lie beside the write, which can then happen in place.
    """
    if not any(prim.writes is not None for prim in graph.prims):
        return graph
    written: dict[Value, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.prim.writes is not None:
            written.setdefault(node.inputs[node.prim.writes], i)
    moved: dict[int, list[Node]] = {}
    for i, node in enumerate(graph.nodes):
        if node.prim is getitem and len(node.inputs) == 1 and written.get(node.inputs[0], i) < i:
            moved.setdefault(written[node.inputs[0]], []).append(node)
    if not moved:
        return graph
    late = {node for nodes in moved.values() for node in nodes}
    nodes = [n for i, node in enumerate(graph.nodes) if node not in late for n in (*moved.get(i, ()), node)]
    return with_nodes(graph, nodes)


def disjoint(a: Index, b: Index, shape: tuple[int, ...]) -> bool:
    """True if the ranges of the indices lie apart on some axis; False also if that is not known.

    >>> disjoint((0,), (slice(1, None),), (3, 2)), disjoint((slice(None), 0), (slice(1, 2),), (3, 2))
    (True, False)
    """
    if not (_plain(a) and _plain(b)):
        return False
    for i, j, n in zip(a, b, shape, strict=False):
        p, q = _range(i, n), _range(j, n)
        if not p or not q or max(p[0], p[-1]) < min(q[0], q[-1]) or max(q[0], q[-1]) < min(p[0], p[-1]):
            return True
    return False


def _plain(index: Index) -> bool:
    return all(isinstance(i, (int, slice)) and not isinstance(i, bool) for i in index)


def _range(index: Any, n: int) -> range:
    return range(index % n, index % n + 1) if isinstance(index, int) else range(*index.indices(n))
