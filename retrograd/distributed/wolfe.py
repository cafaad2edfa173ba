"""A line search for the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

LESS = 1e-4  # of the decrease that the slope promises
FLATTER = 0.9  # of the slope
MOST = 20  # trials, out and in


class Trial(NamedTuple):
    """A point on the line: how far away, the value and the slope there."""

    reach: float
    value: float
    slope: float


def search(at: Callable[[float], Trial], start: Trial, first: float) -> float | None:
    """How far to go from the start, whose slope is negative; None where no smaller value is found.

    >>> search(lambda t: Trial(t, (t - 3) ** 2, 2 * (t - 3)), Trial(0.0, 9.0, -6.0), 1.0)
    1.0
    >>> search(lambda t: Trial(t, (t - 3) ** 2, 2 * (t - 3)), Trial(0.0, 9.0, -6.0), 100.0)
    3.0
    """
    before, reach = start, first
    for _ in range(MOST):
        here = at(reach)
        if _too_high(here, start) or (before is not start and here.value >= before.value):
            return _between(at, start, before, here)
        if abs(here.slope) <= -FLATTER * start.slope:
            return reach
        if here.slope >= 0:
            return _between(at, start, here, before)
        before, reach = here, 2 * reach
    return before.reach


def _between(at: Callable[[float], Trial], start: Trial, low: Trial, high: Trial) -> float | None:
    """The same between two points. ``low`` has the smaller value, and its slope leads to ``high``."""
    for _ in range(MOST):
        here = at(_lowest(low, high))
        if _too_high(here, start) or here.value >= low.value:
            high = here
            continue
        if abs(here.slope) <= -FLATTER * start.slope:
            return here.reach
        if here.slope * (high.reach - low.reach) >= 0:
            high = low
        low = here
    return None if low is start else low.reach


def _too_high(here: Trial, start: Trial) -> bool:
    """Whether the value is not small enough, or no number."""
    return not here.value <= start.value + LESS * here.reach * start.slope


def _lowest(a: Trial, b: Trial) -> float:
    """Where a cubic with these values and slopes is lowest; the middle, if that is near an end or none."""
    width = b.reach - a.reach
    bend = a.slope + b.slope - 3 * (b.value - a.value) / width
    root = bend * bend - a.slope * b.slope
    middle = a.reach + width / 2
    if not (math.isfinite(root) and root >= 0):
        return middle
    twist = math.copysign(math.sqrt(root), width)
    if not (divisor := b.slope - a.slope + 2 * twist):
        return middle
    found = b.reach - width * (b.slope + twist - bend) / divisor
    return found if abs(found - middle) <= 0.4 * abs(width) else middle
