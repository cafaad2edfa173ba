"""Budgets in bytes that the loops of a gradient share with the values outside of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from ...errors import MemoryBudgetError
from ...ir.footprint import Undecided
from ...ir.graph import Graph, Node
from ...ir.loop_node import LoopNode, loop_of
from ...passes.checkpoint.tally import steps_of
from .budgets import Choosing, budget_of
from .loops import EVERYTHING, Plan, replan

if TYPE_CHECKING:
    from ..stages import Rest

COARSE = 0.5  # the ratio of slots from one plan to the next
Offer = Callable[[Graph], Choosing]
Found = tuple[int, Graph]  # the operations of a call, and the graph with the plans for it


def share_budget(graph: Graph, rest: Rest) -> Graph:
    """share_budget: the graph of a derivative with plans for the loops that have none, unless everything fits.

    Either the loops get all memory that the rest leaves, or they all follow one plan and some of the rest is computed
    again: whichever is less work. With a larger budget none of these is more work, so the best of them is not, either.
    Raises MemoryBudgetError.
    """
    budget = budget_of(graph)
    free = [loop for node in graph.nodes if (loop := _free(node))] if budget is not None else []
    if budget is None or not free:
        return graph

    offer = partial(choosing, rest=rest)
    if offer(graph).fits(budget):
        return graph
    by_bytes = _planned(graph, ("bytes", budget))
    lengths = [loop.length for loop in free]
    if min(lengths) < 0:
        return by_bytes
    plans = [("snapshots", slots) if slots else EVERYTHING for slots in reversed(grid(max(lengths), COARSE))]
    graphs = [_planned(graph, plan) for plan in plans]
    try:
        found, needed = _alone(by_bytes, rest, offer)
        with suppress(Undecided):  # if the data decide how much work a plan is
            found = _least_work(graphs, offer, budget, found)
            found = _least_work([graph], offer, budget, found)  # loops without plans may run in blocks
        if found is not None:
            return found[1]
        offers = ((offer(planned).least, planned) for planned in (graph, *graphs))
        least, thriftiest = min(offers, key=itemgetter(0))
    except Undecided:
        return by_bytes  # the pass for loops then raises the error
    if least > budget:
        raise MemoryBudgetError(
            f"no plan for this loop stays within {budget:,} bytes",
            minimum=min(least, needed),
            where=free[0].node.where,
        )
    return thriftiest  # for small states, a schedule may take more than all residuals


def choosing(graph: Graph, rest: Rest) -> Choosing:
    """The choices of kept values outside of the loops of a graph, which follow their plans."""
    return Choosing(rest(graph, until="keep_within_budget"), rest.after("keep_within_budget"))


def grid(longest: int, ratio: float) -> list[int]:
    """Everything, written as 0, and then fewer and fewer slots for that many steps, by about this ratio."""
    found, slots = [0], longest - 1
    while slots > 0:
        found.append(slots)
        slots = min(slots - 1, int(slots * ratio))
    return found


def _alone(graph: Graph, rest: Rest, offer: Offer) -> tuple[Found | None, int]:
    """The plan in which loops get all memory that the rest leaves, if that is enough; if not, what would be."""
    try:
        planned = rest(graph, until="checkpoint")
    except MemoryBudgetError as fault:
        return None, fault.minimum
    offered = offer(planned)
    return (_work(offered) + offered.again, planned), 0


def _least_work(graphs: Sequence[Graph], offer: Offer, budget: int, best: Found | None) -> Found | None:
    """The least work within a budget: from graphs with ever less work and more memory, and the best so far."""
    start = 0 if best is None else bisect_right(graphs, -best[0], key=lambda graph: -_work(offer(graph)))
    for graph in graphs[start:]:
        offered = offer(graph)
        if not offered.may_fit(budget):
            break
        choice = offered.best(budget)
        if choice is not None and (best is None or _work(offered) + choice.score.again < best[0]):
            best = _work(offered) + choice.score.again, graph
    return best


def _work(offered: Choosing) -> int:
    """The operations of a call if everything else is kept."""
    steps = steps_of(offered.graph.nodes)
    if steps is None:
        raise Undecided
    return steps.work


def _free(node: Node) -> LoopNode | None:
    """The node as a loop without a plan; None for any other node."""
    loop = loop_of(node)
    return loop if loop is not None and loop.plan is None and loop.length else None


def _planned(graph: Graph, plan: Plan) -> Graph:
    """The graph with a plan for the loops that have none; a budget skips loops of known length inside other loops."""

    def own(loop: LoopNode) -> Plan | None:
        inside = graph.producer.keys().isdisjoint(loop.node.outputs)
        known = plan[0] == "bytes" and loop.length > 0
        return plan if _free(loop.node) and not (inside and known) else None

    return replan(graph, own)
