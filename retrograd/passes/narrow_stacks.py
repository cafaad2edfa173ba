"""narrow_stacks: Graph → Graph in which large stacks of matrices with few columns are computed transposed.

Of ten elements, as the dimensions of a mixture, NumPy begins anew for each row, to stretch a row or column or to add
what is in a row. Transposed, rows are long. Products and sums may add in another order.
"""

from __future__ import annotations

from functools import partial

from ..ir.builder import Symbol
from ..ir.graph import Graph, Node
from ..ir.rewrite import Env, mapped
from ..ir.types import Aval
from ..ops.linear import matmul, vecdot
from ..ops.reduce import sum_
from ..ops.shape import copy, permute, reshape_to
from .moved_axes import FOLDS, MovedAxes, swapped, with_moved_axes

LONGEST = 12  # columns
LONGER = 8  # times as many rows as columns, at least


def with_narrow_stacks_turned(graph: Graph) -> Graph:
    """The graph, and its bodies, with such stacks transposed where no large array has to be copied for that."""
    return mapped(graph, partial(with_moved_axes, moves=_Transposed))


class _Transposed(MovedAxes):
    """Exchanges the last two axes."""

    def fits(self, aval: Aval) -> bool:
        if aval.ndim < 3:
            return False
        rows, columns = aval.shape[-2:]
        return 1 < columns <= LONGEST and rows >= LONGER * columns

    def moved(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        *lead, rows, columns = shape
        return (*lead, columns, rows)

    def gains(self, node: Node) -> bool:
        return super().gains(node) and node.inputs[0].aval.size > 1

    def ends(self, node: Node) -> bool:
        ndim = node.inputs[0].aval.ndim
        if node.prim is vecdot:
            return self.chosen.issuperset(node.inputs) and node.out.aval.dtype.kind == "f"
        if node.prim is permute:
            return bool(node.attrs["axes"] == (*range(ndim - 2), ndim - 1, ndim - 2))
        folds = node.prim.name in FOLDS and not {ndim - 1, ndim - 2}.isdisjoint(node.attrs["axis"])
        return node.prim is matmul or folds

    def ended(self, node: Node, env: Env) -> Symbol:
        x = env[node.inputs[0]]
        if node.prim is permute:
            return x
        if node.prim is vecdot:
            total: Symbol = sum_(x * env[node.inputs[1]], axis=(x.ndim - 2,), keepdims=False)
            return total
        places = {x.ndim - 1: x.ndim - 2, x.ndim - 2: x.ndim - 1}
        axes = tuple(sorted(places.get(a, a) for a in node.attrs["axis"]))
        found: Symbol = node.prim(x, axis=axes, keepdims=False)
        return reshape_to(found, node.out.aval.shape)

    def small(self, x: Symbol, ndim: int) -> Symbol:
        if x.ndim == 0:
            return x
        x = reshape_to(x, (*(1,) * (ndim - x.ndim), *x.shape))
        if 1 in x.shape[-2:]:
            return reshape_to(x, self.moved(x.shape))
        transposed: Symbol = copy(swapped(x))
        return transposed
