"""short_axes: Graph → Graph in which large arrays with a short last axis are computed with that axis first.

Of three elements, as coordinates have, NumPy begins anew for each place if an operand is stretched along them, which
takes several times as long. With the axis in front, the rows are long. Sums may add in another order. Folds along short
axes that stay the last are made a column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node
from ..ir.rewrite import Env, mapped, rebuild
from ..ir.types import Aval
from ..ops.index import getitem
from ..ops.linear import matmul
from ..ops.shape import copy, permute, reshape_to
from .cheaper_rules import OF_TWO, by_columns, folds_short_rows
from .moved_axes import FOLDS, SMALLER, MovedAxes, with_moved_axes

LONGEST = 8  # elements of an axis that goes first
LONGEST_OF_MATRICES = 16  # ... of arrays with two axes, which BLAS makes and reads in either order
MOST_TERMS = 4  # times as many as columns: BLAS loses as much with longer sums as NumPy gains


def short_axes_first(graph: Graph) -> Graph:
    """The graph, and its bodies, with short last axes in front where no large array has to be copied for that."""
    return mapped(graph, _with_short_axes)


def _with_short_axes(graph: Graph) -> Graph:
    graph = with_moved_axes(graph, _AxisFirst)
    return graph if OF_TWO.keys().isdisjoint(graph.prims) else rebuild(graph, _by_columns)


def _by_columns(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    """A fold along the short rows of an array that is left as it is, a column at a time."""
    if node.prim not in OF_TWO or not folds_short_rows(node.inputs[0].aval, node.attrs["axis"], node.prim):
        return None
    return [by_columns(env[node.inputs[0]], node.attrs["keepdims"], node.prim)]


class _AxisFirst(MovedAxes):
    """Puts the last axis in front."""

    def fits(self, aval: Aval) -> bool:
        longest = LONGEST_OF_MATRICES if aval.ndim == 2 else LONGEST
        return aval.ndim > 1 and 1 < aval.shape[-1] <= longest

    def moved(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        *rest, short = shape
        return (short, *rest)

    def product_fits(self, node: Node) -> bool:
        (_, *terms), (_, *columns) = (v.aval.shape for v in node.inputs)
        return len(terms) == len(columns) == 1 and terms[0] <= MOST_TERMS * columns[0]

    def ends(self, node: Node) -> bool:
        x = node.inputs[0].aval
        if node.prim is matmul:
            return all(v.aval.ndim <= 2 for v in node.inputs)
        if node.prim is getitem:
            index = node.attrs["index"]
            whole = len(index) == x.ndim and all(i == slice(None) for i in index[:-1])
            return whole and _place(index[-1], x.shape[-1]) is not None
        return node.prim.name in FOLDS and (x.ndim - 1 in node.attrs["axis"] or node.out.aval.size * SMALLER <= x.size)

    def ended(self, node: Node, env: Env) -> Symbol:
        x = env[node.inputs[0]]
        if node.prim is getitem:
            *others, at = node.attrs["index"]
            return reshape_to(getitem(x, index=(_place(at, x.shape[0]), *others)), node.out.aval.shape)
        last = x.ndim - 1
        axes = tuple(sorted(0 if a == last else a + 1 for a in node.attrs["axis"]))
        found: Symbol = node.prim(x, axis=axes, keepdims=False)
        if 0 not in axes and found.ndim > 1:
            found = copy(permute(found, axes=(*range(1, found.ndim), 0)))
        return reshape_to(found, node.out.aval.shape)

    def aligned(self, x: Symbol, ndim: int) -> Symbol:
        short, *rest = x.shape
        return reshape_to(x, (short, *(1,) * (ndim - x.ndim), *rest))

    def small(self, x: Symbol, ndim: int) -> Symbol:
        if x.ndim == 0:
            return x
        *rest, short = x.shape
        others = (*(1,) * (ndim - x.ndim), *rest)
        if short in (1, x.size):
            return reshape_to(x, (short, *others))
        first: Symbol = copy(permute(reshape_to(x, (*others, short)), axes=(ndim - 1, *range(ndim - 1))))
        return first


def _place(index: Any, size: int) -> int | None:
    """The int that an index selects of an axis, also as a slice of one element."""
    if isinstance(index, slice):
        chosen = range(size)[index]
        return chosen[0] if len(chosen) == 1 else None
    return index if isinstance(index, int) else None
