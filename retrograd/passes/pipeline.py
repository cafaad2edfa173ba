"""pipeline: run passes in turn; verifying, timing and dumping go through one hook."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..ir.graph import Graph
from ..ir.verify import verify
from .lower import lower
from .own_outputs import own_outputs
from .prune import prune
from .simplify import simplify

Pass = Callable[[Graph], Graph]
Watch = Callable[[str, Graph, float], None]

DEFAULT: tuple[Pass, ...] = (prune, lower, simplify, own_outputs)


def pipeline(graph: Graph, passes: Sequence[Pass] = DEFAULT, watch: Watch | None = None, check: bool = False) -> Graph:
    """The graph after all passes, verified: with ``check`` after each of them, else at the end.

    ``watch(name, graph, seconds)`` sees the outcome of each.
    """
    for step in passes:
        start = time.perf_counter()
        graph = step(graph)
        if check:
            verify(graph)
        if watch is not None:
            watch(step.__name__, graph, time.perf_counter() - start)
    return verify(graph)
