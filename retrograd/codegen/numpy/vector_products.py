"""with_dots: Graph → Graph where products of two new vectors are calls of ``dot``, which takes half of the time."""

from __future__ import annotations

from dataclasses import replace

from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import mapped, with_nodes
from ...ops.linear import dot, matmul

# NumPy calls the same function for both, but copies vectors first that run backwards or repeat an element, and these
# products may then round otherwise. What a ufunc makes lies packed, and so do the vectors that BLAS makes.


def with_dots(graph: Graph) -> Graph:
    """Take ``v @ w`` as ``v.dot(w)``, with equal bits; the result is for emission only."""
    return mapped(graph, _with_dots)


def _with_dots(graph: Graph) -> Graph:
    if matmul not in graph.prims:
        return graph
    made = graph.producer
    nodes = [replace(node, prim=dot) if _of_new_vectors(node, made) else node for node in graph.nodes]
    return with_nodes(graph, nodes)


def _of_new_vectors(node: Node, made: dict[Value, Node]) -> bool:
    if node.prim is not matmul or any(v.aval.ndim != 1 or v.aval.dtype.char not in "fd" for v in node.inputs):
        return False
    return all((source := made.get(v)) is not None and source.prim.numpy.ufunc for v in node.inputs)
