"""The progress of long work: done, rate and remaining time; a bar for terminals."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TextIO

from ..errors import OptionError


class ShardProgress(NamedTuple):
    """How far work is: ``done`` of ``total`` items, in a ``phase``; ``rate`` is items per second.

    ``seconds_left`` is None as long as nothing is done.
    """

    done: int
    total: int
    phase: str
    rate: float
    seconds_left: float | None

    @property
    def line(self) -> str:
        """The same as a line of text.

        >>> ShardProgress(30, 40, "loss", 5.0, 2.0).line
        'loss  75 % [#########...] 30/40, 5/s, 0:02 left'
        """
        share = self.done / self.total if self.total else 1.0
        bar = ("#" * int(12 * share)).ljust(12, ".")
        left = "" if self.seconds_left is None else f", {_clock(self.seconds_left)} left"
        return (
            f"{self.phase}  {share:.0%}".replace("%", " %")
            + f" [{bar}] {self.done}/{self.total}, {self.rate:.3g}/s{left}"
        )


Watcher = Callable[[ShardProgress], object]


class Pace:
    """Counts what is done, and tells a watcher, at most ten times a second and at the end."""

    def __init__(self, watcher: Watcher | None, total: int, phase: str, clock: Callable[[], float] = time.monotonic):
        self._watcher, self._total, self._phase, self._clock = watcher, total, phase, clock
        self._start = self._told = clock()
        self.done = 0

    @property
    def watched(self) -> bool:
        """Whether anybody wants to know."""
        return self._watcher is not None

    def finish(self) -> None:
        """All is done, whether or not somebody told of each item."""
        if self.done < self._total:
            self.advance(self._total - self.done)

    def advance(self, count: int = 1) -> None:
        """So many more items are done; what is done twice, after a worker was lost, counts once."""
        now, self.done = self._clock(), min(self.done + count, self._total)
        if self._watcher is not None and (now - self._told >= 0.1 or self.done == self._total):
            self._told = now
            rate = self.done / max(now - self._start, 1e-9)
            left = (self._total - self.done) / rate if self.done else None
            self._watcher(ShardProgress(self.done, self._total, self._phase, rate, left))


class Bar:
    """A watcher that draws one line on a terminal; elsewhere it writes a line when the work is done."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream

    def __call__(self, now: ShardProgress) -> None:
        ended = now.done == now.total
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[K{now.line}" + "\n" * ended)
        elif ended:
            self._stream.write(f"{now.line}\n")
        self._stream.flush()


def watcher_of(option: bool | Watcher | None) -> Watcher | None:
    """What the option ``progress`` means: nothing, a bar on standard error, or a function of a ``ShardProgress``."""
    if option is None or option is False:
        return None
    if option is True:
        return Bar()
    if not callable(option):
        raise OptionError(
            f"progress={option!r}",
            remedy="give True for a bar, or a function that takes a ShardProgress(done, total, ...)",
        )
    return option


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
