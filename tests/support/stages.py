"""The stages of compilation with rewrites that keep every bit."""

from __future__ import annotations

from retrograd.compiler.settings import EXACT
from retrograd.compiler.stages import run
from retrograd.ir import Graph


def pipeline(graph: Graph) -> Graph:
    """The graph after all stages."""
    return run(graph, settings=EXACT)
