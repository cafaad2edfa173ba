"""Budgets in bytes for whole gradients: keep as much for the adjoint as fits, and compute the rest again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from math import inf

from ...errors import MemoryBudgetError, OptionError
from ...ir.footprint import Undecided
from ...ir.graph import Graph, Value
from ...ir.rewrite import with_nodes
from ...ir.target import TARGETS
from ...ops.structural.region import turn, turn_of
from ...passes.delay import delay
from ...passes.remat.order import Score
from ...passes.remat.search import Choice, Crossing, peak_of_order
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
        self._last: tuple[frozenset[Value], Graph] | None = None  # the choice that was made last

    @cached_property
    def crossing(self) -> Crossing:
        """The values that cross the turn."""
        return Crossing(self.graph)

    @cached_property
    def choices(self) -> list[Choice]:
        """The best choices, by estimated peaks: with more memory, less is computed again."""
        return self.crossing.choices()

    @cached_property
    def everything(self) -> Choice:
        """The choice that computes nothing again."""
        kept = frozenset(self.crossing.needed)
        score = self.crossing.score(kept)
        return Choice(kept, score if self.late is self.graph else Score(peak_of_order(self.late), score.again))

    @cached_property
    def late(self) -> Graph:
        """The graph that computes nothing again, in the order that it has without a budget."""
        return delay(self.graph)

    def made(self, choice: Choice) -> Graph:
        """The graph for a choice, with the turn in its place; the same graph if nothing else was made since."""
        if choice.kept == self.everything.kept:
            return self.late
        if self._last is None or self._last[0] != choice.kept:
            made, at = self.crossing.again(choice.kept), len(self.crossing.first)
            nodes = (*made.nodes[:at], self.graph.nodes[at], *made.nodes[at:])
            self._last = choice.kept, with_nodes(made, nodes)
        return self._last[1]

    def peak(self, choice: Choice) -> int:
        """The peak of the code for a choice."""
        if choice.kept not in self._peaks:
            self._peaks[choice.kept] = peak_of(self.rest(self.made(choice)))
        return self._peaks[choice.kept]

    @cached_property
    def least(self) -> int:
        """The smallest peak among the choices."""
        return min(map(self.peak, self.choices[-FEW:]))

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
        likely = self.everything.score.peak <= FAR * budget
        return self.everything if likely and self.fits(budget) else self.within(budget)

    def within(self, budget: int) -> Choice | None:
        """The choice that computes least again within a budget, if any choice is within it.

        It is the first choice, in order of recomputed work, whose code stays within: with a larger budget, never more
        is computed again.
        """
        likely = (choice for choice in self.choices[:-FEW] if choice.score.peak <= NEAR * budget)
        return next((choice for choice in chain(likely, self.choices[-FEW:]) if self.peak(choice) <= budget), None)

    def curve(self) -> Iterator[Choice]:
        """The choices for budgets below the peak of keeping everything; each is the choice for its own peak."""
        budget = self.most - 1
        while (choice := self.within(budget)) is not None:
            budget = self.peak(choice)
            if choice is self.within(budget):
                yield choice
                budget -= 1


def keep_within_budget(graph: Graph, rest: Callable[[Graph], Graph]) -> Graph:
    """keep_within_budget: the graph of a derivative that keeps as much for its adjoint as its budget allows.

    Without a budget it keeps everything, as with one that is large enough. Raises MemoryBudgetError.
    """
    budget = budget_of(graph)
    if budget is None:
        return graph.once("delay", lambda: delay(graph))
    choosing = Choosing(graph, rest)
    where = next((node.where for node in graph.nodes if node.where is not None), None)
    try:
        choice = choosing.best(budget)
    except Undecided:
        raise undecided(where) from None
    if choice is None:
        raise MemoryBudgetError(
            f"no choice of kept values stays within {budget:,} bytes",
            minimum=choosing.least,
            where=where,
        )
    return choosing.made(choice)
