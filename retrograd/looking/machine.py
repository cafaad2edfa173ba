"""The rates of this machine, measured once per process: the basis of predicted times."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

TRIES = 3


class Speeds(NamedTuple):
    """Speeds of this process, per second: floating-point operations of products, elements of functions like exp, bytes.

    ``call`` is the seconds that any NumPy call takes.
    """

    product: float
    function: float
    bandwidth: float
    call: float


@lru_cache(maxsize=1)
def machine() -> Speeds:
    """The rates, which take some 20 ms to measure."""
    a, out = np.ones((192, 192)), np.empty((192, 192))
    x = np.linspace(0.1, 1.0, 20_000)
    y = np.empty_like(x)
    big = np.ones(400_000)
    more = np.empty_like(big)
    small = np.ones(1)
    call = _seconds(lambda: [np.add(small, small) for _ in range(200)]) / 200
    return Speeds(
        2 * 192**3 / _seconds(lambda: np.matmul(a, a, out)),
        x.size / _seconds(lambda: np.exp(x, y)),
        3 * big.nbytes / _seconds(lambda: np.add(big, big, more)),
        call,
    )


def _seconds(work: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(TRIES):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return max(best, 1e-9)
