"""products_of_elements: Graph → Graph in which products of short vectors are sums of products of elements.

Programs that multiply rows up to an element, such as Cholesky by rows, so become programs on single elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import Env, rebuild
from ...ops.index import getitem
from ...ops.linear import matmul
from ..prune import prune
from .growing_slices import BACKWARDS, FORWARDS, VectorSlice, vector_slice

LONGEST = 64  # elements of a vector


def products_of_elements(graph: Graph) -> Graph:
    """Write products of vectors as sums, from the first element to the last; the graph itself if there are none."""
    if not any(map(_is_short_product, graph.nodes)):
        return graph

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if not _is_short_product(node):
            return None
        first, second = (_part(graph, v) for v in node.inputs)
        b.where = None  # the terms are steps of their own, not a part of what stands on the line beside the product
        total = None
        for k in range(node.inputs[0].aval.size):
            term = _element(env, first, k) * _element(env, second, k)
            total = term if total is None else total + term
        return [b.zeros(node.out.aval) if total is None else total]

    return prune(rebuild(graph, rule))


def _is_short_product(node: Node) -> bool:
    vectors = node.prim is matmul and all(v.aval.ndim == 1 and v.aval.size <= LONGEST for v in node.inputs)
    return vectors and node.out.aval.dtype.char in "fd" and len({v.aval.dtype for v in node.inputs}) == 1


def _part(graph: Graph, v: Value) -> VectorSlice:
    """A vector as a part of an array that is no gathered one."""
    found = vector_slice(graph, v)
    return VectorSlice(v, (), 0, v.aval.size) if found.gathered else found


def _element(env: Env, part: VectorSlice, k: int) -> Symbol:
    """An element of a part of a vector, read from its array."""
    x = env[part.array]
    items = list(part.index) or [FORWARDS]
    axis = next(i for i, item in enumerate(items) if item in (FORWARDS, BACKWARDS))
    at = part.start + k
    items[axis] = at if items[axis] == FORWARDS else x.shape[axis] - 1 - at
    found: Symbol = getitem(x, index=tuple(items))
    return found
