"""equal_parts: cut a long list of operations where it repeats.

A loop that decides after each step is traced step by step, and its adjoint is hundreds of equal steps in a row. Parts
of a few steps each are equal, too: a target compiles one of them, and calls it for all.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Node
from .reroll.find_repeats import kinds_of, stretches

PART = 20_000  # elements that a part computes, about: a call then takes little of that time


def equal_parts(nodes: Sequence[Node], most: int) -> list[list[Node]]:
    """The nodes, in their order, in parts that are equal where more than ``most`` operations repeat.

    What does not repeat stays whole. A part is one step or, of numbers and small arrays, as many as ``most`` allows.
    """
    if sum(map(operations, nodes)) <= most:
        return [list(nodes)] if nodes else []
    repeats = stretches(kinds_of(nodes, exact=True), range(len(nodes)))
    start, period, copies = max(repeats, key=lambda found: found[1] * found[2], default=(0, 0, 0))
    step = sum(map(operations, nodes[start : start + period]))
    if step * copies <= most:
        return [list(nodes)]
    computed = sum(v.aval.size for node in nodes[start : start + period] for v in node.outputs)
    length = period * max(1, min(PART // max(computed, 1), most // step))
    end = start + period * copies // length * length
    middle = [list(nodes[k : k + length]) for k in range(start, end, length)]
    return [*equal_parts(nodes[:start], most), *middle, *equal_parts(nodes[end:], most)]


def operations(node: Node) -> int:
    """The operations of a node, those of its bodies included."""
    return 1 + sum(len(body.nodes) for _, body in node.graphs)
