"""Budgets in bytes that the loops of a gradient share with what is outside of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen.numpy.meter import Undecided
from ..errors import MemoryBudgetError
from ..ir.graph import Graph, Node
from ..passes.checkpoint.tally import steps_of
from ..passes.rematerialise import turns
from .budgets import Choosing, budget_of
from .loop_budgets import EVERYTHING, Plan

Offer = Callable[[Graph], Choosing]  # what may be kept outside of loops, which follow their plans


def budgets_for_loops(graph: Graph, offer: Offer) -> Graph:
    """A gradient's graph with plans for the loops that have none, unless all fits as it is; MemoryBudgetError.

    Either the loops get all that the rest leaves, or they all follow one plan and some of the rest is computed again:
    whichever is less work. As none of these is more work with a larger budget, the best of them is not, either.
    """
    free = [node for node in graph.nodes if _is_free(node)] if turns(graph) else []
    if not free or offer(graph).fits(budget_of(graph)):
        return graph
    by_bytes = _planned(graph, ("bytes", budget_of(graph)))
    lengths = [node.attrs.get("length", -1) for node in free]
    if min(lengths) < 0:
        return by_bytes
    plans = [("snapshots", slots) if slots else EVERYTHING for slots in reversed(grid(max(lengths)))]
    try:
        found = _least_work([by_bytes, *(_planned(graph, plan) for plan in plans)], offer, budget_of(graph))
    except Undecided:
        return by_bytes  # of which the loops' own pass says what is wrong
    if found is None:
        raise MemoryBudgetError(
            f"no plan for this loop stays within {budget_of(graph):,} bytes", where=free[0].where,
            remedy=f"allow at least {min(offer(_planned(graph, plan)).least for plan in plans):,} bytes",
        )  # fmt: skip
    return found


def grid(longest: int) -> list[int]:
    """Everything, written as 0, and then ever fewer slots for that many steps, by about a quarter each."""
    found, slots = [0], longest - 1
    while slots > 0:
        found.append(slots)
        slots = min(slots - 1, int(slots * 0.75))
    return found


def _least_work(graphs: Sequence[Graph], offer: Offer, budget: int) -> Graph | None:
    """Of graphs that take ever more memory, the first apart, the one that needs the least work within a budget."""
    best: tuple[int, Graph] | None = None
    for graph in graphs:
        try:
            choosing = offer(graph)
        except MemoryBudgetError:  # what the rest leaves is too little for the loops
            continue
        steps = steps_of(choosing.graph.nodes)
        if steps is None:
            raise Undecided
        if best is not None and steps.work >= best[0]:
            continue
        if not choosing.may_fit(budget):
            break
        choice = choosing.best(budget)
        if choice is not None and (best is None or steps.work + choice.score.again < best[0]):
            best = steps.work + choice.score.again, graph
    return best and best[1]


def _is_free(node: Node) -> bool:
    """Whether a node is a loop without a plan."""
    loop = node.prim.name in ("scan", "while_loop") and "memory" not in node.attrs
    return loop and node.attrs.get("length", -1) != 0


def _planned(graph: Graph, plan: Plan) -> Graph:
    """The graph with a plan for the loops that have none; a budget is for those outside of others."""
    nodes = []
    for node in graph.nodes:
        attrs = dict(node.attrs)
        if plan[0] != "bytes":
            attrs.update((name, _planned(body, plan)) for name, body in node.graphs)
        if _is_free(node):
            attrs["memory"] = plan
        nodes.append(Node(node.prim, node.inputs, attrs, node.outputs, node.where, node.replica))
    return Graph(graph.name, graph.inputs, tuple(nodes), graph.outputs)
