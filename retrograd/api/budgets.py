"""Budgets in bytes for whole gradients: as much is kept for the adjoint as fits, and the rest computed again."""

from __future__ import annotations

from collections.abc import Callable

from ..codegen.numpy.footprint import peak_bytes
from ..errors import MemoryBudgetError
from ..ir.graph import Graph, Node
from ..ops.structural.region import turn
from ..passes.absorb import absorb
from ..passes.place_buffers import place_buffers
from ..passes.rematerialise import Crossing, turns, without_turn

FEW = 8  # of the thriftiest choices, of which one may turn out better than estimated


def peak_of(graph: Graph) -> int:
    """The predicted peak of the code for a finished graph."""
    return peak_bytes(place_buffers(absorb(graph)))


def budgets_for_loops(graph: Graph, finish: Callable[[Graph], Graph]) -> Graph:
    """A gradient's own budget as that of each loop without a plan, unless all fits as it is."""
    if not turns(graph) or peak_of(without_turn(finish(graph))) <= budget_of(graph):
        return graph
    nodes = []
    for node in graph.nodes:
        attrs = node.attrs
        if node.prim.name == "scan" and node.attrs["length"] > 0 and "memory" not in attrs:
            attrs = {**attrs, "memory": ("bytes", budget_of(graph))}
        nodes.append(Node(node.prim, node.inputs, attrs, node.outputs, node.where, node.replica))
    return Graph(graph.name, graph.inputs, tuple(nodes), graph.outputs)


def budget_of(graph: Graph) -> int:
    """The budget of a gradient."""
    found: int = next(node.attrs["budget"] for node in graph.nodes if node.prim is turn)
    return found


def within_budget(graph: Graph, finish: Callable[[Graph], Graph]) -> Graph:
    """A gradient's graph that keeps as much for its adjoint as its budget allows; MemoryBudgetError.

    Of the choices, in order of what they compute again, it is the first whose code stays within: with a larger budget
    never more is computed again.
    """
    if not turns(graph):
        return graph
    budget, crossing = budget_of(graph), Crossing(graph)
    plain = without_turn(graph)
    if peak_of(finish(plain)) <= budget:
        return plain
    found = crossing.choices()
    least = peak_of(finish(crossing.again(found[-1].kept)))
    if least > budget:
        least = min(peak_of(finish(crossing.again(choice.kept))) for choice in found[-FEW:])
    if least > budget:
        where = next((node.where for node in graph.nodes if node.where is not None), None)
        raise MemoryBudgetError(
            f"no choice of kept values stays within {budget:,} bytes", where=where,
            remedy=f"allow at least {least:,} bytes",
        )  # fmt: skip
    likely = [choice for choice in found if choice.score.peak <= 1.2 * budget][:-FEW] + found[-FEW:]
    graphs = (crossing.again(choice.kept) for choice in likely)
    return next(choice for choice in graphs if peak_of(finish(choice)) <= budget)
