"""The terms of the sums and products in a formula, and sums of a few of them."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Node
from .grouping import RootGroups
from .indices import Indices


def tree_of(terms: Sequence[str]) -> str:
    """A sum of pairs of sums."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({tree_of(terms[:half])} + {tree_of(terms[half:])})"


class Terms:
    """The terms of a fold, by the index of a result and that of a term."""

    def __init__(self, to: RootGroups, node: Node) -> None:
        self.to, self.node = to, node
        x = node.inputs[0].aval
        self.product = node.prim.name == "matmul"
        self.axes = (x.ndim - 1,) if self.product else node.attrs["axis"]
        self.summed = [x.shape[a] for a in self.axes]
        last = x.ndim - 1
        y = node.inputs[-1].aval
        self.lanes = max(x.ndim - 2, 0)  # axes along which matrices lie
        self.across = y.shape[self.lanes + 1 :] not in ((), (1,)) if self.product else last not in self.axes

    def at(self, index: Indices, summed: Indices) -> str:
        """The source of a term."""
        if self.product:
            a, b = self.node.inputs
            lead, row, column = index[: self.lanes], index[self.lanes : a.aval.ndim - 1], index[a.aval.ndim - 1 :]
            x, y = self.to.pull(a, (*lead, *row, *summed)), self.to.pull(b, (*lead, *summed, *column))
            return f"{x} * {y}"
        rest = iter(index)
        where = dict(zip(self.axes, summed, strict=True))
        whole = []
        for axis in range(self.node.inputs[0].aval.ndim):
            if axis in where:
                whole.append(where[axis])
                if self.node.attrs["keepdims"]:
                    next(rest)
            else:
                whole.append(next(rest))
        return self.to.pull(self.node.inputs[0], tuple(whole))
