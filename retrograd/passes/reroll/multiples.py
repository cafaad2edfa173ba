"""multiples: how many copies of a repeating stretch may be one step of its loop.

An iteration may do the same to several things, as ``for t in range(T): for M in (A, B): ...`` does. Then the shortest
period is a part of the iteration, and it is no loop: an operand of its copies alternates between A and B. After how
many copies the operands come from the same places again is read off the operands, and the proof is tried there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Node, Value
from ...ops.index import getitem
from .find_repeats import COPIES, width

MOST = 64  # copies in one step
FREE = np.iinfo(np.int64).min  # stands for an operand that may be another one in each step
OUTPUTS = 64  # results of a node that are told apart

Origin = Callable[[Value], tuple[int, int] | None]


def multiples(nodes: Sequence[Node], period: int, origin: Origin) -> Iterator[int]:
    """Numbers of copies, more than one, after which the operands of a stretch come from the same places again.

    ``origin`` gives the node of the stretch that makes a value, and which result of it the value is; a negative number
    for a value from before, and None for one that may differ from step to step. Only the second half of the stretch
    counts: the first copies read values from before it.
    """
    copies = len(nodes) // period
    most = min(MOST, copies // COPIES)
    if most < 2:
        return
    relative, fixed = (np.array(column).reshape(copies, -1) for column in _origins(nodes, origin))

    def again(m: Any, since: int) -> Any:
        """Whether the operands of copies come from where those of m copies before do."""
        late, early = slice(since, None), slice(since - m, copies - m)
        return (relative[late] == relative[early]) | (fixed[late] == fixed[early])

    found: list[int] = []
    for m in range(2, most + 1):
        if all(m % k for k in found) and again(m, copies - 1).all() and again(m, max(copies // 2, m)).all():
            found.append(m)
            yield m


def _origins(nodes: Sequence[Node], origin: Origin) -> tuple[list[int], list[int]]:
    """Where the operands of each copy come from: counted from the node that reads them, and from the first node."""
    before: dict[Value, int] = {}
    relative: list[int] = []
    fixed: list[int] = []
    for i, node in enumerate(nodes):
        for value in node.inputs:
            made = origin(value)
            if made is None:
                relative.append(FREE)
                fixed.append(FREE)
                continue
            at, out = made
            number = -1 - before.setdefault(value, len(before)) if at < 0 else at * OUTPUTS + out
            fixed.append(number)
            relative.append(number if at < 0 else (i - at) * OUTPUTS + out)
        anywhere = node.prim is getitem and (origin(node.inputs[0]) or (-1,))[0] < 0
        for item in node.attrs.get("index", ()):
            number = FREE if anywhere else item if type(item) is int else item.start if width(item) else FREE
            relative.append(number)
            fixed.append(number)
    return relative, fixed
