"""``rg.config.verify`` at 2 and 3: the text of each stage's outcome must round trip, and is printed."""

from __future__ import annotations

import sys

from ..errors import InternalError
from ..ir.graph import Graph
from ..ir.parser import parse
from ..ir.printer import to_text
from .stages import WATCHERS


def watch(stage: str, graph: Graph, seconds: float, level: int) -> None:
    """Check that the text of a graph can be read back, and print it at level 3."""
    text = to_text(graph)
    if to_text(parse(text)) != text:
        raise InternalError(f"the text of {graph.name} after {stage} does not round-trip")
    if level >= 3:
        sys.stderr.write(f"--- {stage}: {len(graph.nodes)} nodes, {1e3 * seconds:.2f} ms\n{text}")


WATCHERS.append(watch)
