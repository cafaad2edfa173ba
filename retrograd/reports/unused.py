"""Plans of memory that are not followed."""

from __future__ import annotations

from ..errors import UnusedPlanWarning
from ..ir.graph import Graph
from ..passes.checkpoint.checkpoint import keeping_all
from ..where import warn


def warn_of_unused_plans(graph: Graph) -> None:
    """UnusedPlanWarning for loops of a planned graph that keep all residuals in spite of their plans."""
    for where in dict.fromkeys(node.where for node in keeping_all(graph)):
        warn(
            f"the memory plan of the loop at {where} is not followed: all its residuals are kept, since code other "
            "than a loop reads them. Put the plan on a loop around rg.cond, or use rg.vjp instead of rg.linearize",
            UnusedPlanWarning,
        )
