"""place_buffers: Graph → Plan: which results are written into the storage of dead values, and when values die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container

from ..ir.graph import Graph, Node, Value
from ..ir.layouts import Layouts
from ..ir.loop_node import LoopNode, loop_of, shared_bodies
from ..ir.plan import Plan
from ..ops.shape import owned
from ..ops.structural.kernel import FITS, kernel
from .early_views import Index, disjoint, early_views, plain

REUSE = 16 * 1024  # bytes from which a result goes into the storage of a dying operand
POOL = 64 * 1024  # bytes from which it goes into any dead storage of its shape
SMALL = 4  # times that a part fits into what it is a part of, if it is rather copied than that
FREED = 1024  # bytes from which dead storage is freed: the next array of its size is then made in a warm cache
STRIDED = frozenset(
    {"broadcast", "diagonal", "getitem", "imag", "permute", "real", "slice_at", "windows"}
)  # views that skip elements
WRITES = frozenset({"additem", "setitem", "subitem"})  # writes whose place is their index
READ_ONLY = frozenset({"broadcast", "diagonal", "windows"})  # views that NumPy does not write through


def place_buffers(graph: Graph, ordered: bool = True, carries: Collection[Value] = ()) -> Plan:
    """Lay a graph out in memory; this changes the order of nodes only for views of storage that is written into.

    ``ordered`` says whether arrays that come in are C-ordered. ``carries`` are inputs whose storage the graph may
    write into, since it is the body of a loop that owns them.
    """
    return _BufferPlacer(early_views(graph), ordered, carries).plan()


def carries_in_place(loop: LoopNode, among: frozenset[int], ordered: bool = True) -> dict[int, int]:
    """The carries that a loop can keep in their own storage through all steps, where steps write into it.

    Each is mapped to the carry in whose storage its next value lies. No list of steps has a part of this storage.
    ``among`` are the numbers of carries whose storage the loop may own.
    """
    body = loop.body
    found: dict[int, int] = body.once(
        ("carries in place", loop.layout, among, ordered), lambda: _carries_in_place(loop, among, ordered)
    )
    return found


def _carries_in_place(loop: LoopNode, among: frozenset[int], ordered: bool) -> dict[int, int]:
    _, carry, _ = loop.layout.operands(loop.body.inputs)
    then, _, stacks = loop.layout.results(loop.body.outputs)
    body, number = early_views(loop.body), {value: k for k, value in enumerate(carry)}
    while among:
        placer = _BufferPlacer(body, ordered, [carry[k] for k in among])
        placer.place()
        held = Counter(map(placer.root, (*then, *stacks)))
        left = {k: root for k in among if (root := placer.left_in(then[k])) is not None and held[root] == 1}
        source = {k: number[root] for k, root in left.items() if root in number}
        written = {number[root] for root in map(placer.root, placer.into) if root in number}
        worth: set[int] = set()
        for _ in source:  # carries that change places are worth it together
            worth = {k for k, j in source.items() if {k, j} & (written | worth)}
        stay = frozenset(k for k in worth if source[k] in worth)
        if stay == among:
            return source
        among = stay
    return {}


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

    def __init__(self, graph: Graph, ordered: bool, carries: Collection[Value] = ()) -> None:
        self.graph, self.ordered, self.carries = graph, ordered, carries
        self.made = graph.producer
        self.layouts = Layouts(graph, ordered)
        self.parent: dict[Value, Value] = {}
        self.into: dict[Value, Value] = {}
        self.copies: set[Value] = set()
        self.leaving = {*graph.outputs} if carries else set()
        self.owned: set[Value] = {*carries}
        self.in_place: dict[Graph, list[Value]] = {}  # the carries that bodies write into
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
        """The plan of the graph."""
        self.place()
        return self._finished()

    def place(self) -> None:
        """Find a place for each result."""
        large = self.graph.largest >= POOL
        for i, node in enumerate(self.graph.nodes):
            self._place(i, node)
            if large:
                self._retire(i, node)

    def _place(self, i: int, node: Node) -> None:
        prim = node.prim
        self.layouts.add(node)
        if prim.multi:
            fresh = {node.outputs[k] for k in (prim.fresh(node) if prim.fresh else ())} | self._in_place(i, node)
            if len(fresh) < len(node.outputs):  # the others may be operands that passed through
                self.owned.difference_update(map(self.root, node.inputs))
            self.owned.update(map(self.root, fresh))
            if prim is kernel:
                self._place_in_operands(i, node)
            return
        (out,) = node.outputs
        if prim.alias is not None and out.aval.kind == "array":
            self.parent[out] = node.inputs[prim.alias]
            if self._leaves_with_part(out):
                self.copies.add(out)
                self.owned.add(out)
            else:
                self._hold(out, self._int_of(node))
        elif prim is owned and self._last_reader(i, node.inputs[0]):
            self._share(out, node.inputs[0])
        elif prim.writes is not None and self._writable(i, node):
            self._share(out, node.inputs[prim.writes])
            self.layouts.add(node, node.inputs[prim.writes])
        elif out.aval.nbytes >= REUSE and (holder := self._reusable(i, node)) is not None:
            self._share(out, holder)
        elif prim.name != "const":
            self.owned.add(out)

    def _place_in_operands(self, i: int, node: Node) -> None:
        """Let results of a kernel lie in operands that die there, of the pairs that its body offers."""
        ((_, body),), read = node.graphs, Counter(map(self.root, node.inputs))
        pairs: tuple[tuple[int, int], ...] = body.once(FITS, tuple) if body.knows(FITS) else ()
        for k, j in pairs:
            out, v, root = node.outputs[k], node.inputs[j], self.root(node.inputs[j])
            alone = read[root] == 1 and root not in self.carries and out not in self.into
            if alone and out.aval.nbytes >= REUSE and self._last_reader(i, v) and self._in_order(v):
                self._share(out, v)
                read[root] = 0

    def _in_place(self, i: int, node: Node) -> set[Value]:
        """The results of a loop that lie in storage of its own, which its steps write into; it takes that over."""
        loop = loop_of(node)
        if loop is None or loop.body in shared_bodies(self.graph):
            return set()
        _, given, _ = loop.layout.operands(loop.operands)
        _, carry, _ = loop.layout.operands(loop.body.inputs)
        read = Counter(map(self.root, node.inputs))
        free = frozenset(
            k
            for k, v in enumerate(given)
            if v.aval.kind == "array" and read[self.root(v)] == 1 and self._last_reader(i, v) and self._in_order(v)
        )
        found = carries_in_place(loop, free, self.ordered)
        self.in_place[loop.body] = [carry[k] for k in found]
        then, _, _ = loop.layout.results(node.outputs)
        for k, source in found.items():
            if k == source:
                self._share(then[k], given[k])
            else:
                self.owned.discard(self.root(given[k]))
        self.layouts.pack([then[k] for k in found])
        return {then[k] for k in found}

    def _last_reader(self, i: int, value: Value) -> bool:
        """Whether a node is the last that reads anything of the storage of a value, which is its own."""
        root = self.root(value)
        own = root in self.owned and self._whole(value)
        return own and value.aval.steps is None and self.last[value] <= i and self.dead(root, i)

    def left_in(self, value: Value) -> Value | None:
        """The storage that a value fills, in C order; None if it may be that of other values outside."""
        root = self.root(value)
        own = root in self.owned and self._whole(value) and value.aval == root.aval
        return root if own and self._in_order(value) else None

    def _leaves_with_part(self, view: Value) -> bool:
        """Whether a small part of a carry that stays in place goes to the next step by itself: then it is copied."""
        base = self.root(view)
        return base in self.carries and view in self.leaving and view.aval.nbytes * SMALL <= base.aval.nbytes

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
        if view.prim.name != "getitem" or not plain(view.attrs["index"]) or not self._whole(view.inputs[0]):
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
        if write.prim.name not in WRITES or not plain(write.attrs["index"]) or not self._whole(write.inputs[0]):
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
        apart = {node.out for node in order if node.prim.alias is not None and self.layouts.copied(node)}
        for value, last in self.last.items():
            root = self.root(value) if value in self.parent else value
            number[value] = numbers.setdefault(root, len(numbers))
            if apart:
                root = self._copied(value, apart) or root
            if last > ends.get(root, -1):
                ends[root] = last
            if root.aval.nbytes >= FREED:
                members.setdefault(root, []).append(value)
        inputs = set(self.graph.inputs)
        given = inputs.union(node.out for node in order if node.prim.name == "const")
        dies: list[tuple[Value, ...]] = [()] * n
        freed = [0] * n
        for root, end in ends.items():
            if end < n and root not in given:
                freed[end] += _bytes(root)
            if end < n and root in members and root not in inputs:  # a constant may have been written as an array
                dies[end] = (*dies[end], *members[root])
        live = peak = scratch = 0
        for i, node in enumerate(order):
            live += sum(_bytes(out) for out in node.outputs if (out in numbers or out in apart) and out not in given)
            if node.prim.scratch:
                work = node.prim.scratch(*(v.aval for v in node.inputs), **node.attrs)
                peak, scratch = max(peak, live + work), max(scratch, work)
            elif live > peak:
                peak = live
            live -= freed[i]
        nested = [body for node in self.graph.nested for _, body in node.graphs]
        bodies = {body: place_buffers(body, self.ordered, self.in_place.get(body, ())) for body in nested}
        return Plan(
            self.graph,
            number,
            self.into,
            frozenset(self.copies),
            frozenset(apart),
            self.last,
            tuple(dies),
            scratch,
            peak,
            self._ordered(),
            bodies,
        )

    def _copied(self, value: Value, apart: Collection[Value]) -> Value | None:
        """The copy that a value shows, among those that NumPy makes for reshapes; they are freed by themselves."""
        while value in self.parent and value not in self.copies and value not in apart:
            value = self.parent[value]
        return value if value in apart and value not in self.copies else None

    def _ordered(self) -> frozenset[Value]:
        return frozenset([v for v in self.last if len(v.aval.shape) < 2 or self._in_order(v)])

    def _in_order(self, value: Value) -> bool:
        found = self.layouts.order(value)
        return found is not None and found == tuple(sorted(found))


def _bytes(value: Value) -> int:
    return value.aval.nbytes if value.aval.steps is None else 0
