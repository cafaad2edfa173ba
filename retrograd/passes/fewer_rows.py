"""fewer_rows: Graph → Graph in which operations on the rows of large arrays run on few rows at a time.

A softmax, a norm or an elementwise function, and its adjoint with it, then need no whole arrays but results. Loops are
made only if the peak of memory falls by much. Sums over rows add blocks, and so round differently.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Graph, Node
from ..ops.linear import matmul
from ..ops.shape import broadcast
from .prune import prune
from .row_roles import Rows
from .rows_in_blocks import RowBlocks, RowGroups
from .stacks_in_blocks import LEAST, peak_of_late_order

LARGE = 1 << 20  # bytes of an array that is worth a loop
BLOCK = 1 << 18  # bytes of the widest rows of a step
FEWEST_STEPS = 4
MOST_LEVELS = 8  # of groups that wait for each other: what stays between more of them is most of the peak


def with_fewer_rows(graph: Graph) -> Graph:
    """The graph with loops in place of groups of operations on rows; the graph itself if its peak is hardly lower."""
    return _with_loops(graph, FewRowGroups)


def with_fewer_rows_of_products(graph: Graph) -> Graph:
    """The same for C, with loops around products alone: what is between them needs no arrays there."""
    return _with_loops(graph, _FewRowGroupsOfProducts) if matmul in graph.prims else graph


def _with_loops(graph: Graph, kind: type[FewRowGroups]) -> Graph:
    if graph.largest < LARGE:
        return graph
    large = (v.aval for node in graph.nodes for v in node.outputs if v.aval.ndim > 1 and v.aval.nbytes >= LARGE)
    lengths = {aval.shape[0] for aval in large}
    peak = peak_of_late_order(graph)
    while lengths:
        found = {n: loops_of_groups(graph, n, kind) for n in lengths}
        peaks = {n: peak_of_late_order(looped) for n, looped in found.items() if looped is not graph}
        best = min(sorted(peaks), key=peaks.__getitem__, default=0)
        if not best or peaks[best] > (1 - LEAST) * peak:
            break
        graph, peak = found[best], peaks[best]
        lengths.remove(best)
    return graph


def loops_of_groups(graph: Graph, n: int, kind: type[FewRowGroups]) -> Graph:
    """The graph with loops in place of groups of arrays of ``n`` rows; the graph itself if none is worth one."""
    while True:
        rows = Rows(graph, n, several=True)
        groups = kind(graph, rows)
        few = len({groups.level[node] for node in groups.members}) <= MOST_LEVELS
        nodes = groups.first() if few else None
        if nodes is None:
            return graph
        graph = prune(RowBlocks(graph, rows, nodes, _length_of_blocks).graph())


class FewRowGroups(RowGroups):
    """Groups of operations on large arrays of rows."""

    def _is_member(self, node: Node) -> bool:
        role = self.roles[node]
        values = role.rows if role.folds else (*role.rows, node.out)
        return any(v.aval.ndim > 1 and v.aval.nbytes >= LARGE and self.rows.stretched(v) is None for v in values)

    def _is_worth_it(self, nodes: Sequence[Node]) -> bool:
        """Whether the group has large arrays for itself, and steps that are neither short nor few."""
        chosen, outputs = set(nodes), set(self.source.outputs)
        made = [n for n in nodes if n.prim is not broadcast and n.prim.alias is None and not self.roles[n].folds]
        alone = (n for n in made if n.out not in outputs and chosen.issuperset(self.source.uses.get(n.out, ())))
        widest = max((node.out.aval.nbytes for node in made), default=0)
        if max((node.out.aval.nbytes for node in alone), default=0) < LARGE:
            return False
        return _length_of_blocks(self.rows.n, widest) * FEWEST_STEPS <= self.rows.n


class _FewRowGroupsOfProducts(FewRowGroups):
    """Groups with a product."""

    def _is_worth_it(self, nodes: Sequence[Node]) -> bool:
        return any(node.prim is matmul for node in nodes) and super()._is_worth_it(nodes)


def _length_of_blocks(n: int, widest: int) -> int:
    """The rows of a step: a divisor of their number if one is not much smaller than what ``BLOCK`` allows."""
    most = max(1, BLOCK * n // widest)
    return next((k for k in range(most, most // 2, -1) if n % k == 0), most)
