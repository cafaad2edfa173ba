"""What is said and drawn of compiled functions: memory, what less of it costs, and errors explained."""

from ..compiler.compilation import INSPECTORS
from ..ir.graph import Graph
from .curves import tradeoff
from .memory import report
from .unused import warn_of_unused_plans


def _dot(graph: Graph) -> str:
    from ..ir.dot import to_dot  # networkx is heavy

    return to_dot(graph)


INSPECTORS.update({"plan": report, "tradeoff": tradeoff, "dot": _dot, "unused plans": warn_of_unused_plans})
