"""Times of one call: the median and the minimum of samples that last long enough for the clock."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

SAMPLE_SECONDS = 200e-6
MIN_SAMPLES = 5
WARM_UP_SHARE = 0.3
WARM_UP_CALLS = 3


class Timing(NamedTuple):
    """Seconds for one call."""

    median: float
    minimum: float


def sample(call: Callable[[], Any], number: int) -> float:
    """Mean seconds of `number` calls; each result lives until the next is there, as in a training loop."""
    result = None
    start = perf_counter()
    for _ in range(number):
        result = call()
    elapsed = perf_counter() - start
    del result
    return elapsed / number


def warm_up(call: Callable[[], Any], seconds: float) -> int:
    """Call for a while; return how many calls fill a sample."""
    shortest = float("inf")
    start = perf_counter()
    calls = 0
    while calls < WARM_UP_CALLS or perf_counter() - start < seconds:
        shortest = min(shortest, sample(call, 1))
        calls += 1
    return max(1, round(SAMPLE_SECONDS / shortest))


def measure(call: Callable[[], Any], seconds: float) -> Timing:
    """Warm up, then sample for about `seconds`."""
    number = warm_up(call, WARM_UP_SHARE * seconds)
    samples: list[float] = []
    start = perf_counter()
    while len(samples) < MIN_SAMPLES or perf_counter() - start < seconds:
        samples.append(sample(call, number))
    return Timing(median(samples), min(samples))
