"""Binomial checkpointing of a known number of steps in a fixed number of slots, in closed form.

A. Griewank and A. Walther, Algorithm 799: revolve, ACM Trans. Math. Softw. 26 (2000). With s slots and at most r
runs of each step, β(s, r) = C(s + r, s) steps can be reversed. The placement is optimal and not unique.

The generators here run in generated modules, too: they use nothing but Python's arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import comb

from ...ir.embedded_functions import embedded
from ...ir.schedule import Step


def repetitions(n: int, slots: int) -> int:
    """The least r with β(slots, r) ≥ n: no step runs more often than that."""
    r, reach = 0, 1
    while reach < n:
        r += 1
        reach = reach * (slots + r) // r
    return r


def binomial_advances(n: int, slots: int) -> int:
    """The least number of advances that reverses n steps: r n − β(slots + 1, r − 1).

    >>> binomial_advances(1_000_000, 20)
    6815960
    """
    if n < 2:
        return 0
    r = repetitions(n, slots)
    return r * n - comb(slots + r, slots + 1)


@embedded()
def split(n: int, slots: int) -> int:
    """How far to advance before the next state is kept; n ≥ 2 steps, slots with the one of the first state."""
    if slots == 1:
        return n - 1
    r, reach = 0, 1
    while reach < n:
        r += 1
        reach = reach * (slots + r) // r
    before = reach * r // (slots + r)
    return min(before, n - before * slots // (slots + r - 1))


@embedded(split)
def binomial_states(n: int, slots: int) -> Iterator[int]:
    """The states that the first sweep over n steps keeps, from 0 on; the sweep stops at state n − 1."""
    i = 0
    while slots > 0 and i < n - 1:
        yield i
        i += split(n - i, slots)
        slots -= 1


@embedded()
def keeping(states: Iterable[int], end: int) -> Iterator[Step]:
    """A first sweep that keeps the given increasing states, from 0 on, and stops at state ``end``."""
    at = 0
    for i in states:
        if i > at:
            yield ("advance", at, i)
        yield ("save", i, i)
        at = i
    if end > at:
        yield ("advance", at, end)


@embedded(split)
def binomial(states: Iterable[int], end: int, slots: int) -> Iterator[Step]:
    """Reverse the steps before ``end`` from increasing kept states, whichever first sweep chose them."""
    kept = list(states)
    while kept:
        i = kept[-1]
        yield ("load", i, i)
        while i < end - 1:
            far = split(end - i, slots - len(kept) + 1)
            yield ("advance", i, i + far)
            i += far
            if i < end - 1:
                yield ("save", i, i)
                kept.append(i)
        if kept[-1] == i:
            yield ("drop", i, i)
            kept.pop()
        yield ("back", i, i + 1)
        end = i
