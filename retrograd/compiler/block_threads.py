"""Blocks of long arrays on several threads: the same blocks, and so the same bits as on one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..ir.target import PROVIDERS
from ..ops.structural.in_blocks import WORKERS, Block, first_half
from .settings import Config

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Folds = Sequence[Callable[[Any, Any], Any]]
WORTH = 3e-4  # seconds of work from which threads gain more than they cost


class _Threads:
    """The number of threads, and the pool of all but the caller's. A forked process starts with one."""

    def __init__(self) -> None:
        self.number = 1
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._pool, self.number = None, 1

    def pool(self) -> ThreadPoolExecutor:
        """The pool, made when it is first needed."""
        size = self.number - 1
        if self._pool is None or self._size != size:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - it takes as long as much of this package

            self._pool, self._size = ThreadPoolExecutor(size, thread_name_prefix="retrograd"), size
        return self._pool


THREADS = _Threads()
WORKERS.append(lambda: THREADS.number)


class _BlockWork:
    """The work of one call: blocks, their folds, and what is known of these already."""

    def __init__(self, kernel: Block, most: int, rows: Sequence[Any], others: Sequence[Any], folds: Folds) -> None:
        self.kernel, self.most, self.rows, self.others, self.folds = kernel, most, rows, others, folds
        self.known: dict[tuple[int, int], Sequence[Any]] = {}

    def part(self, start: int, stop: int) -> Sequence[Any]:
        """The folds of the blocks between two places, which are computed unless they are known."""
        known = self.known.get((start, stop))
        if known is not None:
            return known
        if stop - start <= self.most:
            return self.kernel(*[row[start:stop] for row in self.rows], *self.others)
        middle = start + first_half(stop - start)
        pairs = zip(self.folds, self.part(start, middle), self.part(middle, stop), strict=True)
        return [fold(first, second) for fold, first, second in pairs]

    def seconds(self, n: int) -> float:
        """How long all blocks but the first take on one thread, as the first one shows."""
        stop = n
        while stop > self.most:
            stop = first_half(stop)
        start = time.perf_counter()
        self.known[0, stop] = self.part(0, stop)
        return (time.perf_counter() - start) * (n - stop) / stop

    def on_threads(self, n: int, threads: int) -> None:
        """Compute large parts at the same time; an exception comes when no thread works any more."""
        from concurrent.futures import wait  # noqa: PLC0415 - as above

        own, *rest = self._parts(n, threads)
        futures = {bounds: THREADS.pool().submit(partial(copy_context().run, self.part, *bounds)) for bounds in rest}
        try:
            found = self.part(*own)
        finally:
            wait(futures.values())
        self.known |= {own: found, **{bounds: future.result() for bounds, future in futures.items()}}

    def _parts(self, n: int, threads: int) -> list[tuple[int, int]]:
        """Halves of halves, at least as many as threads."""
        parts = [(0, n)]
        while len(parts) < threads and all(stop - start > self.most for start, stop in parts):
            middles = [start + first_half(stop - start) for start, stop in parts]
            parts = [
                half
                for (start, stop), middle in zip(parts, middles, strict=True)
                for half in ((start, middle), (middle, stop))
            ]
        return parts


def in_blocks(kernel: Block, most: int, rows: Sequence[Any], others: Sequence[Any], folds: Folds) -> Sequence[Any]:
    """Like the function of this name in generated modules, on several threads where the work is worth it."""
    work, n, threads = _BlockWork(kernel, most, rows, others, folds), len(rows[0]), THREADS.number
    if threads > 1 and n > most and work.seconds(n) > WORTH:
        work.on_threads(n, threads)
    return work.part(0, n)


PROVIDERS.append(lambda graph: {"in_blocks": in_blocks})


def _get(config: Config) -> int:
    return THREADS.number


def _set(config: Config, number: int) -> None:
    if type(number) is not int or number < 1:
        raise OptionError(f"rg.config.threads = {number!r}", remedy="choose a number from 1")
    THREADS.number = number


Config.threads = property(_get, _set)  # type: ignore[attr-defined]  # part of no key: results do not depend on it
