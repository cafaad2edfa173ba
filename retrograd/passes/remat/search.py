"""rematerialise: Graph → Graph whose second part computes values again instead of keeping them from the first.

A ``turn`` node divides a graph: forward before it, adjoint after it. Of the values that cross it some are kept; each
other value is computed again, from kept ones, just before its first use after the turn, and dropped after its last.
The choice of kept values is found by trying: values that cross the borders of equal parts, minimum cuts under several
notions of cheapness, parts of these cuts, lists by cost per byte, and then one or two values more or less; for few
values, every subset. Of large graphs, only the choices near a budget are searched closely: between two landmarks,
values are dropped one by one, always the one that then costs least per byte. Each choice is scored by the peak of the
resulting order, since the least bytes across the turn may well have a higher peak (J. Herrmann et al., arXiv
1911.13214, survey the problem).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, pairwise, zip_longest
from operator import itemgetter
from typing import NamedTuple

from ...ir.graph import Graph, Node, Value
from ...ops.structural.region import turn
from ..prune import prune
from .liveness import Liveness
from .min_cut import choose_residuals, points_between
from .order import Recomputation, Score, repeatable, without_turn, work

__all__ = ["Choice", "Crossing", "peak_of_order", "turns", "whole_work", "without_turn", "work"]

FEW = 12  # choosable values up to which every subset is tried
CUTS = [(0.0, False), (0.0, True), (1.0, False), (2.0, False), (2.0, True), (6.0, False), (float("inf"), False)]
PARTS = (2, 3, 4, 6, 8, 12, 16)  # keep every k-th value of a cut
STEPS = 24  # points on the list by cost per byte
BETWEEN = 6  # points between two neighbouring choices
THOROUGH = 300  # nodes up to which a search covers all budgets
TRIES = 48  # neighbours of choices to try in search of better ones,
TRIES_NEAR = 16  # and of choices between two neighbours,
SMALL, SEARCH = 12_000, 200_000  # going through that many nodes at least and at most


@dataclass(frozen=True, eq=False)
class Choice:
    """Values to keep across the turn, and the cost of that."""

    kept: frozenset[Value]
    score: Score


class Rerun(NamedTuple):
    """Work, and the nodes that do it, by number."""

    work: int
    nodes: set[int]


def turns(graph: Graph) -> bool:
    """Whether a graph has a turn."""
    return turn in graph.prims


class Crossing(Recomputation):
    """The choices of values that are kept across the turn of a graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._chains: dict[frozenset[Value], list[tuple[int, frozenset[Value]]]] = {}
        self._cuts: dict[frozenset[Node], list[Value]] = {}  # by the nodes that may run again

    @property
    def complete(self) -> bool:
        """Whether there are so few values that every subset is tried."""
        return len(self.choosable) <= FEW

    @property
    def thorough(self) -> bool:
        """Whether the graph is so small that one search covers all budgets."""
        return len(self.whole.nodes) <= THOROUGH

    def choices(self) -> list[Choice]:
        """The best choices: with more memory, less runs again. The first choice repeats nothing."""
        if self.complete:
            return self._front
        pairs = ((more.kept, less.kept) for more, less in pairwise(self._front))
        between = chain(*(points_between(*pair, self.made, self._price, BETWEEN) for pair in pairs))
        return self._improved(self._best(chain((choice.kept for choice in self._front), between)), TRIES)

    @cached_property
    def landmarks(self) -> list[Choice]:
        """The convex hull of the choices of a coarse search; for small graphs all choices of a search."""
        if self.complete:
            return self._front
        if self.thorough:
            return self.choices()
        hull: list[Choice] = []
        for choice in self._front:
            while len(hull) > 1 and not _bent(hull[-2].score, hull[-1].score, choice.score):
                hull.pop()
            hull.append(choice)
        return hull

    @cached_property
    def _front(self) -> list[Choice]:
        """The best choices of a coarse search."""
        return self._best(self._coarse)

    @cached_property
    def _coarse(self) -> list[frozenset[Value]]:
        return list(dict.fromkeys(self._candidates()))

    def between(self, more: Choice, less: Choice) -> list[Choice]:
        """The best choices between two neighbouring landmarks, without these."""
        if self.complete or self.thorough:
            return []
        ends = [c.kept for c in self._front if more.score.again <= c.score.again <= less.score.again]
        return _inside(more, less, self._best([*ends, *self._points(more, less)]))

    def near(self, more: Choice, less: Choice) -> list[Choice]:
        """The best choices between two neighbouring choices among those that differ from them in few values."""
        if self.complete:
            return []
        points = self._best([more.kept, less.kept, *self._points(more, less)])
        return _inside(more, less, self._improved(points, TRIES_NEAR))

    def _points(self, more: Choice, less: Choice) -> Iterator[frozenset[Value]]:
        """Choices from one towards another, and to this one from above.

        Above is what keeps all that it keeps, and repeats as little as the first choice. What repeats nothing may keep
        little, if values can be computed after the turn for the first time.
        """
        above = [k for k in self._coarse if k > less.kept and self.score(k).again <= more.score.again]
        wide = min(above, key=lambda k: (self.score(k).peak, len(k)), default=more.kept)
        yield from points_between(wide, less.kept, self.made, self._price, BETWEEN)
        for kept in dict.fromkeys([more.kept, wide]):
            thinner = self._thinned(kept)
            first = bisect_right(thinner, more.score.again, key=itemgetter(0))
            last = bisect_left(thinner, less.score.again, key=itemgetter(0))
            inside = thinner[first:last]
            yield from (k for _, k in inside[:: max(1, len(inside) // BETWEEN)])

    def _thinned(self, kept: frozenset[Value]) -> list[tuple[int, frozenset[Value]]]:
        """Choices that keep less and less, and what they repeat about: the cheapest value per byte goes first."""
        if kept not in self._chains:
            self._chains[kept] = [*self._thinner(kept)]
        return self._chains[kept]

    def _thinner(self, kept: frozenset[Value]) -> Iterator[tuple[int, frozenset[Value]]]:
        number, n = self.liveness.number, len(self.whole.nodes)
        there = self._there(kept)
        order = self._order(there)
        again = sum(map(self.work.__getitem__, order)) - self.total
        second = {i - n for i in order if i >= n}
        rest = {v: self._rerun(self.maker[number[v]], there, second) for v in self.choosable if v in kept}
        while rest:
            v = min(rest, key=lambda v: rest[v].work / max(v.aval.nbytes, 1))
            gone = rest.pop(v)
            there[number[v]] = False
            again += gone.work
            second |= gone.nodes
            yield again, frozenset(rest)
            for w, rerun in rest.items():
                if not gone.nodes.isdisjoint(rerun.nodes):
                    rest[w] = self._rerun(self.maker[number[w]], there, second)

    def _rerun(self, node: int, there: list[bool], second: set[int]) -> Rerun:
        """What runs again with a node, if some nodes run again already."""
        nodes, stack = {node}, [node]
        while stack:
            for v in self.missable[stack.pop()]:
                i = self.maker[v]
                if not there[v] and i not in second and i not in nodes:
                    nodes.add(i)
                    stack.append(i)
        return Rerun(sum(map(self.work.__getitem__, nodes)), nodes)

    def _best(self, candidates: Iterable[frozenset[Value]]) -> list[Choice]:
        """The choices that no other one beats in both respects, first the one that repeats least."""
        best: list[Choice] = []
        scored = [Choice(kept, self.score(kept)) for kept in dict.fromkeys(candidates)]
        for choice in sorted(scored, key=lambda c: (c.score.again, c.score.peak, len(c.kept))):
            if not best or choice.score.peak < best[-1].score.peak:
                best.append(choice)
        return best

    def _improved(self, best: list[Choice], least: int) -> list[Choice]:
        """The best choices and their neighbours, one of each in turn, until none is better or enough were tried."""
        size = len(self.whole.nodes)
        tries = min(max(least, least * SMALL // (TRIES * size)), SEARCH // size)
        seen = {*self._coarse, *(choice.kept for choice in best)}  # not what other searches saw: budgets agree
        beside = {choice.kept: self._neighbours(choice.kept, seen) for choice in best}
        while tries > 0:
            found = [kept for choice in best for kept in (next(beside[choice.kept], None),) if kept is not None]
            if not found:
                break
            tries -= len(found)
            best = self._best([*(choice.kept for choice in best), *found])
            for choice in best:
                beside.setdefault(choice.kept, self._neighbours(choice.kept, seen))
        return best

    def _neighbours(self, kept: frozenset[Value], seen: set[frozenset[Value]]) -> Iterator[frozenset[Value]]:
        """Choices that differ in one value, then in two and so on, without choices that were seen before.

        All values come in their order, alternating with kept values whose keeping saves least.
        """
        cheap_first = sorted((v for v in self.choosable if v in kept), key=self._price)
        order = dict.fromkeys(v for pair in zip_longest(cheap_first, self.choosable) for v in pair if v is not None)
        for n in range(1, len(order) + 1):
            for values in combinations(order, n):
                if (other := kept.symmetric_difference(values)) not in seen:
                    seen.add(other)
                    yield other

    def _candidates(self) -> Iterator[frozenset[Value]]:
        yield frozenset(self.needed)
        yield frozenset()
        if self.complete:
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


def _inside(more: Choice, less: Choice, found: Iterable[Choice]) -> list[Choice]:
    """The choices that repeat more than one and less than the other."""
    return [c for c in found if more.score.again < c.score.again < less.score.again]


def _bent(a: Score, b: Score, c: Score) -> bool:
    """Whether the middle one of three scores lies below the line between the others."""
    return (b.again - a.again) * (a.peak - c.peak) < (c.again - a.again) * (a.peak - b.peak)


def whole_work(graph: Graph) -> int:
    """The work of all nodes of a graph that serve its results."""
    return sum(map(work, prune(graph).nodes))


def peak_of_order(graph: Graph) -> int:
    """The peak of a graph in bytes, in the order in which its nodes stand."""
    graph = prune(graph)
    return Liveness(graph).peak([*range(len(graph.nodes))], ())
