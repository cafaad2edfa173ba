"""liveness: the storage that is live at each step of an order of nodes, in which a few nodes run twice.

The storage is as `place_buffers` lays it out: a result takes the storage of a dying operand, or of a dead value of its
kind. The search asks for it hundreds of times per graph, so all of it is numbers in lists, most of them made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from ...ir.graph import Graph, Node, Value
from ...ir.layouts import copies
from ...ir.target import TARGETS
from ..place_buffers import FREED, POOL, REUSE, STRIDED


class StorageUse(NamedTuple):
    """A node that reads or makes storage; its operands and results are numbers of values.

    ``fit`` are the positions of operands whose storage the result may take, ``kind`` the kind of dead storage that it
    may take instead (-1 for none), ``scratch`` bytes of workspace. A view ``shows`` a value (-1 if the node is not a
    view, or if NumPy has to copy for it).
    """

    reads: list[int]
    makes: list[int]
    fit: list[int]
    kind: int
    scratch: int
    shows: int = -1


class _Traversal(NamedTuple):
    """What is known after some nodes: the storage of each value, the step that reads it last, and what steps read."""

    at: list[int]
    last: list[int]
    steps: list[StorageUse]
    read: list[list[int]]


class Liveness:
    """A graph as lists of numbers, one per node or value.

    Of n nodes, the second run of node i has the number i + n; its results are numbered likewise. A view has no storage
    of its own: ``root`` is the value whose storage it shows.
    """

    def __init__(self, graph: Graph) -> None:
        values = [*graph.inputs, *(v for node in graph.nodes for v in node.outputs)]
        self.n = len(values)
        self.number = {v: i for i, v in enumerate(values)}
        self.outputs = [self.number[v] for v in graph.outputs]
        self.results = [[self.number[v] for v in node.outputs] for node in graph.nodes]
        shows = self._views(graph)
        self.root = list(range(self.n))
        self.strided = [False] * self.n  # views that skip elements of their storage, or are casts of it
        for node, results, shown in zip(graph.nodes, self.results, shows, strict=True):
            if shown >= 0:
                self.root[results[0]] = self.root[shown]
                self.strided[results[0]] = self.strided[shown] or node.prim.name in {*STRIDED, "cast"}
        self._describe(graph, values)
        self.copied = {  # values that reshapes copy, by their copies: `place_buffers` keeps them as long
            self.number[node.out]: self.number[node.inputs[node.prim.alias]]
            for node, shown in zip(graph.nodes, shows, strict=True)
            if shown < 0 and node.prim.alias is not None
        }
        once = [self._operation(node, shown) for node, shown in zip(graph.nodes, shows, strict=True)]
        self.operations = [*once, *(op and op._replace(makes=[v + self.n for v in op.makes]) for op in once)]
        self._begun = list[int](), _Traversal(self.root, [-1] * (2 * self.n), [], [])

    def _views(self, graph: Graph) -> list[int]:
        """For each node the value that its result is a view of, or -1; absorbed operations count as views, too."""
        solid, made = TARGETS.chosen.legalise(graph).producer, graph.producer
        return [
            self.number[node.inputs[node.prim.alias or 0]]
            if (node.prim.alias is not None and not copies(node, made))
            or (node.prim.name in {"cast", "neg"} and node.out not in solid)
            else -1
            for node in graph.nodes
        ]

    def _describe(self, graph: Graph, values: list[Value]) -> None:
        """For each value and each recomputed value: its bytes, whether the graph owns it, the kind of its storage."""
        sizes = [v.aval.nbytes if v.aval.kind == "array" else 0 for v in values]
        sizes[: len(graph.inputs)] = [0] * len(graph.inputs)
        ours = [False] * self.n
        for node, results in zip(graph.nodes, self.results, strict=True):
            fresh = range(len(results)) if not node.prim.multi else node.prim.fresh(node) if node.prim.fresh else ()
            for k in fresh:
                ours[results[k]] = node.prim.alias is None
            if len(fresh) < len(results):  # the others may be operands that passed through
                for v in node.inputs:
                    ours[self.root[self.number[v]]] = False
            if node.prim.name == "const":
                sizes[results[0]], ours[results[0]] = 0, False
        kinds: dict[object, int] = {}
        kind = [kinds.setdefault((v.aval.shape, v.aval.dtype), len(kinds)) for v in values]
        self.sizes, self.ours, self.kind = sizes * 2, ours * 2, kind * 2
        self.pooled = [own and size >= POOL for own, size in zip(self.ours, self.sizes, strict=True)]

    def _operation(self, node: Node, shown: int) -> StorageUse | None:
        """The node as a StorageUse; None if it uses no storage."""
        prim, makes = node.prim, [self.number[v] for v in node.outputs]
        if shown >= 0:
            return StorageUse([shown], makes, [], -1, 0, shown)
        numbers = list(dict.fromkeys(self.number[v] for v in node.inputs))
        numbers += [shown for v in numbers if (shown := self.copied.get(self.root[v], -1)) >= 0]
        reads = [v for v in dict.fromkeys(numbers) if self.sizes[self.root[v]]]
        scratch = prim.scratch(*(v.aval for v in node.inputs), **node.attrs) if prim.scratch else 0
        scratch += max((TARGETS.chosen.plan(body).peak for _, body in node.graphs), default=0)
        if not reads and not scratch and not any(self.sizes[v] for v in makes):
            return None
        if prim.writes is not None:
            base = self.number[node.inputs[prim.writes]]
            return StorageUse(reads, makes, [k for k, v in enumerate(reads) if v == base], -1, scratch)
        large = not prim.multi and self.sizes[makes[0]] >= REUSE and prim.into
        inside = large and prim.over
        alike = {self.number[v] for v in node.inputs if v.aval == node.outputs[0].aval} if inside else ()
        fit = [k for k, v in enumerate(reads) if v in alike and not self.strided[v]]
        return StorageUse(reads, makes, fit, self.kind[makes[0]] if large else -1, scratch)

    def peak(self, order: list[int], there: Sequence[bool], staying: Iterable[int] = (), ahead: int = 0) -> int:
        """The peak in bytes if nodes run in this order.

        A second run of a node replaces those of its results that are not ``there`` for later nodes. Outputs and
        ``staying`` values live to the end. The first ``ahead`` nodes are first runs; many orders begin with the same.
        """
        if order[:ahead] != self._begun[0]:
            self._begun = order[:ahead], _Traversal(self.root[:], [-1] * (2 * self.n), [], [])
            self._follow(*self._begun, there)
        at, last, steps, read = self._begun[1]
        walk = _Traversal(at[:], last[:], steps[:], read[:])
        self._follow(order[ahead:], walk, there)
        for v in chain(self.outputs, staying):
            walk.last[walk.at[v]] = len(walk.steps)
        return self._most(walk.steps, walk.read, walk.last)

    def _follow(self, order: list[int], walk: _Traversal, there: Sequence[bool]) -> None:
        """Go on through these nodes."""
        at, last, steps, read = walk
        operations, n, t = self.operations, self.n, len(steps)
        again = len(operations) // 2
        for i in order:
            operation = operations[i]
            if operation is None:
                continue
            values, makes, _, _, _, shows = operation
            if shows >= 0:
                at[makes[0] - n if i >= again else makes[0]] = at[shows]
                continue
            reads = [at[v] for v in values]
            for v in reads:
                last[v] = t
            for v in makes:
                last[v] = t
                if i >= again and not there[v - n]:
                    at[v - n] = v
            steps.append(operation)
            read.append(reads)
            t += 1

    def _most(self, steps: list[StorageUse], read: list[list[int]], last: list[int]) -> int:
        """The peak in bytes, given the step that reads each value last."""
        sizes, ours, pooled, kinds = self.sizes, self.ours, self.pooled, self.kind
        storage = [0] * len(last)  # the storage of each value
        born: list[int] = []  # the bytes of each storage; ``dies`` has the step that reads it last
        dies: list[int] = []
        dead: dict[int, list[int]] = {}
        change = [0] * (len(steps) + 2)
        t = -1
        for (_, makes, fit, kind, _, _), reads in zip(steps, read, strict=True):
            t += 1
            taken = -1
            for k in fit:
                v = reads[k]
                if last[v] == t and ours[v]:
                    taken = storage[v]
                    break
            else:
                if dead.get(kind):
                    taken = dead[kind].pop()
            for v in makes:
                if taken >= 0:
                    storage[v] = taken
                    dies[taken] = last[v]
                elif size := sizes[v]:
                    storage[v] = len(born)
                    born.append(size)
                    dies.append(last[v])
                    change[t] += size
            for v in reads:
                if pooled[v] and last[v] == t and storage[v] != taken:
                    dead.setdefault(kinds[v], []).append(storage[v])
                    last[v] = -1
        for size, end in zip(born, dies, strict=True):
            if size >= FREED:
                change[end + 1] -= size
        live = list(accumulate(change))
        work = (live[t] + operation.scratch for t, operation in enumerate(steps) if operation.scratch)
        return max(chain(live, work))
