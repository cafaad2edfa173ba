"""Count the work of generated code: steps that run again, and states that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ..ir.target import PROVIDERS
from .settings import config


@dataclass
class Counters:
    """Counts of the work since the counters were made, from the counting statements of generated code.

    ``advances`` are steps of checkpointed loops that ran without residuals, ``taped`` steps with residuals,
    ``snapshots`` are the states that are kept now, and ``snapshots_peak`` the most that were kept at once.
    """

    advances: int = 0
    taped: int = 0
    snapshots: int = 0
    snapshots_peak: int = 0

    def count(self, name: str, change: int) -> None:
        """Add to one of the counters."""
        setattr(self, name, getattr(self, name) + change)
        self.snapshots_peak = max(self.snapshots_peak, self.snapshots)


COUNTERS: ContextVar[Counters | None] = ContextVar("retrograd_counters", default=None)


def count(name: str, change: int) -> None:
    """The function that counting statements of generated code call."""
    counters = COUNTERS.get()
    if counters is not None:
        counters.count(name, change)


@contextmanager
def debug_counters() -> Iterator[Counters]:
    """Count the steps and states of checkpointed loops in a block, in this thread or task alone.

    Functions that are called in the block are compiled with counters.

    Returns
    -------
    context manager of Counters
        With ``advances``, the steps that ran forward without being reversed at once, and ``snapshots_peak``, the most
        states at a time.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> loop = lambda x: rg.fori_loop(8, lambda i, x: np.sin(x), x, memory=rg.Snapshots(2))
    >>> with rg.debug_counters() as counters:
    ...     slope = rg.grad(loop)(0.5)
    >>> counters.snapshots_peak
    2
    """
    counters = Counters()
    token = COUNTERS.set(counters)
    try:
        with config(counters=True):
            yield counters
    finally:
        COUNTERS.reset(token)


PROVIDERS.append(lambda graph: {"count": count})
