"""stacks_in_blocks: Graph → Graph in which products of stacks of matrices run on few matrices at a time.

What is between the products runs with them, so that whole stacks of intermediate results are never there. Differences
of small arrays, such as of all points and all means, are computed again where several loops read them, if no cache
holds them. Nothing adds matrices of a stack, so bits stay. Loops are made only if the peak of memory falls by much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..ir.graph import Graph, Node, Value
from ..ops.linear import matmul
from ..ops.shape import broadcast
from .delay import delay
from .prune import prune
from .remat.search import peak_of_order
from .row_roles import Rows
from .rows_in_blocks import RowBlocks, RowGroups

LARGE = 1 << 20  # bytes of a stack that is worth a loop
LARGER = 1 << 22  # ... if calls of C compute what is between the products
AGAIN = 1 << 20  # bytes of what is computed again, if its rows are long; NumPy begins anew for each row
AGAIN_SHORT = 1 << 22  # ... if they are short: a cache does not keep it from one operation to the next
LONG = 128  # elements of a row
BLOCKS = 3 << 16, 1 << 16  # bytes of the widest matrices of a step, at least: with fewer, calls take more of the time
FEWEST_STEPS = 4
LEAST = 0.2  # of the peak must be saved
SMALLER = 4  # times smaller than their difference are operands that are subtracted again
CHEAP = frozenset({"add", "mul", "sub"})


def with_stacks_in_blocks(graph: Graph) -> Graph:
    """The graph with loops in place of groups of operations on stacks; the graph itself if its peak is hardly lower."""
    if matmul not in graph.prims or graph.largest < LARGE:
        return graph
    products = [node for node in graph.nodes if node.prim is matmul and node.out.aval.ndim > 2]
    large = (v for node in products for v in (*node.inputs, node.out) if v.aval.nbytes >= LARGE)
    for n in sorted({v.aval.shape[0] for v in large}, reverse=True):
        source = graph
        for block in BLOCKS:
            looped = _looped(source, n, block)
            if looped is source or peak_of_late_order(looped) > (1 - LEAST) * peak_of_late_order(graph):
                break
            graph = looped
    return graph


def with_larger_stacks_in_blocks(graph: Graph) -> Graph:
    """The same for C, if caches do not hold the stacks."""
    return with_stacks_in_blocks(graph) if graph.largest >= LARGER else graph


def _looped(graph: Graph, n: int, block: int) -> Graph:
    length = partial(_length_of_blocks, block)
    while True:
        groups = _StackGroups(graph, Rows(graph, n, stacks=True), length)
        nodes = groups.first()
        if nodes is None:
            return graph
        graph = prune(RowBlocks(graph, groups.rows, nodes, length, groups.shared).graph())


def peak_of_late_order(graph: Graph) -> int:
    """The peak of a graph in bytes when what only later nodes read is computed late."""
    return peak_of_order(delay(graph))


class _StackGroups(RowGroups):
    """Groups of operations on stacks around their products."""

    def __init__(self, graph: Graph, rows: Rows, length: Callable[[int, int], int]) -> None:
        self.length = length  # of steps, as in RowBlocks
        self.again: set[Node] = set()  # what is made of small arrays, and may be made in each loop
        self.shared: set[Node] = set()  # what a loop makes for itself of these
        for node in graph.nodes:
            role = rows.roles.get(node)
            if role is not None and all(self._is_cheap(v, rows) for v in role.rows) and self._is_made_again(node):
                self.again.add(node)
        super().__init__(graph, rows)
        self.again.difference_update(self.level)  # they wait for products themselves

    def _is_made_again(self, node: Node) -> bool:
        views = node.prim is broadcast or node.prim.alias is not None
        aval = node.out.aval
        least = AGAIN if aval.shape[-1] >= LONG else AGAIN_SHORT
        return aval.nbytes >= least and (views or node.prim.name in CHEAP)

    def _is_cheap(self, v: Value, rows: Rows) -> bool:
        made = rows.made.get(v)
        return v.aval.nbytes * SMALLER <= LARGE or rows.stretched(v) is not None or made in self.again

    def _is_member(self, node: Node) -> bool:
        role = self.roles[node]
        values = (*role.rows, node.out)
        return node not in self.again and any(v.aval.nbytes >= LARGE and self.rows.stretched(v) is None for v in values)

    def _with_sources(self, group: set[Node], level: tuple[int, int]) -> set[Node]:
        """The group, what only its nodes read, and what it makes again."""
        group = super()._with_sources(group, level)
        self.shared = set()
        for node in reversed(self.source.nodes):
            readers = self.source.uses.get(node.out, []) if node in self.again else []
            if node not in group and any(r in group for r in readers):
                group.add(node)
                self.shared.add(node)
            elif node in self.again and any(r in self.shared for r in readers):
                self.shared.add(node)
        return group

    def _is_worth_it(self, nodes: Sequence[Node]) -> bool:
        """Whether the group has a product, and large stacks for itself, with steps that are neither short nor few."""
        chosen, outputs = set(nodes), set(self.source.outputs)
        made = [node for node in nodes if node.prim is not broadcast and node.prim.alias is None]
        alone = (n for n in made if n.out not in outputs and chosen.issuperset(self.source.uses.get(n.out, ())))
        own = max((node.out.aval.nbytes for node in (*alone, *self.shared.intersection(made))), default=0)
        if own < LARGE or not any(node.prim is matmul for node in nodes):
            return False
        widest = max(node.out.aval.nbytes for node in made)
        return self.length(self.rows.n, widest) * FEWEST_STEPS <= self.rows.n


def _length_of_blocks(block: int, n: int, widest: int) -> int:
    """The matrices of a step: the least divisor of their number with which a step has ``block`` bytes."""
    return next(k for k in range(1, n + 1) if n % k == 0 and (k * widest >= block * n or k == n))
