"""tally: how many steps of checkpointed loops a graph runs, without and with residuals, and how many operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...ir.graph import Node
from ...ops.structural.sweeps import schedule_of
from ..remat.search import work


class Steps(NamedTuple):
    """Steps that run without residuals, those of them that ran before, and the operations of everything that runs."""

    advances: int
    again: int
    work: int

    def times(self, n: int) -> Steps:
        """The same, n times."""
        return Steps(self.advances * n, self.again * n, self.work * n)

    def plus(self, other: Steps) -> Steps:
        """Both."""
        return Steps(self.advances + other.advances, self.again + other.again, self.work + other.work)


def steps_of(nodes: Iterable[Node]) -> Steps | None:
    """All steps and operations, in loops inside loops, too; None where their number depends on data."""
    total = Steps(0, 0, 0)
    for node in nodes:
        found = _steps(node)
        if found is None:
            return None
        total = total.plus(found)
    return total


def _steps(node: Node) -> Steps | None:
    inside = {name: steps_of(body.nodes) for name, body in node.graphs}
    known = {name: steps for name, steps in inside.items() if steps is not None}
    if len(known) < len(inside) or node.prim.name == "open_sweep" or node.attrs.get("length", 0) < 0:
        return None
    a = node.attrs
    match node.prim.name:
        case "sweep":
            n = _advances(a["forth"], ())
            return Steps(n, 0, 0).plus(known["step"].times(n)).plus(known["tape"])
        case "unsweep":
            n = _advances(a["way"], [i for verb, i, _ in schedule_of(a["forth"]) if verb in ("save", "store")])
            backs = a["length"] - ("first" in a)
            whole = Steps(n, n, 0).plus(known["advance"].times(n)).plus(known["back"].times(backs))
            return whole.plus(known.get("first", Steps(0, 0, 0)))
        case "scan":
            return known["body"].times(a["length"])
        case "while_loop" if known["body"].advances:
            return None
    return max(known.values(), default=Steps(0, 0, work(node)))


def _advances(schedule: Any, kept: Sequence[int]) -> int:
    return sum(j - i for verb, i, j in schedule_of(schedule, kept) if verb == "advance")
