"""rematerialise: Graph → Graph whose second part computes values again instead of keeping them from the first.

A ``turn`` node divides a graph: forward before it, adjoint after it. Of the values that cross it some are kept; each
other value is computed again, from kept ones, just before its first use after the turn, and dropped after its last.
The choice of kept values is found by trying: values that cross the borders of equal parts, minimum cuts under several
notions of cheapness, parts of these cuts, lists by cost per byte, and then one or two values more or less; for few
values, every subset. Each choice is scored by the peak of the resulting order, since the least bytes across the turn
may well have a higher peak (J. Herrmann et al., arXiv 1911.13214, survey the problem).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, zip_longest

from ...ir.graph import Graph, Node, Value
from ...ops.structural.region import turn
from ..prune import prune
from .liveness import Liveness
from .min_cut import choose_residuals, points_between
from .order import Recomputation, Score, repeatable, without_turn, work

__all__ = ["Choice", "Crossing", "peak_of_order", "turns", "without_turn", "work"]

FEW = 12  # choosable values up to which every subset is tried
CUTS = [(0.0, False), (0.0, True), (1.0, False), (2.0, False), (2.0, True), (6.0, False), (float("inf"), False)]
PARTS = (2, 3, 4, 6, 8, 12, 16)  # keep every k-th value of a cut
STEPS = 24  # points on the list by cost per byte
BETWEEN = 6  # points between two neighbouring choices
TRIES = 48  # neighbours of choices to try in search of better ones,
SMALL, SEARCH = 12_000, 200_000  # going through that many nodes at least and at most


@dataclass(frozen=True, eq=False)
class Choice:
    """Values to keep across the turn, and the cost of that."""

    kept: frozenset[Value]
    score: Score


def turns(graph: Graph) -> bool:
    """Whether a graph has a turn."""
    return turn in graph.prims


class Crossing(Recomputation):
    """The choices of values that are kept across the turn of a graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._cuts: dict[frozenset[Node], list[Value]] = {}  # by the nodes that may run again

    def choices(self) -> list[Choice]:
        """The best choices: with more memory, less runs again. The first choice repeats nothing."""
        best = self._best(self._candidates())
        if len(self.choosable) <= FEW:
            return best
        pairs = ((more.kept, less.kept) for more, less in pairwise(best))
        between = chain(*(points_between(*pair, self.made, self._price, BETWEEN) for pair in pairs))
        return self._improved(self._best(chain((choice.kept for choice in best), between)))

    def _best(self, candidates: Iterable[frozenset[Value]]) -> list[Choice]:
        """The choices that no other one beats in both respects, first the one that repeats least."""
        best: list[Choice] = []
        scored = [Choice(kept, self.score(kept)) for kept in dict.fromkeys(candidates)]
        for choice in sorted(scored, key=lambda c: (c.score.again, c.score.peak, len(c.kept))):
            if not best or choice.score.peak < best[-1].score.peak:
                best.append(choice)
        return best

    def _improved(self, best: list[Choice]) -> list[Choice]:
        """The best choices and their neighbours, one of each in turn, until none is better or enough were tried."""
        size = len(self.whole.nodes)
        tries = min(max(TRIES, SMALL // size), SEARCH // size)
        beside = {choice.kept: self._neighbours(choice.kept) for choice in best}
        while tries > 0:
            found = [kept for choice in best for kept in (next(beside[choice.kept], None),) if kept is not None]
            if not found:
                break
            tries -= len(found)
            best = self._best([*(choice.kept for choice in best), *found])
            for choice in best:
                beside.setdefault(choice.kept, self._neighbours(choice.kept))
        return best

    def _neighbours(self, kept: frozenset[Value]) -> Iterator[frozenset[Value]]:
        """Choices that differ in one value, then in two and so on, without choices that were scored before.

        All values come in their order, alternating with kept values whose keeping saves least.
        """
        cheap_first = sorted((v for v in self.choosable if v in kept), key=self._price)
        order = dict.fromkeys(v for pair in zip_longest(cheap_first, self.choosable) for v in pair if v is not None)
        for n in range(1, len(order) + 1):
            for values in combinations(order, n):
                if (other := kept.symmetric_difference(values)) not in self._scores:
                    yield other

    def _candidates(self) -> Iterator[frozenset[Value]]:
        yield frozenset(self.needed)
        yield frozenset()
        if len(self.choosable) <= FEW:
            for n in range(len(self.choosable) + 1):
                yield from map(frozenset, combinations(self.choosable, n))
            return
        for k in PARTS:
            yield self._at_borders(k)
        for limit, late in CUTS:
            cut = self._cut(limit, late)
            yield frozenset(cut)
            for k in PARTS:
                yield frozenset(cut[k - 1 :: k])
        crossing = self._kept(self.needed)
        cheap_first = sorted(crossing, key=self._price)
        for n in range(0, len(cheap_first), max(1, len(cheap_first) // STEPS)):
            yield frozenset(cheap_first[n:])
        for k in PARTS:
            yield frozenset(crossing[::k])

    def _at_borders(self, parts: int) -> frozenset[Value]:
        """The values that cross between equal parts of the work that the first part must do."""
        number, root = self.liveness.number, self.liveness.root
        first = zip(self.first, self.runs, strict=False)
        steps = [node for node, runs in first if runs and node.outputs and work(node)]
        part = {number[v]: i * parts // len(steps) for i, node in enumerate(steps) for v in node.outputs}
        read = ((root[number[v]], part[number[node.outputs[0]]]) for node in steps for v in node.inputs)
        crossing = {v for v, i in read if part.get(v, i) < i}
        return frozenset(v for v in self.choosable if number[v] in crossing)

    def _price(self, value: Value) -> float:
        """The work to compute a value again, per byte."""
        return self.work[self.maker[self.liveness.number[value]]] / max(value.aval.nbytes, 1)

    def _cut(self, limit: float, late: bool) -> list[Value]:
        """A minimum cut in bytes, for which nodes with at most ``limit`` operations per element may run again.

        With ``late``, nodes that the first part does not need itself may, too.
        """

        def runs_again(node: Node, effort: int) -> bool:
            size = max(sum(v.aval.size for v in node.outputs), 1)
            return repeatable(node) and (effort <= limit * 4 * size or (late and self.needless(node)))

        def cost(value: Value) -> float:
            return 0 if value in self.held or value not in self.made else value.aval.nbytes

        again = frozenset(node for node, effort in zip(self.first, self.work, strict=False) if runs_again(node, effort))
        if again not in self._cuts:  # most programs have operations of few kinds
            self._cuts[again] = self._kept(choose_residuals(self.first, self.needed, cost, again.__contains__))
        return self._cuts[again]

    def _kept(self, values: Iterable[Value]) -> list[Value]:
        """The values to keep; for a view, keep the array it is a view of."""
        number, root = self.liveness.number, self.liveness.root
        roots = {root[number[v]] for v in values}
        return [v for v in self.choosable if number[v] in roots]


def peak_of_order(graph: Graph) -> int:
    """The peak of a graph in bytes, in the order in which its nodes stand."""
    graph = prune(graph)
    return Liveness(graph).peak([*range(len(graph.nodes))], ())
