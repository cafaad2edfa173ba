"""multiples: how many copies of a repeating stretch may be one step of its loop.

An iteration may do the same to several things, as ``for t in range(T): for M in (A, B): ...`` does. Then the shortest
period is a part of the iteration, and it is no loop: an operand of its copies alternates between A and B. After how
many copies the operands come from the same places again is read off the operands, and the proof is tried there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...ir.graph import Node, Value
from ...ops.index import getitem
from .find_repeats import COPIES, width

MOST = 64  # copies in one step
FREE = -(1 << 63)  # stands for an operand that may be another one in each step
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
    origins = _Origins(nodes, period, origin)
    found: list[int] = []
    for m in range(2, most + 1):
        later = range(copies - 1, max(copies // 2, m) - 1, -1)
        if all(m % k for k in found) and all(origins.again(m, copy) for copy in later):
            found.append(m)
            yield m


class _Origins:
    """Where the operands of copies come from: counted from the node that reads them, and from the first node.

    They are found for a copy when it is compared: most numbers of copies are refused by the last one.
    """

    def __init__(self, nodes: Sequence[Node], period: int, origin: Origin) -> None:
        self.nodes, self.period, self.origin = nodes, period, origin
        self.before: dict[Value, int] = {}
        self.known: dict[int, list[tuple[int, int]]] = {}

    def again(self, m: int, copy: int) -> bool:
        """Whether the operands of a copy come from where those of m copies before do."""
        late, early = self._of(copy), self._of(copy - m)
        return all(a[0] == b[0] or a[1] == b[1] for a, b in zip(late, early, strict=True))

    def _of(self, copy: int) -> list[tuple[int, int]]:
        found = self.known.get(copy)
        if found is None:
            found = self.known[copy] = []
            for i in range(copy * self.period, (copy + 1) * self.period):
                self._add(i, self.nodes[i], found)
        return found

    def _add(self, i: int, node: Node, found: list[tuple[int, int]]) -> None:
        for value in node.inputs:
            made = self.origin(value)
            if made is None:
                found.append((FREE, FREE))
                continue
            at, out = made
            number = -1 - self.before.setdefault(value, len(self.before)) if at < 0 else at * OUTPUTS + out
            found.append((number if at < 0 else (i - at) * OUTPUTS + out, number))
        anywhere = node.prim is getitem and (self.origin(node.inputs[0]) or (-1,))[0] < 0
        for item in node.attrs.get("index", ()):
            number = FREE if anywhere else item if type(item) is int else item.start if width(item) else FREE
            found.append((number, number))
