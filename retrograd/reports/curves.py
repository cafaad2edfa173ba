"""The memory-time curve of a compiled function: the cost of each amount of memory, as text, data and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..compiler.compilation import Compilation
from ..compiler.garbage import paused
from ..compiler.memory.budgets import budget_of
from ..compiler.memory.loops import with_plan
from ..compiler.memory.shared import COARSE, choosing, grid
from ..compiler.stages import PIPELINE, Rest
from ..ir.footprint import Undecided
from ..ir.graph import Graph
from ..ir.loop_node import loop_of
from ..ir.rewrite import walk
from ..passes.checkpoint.checkpoint import limited
from ..passes.checkpoint.tally import Steps, steps_of
from ..passes.remat.search import turns
from .crossings import halves, repeated, unplanned
from .pictures import Drawn, Note, Picture, byte_unit

MANY = 32  # points on a curve; of more, points that differ little from the one before are left out
FINE = 0.75  # the ratio of slots from one plan for loops to the next
SHOWN = 10.0  # forward passes; points that cost more are not drawn
EVERYTHING = "Everything()"


@dataclass(frozen=True)
class TradeoffPoint:
    """One point of a curve: which values are kept, their memory, and the cost.

    A gradient with ``memory=peak_bytes`` does as much work or less. ``plan`` says what is kept: the plan of all loops,
    how many values outside of loops are computed again, or both. ``work`` is the number of operations that run again,
    and ``share`` the ratio of these to a forward pass: elements read and written, and for matrix products
    multiplications and additions. ``advances`` are steps of loops that run without residuals, of which ``recomputed``
    have run before.
    """

    plan: str
    peak_bytes: int
    work: int
    share: float
    advances: int
    recomputed: int


@dataclass(frozen=True)
class Tradeoff(Drawn):
    """The memory-time curve of one compiled signature: from most memory to least, with the least work at each point.

    There are no points if the data decide how much memory is taken. ``forward`` are the operations of a forward pass;
    ``budget`` is the budget of the gradient.
    """

    name: str
    points: tuple[TradeoffPoint, ...]
    forward: int
    budget: int | None = None

    def picture(self) -> Picture:
        """The work that less memory costs."""
        most = max((p.peak_bytes for p in self.points), default=0)
        scale, unit = byte_unit(most)
        shown = [p for p in self.points if p.share <= SHOWN]
        notes = [Note(p.peak_bytes / scale, 100 * p.share, _kept(p.plan)) for p in shown[-1:]]
        if len(shown) < len(self.points):
            notes = [Note(n.x, n.y, f"{n.text}; beyond, down to {_kept(self.points[-1].plan)}") for n in notes]
        limit = None
        if self.budget is not None and self.budget <= most:
            limit = self.budget / scale, f"budget {self.budget / scale:.3g} {unit}"
        return Picture(
            f"{self.name}: what less memory than {most / scale:.3g} {unit} costs",
            f"peak of memory / {unit}",
            "computed again / % of the forward pass",
            [(p.peak_bytes / scale, 100 * p.share) for p in shown],
            dots=True,
            notes=notes,
            limit=limit,
        )

    def __str__(self) -> str:
        if not self.points:
            return f"{self.name}: how much memory is taken depends on data"
        loops = any(p.advances for p in self.points)
        most = self.points[0].peak_bytes
        wide = max(len(p.plan) for p in self.points)
        head = f"{'plan':<{wide}} {'memory=':>16} {'of all':>7} {'computed again':>18} {'of forward':>11}"
        rows = [head + (f" {'advances':>12} {'again':>12}" if loops else "")]
        for p in self.points:
            of_all = p.peak_bytes / (most or 1)
            row = f"{p.plan:<{wide}} {p.peak_bytes:>16_} {of_all:>7.0%} {p.work:>18,} {p.share:>11.1%}"
            rows.append(row + (f" {p.advances:>12,} {p.recomputed:>12,}" if loops else ""))
        return "\n".join([f"{self.name}: a forward pass is {self.forward:,} operations", *rows])


def _kept(plan: str) -> str:
    """The plan in words."""
    return {EVERYTHING: "keeps everything"}.get(plan, plan)


def tradeoff(compilation: Compilation) -> Tradeoff:
    """The curve of a compilation; nothing is compiled for it.

    A gradient keeps fewer and fewer of the values that its adjoint reads. Loops that save residuals follow thriftier
    and thriftier plans, all the same plan, whatever plans of their own they have.
    """
    graph = compilation.derived.graph
    budget = budget_of(graph)
    rest = Rest(PIPELINE, compilation.settings).after("share_budget")
    with paused:
        ready = unplanned(compilation)
        forward = steps_of(halves(ready)[0])
        try:
            points = list(_points(ready, rest, forward.work)) if forward is not None else []
        except Undecided:
            points = []
    return Tradeoff(graph.name, tuple(points), forward.work if forward is not None else 0, budget)


class _Candidate(NamedTuple):
    """A choice of kept values and plans, its peak, the steps and operations that it runs, and how many run again.

    The last does not count what loops run again.
    """

    plan: str
    peak: int
    steps: Steps
    again: int


def _points(graph: Graph, rest: Rest, forward: int) -> Iterator[TradeoffPoint]:
    """The candidate that keeps everything, and then candidates with less memory and more work than the one before."""
    every = list(_candidates(graph, rest))
    if not every:
        return
    best = every[:1]
    for other in sorted(every, key=lambda c: (c.steps.work, c.peak)):
        last = best[-1]
        if other.peak < last.peak and (other.steps.work > last.steps.work or last is every[0]):
            best.append(other)
    once = every[0].steps.work - every[0].again
    for plan, peak, steps, _ in best if len(best) <= MANY else _apart(best):
        work = steps.work - once
        yield TradeoffPoint(plan, peak, work, work / max(forward, 1), steps.advances, steps.again)


def _apart(points: Sequence[_Candidate]) -> Iterator[_Candidate]:
    """The points that are some way apart in memory or in work, with the first and the last."""
    first = last = points[0]
    work = points[-1].steps.work - first.steps.work
    for point in points:
        freed, more = last.peak - point.peak, point.steps.work - last.steps.work
        if point in (first, points[-1]) or freed >= first.peak / MANY or more >= work / MANY:
            yield point
            last = point


def _candidates(graph: Graph, rest: Rest) -> Iterator[_Candidate]:
    """Each plan for all loops, with everything else kept, and with the best choices for everything else."""
    longest = max(_lengths(with_plan(graph, ("snapshots", 1))), default=0)
    coarse = grid(longest, COARSE)
    for slots in sorted({*grid(longest, FINE), *coarse}, key=lambda slots: -slots if slots else -longest):
        plan = f"Snapshots({slots})" if slots else EVERYTHING
        planned = with_plan(graph, ("snapshots", slots) if slots else ("everything",))
        offered = choosing(planned, rest)
        steps = steps_of(offered.graph.nodes)
        if steps is None:  # the data decide how many steps there are
            return
        yield _candidate(plan, offered.most, steps, offered.again)
        if slots in coarse and turns(graph) and offered.may_fit(offered.most - offered.most // MANY):
            for choice in offered.curve():
                count = len(repeated(offered.made(choice)))
                others = f"{count:,} values again" if count else "some values later"
                named = f"{plan}, {others}" if longest else others
                yield _candidate(named, offered.peak(choice), steps, choice.score.again)


def _candidate(plan: str, peak: int, steps: Steps, again: int) -> _Candidate:
    return _Candidate(plan, peak, steps.plus(Steps(0, 0, again)), again)


def _lengths(graph: Graph) -> Iterator[int]:
    if limited(graph):
        for node in walk(graph):
            loop = loop_of(node)
            if loop is not None and loop.plan is not None and loop.condition is None:
                yield loop.length
