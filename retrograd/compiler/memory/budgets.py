"""Budgets in bytes for whole gradients: keep as much for the adjoint as fits, and compute the rest again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from math import ceil, inf
from operator import itemgetter

from ...errors import MemoryBudgetError, OptionError
from ...ir.footprint import Undecided
from ...ir.graph import Graph, Value
from ...ir.rewrite import with_nodes
from ...ir.target import TARGETS
from ...ops.structural.region import turn, turn_of
from ...passes.delay import delay
from ...passes.remat.copy_again import copy_again
from ...passes.remat.order import Score
from ...passes.remat.search import Choice, Crossing, peak_of_order, whole_work
from ...where import Where

FEW = 4  # thriftiest choices to try; one of them may turn out better than estimated
NEAR = 1.05  # times a budget: choices with a greater estimate are not tried
FAR = 1.2  # times a budget: with a greater estimate, it is not tried to keep everything


def peak_of(graph: Graph, limit: float = inf) -> int:
    """The predicted peak of the code for a finished graph; if it is beyond ``limit``, any greater number."""
    target = TARGETS.chosen
    return target.footprint(target.plan(target.legalise(graph))).peak(limit)


def fits(graph: Graph, budget: int) -> bool:
    """Whether the peak is within a budget for all data."""
    try:
        return peak_of(graph, budget) <= budget
    except Undecided:
        return False


def undecided(where: Where | None) -> OptionError:
    """The error for a budget of bytes if the memory depends on data."""
    return OptionError(
        "the memory of this function depends on its data, so it cannot have a budget in bytes",
        where=where,
        remedy="give each loop of unknown length rg.Snapshots(c) or a budget instead of another plan",
    )


def budget_of(graph: Graph) -> int | None:
    """The budget of a derivative, if it has one."""
    at = turn_of(graph)
    return None if at is None else at.attrs["budget"]


def with_budget(graph: Graph, budget: int) -> Graph:
    """The graph of a derivative with another budget."""
    nodes = (replace(n, attrs={**n.attrs, "budget": budget}) if n.prim is turn else n for n in graph.nodes)
    return Graph(graph.name, graph.inputs, tuple(nodes), graph.outputs)


class Choosing:
    """The values that the adjoint of a graph with a turn may find kept: choices with the exact peaks of their code.

    ``rest`` is the rest of the pipeline; the turn is still in its place.
    """

    def __init__(self, graph: Graph, rest: Callable[[Graph], Graph]) -> None:
        self.graph, self.rest = graph, rest
        self._peaks: dict[frozenset[Value], int] = {}
        self._found: dict[tuple[Choice, Choice], list[Choice]] = {}  # between two landmarks
        self._close: dict[tuple[Choice, Choice], list[Choice]] = {}  # between two neighbours of these
        self._newest: tuple[frozenset[Value], Graph] | None = None  # the choice that was made last

    @cached_property
    def crossing(self) -> Crossing:
        """The values that cross the turn."""
        return Crossing(self.graph)

    @cached_property
    def landmarks(self) -> list[Choice]:
        """The best choices of a coarse search, by estimated peaks: with more memory, less is computed again."""
        return self.crossing.landmarks

    @cached_property
    def _last(self) -> list[Choice]:
        """The landmarks to try whatever their estimates."""
        return self.landmarks[-FEW if self.crossing.complete else -1 :]

    @cached_property
    def thriftiest(self) -> list[Choice]:
        """The choices with the smallest estimated peaks."""
        between = [c for pair in [*pairwise(self.landmarks)][-1:] for c in self._between(*pair)]
        return [*between, *self._last][-FEW:]

    def _between(self, more: Choice, less: Choice) -> list[Choice]:
        if (more, less) not in self._found:
            self._found[more, less] = self.crossing.between(more, less)
        return self._found[more, less]

    def _near(self, more: Choice, less: Choice) -> list[Choice]:
        if (more, less) not in self._close:
            self._close[more, less] = self.crossing.near(more, less)
        return self._close[more, less]

    @cached_property
    def everything(self) -> Choice:
        """The choice that there is without a budget; it computes again only what is cheap."""
        kept = frozenset(self.crossing.needed)
        same = self.late is self.graph
        return Choice(kept, self.crossing.score(kept) if same else Score(peak_of_order(self.late), self.again))

    @cached_property
    def late(self) -> Graph:
        """The graph as it is without a budget."""
        return _as_without_budget(self.graph)

    @cached_property
    def again(self) -> int:
        """The operations that run again without a budget, in elements."""
        return 0 if self.late is self.graph else whole_work(self.late) - whole_work(self.graph)

    def made(self, choice: Choice) -> Graph:
        """The graph for a choice, with the turn in its place; the same graph if nothing else was made since."""
        if choice.kept == self.everything.kept:
            return self.late
        if self._newest is None or self._newest[0] != choice.kept:
            made, at = self.crossing.again(choice.kept), len(self.crossing.first)
            nodes = (*made.nodes[:at], self.graph.nodes[at], *made.nodes[at:])
            self._newest = choice.kept, with_nodes(made, nodes)
        return self._newest[1]

    def peak(self, choice: Choice) -> int:
        """The peak of the code for a choice."""
        if choice.kept not in self._peaks:
            self._peaks[choice.kept] = peak_of(self.rest(self.made(choice)))
        return self._peaks[choice.kept]

    @cached_property
    def least(self) -> int:
        """The smallest budget for which ``best`` finds a choice: with one byte less, it finds none."""
        found = min(map(self.peak, self.thriftiest))
        tried = [(_tried(c, NEAR), c) for c in self.landmarks if self._is_less(c)]
        for budget, choice in sorted([*tried, (_tried(self.everything, FAR), self.everything)], key=itemgetter(0)):
            if budget >= found:
                break
            found = min(found, max(budget, self.peak(choice)))
        return found

    @cached_property
    def most(self) -> int:
        """The peak if everything is kept."""
        return peak_of(self.rest(self.late))

    def fits(self, budget: int) -> bool:
        """Whether everything can be kept."""
        return fits(self.rest(self.late), budget)

    def may_fit(self, budget: int) -> bool:
        """Whether the peak would be within a budget if the dropped values took no memory at all."""
        made = self.crossing.made
        dropped = sum(v.aval.nbytes for v in self.crossing.needed if not made[v].effect and not made[v].graphs)
        return self.most - dropped <= budget

    def best(self, budget: int) -> Choice | None:
        """The choice within a budget: everything, if it fits."""
        likely = _tried(self.everything, FAR) <= budget
        return self.everything if likely and self.fits(budget) else self.within(budget)

    def within(self, budget: int) -> Choice | None:
        """A choice within a budget that computes little again, if any choice is within it.

        First comes the first landmark, in order of recomputed work, whose code stays within, then the first choice
        between it and the landmark before. Which choices are compared does not depend on the budget, but for those
        whose estimate is too great: with a larger budget, never more is computed again. So what computes less again
        than there is without a budget is left out, unless nothing else fits.
        """
        before: Choice | None = None
        for choice in self.landmarks:
            likely = self._is_less(choice) and (_tried(choice, NEAR) <= budget or choice in self._last)
            if likely and self.peak(choice) <= budget:
                return choice if before is None else self._nearer(before, choice, budget)
            before = choice
        return next((choice for choice in self.thriftiest if self.peak(choice) <= budget), None)

    def _is_less(self, choice: Choice) -> bool:
        """Whether a choice computes at least as much again as there is without a budget."""
        return choice.score.again >= self.again

    def _nearer(self, more: Choice, less: Choice, budget: int) -> Choice:
        """The first choice within a budget between two landmarks; the code of the second says how estimates err."""
        off = self.peak(less) - less.score.peak

        def within(choice: Choice) -> bool:
            likely = choice.score.peak + off <= budget or (less is self.landmarks[-1] and choice in self.thriftiest)
            return likely and self._is_less(choice) and self.peak(choice) <= budget

        for a, b in pairwise([more, *self._between(more, less), less]):
            if b.score.peak + off <= budget:
                for choice in self._near(a, b):
                    if within(choice):
                        return choice
            if within(b):
                return b
        return less

    def curve(self) -> Iterator[Choice]:
        """The choices for budgets below the peak of keeping everything; each is the choice for its own peak."""
        budget = self.most - 1
        while (choice := self.within(budget)) is not None:
            budget = self.peak(choice)
            if choice is self.within(budget):
                yield choice
                budget -= 1


def _tried(choice: Choice, ratio: float) -> int:
    """The smallest budget for which a choice is tried, if its estimate may be that many times the budget."""
    return ceil(choice.score.peak / ratio)


def _as_without_budget(graph: Graph) -> Graph:
    return graph.once("delay", lambda: delay(copy_again(graph)))


def keep_within_budget(graph: Graph, rest: Callable[[Graph], Graph]) -> Graph:
    """keep_within_budget: the graph of a derivative that keeps as much for its adjoint as its budget allows.

    Without a budget it keeps everything, as with one that is large enough. Raises MemoryBudgetError.
    """
    budget = budget_of(graph)
    if budget is None:
        return _as_without_budget(graph)
    choosing = Choosing(graph, rest)
    where = next((node.where for node in graph.nodes if node.where is not None), None)
    try:
        choice = choosing.best(budget)
    except Undecided:
        raise undecided(where) from None
    if choice is not None:
        return choosing.made(choice)
    unchanged = peak_of(rest(graph))  # the code by which loops found their plans
    if unchanged > budget:
        raise MemoryBudgetError(
            f"no choice of kept values stays within {budget:,} bytes",
            minimum=min(choosing.least, unchanged),
            where=where,
        )
    return graph
