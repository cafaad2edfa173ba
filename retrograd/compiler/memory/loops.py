"""Budgets in bytes for loops: of their plans, the one with the fewest repeated steps whose peak of memory is within."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

from ...codegen.numpy.footprint.meter import Undecided
from ...errors import MemoryBudgetError
from ...ir.graph import Graph, Node
from ...ir.rewrite import mapped, walk, with_nodes
from ...passes.checkpoint.checkpoint import limited
from .budgets import peak_of, undecided

Plan = tuple[Any, ...]
EVERYTHING = ("everything",)
MOST_SLOTS = 10_000  # for an unknown number of steps: of fifty million, hardly one runs a third time


def within_budgets(graph: Graph, finish: Callable[[Graph], Graph]) -> Graph:
    """The graph with a plan in place of each budget.

    ``finish`` is what follows in the pipeline: the peak that counts is that of the code which is run. Raises
    MemoryBudgetError where no plan is thrifty enough, OptionError where data decide how much memory is taken.
    """
    loops = [node for node in walk(graph) if _budget(node) is not None] if limited(graph) else []
    if not loops:
        return graph
    chosen: dict[int, Plan] = {node.attrs["memory"][1]: ("snapshots", 1) for node in loops}
    try:
        for budget in sorted(chosen):
            chosen[budget] = _best(graph, finish, budget, chosen)
    except Undecided:
        raise undecided(loops[0].where) from None
    return _planned(graph, chosen)


def _best(graph: Graph, finish: Callable[[Graph], Graph], budget: int, others: dict[int, Plan]) -> Plan:
    """The plan that repeats least within the budget, other loops being as they are."""
    loops = [node for node in walk(graph) if _budget(node) == budget]
    lengths = [node.attrs.get("length", -1) for node in loops if any(v.aval.steps is not None for v in node.outputs)]

    def peak(plan: Plan, limit: float = inf) -> int:
        return peak_of(finish(_planned(graph, {**others, budget: plan})), limit)

    bounded = min(lengths, default=0) >= 0  # residuals of an unknown number of steps fit in no budget
    if bounded and peak(EVERYTHING, budget) <= budget:
        return EVERYTHING
    least = peak(("snapshots", 1))
    if least > budget:
        least = min(least, peak(EVERYTHING)) if bounded else least
        raise MemoryBudgetError(
            f"no plan for this loop stays within {budget:,} bytes",
            minimum=least,
            where=loops[0].where,
        )
    most = max(lengths) if bounded else MOST_SLOTS + 1
    return ("snapshots", most_slots(lambda slots: peak(("snapshots", slots)), budget, most))


def most_slots(peak: Callable[[int], int], budget: int, n: int) -> int:
    """The greatest number of slots below n with ``peak(slots)`` within the budget; one slot is.

    From a few slots on the peak grows by the size of a state with each, so a line through two points hits it.
    """
    low, high = 1, max(n, 2)  # low slots fit; high slots do not, or are more than there are states
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


def replan(graph: Graph, plan_of: Callable[[Node], Plan | None]) -> Graph:
    """The graph with the plans that ``plan_of`` gives for its loops, also inside bodies; None leaves one as it is."""

    def planned(node: Node) -> Node:
        plan = plan_of(node)
        return node if plan is None else replace(node, attrs={**node.attrs, "memory": plan})

    return mapped(graph, lambda graph: with_nodes(graph, map(planned, graph.nodes)))


def with_default(graph: Graph, plan: Plan | None) -> Graph:
    """The graph with a plan for the loops that have none, where their number of steps allows it."""

    def default(node: Node) -> Plan | None:
        known = node.prim.name == "scan" and node.attrs["length"] >= 0
        late = node.prim.name in ("scan", "while_loop") and plan and plan[0] in ("snapshots", "log", "everything")
        return plan if (known or late) and node.attrs.get("memory") is None else None

    return graph if plan is None else replan(graph, default)


def with_plan(graph: Graph, plan: Plan) -> Graph:
    """The graph with one plan for all loops that save residuals, whatever theirs are."""
    return replan(graph, lambda node: plan if node.prim.name == "scan" and node.attrs["length"] > 0 else None)


def _budget(node: Node) -> int | None:
    """The budget in bytes of a loop, if that is its plan."""
    match node.attrs.get("memory"):
        case ("bytes", int(budget)):
            return budget
    return None


def _planned(graph: Graph, plans: dict[int, Plan]) -> Graph:
    """The graph with these plans instead of budgets."""
    return replan(graph, lambda node: None if (budget := _budget(node)) is None else plans[budget])
