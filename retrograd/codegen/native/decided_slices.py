"""Products and sums of slices whose length the data decide, as loops over their elements, which C has texts for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node
from ...ir.structure import Layout
from ...ir.texts import Arg
from ...ir.types import Aval
from ...ops.index import additem, getitem
from ...ops.ragged import add_within, dot_within
from ...ops.structural.loops import make_scan

LONGEST = 1024  # elements of a vector, up to which a library is not faster
NUMBER = Aval((), np.dtype(np.int64), "scalar")


def is_ragged(node: Node) -> bool:
    """Whether a node is such a product or sum of two vectors that are not long."""
    if node.prim not in (dot_within, add_within) or node.inputs[0].aval.ndim > 1:
        return False
    return max(v.aval.size for v in node.inputs) <= LONGEST


def as_steps(node: Node, operands: Sequence[Symbol]) -> Symbol:
    """The operation as a loop of as many steps as the slices have elements, one after the other."""
    values = len(operands) - 1 - sum(node.attrs["starts"])
    b, vectors, count = operands[0].builder, operands[:values], operands[values]
    begins = iter(operands[values + 1 :])
    starts = [next(begins) if on else b.constant(0, NUMBER) for on in node.attrs["starts"]]
    first = vectors[0] if node.prim is add_within else b.zeros(node.out.aval)
    consts = [*(vectors[1:] if node.prim is add_within else vectors), *starts]
    body = _step(node, [x.aval for x in consts], first.aval)
    given = [*consts, first, b.constant(0, NUMBER)]
    return make_scan(b, body, Layout(len(consts), 2), given, -1, False, count)[0][0]


def _step(node: Node, consts: Sequence[Aval], so_far: Aval) -> Graph:
    inner = Builder()
    *given, i, j = (inner.input(aval) for aval in consts)
    result, k = inner.input(so_far), inner.input(NUMBER)
    y = getitem(given[1], j + k, index=(Arg(1),))
    if node.prim is add_within:
        found = additem(result, given[0] * y, i + k, index=(Arg(2),))
    else:
        found = result + getitem(given[0], i + k, index=(Arg(1),)) * y
    return inner.graph("element", [found, k + 1])
