"""annihilate: make zeros win over infinities in the products and quotients of tangents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.builder import Builder
from ..ir.graph import Node, Value
from ..ir.primitive import TRANSFORMS
from ..ops.annihilation import annihilating_div, annihilating_mul
from ..ops.elementwise import const, div, mul


@TRANSFORMS.register("annihilate")
def annihilate(b: Builder, start: int, tangents: Sequence[Value]) -> None:
    """Make each product or quotient of a tangent and a constant of the point, from node ``start`` on, annihilating."""
    depends = set(tangents)
    for k in range(start, len(b.nodes)):
        node = b.nodes[k]
        on = [v in depends for v in node.inputs]
        if not any(on):
            continue
        depends.update(node.outputs)
        if node.prim in (mul, div) and sum(on) == 1:
            t, factor = node.inputs if on[0] else node.inputs[::-1]
            if (node.prim is mul or on[0]) and not _plain(b, factor):
                prim = annihilating_mul if node.prim is mul else annihilating_div
                b.nodes[k] = Node(prim, (t, factor), node.attrs, node.outputs, node.where, node.replica)
                b.made[node.out] = b.nodes[k]


def _plain(b: Builder, value: Value) -> bool:
    """Whether a factor is known to be neither zero nor infinite nor nan."""
    node = b.made.get(value)
    if node is None or node.prim is not const:
        return False
    number = np.asarray(node.attrs["value"])
    return bool(np.all(np.isfinite(number) & (number != 0)))
