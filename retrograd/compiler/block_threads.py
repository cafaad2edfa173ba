"""Blocks of long arrays, and steps, on several threads: the same blocks, and so the same bits as on one thread."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ..errors import OptionError
from ..ir.target import PROVIDERS
from ..ops.structural.in_blocks import WORKERS, Block, Steps, first_half
from .settings import Config

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Folds = Sequence[Callable[[Any, Any], Any]]
MOST_THREADS = 1 << 15  # more than any system starts for one process
WORTH = 3e-4  # seconds of work from which threads gain more than they cost
GAIN = 0.85  # of the time on one thread: a kernel that takes longer on several does without them for a while
LONGEST_REST = 31  # calls


class _Threads:
    """The number of threads, and the pool of all but the caller's. A forked process starts with one.

    One call at a time uses the pool: calls from several threads do not compete for the cores.
    """

    def __init__(self) -> None:
        self.number = 0  # not asked for yet
        self._start()
        os.register_at_fork(after_in_child=self._after_fork)

    def _start(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0
        self._lock = threading.Lock()
        self._busy, self._alone = False, 0

    def _after_fork(self) -> None:
        self._start()
        self.number = 1

    def wanted(self) -> int:
        """How many threads work on one call: as set, or else as many as this process has cores."""
        if self.number == 0:
            self.number = _cores()
        return self.number

    def allowed(self) -> int:
        """How many threads may work on a call that begins now."""
        return 1 if self._alone else self.wanted()

    def taken(self) -> bool:
        """Take the pool, if nobody uses it, and nobody wants to compute alone."""
        with self._lock:
            if self._busy or self._alone:
                return False
            self._busy = True
            return True

    def give_back(self) -> None:
        """Let others use the pool."""
        self._busy = False

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Calls during this block, in all threads, compute on their own thread."""
        with self._lock:
            self._alone += 1
        try:
            yield
        finally:
            with self._lock:
                self._alone -= 1

    def pool(self) -> ThreadPoolExecutor:
        """The pool, made when it is first needed."""
        size = self.wanted() - 1
        if self._pool is None or self._size != size:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - it takes as long as much of this package

            self._pool, self._size = ThreadPoolExecutor(size, thread_name_prefix="retrograd"), size
        return self._pool


def _cores() -> int:
    """The cores of this process, or as many as ``OMP_NUM_THREADS`` allows; 1 in a worker of a pool of processes."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(allowed)) if allowed.isdecimal() and int(allowed) > 0 else cores


class _ThreadRest:
    """The calls that a function takes without threads after some that these did not help: more from time to time.

    Short operations wait for Python's lock, and cores may be busy, for a moment or always.
    """

    def __init__(self) -> None:
        self.left = self.last = 0

    def goes_on(self) -> bool:
        """Whether the next call takes no threads."""
        if not self.left:
            return False
        self.left -= 1
        return True

    def note(self, *, slow: bool) -> None:
        """Begin a rest, twice as long as the last one, if threads did not help."""
        self.left = self.last = min(2 * self.last + 1, LONGEST_REST) if slow else 0


THREADS = _Threads()
WORKERS.append(THREADS.wanted)
RESTS: WeakKeyDictionary[Block, _ThreadRest] = WeakKeyDictionary()


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
            return self.kernel(*[row[..., start:stop] for row in self.rows], *self.others)
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

    def parts(self, n: int, threads: int) -> list[tuple[int, int]]:
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


def in_blocks(
    kernel: Block, n: int, most: int, rows: Sequence[Any], others: Sequence[Any], folds: Folds
) -> Sequence[Any]:
    """Like the function of this name in generated modules, on several threads where the work is worth it."""
    work, threads = _BlockWork(kernel, most, rows, others, folds), THREADS.wanted()
    if threads > 1 and n > most and not _rest_of(kernel).goes_on():
        alone, parts = work.seconds(n), work.parts(n, threads)
        found = _shared(kernel, alone, work.part, parts)
        work.known |= {} if found is None else dict(zip(parts, found, strict=True))
    return work.part(0, n)


def in_steps(steps: Steps, n: int, operands: Sequence[Any]) -> None:
    """Like the function of this name in generated modules, on several threads where the work is worth it."""
    first, threads = 0, THREADS.wanted()
    if threads > 1 and not _rest_of(steps).goes_on():
        first, start = 1, time.perf_counter()
        steps(0, 1, *operands)
        alone = (time.perf_counter() - start) * (n - 1)
        places = [1 + (n - 1) * k // threads for k in range(threads + 1)]
        part = partial(_steps_between, steps, operands)
        if _shared(steps, alone, part, list(pairwise(places))) is not None:
            return
    steps(first, n, *operands)


def _steps_between(steps: Steps, operands: Sequence[Any], start: int, stop: int) -> None:
    steps(start, stop, *operands)


def _shared(
    function: Block, alone: float, part: Callable[[int, int], Any], parts: Sequence[tuple[int, int]]
) -> Sequence[Any] | None:
    """What each part of the work finds, on threads.

    None if the work, which takes so many seconds ``alone``, is not worth them, or if there are none.
    """
    if alone <= WORTH or not THREADS.taken():
        return None
    start = time.perf_counter()
    try:
        found = _on_threads(part, parts)
    finally:
        THREADS.give_back()
    _rest_of(function).note(slow=time.perf_counter() - start > GAIN * alone)
    return found


def _on_threads(part: Callable[[int, int], Any], parts: Sequence[tuple[int, int]]) -> Sequence[Any] | None:
    """Compute parts at the same time; an exception comes when no thread works any more."""
    from concurrent.futures import wait  # noqa: PLC0415 - few calls use threads, and it takes long

    own, *rest = parts
    try:
        pool = THREADS.pool()
        futures = [pool.submit(partial(copy_context().run, part, *bounds)) for bounds in rest]
    except RuntimeError:  # the interpreter ends, and starts no threads any more
        return None
    try:
        found = part(*own)
    finally:
        wait(futures)
    return [found, *(future.result() for future in futures)]


def _rest_of(function: Block) -> _ThreadRest:
    found = RESTS.get(function)
    if found is None:
        found = RESTS[function] = _ThreadRest()
    return found


PROVIDERS.append(lambda graph: {"in_blocks": in_blocks, "in_steps": in_steps})


def _get(config: Config) -> int:
    return THREADS.wanted()


def _set(config: Config, number: Any) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number <= MOST_THREADS:
        raise OptionError(f"rg.config.threads = {number!r}", remedy=f"choose a number from 1 to {MOST_THREADS}")
    THREADS.number = int(number)


Config.threads = property(_get, _set)  # type: ignore[attr-defined]  # part of no key: results do not depend on it
