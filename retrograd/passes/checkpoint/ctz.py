"""Logarithmic memory for an unknown number of steps, by counting trailing zeros.

Before each new state is kept, one kept state may be dropped; a ruler sequence says which. After n steps the kept
states, with the last one, number ⌈log₂ n⌉ + 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...ir.embedded_functions import embedded
from ...ir.schedule import Step
from .binomial import binomial


@embedded()
def ctz_room(first: int) -> Iterator[int]:
    """For each new state from ``first`` on: the kept state to drop before it is kept, or -1 for none."""
    kept: list[int] = []
    ruler, top, new = 1, -2, first
    while True:
        zeros, rest = 0, ruler
        while rest % 2 == 0:
            zeros, rest = zeros + 1, rest // 2
        drop = top - zeros
        if drop > 0:
            ruler += 1
            yield kept.pop(drop)
        else:
            ruler, top = 1, top + 1
            yield -1
        kept.append(new)
        new += 1


@embedded(ctz_room)
def ctz(states: Iterable[int], end: int) -> Iterator[Step]:
    """Reverse the steps before ``end``; steps that run again keep states by a ruler sequence of their own."""
    kept = list(states)
    while kept:
        i = kept[-1]
        yield ("load", i, i)
        room = ctz_room(i + 1)
        while i < end - 1:
            yield ("advance", i, i + 1)
            i += 1
            old = next(room)
            if old >= 0:
                yield ("drop", old, old)
                kept.remove(old)
            yield ("save", i, i)
            kept.append(i)
        yield ("drop", i, i)
        kept.pop()
        yield ("back", i, i + 1)
        end = i


@embedded(binomial)
def shrinking(states: Iterable[int], end: int) -> Iterator[Step]:
    """Reverse the steps before ``end``, whose last state is kept, with binomial placement in the slots of states."""
    kept = list(states)
    yield from binomial(kept, end, len(kept) - 1)


def ctz_states(n: int) -> tuple[int, ...]:
    """The kept states after n ≥ 1 steps, before the last step is reversed.

    >>> ctz_states(32)
    (0, 16, 24, 28, 30, 31)
    """
    kept: list[int] = []
    for i, old in zip(range(n), ctz_room(0), strict=False):
        if old >= 0:
            kept.remove(old)
        kept.append(i)
    return tuple(kept)
