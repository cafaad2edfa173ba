"""Steps that cost differently and states that weigh differently, in a budget of bytes.

A dynamic program over the next kept state k between the kept state i and the end j, with m bytes free:
T(i, j, m) = min over k of U[i:k] + T(k, j, m − a_k) + T(i, k, m), or no further state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate

from ...errors import InternalError
from ...ir.schedule import Step


class Chain:
    """n steps with costs ``costs``, from states that weigh ``sizes``, in a budget."""

    def __init__(self, costs: Sequence[int], sizes: Sequence[int], budget: int) -> None:
        self.n = len(costs)
        self.sizes, self.budget = sizes, budget
        self.until = [0, *accumulate(costs)]
        self._best = cache(self._solve)
        if self.n and budget < sizes[0]:
            raise InternalError(f"the first state weighs {sizes[0]}, the budget is {budget}")

    def cost(self) -> int:
        """The least cost of all advances.

        >>> Chain([5, 1, 1, 1, 9, 1, 1, 2], [1] * 8, 3).cost()
        24
        """
        return self._best(0, self.n, self.budget - self.sizes[0])[0] if self.n else 0

    def _solve(self, i: int, j: int, free: int) -> tuple[int, int]:
        """The cost, and the next kept state or 0 for none. From one kept state alone, each step starts there."""
        best = sum(self.until[k] - self.until[i] for k in range(i + 1, j)), 0
        for k in range(i + 1, j):
            if self.sizes[k] <= free:
                first = self.until[k] - self.until[i]
                later = self._best(k, j, free - self.sizes[k])[0] + self._best(i, k, free)[0]
                best = min(best, (first + later, k))
        return best

    def schedule(self) -> Iterator[Step]:
        """A schedule of that cost."""
        if self.n == 1:
            yield ("back", 0, 1)
        elif self.n:
            yield ("save", 0, 0)
            yield from self._actions(0, self.n, self.budget - self.sizes[0])

    def _actions(self, i: int, j: int, free: int) -> Iterator[Step]:
        """From the working state i, which is kept, to the adjoint at i; state i is dropped."""
        k = self._best(i, j, free)[1]
        if k:
            yield ("advance", i, k)
            if k < j - 1:
                yield ("save", k, k)
                yield from self._actions(k, j, free - self.sizes[k])
            else:
                yield ("back", k, j)
            yield ("load", i, i)
            yield from self._actions(i, k, free)
            return
        for end in range(j, i, -1):
            if end < j:
                yield ("load", i, i)
            if end == i + 1:
                yield ("drop", i, i)
            else:
                yield ("advance", i, end - 1)
            yield ("back", end - 1, end)
