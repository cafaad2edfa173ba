"""copy_again: Graph → Graph whose adjoint makes cheap parts of arguments again, in place of keeping them from before.

A reshape of a slice is a copy, such as the windows of a convolution. To copy again takes as long as to fetch a copy
that no cache holds any more, and costs no memory between the function and its adjoint. So do products, quotients and
roots of arguments, if they are a small part of the work, and what the adjoint alone reads, if these serve it.
"""

from __future__ import annotations

from collections.abc import Container

from ...ir.graph import Graph, Node, Value
from ...ir.layouts import copies, shown_array
from ...ir.rewrite import with_nodes
from ...ops.structural.region import turn
from ..block_kernels import is_long
from ..delay import delay
from ..place_buffers import POOL
from .order import Halves, Recomputation
from .search import peak_of_order

LEAST = 0.1  # of the peak must be saved at least,
WORTH = 4  # and of the peak so many times the share of the work that runs again
CHEAP = frozenset({"add", "div", "mul", "neg", "sqrt", "square", "sub"})
DEEPEST = 2  # cheap operations, one after the other
LONGEST = 8  # operations, with those that only move


def copy_again(graph: Graph) -> Graph:
    """The graph that computes these twice; the graph itself if its peak is hardly lower, or if its parts are divided.

    Peaks are those after ``delay``, which runs next.
    """
    if turn not in graph.prims or not any(map(_is_large, graph.nodes)):
        return graph
    cheap = _CheapParts(graph)
    needed, at = cheap.needed, len(cheap.parts.first)
    found = [{v for v in needed if test(v)} for test in (cheap.is_copy, cheap.is_cheap, cheap.is_late)]
    if cheap.parts.stays or not any(found):
        return graph
    parts = Recomputation(graph)
    best, peak, again, dropped = graph, 0, 0, frozenset[Value]()
    for values in found:
        more = dropped | values
        if more == dropped:
            continue
        work = parts.score(needed - more).again
        saved = max(LEAST, WORTH * (work - again) / max(parts.total, 1))
        peak = peak or peak_of_order(delay(best))
        twice = parts.again(needed - more)
        made = with_nodes(graph, (*twice.nodes[:at], graph.nodes[at], *twice.nodes[at:]))
        if (lower := peak_of_order(delay(made))) <= (1 - saved) * peak:
            best, peak, again, dropped = made, lower, work, more
    return best


def _is_large(node: Node) -> bool:
    return len(node.outputs) == 1 and node.out.aval.kind == "array" and node.out.aval.nbytes >= POOL


class _CheapParts:
    """What the adjoint may make again from what is there in any case."""

    def __init__(self, graph: Graph) -> None:
        self.parts, self.made = Halves(graph), graph.producer
        self.needed, self.choosable = frozenset(self.parts.needed), frozenset(self.parts.choosable)

    def is_copy(self, value: Value) -> bool:
        """Whether a value is a large copy of a part of an argument, or of a result."""
        node, shown = self.parts.made[value], shown_array(value, self.parts.made)
        stays = shown not in self.parts.made or shown in self.parts.held
        return stays and _is_large(node) and copies(node, self.made)

    def is_cheap(self, value: Value) -> bool:
        """Whether a value is computed from arguments by few cheap operations."""
        return self._may_wait(value) and self._is_made_of(value, ())

    def is_late(self, value: Value) -> bool:
        """Whether the adjoint alone reads a value, and finds what it is computed from, or computes that cheaply."""
        node = self.parts.made[value]
        if not self._may_wait(value) or not self.parts.needless(node):
            return False
        return all(self._is_made_of(shown_array(v, self.parts.made), self.needed, DEEPEST - 1) for v in node.inputs)

    def _may_wait(self, value: Value) -> bool:
        """Whether a large value may be computed later; blocks of long arrays stay in a cache, and keep theirs."""
        node = self.parts.made[value]
        return value in self.choosable and _is_large(node) and not is_long(node.out.aval)

    def _is_made_of(self, value: Value, kept: Container[Value], cheap: int = 0, length: int = 0) -> bool:
        """Whether few cheap operations make a value from arguments and what is kept, or what only moves."""
        node = self.parts.made.get(value)
        if node is None or not node.inputs or value in kept:
            return True
        moves = bool(kept) and self.parts.needless(node)
        cheap += not moves
        if length >= LONGEST or cheap > DEEPEST or not (moves or node.prim.name in CHEAP):
            return False
        return all(self._is_made_of(shown_array(v, self.parts.made), kept, cheap, length + 1) for v in node.inputs)
