"""rows_in_blocks: Graph → Graph in which narrow products of large matrices, and what is between, run on blocks of rows.

A block of rows stays in the processor's cache from the first product to the last, as in x @ w, a loss of each row, and
the product of its derivatives with x. The blocks are the steps of a loop, so later passes and plans know nothing of
them. Their length depends on the shapes alone. Products and sums over rows add blocks, and so round differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Env, copy_nodes
from ..ir.structure import Layout
from ..ir.types import Aval
from ..ops.concatenate import concatenate
from ..ops.index import getitem
from ..ops.linear import matmul
from ..ops.reduce import sum_
from ..ops.shape import permute, reshape_to
from ..ops.structural.loops import make_scan
from ..ops.structural.region import turn
from .prune import prune
from .row_roles import Rows

LARGE = 1 << 22  # bytes of an array that a cache does not keep from one operation to the next
MIDDLE = 1 << 18  # bytes of an array that is better not written for the loop or by it
WORTH = 3 << 23  # bytes that blocks need not write or read again: fewer come from a large cache
BLOCK = 1 << 20  # bytes of the widest rows of a block, at most
SMALL_BLOCK = 1 << 18  # ... where an operation needs no call of its own
FEWEST_ROWS, FEWEST_BLOCKS = 8, 4  # rows of a block; blocks of a matrix


def with_rows_in_blocks(graph: Graph) -> Graph:
    """The graph with loops in place of groups of operations on rows."""
    return _looped(graph, BLOCK)


def with_rows_in_small_blocks(graph: Graph) -> Graph:
    """The same for C, which makes one call of all that is between products."""
    return _looped(graph, SMALL_BLOCK)


def _looped(graph: Graph, block: int) -> Graph:
    if matmul not in graph.prims or graph.largest < LARGE:
        return graph
    products = (node for node in graph.nodes if node.prim is matmul)
    lengths = {v.aval.shape[0] for node in products for v in (*node.inputs, node.out) if v.aval.nbytes >= LARGE}
    for n in sorted(lengths, reverse=True):
        while n >= FEWEST_ROWS * FEWEST_BLOCKS and (nodes := RowGroups(graph, Rows(graph, n)).first()):
            graph = prune(RowBlocks(graph, Rows(graph, n), nodes, partial(_length_of_blocks, block)).graph())
    return graph


class RowGroups:
    """Finds nodes that can run block by block: none of them waits for a sum over the rows of another one.

    Members read or make large arrays of rows. What is between members joins them. Each node that waits for a sum, or
    reads as a whole what depends on members, has a higher level; nodes of a group have one level.
    """

    def __init__(self, graph: Graph, rows: Rows) -> None:
        self.source, self.rows, self.roles = graph, rows, rows.roles
        self.members = {node for node in self.roles if self._is_member(node)}
        self.level: dict[Node, tuple[int, int]] = {}  # of nodes that depend on members
        self.part: dict[Node, int] = {}  # nodes with effects part the graph
        part = 0
        for node in graph.nodes:
            part += node.effect and (node.prim is not turn or node.attrs.get("split") is not None)
            self.part[node] = part
            waits = [self.level[p][1] + later for p, later in self._before(node) if p in self.level]
            if waits or node in self.members:
                self.level[node] = part, max(waits, default=0)

    def _is_member(self, node: Node) -> bool:
        role = self.roles[node]
        values = role.rows if role.folds else (*role.rows, node.out)
        return any(v.aval.nbytes >= LARGE and self.rows.stretched(v) is None for v in values)

    def _before(self, node: Node) -> list[tuple[Node, bool]]:
        """The nodes that a node waits for, and whether it needs all rows of theirs, not those of a block alone."""
        made, role, found = self.source.producer, self.roles.get(node), list[tuple[Node, bool]]()
        reads = [(v, True) for v in role.rows] if role is not None else []
        reads += [(v, False) for v in (node.inputs if role is None else role.whole)]
        for v, by_rows in reads:
            stretched = self.rows.stretched(v) if by_rows else None
            for x in (v,) if stretched is None else stretched.inputs:
                if (p := made.get(x)) is not None:
                    alone = not by_rows or stretched is not None or (p in self.roles and self.roles[p].folds)
                    found.append((p, alone and p in self.roles))
        return found

    def first(self) -> list[Node] | None:
        """The nodes of the first group that is worth a loop."""
        for level in sorted({self.level[node] for node in self.members}):
            group = self._group(level)
            nodes = [node for node in self.source.nodes if node in group]
            if self._is_worth_it(nodes):
                return nodes
        return None

    def _group(self, level: tuple[int, int]) -> set[Node]:
        """The members of a level; what is between them; and what goes on with their rows, if it is large enough."""
        members = {node for node in self.members if self.level[node] == level}
        behind, group, read = set(members), set(members), set[Node]()
        alike = [node for node in self.source.nodes if node in self.roles and self.level.get(node) == level]
        for node in alike:
            if any(p in behind and not alone for p, alone in self._before(node)):
                behind.add(node)
        for node in reversed(alike):
            if node in members or (node in read and node in behind):
                group.add(node)
                read.update(p for p, alone in self._before(node) if not alone)
        for node in alike:
            before = behind.intersection(p for p, _ in self._before(node))
            if node in behind and before <= group and any(v.aval.nbytes >= MIDDLE for v in self.roles[node].rows):
                group.add(node)
        return self._with_sources(group, level)

    def _with_sources(self, group: set[Node], level: tuple[int, int]) -> set[Node]:
        """The group, and what only its nodes read, row by row."""
        for node in reversed(self.source.nodes):
            role = self.roles.get(node)
            if role is None or role.folds or node in self.level or self.part[node] != level[0]:
                continue
            read = node.out in self.source.uses and self.rows.all_read_rows(node.out, group)
            if read and node.out.aval.nbytes >= MIDDLE:
                group.add(node)
        return group

    def _is_worth_it(self, nodes: Sequence[Node]) -> bool:
        """Whether the group has a product, and blocks save enough writes and reads of large arrays."""
        reads = Counter(v for node in nodes for v in self.roles[node].rows if self.rows.stretched(v) is None)
        made = {node.out for node in nodes if not self.roles[node].folds}
        large = [v for v in reads if v.aval.nbytes >= LARGE]
        saved = sum(v.aval.nbytes * (reads[v] + (1 if v in made else -1)) for v in large)
        short = max((v.aval.nbytes for v in (*reads, *made)), default=0) * FEWEST_ROWS <= BLOCK * self.rows.n
        return short and saved >= WORTH and any(node.prim is matmul for node in nodes)


class RowBlocks:
    """A group as a loop over blocks, and a further block for the rows that are left.

    ``length`` finds the rows of a block from their number and from the bytes of the widest array. What ``shared`` nodes
    compute is computed outside of the loop, too.
    """

    def __init__(
        self,
        graph: Graph,
        rows: Rows,
        nodes: list[Node],
        length: Callable[[int, int], int],
        shared: Collection[Node] = frozenset(),
    ) -> None:
        self.source, self.rows, self.n, self.nodes, self.shared = graph, rows, rows.n, nodes, shared
        inside = {node.out for node in nodes}
        roles = [self.rows.roles[node] for node in nodes]
        read = [v for role in roles for v in role.rows if v not in inside]
        stretched = [node for v in read if (node := self.rows.stretched(v)) is not None]
        self.parted = list(dict.fromkeys(v for v in read if self.rows.stretched(v) is None))
        self.whole = list(dict.fromkeys([v for r in roles for v in r.whole] + [v for s in stretched for v in s.inputs]))
        self.views, results = self._results()
        folds = {node for node in nodes if self.rows.roles[node].folds}
        self.sums = [node.out for node in results if node in folds and node.out.aval.ndim]
        self.numbers = [node.out for node in results if node in folds and not node.out.aval.ndim]
        self.arrays = [node.out for node in results if node not in folds]
        kept = {node.out for node in results} | {node.out for node in self.views} | {n.out for n in self.shared}
        inner = (node.out for node in nodes if node.out not in kept)
        self.taken = {r for v in inner for r in graph.uses.get(v, ()) if r not in self.rows.roles}  # transposes
        widest = max(v.aval.nbytes for v in (*self.parted, *(x.out for x in nodes if x not in folds)))
        self.block = length(self.n, widest)

    def _results(self) -> tuple[set[Node], list[Node]]:
        """The views and the nodes of the group whose results others read, too. Of views, they read views of results."""
        chosen = set(self.nodes)
        alone = [node for node in self.nodes if node not in self.shared]
        read = set(self.source.outputs)
        read.update(node.out for node in alone if not self.rows.all_read_rows(node.out, chosen))
        views = set[Node]()
        for node in reversed(alone):
            if node.out in read and node.prim.alias is not None:
                views.add(node)
                read.update(node.inputs)
        return views, [node for node in alone if node.out in read and node not in views]

    def graph(self) -> Graph:
        """The graph in which the loop stands where the last node of the group does."""
        b, chosen, last = Builder(), set(self.nodes), self.nodes[-1]
        env = dict(zip(self.source.inputs, b.share_inputs(self.source), strict=True))
        behind, later = {node.out for node in self.nodes if node not in self.shared}, list[Node]()
        for node in self.source.nodes:
            if node in self.views:
                later.append(node)
            if node is last:
                self._emit(b, env)
                copy_nodes(b, later, env)
                behind = set()
            elif (node in chosen and node not in self.shared) or node in self.taken:
                continue
            elif behind.isdisjoint(node.inputs):
                copy_nodes(b, [node], env)
            else:
                behind.update(node.outputs)
                later.append(node)
        return b.graph(self.source.name, [env[v] for v in self.source.outputs])

    def _emit(self, b: Builder, env: Env) -> None:
        b.where = self.nodes[0].where
        steps = self.n // self.block
        most = steps * self.block
        body = self._body()
        sums = [b.zeros(v.aval) for v in self.sums]
        parts = [self._slice(env[v], 0, most) if most < self.n else env[v] for v in self.parted]
        blocks = [reshape_to(x, (steps, x.shape[0] // steps, *x.shape[1:])) for x in parts]
        layout = Layout(len(self.whole), len(sums), len(self.arrays) + len(self.numbers))
        sums, arrays, _ = make_scan(b, body, layout, [*(env[v] for v in self.whole), *sums, *blocks], steps, False)
        numbers = [sum_(x, axis=(0,), keepdims=False) for x in arrays[len(self.arrays) :]]  # as NumPy adds, pairwise
        arrays = [reshape_to(x, (x.shape[0] * x.shape[1], *x.shape[2:])) for x in arrays[: len(self.arrays)]]
        if most < self.n:
            rest = [self._slice(env[v], most, self.n) for v in self.parted]
            found = self._emit_rows(b, env, dict(zip(self.parted, rest, strict=True)), self.n - most)
            sums = [x + found[v] for v, x in zip(self.sums, sums, strict=True)]
            numbers = [x + found[v] for v, x in zip(self.numbers, numbers, strict=True)]
            arrays = [concatenate(x, found[v], axis=0) for v, x in zip(self.arrays, arrays, strict=True)]
        env.update(zip((*self.sums, *self.numbers, *self.arrays), (*sums, *numbers, *arrays), strict=True))

    def _slice(self, x: Symbol, start: int, stop: int) -> Symbol:
        times = x.shape[0] // self.n
        part: Symbol = getitem(x, index=(slice(start * times, stop * times if stop < self.n else None),))
        return part

    def _body(self) -> Graph:
        b = Builder()
        b.where = self.nodes[0].where
        whole: Env = dict(zip(self.whole, b.inputs_like(self.whole), strict=True))
        sums = b.inputs_like(self.sums)
        parts = {v: b.input(self._aval(v.aval, self.block), v.hint) for v in self.parted}
        found = self._emit_rows(b, whole, parts, self.block)
        totals = [x + found[v] for v, x in zip(self.sums, sums, strict=True)]
        return b.graph(self.source.name, [*totals, *(found[v] for v in (*self.arrays, *self.numbers))])

    def _emit_rows(self, b: Builder, whole: Env, parts: Env, length: int) -> Env:
        """Emit the nodes for so many rows; ``parts`` gets the results, too."""

        def part(v: Value) -> Symbol:
            if v not in parts:
                node = self.source.producer[v]
                parts[v] = self._emitted(b, node, [whole[x] for x in node.inputs], length)
            return parts[v]

        for node in self.nodes:
            role = self.rows.roles[node]
            b.where = node.where
            if node.prim is matmul and role.folds:
                x, y = map(part, role.rows)
                parts[node.out] = (permute(x, axes=(1, 0)) if x.ndim == 2 else x) @ y
            elif node.prim is matmul and role.whole:
                parts[node.out] = part(role.rows[0]) @ whole[role.whole[0]]
            else:
                operands = [whole[v] if v in role.whole else part(v) for v in node.inputs]
                parts[node.out] = self._emitted(b, node, operands, length)
        return parts

    def _emitted(self, b: Builder, node: Node, operands: list[Symbol], length: int) -> Symbol:
        if not operands:
            return b.constant(node.attrs["value"], self._aval(node.out.aval, length))
        attrs = {name: self._aval(a, length) if isinstance(a, Aval) else a for name, a in node.attrs.items()}
        return b.emit(node.prim, [x.value for x in operands], attrs, [node.out.hint])[0]

    def _aval(self, aval: Aval, length: int) -> Aval:
        return Aval((aval.shape[0] // self.n * length, *aval.shape[1:]), aval.dtype, aval.kind)


def _length_of_blocks(block: int, n: int, widest: int) -> int:
    """The rows of a block: a divisor of their number if one is not much smaller than what the cache holds."""
    most = min(block * n // widest, n // FEWEST_BLOCKS)
    return next((k for k in range(most, most // 2, -1) if n % k == 0), most)
