"""The plan of a graph: which storage each value lives in, when it dies, and the peak of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .graph import Graph, Value


@dataclass(frozen=True, eq=False)
class Plan:
    """How a graph is laid out in memory; the emitter follows it to the letter.

    ``order`` is the graph with its nodes in execution order. ``buffer`` numbers the storage of each value; a view has
    its base's number. ``into`` maps a value that is computed into the storage of a dead one to the last holder of that
    storage. ``copies`` are views that must become copies, because their base is written while they live; ``apart`` are
    reshapes that NumPy copies. ``last_use`` is the index of the last node that reads a value (the number of nodes for
    outputs). ``dies`` lists the values to forget after each node. ``scratch`` and ``peak`` are bytes. ``ordered`` are
    values that lie in C order. ``bodies`` are the plans of the graphs inside nodes.
    """

    order: Graph
    buffer: Mapping[Value, int]
    into: Mapping[Value, Value]
    copies: frozenset[Value]
    apart: frozenset[Value]
    last_use: Mapping[Value, int]
    dies: tuple[tuple[Value, ...], ...]
    scratch: int
    peak: int
    ordered: frozenset[Value]
    bodies: Mapping[Graph, Plan]
