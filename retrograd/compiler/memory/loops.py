"""Budgets in bytes for loops: choose the plan with the fewest repeated steps whose peak of memory is within."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from ...errors import MemoryBudgetError
from ...ir.footprint import Undecided
from ...ir.graph import Graph, Node
from ...ir.loop_node import LoopNode, loop_of
from ...ir.rewrite import mapped, walk, with_nodes
from ...passes.checkpoint.checkpoint import limited
from .budgets import budget_of, peak_of, undecided

if TYPE_CHECKING:
    from ..stages import Rest

Plan = tuple[Any, ...]
EVERYTHING = ("everything",)
LATE = ("snapshots", "log", "everything")  # also plans for a number of steps that is found at run time
MOST_SLOTS = 10_000  # for an unknown number of steps; with so many, hardly one of fifty million runs a third time


def plan_loops(graph: Graph, rest: Rest) -> Graph:
    """plan_loops: the graph with a plan in place of each loop's budget.

    The peak is that of the code that runs, if a derivative around the loops keeps everything. Raises MemoryBudgetError
    if no plan is thrifty enough, OptionError if data decide how much memory is taken.
    """
    finish = rest if budget_of(graph) is None else rest.without("keep_within_budget")  # which also chooses an order
    loops = list(_budgeted(graph)) if limited(graph) else []
    if not loops:
        return graph
    chosen: dict[int, Plan] = {budget: ("snapshots", 1) for _, budget in loops}
    try:
        for budget in sorted(chosen):
            chosen[budget] = _best(graph, finish, budget, chosen)
    except Undecided:
        raise undecided(loops[0][0].node.where) from None
    return _planned(graph, chosen)


def _best(graph: Graph, finish: Callable[[Graph], Graph], budget: int, others: dict[int, Plan]) -> Plan:
    """The plan that repeats least within the budget; the other loops stay as they are."""
    loops = [loop for loop, its in _budgeted(graph) if its == budget]
    lengths = [loop.length for loop in loops if any(v.aval.steps is not None for v in loop.node.outputs)]

    def peak(plan: Plan, limit: float = inf) -> int:
        return peak_of(finish(_planned(graph, {**others, budget: plan})), limit)

    bounded = min(lengths, default=0) >= 0  # the residuals of an unknown number of steps fit in no budget
    if bounded and peak(EVERYTHING, budget) <= budget:
        return EVERYTHING
    least = peak(("snapshots", 1))
    if least > budget:
        least = min(least, peak(EVERYTHING)) if bounded else least
        raise MemoryBudgetError(
            f"no plan for this loop stays within {budget:,} bytes",
            minimum=least,
            where=loops[0].node.where,
        )
    most = max(lengths) if bounded else MOST_SLOTS + 1
    return ("snapshots", most_slots(lambda slots: peak(("snapshots", slots)), budget, most))


def most_slots(peak: Callable[[int], int], budget: int, n: int) -> int:
    """The greatest number of slots below n with ``peak(slots)`` within the budget; one slot must be within.

    From a few slots on, each further slot adds the size of a state, so a line through two points hits the number.
    """
    low, high = 1, max(n, 2)  # ``low`` slots fit; ``high`` slots do not, or are more than there are states
    guess, last = min(4, high - 1), (0, 0)
    while high - low > 1:
        guess = min(max(guess, low + 1), high - 1)
        now = guess, peak(guess)
        low, high = (guess, high) if now[1] <= budget else (low, guess)
        slope = (now[1] - last[1]) / (now[0] - last[0]) if now[0] != last[0] else 0
        if slope > 0 and last != (0, 0):
            target = now[0] + int((budget - now[1]) // slope)
            guess = target if low < target < high else target + 1
        elif last == (0, 0):
            guess = now[0] + 2
        else:  # the states take no memory
            guess = 2 * now[0]
        last = now
    return low


def replan(graph: Graph, plan_of: Callable[[LoopNode], Plan | None]) -> Graph:
    """The graph with the plans that ``plan_of`` gives for its loops, also in bodies; None leaves a loop as it is."""

    def planned(node: Node) -> Node:
        loop = loop_of(node)
        plan = None if loop is None else plan_of(loop)
        return node if plan is None else replace(node, attrs={**node.attrs, "memory": plan})

    return mapped(graph, lambda graph: with_nodes(graph, map(planned, graph.nodes)))


def with_default(graph: Graph, plan: Plan | None) -> Graph:
    """The graph with a plan for each loop that has none, if the number of its steps allows the plan."""
    if plan is None:
        return graph
    late = plan[0] in LATE
    return replan(graph, lambda loop: plan if loop.plan is None and (late or loop.length >= 0) else None)


def with_plan(graph: Graph, plan: Plan) -> Graph:
    """The graph with one plan for all loops of known length, whatever plans they have."""
    return replan(graph, lambda loop: plan if loop.length > 0 else None)


def _budgeted(graph: Graph) -> Iterator[tuple[LoopNode, int]]:
    """The loops whose plan is a budget in bytes, with their budgets."""
    for node in walk(graph):
        loop = loop_of(node)
        if loop is not None and (budget := _budget(loop)) is not None:
            yield loop, budget


def _budget(loop: LoopNode) -> int | None:
    """The budget in bytes of a loop, if that is its plan."""
    match loop.plan:
        case ("bytes", int(budget)):
            return budget
    return None


def _planned(graph: Graph, plans: dict[int, Plan]) -> Graph:
    """The graph with these plans instead of budgets."""
    return replan(graph, lambda loop: None if (budget := _budget(loop)) is None else plans[budget])
