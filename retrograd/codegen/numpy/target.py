"""NumPy as a target."""

from __future__ import annotations

from ...ir.graph import Graph
from . import structural  # noqa: F401 - it registers the emitters of structural primitives
from .absorb import absorb


class NumPy:
    """Source of NumPy statements."""

    def legalise(self, graph: Graph) -> Graph:
        """Broadcasts and casts vanish where NumPy does them by itself."""
        return absorb(graph)
