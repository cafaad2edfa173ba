"""Keep every k-th state, and on the adjoint sweep every state or all residuals of one period: each step reruns once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isqrt

from ...ir.embedded_functions import embedded
from ...ir.schedule import Step
from .binomial import binomial


def period(n: int) -> int:
    """The period with which the fewest states are kept at once, ⌈√n⌉.

    >>> period(100), period(101)
    (10, 11)
    """
    return isqrt(n - 1) + 1 if n else 1


def periodic_slots(n: int, every: int) -> int:
    """The slots that hold every ``every``-th of n states and, on the adjoint sweep, the states between two of these.

    With these slots, binomial placement advances over each step of a period once.
    """
    kept = len(range(0, max(n - 1, 0), every))
    last = n - 1 - (kept - 1) * every  # the steps after the last kept state, but for the very last
    earlier = kept - 1 + max(every - 2, 0) if kept > 1 else 0
    return max(kept + max(last - 2, 0), earlier, 0)


@embedded()
def periodic_taping(states: Iterable[int], end: int) -> Iterator[Step]:
    """A first sweep that keeps the given states but the last, and instead of that the residuals of all later steps."""
    at, kept = 0, list(states)
    for i in kept:
        if i > at:
            yield ("advance", at, i)
        if i < kept[-1]:
            yield ("save", i, i)
        at = i
    for i in range(at, end):
        yield ("tape", i, i + 1)


@embedded()
def periodic_replay(states: Iterable[int], last: int, end: int) -> Iterator[Step]:
    """Reverse the steps before ``end``: from ``last`` on from kept residuals, before that from increasing states."""
    for i in range(end - 1, last - 1, -1):
        yield ("reverse", i, i + 1)
    end = last
    for state in list(states)[::-1]:
        yield ("load", state, state)
        yield ("drop", state, state)
        for i in range(state, end - 1):
            yield ("tape", i, i + 1)
        yield ("back", end - 1, end)
        for i in range(end - 2, state - 1, -1):
            yield ("reverse", i, i + 1)
        end = state


@embedded()
def periodic_room(every: int) -> Iterator[int]:
    """For each state 0, 1, … in turn: -1 to keep it, -2 not to keep it."""
    while True:
        yield -1
        for _ in range(every - 1):
            yield -2


@embedded(binomial)
def periodic(states: Iterable[int], end: int, every: int) -> Iterator[Step]:
    """Reverse the steps before ``end``, keeping all states of one period meanwhile."""
    kept = list(states)
    yield from binomial(kept, end, len(kept) + every)
