"""How a kernel runs on blocks of long arrays, and a loop step by step: generated modules have these functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ...ir.embedded_functions import embedded

WORKERS: list[Callable[[], int]] = []  # how many blocks are computed at a time
Block = Callable[..., Sequence[Any]]
Steps = Callable[..., Any]  # it gets the first step and the one behind the last


@embedded()
def in_blocks(
    kernel: Block,
    n: int,
    most: int,
    rows: Sequence[Any],
    others: Sequence[Any],
    folds: Sequence[Callable[[Any, Any], Any]],
) -> Sequence[Any]:
    """Run a kernel on blocks of at most ``most`` of the ``n`` elements of rows; what it returns is folded in pairs.

    Blocks are halves of halves, as in the sums of ``np.add.reduce``, so that sums of sums have the bits of one sum.
    """

    def part(start: int, stop: int) -> Sequence[Any]:
        if stop - start > most:
            middle = start + (stop - start) // 16 * 8
            pairs = zip(folds, part(start, middle), part(middle, stop))  # noqa: B905 - the source is short
            return [fold(first, second) for fold, first, second in pairs]
        return kernel(*[row[..., start:stop] for row in rows], *others)

    return part(0, n)


@embedded()
def in_steps(steps: Steps, n: int, operands: Sequence[Any]) -> None:
    """Run the ``n`` steps of a loop, of which each fills rows of operands, and needs nothing of the others."""
    steps(0, n, *operands)


def first_half(n: int) -> int:
    """Where ``in_blocks`` parts ``n`` elements: both halves begin as NumPy's sums have it."""
    return n // 16 * 8


@lru_cache(maxsize=4096)
def largest_block(n: int, most: int) -> int:
    """The length of the longest block of ``n`` elements."""
    if n <= most:
        return n
    middle = first_half(n)
    return max(largest_block(middle, most), largest_block(n - middle, most))


def at_a_time(n: int, most: int) -> int:
    """The most blocks of ``n`` elements that are computed at a time."""
    return min(max((ask() for ask in WORKERS), default=1), -(-n // most))
