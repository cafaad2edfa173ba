"""tally: count the steps of checkpointed loops that a graph runs, with and without residuals, and the operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...ir.graph import Node
from ...ir.structure import Runs
from ..remat.search import work


class Steps(NamedTuple):
    """Counts of the steps that run without residuals, of those among them that ran before, and of all operations."""

    advances: int
    again: int
    work: int

    def times(self, n: int) -> Steps:
        """The counts, n times."""
        return Steps(self.advances * n, self.again * n, self.work * n)

    def plus(self, other: Steps) -> Steps:
        """Both."""
        return Steps(self.advances + other.advances, self.again + other.again, self.work + other.work)


def steps_of(nodes: Iterable[Node]) -> Steps | None:
    """All steps and operations, also of loops inside loops; None if their number depends on data."""
    total = Steps(0, 0, 0)
    for node in nodes:
        found = _steps(node)
        if found is None:
            return None
        total = total.plus(found)
    return total


def _steps(node: Node) -> Steps | None:
    structure = node.prim.structure
    if structure is None:
        return Steps(0, 0, work(node))
    total, one = Steps(0, 0, 0), [Steps(0, 0, 0)]
    for body, graph in structure.parts(node):
        inside, times = steps_of(graph.nodes), structure.times(node, body)
        if inside is None:
            return None
        if times >= 0:
            total = total.plus(Steps(times * body.advances, times * body.again, 0)).plus(inside.times(times))
        elif body.runs is Runs.STEPS and (body.advances or inside.advances or _counted(node)):
            return None
        else:  # a branch, or a loop that ends by a condition: all that is known is that it may run
            one.append(inside)
    return total.plus(max(one))


def _counted(node: Node) -> bool:
    """Whether an operand gives the number of steps."""
    return node.prim.structure is not None and bool(node.prim.structure.of_operands(node, node.inputs).get("count"))
