"""packed_factors: Graph → Graph in which loops multiply by matrices that lie in C order, not by transposed ones.

The adjoint of ``h @ w`` is ``ct @ w.T``. BLAS rearranges the right factor for each product, which takes longer if its
rows are not in memory one after the other: with 32 × 256 by 256 × 64 numbers, the product takes 1.5 times as long. A
loop copies such a factor once, before its first step. Products of other sizes may round differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import loop_of
from ..ir.rewrite import Env, mapped, rebuild
from ..ops.linear import matmul
from ..ops.shape import copy, permute

STEPS = 8  # of a loop, from which the copy costs little
LEAST = 1 << 12  # multiplications of a product; C computes smaller ones itself
LARGEST = 1 << 17  # elements of a factor, beyond which BLAS takes as long with either


def packed_factors(graph: Graph) -> Graph:
    """The graph, and its bodies, with copies of such factors before loops."""
    return mapped(graph, lambda g: rebuild(g, _PackedFactors(g))) if graph.nested else graph


@dataclass(frozen=True)
class _PackedFactors:
    """The rule for the loops of one graph."""

    graph: Graph

    def __call__(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        loop = loop_of(node)
        if loop is None or loop.condition is not None or loop.count is not None or loop.length < STEPS:
            return None
        outer = loop.operands[: loop.layout.consts]
        inner, _, _ = loop.layout.operands(loop.body.inputs)
        factors = [v for v, w in zip(outer, inner, strict=True) if _multiplies(loop.body, w)]
        packed = {v: x for v in factors if (x := self._packed(v, env)) is not None}
        if not packed:
            return None
        return b.copy_node(node, [(packed[v] if v in packed else env[v]).value for v in node.inputs])

    def _packed(self, value: Value, env: Env) -> Symbol | None:
        """The transpose of a real matrix in C order: a copy, or the matrix itself that was transposed twice."""
        matrix = value.aval.ndim == 2 and value.aval.dtype.char in "fd" and min(value.aval.shape) > 1
        if not matrix or value.aval.size > LARGEST or (once := self._transposed(value)) is None:
            return None
        twice = self._transposed(once)
        found: Symbol = copy(env[value]) if twice is None else env[twice]
        return found

    def _transposed(self, value: Value) -> Value | None:
        """The matrix whose transpose a value is."""
        made = self.graph.producer.get(value)
        return made.inputs[0] if made is not None and made.prim is permute else None


def _multiplies(body: Graph, factor: Value) -> bool:
    """Whether a body only multiplies matrices by the factor, from the right, itself or in loops."""
    readers = body.uses.get(factor, [])
    return factor not in body.outputs and bool(readers) and all(_is_right_factor(node, factor) for node in readers)


def _is_right_factor(node: Node, factor: Value) -> bool:
    loop = loop_of(node)
    if loop is not None:
        places = [k for k, v in enumerate(loop.operands) if v is factor]
        return all(k < loop.layout.consts and _multiplies(loop.body, loop.body.inputs[k]) for k in places)
    if node.prim is not matmul or node.inputs[0] is factor:
        return False
    left = node.inputs[0].aval
    return left.ndim > 1 and left.shape[-2] > 1 and left.size * factor.aval.shape[1] > LEAST
