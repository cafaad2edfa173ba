"""Every k-th state, and on the way back every state of one period: each step runs at most once more."""

from __future__ import annotations

from math import isqrt


def period(n: int) -> int:
    """The period with the fewest states at once, ⌈√n⌉.

    >>> period(100), period(101)
    (10, 11)
    """
    return isqrt(n - 1) + 1 if n else 1


def periodic_slots(n: int, every: int) -> int:
    """Slots for every ``every``-th of n states and for the states inside the last period but one.

    Binomial placement in them advances over each step of a period once.
    """
    return len(range(0, max(n - 1, 0), every)) + max(min(every, n - 1) - 2, 0)
