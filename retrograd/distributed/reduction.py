"""The fixed tree in which results of shards are summed: it depends on the order of the shards, and on nothing else.

Neighbours are added in pairs, then neighbouring sums, and so on; an odd one at the end moves up as it is. A block that
begins at a multiple of a power of two and has as many shards is one subtree, so blocks may be summed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def added(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """The sums of arrays and numbers, one by one; none is written into.

    >>> added([1.0, np.ones(2)], [10.0, np.ones(2)])
    (np.float64(11.0), array([2., 2.]))
    """
    return tuple(np.add(x, y) for x, y in zip(a, b, strict=True))


class TreeSum:
    """Takes terms in order, one after the other, and keeps one partial sum for each power of two.

    ``parts`` are these sums, with the number of terms in each. Where the first term is not the first of all, they are
    the largest subtrees that the terms fill.

    >>> words = TreeSum(lambda a, b: f"({a}{b})")
    >>> for letter in "abcdefg":
    ...     words.take(letter)
    >>> words.total()
    '(((ab)(cd))((ef)g))'
    """

    def __init__(self, add: Callable[[Any, Any], Any] = np.add, first: int = 0) -> None:
        self._add, self._next = add, first
        self.parts: list[tuple[int, Any]] = []

    def take(self, term: Any, size: int = 1) -> None:
        """One more term, or the sum of so many terms that are a subtree."""
        start = self._next
        self._next += size
        while self.parts and self.parts[-1][0] == size and start % (2 * size):
            _, left = self.parts.pop()
            start, term, size = start - size, self._add(left, term), 2 * size
        self.parts.append((size, term))

    def total(self) -> Any:
        """The sum of what was taken, which is at least one term."""
        *rest, (_, found) = self.parts
        for _, left in reversed(rest):
            found = self._add(left, found)
        return found


def tree_sum(terms: Iterable[T], add: Callable[[Any, Any], Any] = np.add) -> Any:
    """The sum of at least one term, in the fixed tree.

    >>> tree_sum([1.0, 2.0, 3.0])
    np.float64(6.0)
    """
    found = TreeSum(add)
    for term in terms:
        found.take(term)
    return found.total()


def blocks(count: int, size: int) -> list[range]:
    """The numbers below ``count`` in blocks of ``size``, a power of two; the last may be shorter.

    >>> blocks(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(k, min(k + size, count)) for k in range(0, count, size)]
