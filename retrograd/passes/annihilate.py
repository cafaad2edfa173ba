"""annihilate: make a zero tangent win over an infinite factor in products and quotients."""

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
        if node.prim in (mul, div) and sum(on) == 1 and node.out.aval.kind != "python":
            t, factor = node.inputs if on[0] else node.inputs[::-1]
            if (node.prim is mul or on[0]) and not _finite(b, factor):
                prim = annihilating_mul if node.prim is mul else annihilating_div
                b.nodes[k] = Node(prim, (t, factor), node.attrs, node.outputs, node.where, node.replica)
                b.made[node.out] = b.nodes[k]


def _finite(b: Builder, value: Value) -> bool:
    node = b.made.get(value)
    return node is not None and node.prim is const and bool(np.all(np.isfinite(node.attrs["value"])))
