"""Where shards are evaluated: in threads of this process, or on a dask cluster. Both sum in the same tree."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import OptionError
from .kernels import Conditions, Kernel
from .on_worker import HERE, Partial, Tally, blamed, computed, joined, one_shard
from .pace import Pace
from .reduction import TreeSum
from .shards import InMemory, Shard, as_shipped


@dataclass(frozen=True)
class Options:
    """How work is cut into tasks, and what is done about faults.

    ``group``: shards in one task. ``fan_in``: partial sums in one task. ``keep``: loaded shards stay in memory.
    ``retries``: how often work is begun again. ``time_limit``: seconds for one task. ``patience``: seconds without any
    worker. None of these changes a result.
    """

    group: int = 1
    fan_in: int = 8
    keep: bool = True
    retries: int = 5
    time_limit: float | None = None
    patience: float = 60.0

    def __post_init__(self) -> None:
        for name in ("group", "fan_in"):
            n = getattr(self, name)
            if type(n) is not int or n < 1 or n & (n - 1) or (name == "fan_in" and n == 1):
                raise OptionError(
                    f"{name}={n!r}", remedy="choose a power of two, so that every choice gives the same sum"
                )
        if type(self.keep) is not bool:
            raise OptionError(f"keep={self.keep!r}", remedy="choose True or False")
        if type(self.retries) is not int or self.retries < 0:
            raise OptionError(f"retries={self.retries!r}", remedy="choose a count from 0")
        for name in ("time_limit", "patience"):
            seconds = getattr(self, name)
            if seconds is None and name == "time_limit":
                continue
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
                raise OptionError(f"{name}={seconds!r}", remedy="choose a positive number of seconds")


@dataclass
class Counts:
    """What happened on the way to a result: work begun again, workers given up, and bytes, as far as they are known."""

    tasks: int = 0
    retries: int = 0
    given_up: list[str] = field(default_factory=list)
    sent: int = 0
    received: int = 0


class Engine(Protocol):
    """Evaluates shards and sums their results; or evaluates chunks of a map, and hands them out in order."""

    def total(self, parameters: tuple[Any, ...], chosen: Sequence[int], pace: Pace, counts: Counts) -> Partial:
        """The sum over the chosen shards."""

    def chunks(
        self, shared: tuple[Any, ...], items: Sequence[Any], layout: tuple[bool, ...], pace: Pace, counts: Counts
    ) -> Iterator[tuple[Any, Tally]]:
        """The results of a map, chunk by chunk, and who computed them."""

    def close(self) -> None:
        """Give back what the engine holds."""


class ThreadEngine:
    """Threads of this process: no set-up, no copies, and the same bits."""

    def __init__(self, kernel: Kernel, shards: Sequence[Shard], options: Options) -> None:
        self._shards, self._keep = list(shards), options.keep
        self._threads = max(1, min(os.cpu_count() or 1, 32))
        self._kernel = kernel.build(self._threads)

    def total(self, parameters: tuple[Any, ...], chosen: Sequence[int], pace: Pace, counts: Counts) -> Partial:
        given, conditions = as_shipped(parameters), Conditions.now()

        def work(k: int) -> Partial:
            return one_shard(self._kernel, conditions, given, self._arguments(k), k, HERE)

        found = TreeSum(joined)
        for part in self._in_order(work, chosen):
            found.take(part)
            pace.advance()
        counts.tasks += len(chosen)
        total: Partial = found.total()
        return total

    def chunks(
        self, shared: tuple[Any, ...], items: Sequence[Any], layout: tuple[bool, ...], pace: Pace, counts: Counts
    ) -> Iterator[tuple[Any, Tally]]:
        conditions = Conditions.now()

        def work(k: int) -> tuple[Any, Tally]:
            start, own, common = time.perf_counter(), iter(as_shipped(items[k])), iter(as_shipped(shared))
            arguments = tuple(next(own) if mine else next(common) for mine in layout)
            found = blamed(f"chunk {k}", HERE, conditions.apply, computed, self._kernel, arguments)
            return found, Tally.of(HERE, start)

        for found in self._in_order(work, range(len(items))):
            counts.tasks += 1
            pace.advance()
            yield found

    def close(self) -> None:
        self._shards = []

    def _arguments(self, k: int) -> tuple[Any, ...]:
        found: tuple[Any, ...] = as_shipped(blamed(f"loading shard {k}", HERE, self._shards[k].fetch))
        if self._keep:
            self._shards[k] = InMemory(found)
        return found

    def _in_order(self, work: Any, numbers: Sequence[int]) -> Iterator[Any]:
        """The results of a function of numbers, in order; few are computed ahead, and none after an error."""
        with _pool(min(self._threads, len(numbers))) as pool:
            ahead: deque[Future[Any]] = deque()
            for k in numbers:
                ahead.append(pool.submit(work, k))
                if len(ahead) > 2 * self._threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that take no further work once the block is left, by an error or Ctrl-C, too."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="retrograd")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
