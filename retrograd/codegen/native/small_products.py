"""Small products of matrices and vectors as sums of elements: C has no call of a library for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.rewrite import Env, rebuild, with_bodies
from ...ops.reduce import sum_
from ...ops.shape import broadcast_to, reshape_to

SMALL = 4096  # multiplications up to which a library is not faster


def is_small_product(node: Node) -> bool:
    """Whether a node is a product of real matrices and vectors that C computes."""
    if node.out.aval.dtype.kind != "f":
        return False
    if node.prim.name == "vecdot":
        return True
    a, b = (v.aval for v in node.inputs)
    return node.prim.name == "matmul" and max(a.ndim, b.ndim) <= 2 and a.size * math.prod(b.shape[1:]) <= SMALL


def without_products(graph: Graph) -> Graph:
    """The graph with sums of elements in the place of small products, also in the bodies of loops."""

    @cache
    def changed(graph: Graph) -> Graph:
        return rebuild(graph, rule) if _has_products(graph) else graph

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol]:
        operands = [env[v] for v in node.inputs]
        if node.prim.name not in ("matmul", "vecdot"):
            return b.copy_node(with_bodies(node, changed), [x.value for x in operands])
        return [b.coerce(_written_out(node, *operands), node.out.aval)]

    return changed(graph)


def _has_products(graph: Graph) -> bool:
    return any(
        node.prim.name in ("matmul", "vecdot") or any(_has_products(inner) for _, inner in node.graphs)
        for node in graph.nodes
    )


def _written_out(node: Node, x: Symbol, y: Symbol) -> Symbol:
    if node.prim.name == "vecdot" or x.ndim == y.ndim == 1:
        found: Symbol = sum_(x * y, axis=(x.ndim - 1,), keepdims=False)
    elif y.ndim == 1:
        found = sum_(x * broadcast_to(y, x.shape), axis=(1,), keepdims=False)
    else:  # axes (rows,) of x, those that are summed, and columns of y
        shape = (*x.shape, y.shape[1])
        spread = broadcast_to(reshape_to(x, (*x.shape, 1)), shape)
        found = sum_(spread * broadcast_to(y, shape), axis=(x.ndim - 1,), keepdims=False)
    return found
