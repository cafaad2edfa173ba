"""Find where the nodes of a graph repeat: stretches in which each node is like the node one period before it.

Nodes are alike if they come from one line and apply the same operation to operands of the same avals; the integers in
their indices may differ, and so may the starts of slices of one width. Periods are found from the distances between
like nodes, and each stretch by one comparison of arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir.builder import attr_key
from ...ir.graph import Graph, Node
from ...ir.printer import to_text

COPIES = 8  # fewer copies are left as they are
NODES = 512  # stretches with fewer nodes in all are left, too, but for those that compute small arrays:
FEW = 100  # these fold from here
FEWEST = 64  # ... and in C from here, where nothing longer folds
PERIODS = 3  # how many of the commonest distances are tried, for windows of each width
LONGEST = 1024  # the widest windows


def kinds_of(nodes: Sequence[Node], exact: bool = False) -> np.ndarray[Any, Any]:
    """A number for each node, equal for nodes that are alike; nodes with effects are like no other.

    ``exact``: the numbers in their indices are equal, too.
    """
    known: dict[Hashable, int] = {}
    texts: dict[Graph, str] = {}
    kinds = np.empty(len(nodes), np.int64)
    for i, node in enumerate(nodes):
        if node.effect:
            kinds[i] = -1 - i
            continue
        attrs = tuple([(name, _masked(name, value, texts, exact)) for name, value in node.attrs.items()])
        ins, outs = tuple([v.aval for v in node.inputs]), tuple([v.aval for v in node.outputs])
        kinds[i] = known.setdefault((node.prim, node.where, node.replica, attrs, ins, outs), len(known))
    return kinds


def may_repeat(nodes: Sequence[Node]) -> bool:
    """Whether as many nodes as a short loop has apply operations of one line, each of them several times."""
    counts = Counter([(node.prim, node.where) for node in nodes])
    return sum(n for n in counts.values() if n >= COPIES) >= FEWEST


def _masked(name: str, value: Any, texts: dict[Graph, str], exact: bool) -> Hashable:
    if name == "nth":  # it only tells equal calls of a function value apart
        return None
    if name == "index" and not exact:
        return masked(value)
    if isinstance(value, Graph):
        if value not in texts:
            texts[value] = to_text(value)
        return texts[value]
    key: Hashable = attr_key(value)
    return key


def masked(index: tuple[Any, ...]) -> Hashable:
    """An index without its ints and without the starts of slices between ints."""
    return tuple([None if type(i) is int else width(i) or attr_key(i) for i in index])


def width(item: Any) -> int:
    """The number of elements of a slice between two ints of one sign; 0 for any other item of an index."""
    if type(item) is not slice or item.step not in {None, 1}:
        return 0
    bounded = type(item.start) is int and type(item.stop) is int and item.start >= 0
    return max(item.stop - item.start, 0) if bounded else 0


def stretches(kinds: np.ndarray[Any, Any], at: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Stretches that repeat, as (start, period, copies), short periods first; ``at`` are positions among all nodes."""
    for period in _periods(kinds):
        same = np.concatenate([[False], kinds[period:] == kinds[:-period], [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            copies = (end - start) // period + 1
            if copies >= COPIES and length(at, start, period, copies) >= FEWEST:
                yield start, period, copies


def length(at: Sequence[int], start: int, period: int, copies: int) -> int:
    """The nodes of a stretch, with those between that are not compared."""
    return at[start + copies * period - 1] + 1 - at[start]


def _periods(kinds: np.ndarray[Any, Any]) -> list[int]:
    """The commonest distances between equal windows of 1, 2, 4, ... nodes that follow each other.

    One kind may occur several times in a period; a window that is long enough occurs once.
    """
    found: set[int] = set()
    windows, width = kinds, 1
    while width <= LONGEST and len(windows) > width:
        order = np.argsort(windows, kind="stable")
        neighbours = windows[order[1:]] == windows[order[:-1]]
        distances, counts = np.unique((order[1:] - order[:-1])[neighbours], return_counts=True)
        common = np.argsort(-counts, kind="stable")[:PERIODS]
        found.update(distances[k] for k in common.tolist() if counts[k] >= COPIES - 1)
        _, windows = np.unique(windows, return_inverse=True)
        _, windows = np.unique(windows[:-width] * len(kinds) + windows[width:], return_inverse=True)
        width *= 2
    return sorted(int(d) for d in found)
