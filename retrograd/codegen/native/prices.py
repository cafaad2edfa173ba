"""What values cost to compute, and which of them are stored since loops would compute them again."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Node, Value
from .c_texts import text_of
from .elements import SHORT, ElementWriter
from .indices import Indices, count

COSTLY = 20  # additions per element from which a value is not computed twice
OFTEN = 32  # loops that read a value, from which on few additions are too many
CHEAP = 4  # additions, which are too many, too, where each row of a loop reads the same
AGAIN = 2  # ... where loops inside of a row read what belongs to that row
FUNCTION = 10  # ... of one operation
LOCAL = 64  # elements up to which storage is on the stack
DEEP = 12  # operations that a price counts in a row


class PricedWriter(ElementWriter):
    """Knows what values cost."""

    def __init__(self, stored: set[Value]) -> None:
        super().__init__(stored)
        self.prices: dict[Value, int] = {}

    def costly(self, value: Value, loops: dict[Any, set[Indices]], beyond: bool) -> bool:
        """Whether to store a value that several loops compute, or one of them several times.

        ``beyond``: this one reads the same elements in each of its rows.
        """
        times = sum(map(len, loops.values()))
        if times < 2 or value in self.stored or value.aval.size <= SHORT:
            return False
        most = CHEAP if times >= OFTEN else COSTLY
        if any(() in found for found in loops.values()):
            if not beyond and len({group for group, _ in loops}) == 1:
                most = AGAIN
            elif count(value) <= LOCAL * LOCAL:
                most = CHEAP
        text = text_of(self.made[value])
        return (text is not None and bool(text.c) and text.work >= FUNCTION) or self._price(value) >= most

    def _price(self, value: Value, deep: int = 0) -> int:
        """The additions per element, from what is stored."""
        node = self.made.get(value)
        if value in self.held or value in self.pending or node is None or value.aval.size <= SHORT or deep > DEEP:
            return 0
        if value not in self.prices:
            text = text_of(node)
            below = sum(self._price(x, deep + 1) for x in node.inputs)
            if text is not None and text.fold is not None:
                below = (1 + below) * (node.inputs[0].aval.size // max(1, value.aval.size))
            self.prices[value] = below + (COSTLY if self._turns(node) else work_of(node))
        return self.prices[value]

    def _turns(self, node: Node) -> bool:
        """Whether a copy is laid out along another axis than what it copies, whose elements lie far from each other."""
        view = self.made.get(node.inputs[0]) if node.prim.name == "copy" else None
        return view is not None and view.prim.name == "permute" and view.attrs["axes"][-1] != view.out.aval.ndim - 1


def work_of(node: Node) -> int:
    """The additions that an element of an operation takes, about."""
    text = text_of(node)
    return text.work if text is not None and text.c else 0
