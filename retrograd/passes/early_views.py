"""early_views: Graph → Graph whose views of parts stand in front of the writes beside them."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import with_nodes
from ..ops.index import getitem

Index = tuple[Any, ...]
KNOWN = frozenset({int, slice})  # types of what stands for known positions


def early_views(graph: Graph) -> Graph:
    """Move each basic index at known positions up, in front of the first write into its operand.

    A view is free, and its elements often lie beside the write, which can then happen in place.
    """
    if not any(prim.writes is not None for prim in graph.prims):
        return graph
    written: dict[Value, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.prim.writes is not None:
            written.setdefault(node.inputs[node.prim.writes], i)
    moved: dict[int, list[Node]] = {}
    for i, node in enumerate(graph.nodes):
        if node.prim is getitem and len(node.inputs) == 1 and written.get(node.inputs[0], i) < i:
            moved.setdefault(written[node.inputs[0]], []).append(node)
    if not moved:
        return graph
    late = {node for nodes in moved.values() for node in nodes}
    nodes = [n for i, node in enumerate(graph.nodes) if node not in late for n in (*moved.get(i, ()), node)]
    return with_nodes(graph, nodes)


def disjoint(a: Index, b: Index, shape: tuple[int, ...]) -> bool:
    """True if the ranges of the indices lie apart on some axis; False also if that is not known.

    What follows a position that is not known, such as an ellipsis, may belong to any axis.

    >>> disjoint((0,), (slice(1, None),), (3, 2)), disjoint((slice(None), 0), (slice(1, 2),), (3, 2))
    (True, False)
    """
    for i, j, n in zip(a, b, shape, strict=False):
        if type(i) is int and type(j) is int:
            if (i - j) % n:
                return True
            continue
        if not {type(i), type(j)} <= KNOWN:
            return False
        p, q = _range(i, n), _range(j, n)
        if not p or not q or max(p[0], p[-1]) < min(q[0], q[-1]) or max(q[0], q[-1]) < min(p[0], p[-1]):
            return True
    return False


def plain(index: Index) -> bool:
    """Whether an index has ints and slices alone, at known positions."""
    return KNOWN.issuperset(map(type, index))


def _range(index: Any, n: int) -> range:
    return range(index % n, index % n + 1) if isinstance(index, int) else range(*index.indices(n))
