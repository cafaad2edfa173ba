"""Phases of long work, reported to listeners: tracing, folding, planning, compilation, and loops with ``progress=``.

Without a listener nothing is recorded. With one, a phase is reported once it has lasted some seconds, by a thread that
looks at it from time to time; loops report themselves.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..ir.target import PROVIDERS
from ..tracer.around import kept
from ..tracer.trace import CURRENT


class Progress(NamedTuple):
    """How far a piece of work is: ``done`` of ``total`` (None if that is unknown), in ``phase``.

    ``what`` names the work: a function, or a loop. ``seconds`` have gone by, ``left`` is a guess of those to come, None
    if there is none. ``ended`` is true the last time.
    """

    what: str
    phase: str
    done: float
    total: float | None
    seconds: float
    left: float | None
    ended: bool = False


Listener = Callable[[Progress], None]
PATIENCE = 2.0  # seconds that a phase lasts before it is told
PAUSE = 0.1  # seconds between two reports of one piece of work
HEARD: ContextVar[Listener | None] = ContextVar("retrograd_progress", default=None)
kept(HEARD)
OTHERWISE: list[Callable[[], Listener | None]] = []  # who listens where no block says so: the last that was registered
_deaf: set[int] = set()  # listeners that have failed, by identity, for this process


def silent(progress: Progress) -> None:
    """The listener of a block in which nobody listens."""


def heard() -> Listener | None:
    """The listener in force here."""
    listener = HEARD.get()
    if listener is None and OTHERWISE:
        listener = OTHERWISE[-1]()
    return None if listener is None or listener is silent or id(listener) in _deaf else listener


def tell(listener: Listener, progress: Progress) -> None:
    """Tell a listener; one that fails is warned of once and not asked again: work goes on without it."""
    if id(listener) in _deaf:
        return
    try:
        listener(progress)
    except Exception as fault:  # noqa: BLE001 - a listener may fail in any way, and must not end the work
        _deaf.add(id(listener))
        warnings.warn(f"a progress listener failed and was removed: {fault!r}", RuntimeWarning, stacklevel=2)


def left_of(done: float, total: float | None, seconds: float) -> float | None:
    """A guess of the seconds to come."""
    return seconds * (total - done) / done if total is not None and done > 0 else None


# --- phases of the compiler -------------------------------------------------------------------------------


class _Work:
    """A phase that goes on, and what was told of it last."""

    def __init__(
        self, listener: Listener, what: str, phase: str, done: Callable[[], float], total: float | None
    ) -> None:
        self.listener, self.what, self.phase, self.done, self.total = listener, what, phase, done, total
        self.begun = time.perf_counter()
        self.told: Progress | None = None


class _Clock:
    """The works that go on, and the thread that looks at them, which begins with the first."""

    def __init__(self) -> None:
        self.works: list[_Work] = []
        self.awake = threading.Event()
        self.lock = threading.Lock()
        self.process = 0

    def add(self, work: _Work) -> None:
        if self.process != os.getpid():  # a forked child has no thread, and may hold a lock that nobody releases
            self.works, self.awake, self.lock, self.process = [], threading.Event(), threading.Lock(), os.getpid()
            threading.Thread(target=self._watch, name="retrograd progress", daemon=True).start()
        with self.lock:
            self.works.append(work)
        self.awake.set()

    def remove(self, work: _Work) -> None:
        with self.lock:
            self.works.remove(work)
            if work.told is not None:
                seconds = time.perf_counter() - work.begun
                tell(work.listener, work.told._replace(seconds=seconds, left=0.0, ended=True))

    def _watch(self) -> None:
        while True:
            self.awake.wait()
            self.awake.clear()
            while self.works:
                time.sleep(PAUSE)
                with self.lock:
                    old = [work for work in self.works if time.perf_counter() - work.begun >= PATIENCE]
                    if old:
                        self._look(old[-1])

    def _look(self, work: _Work) -> None:
        seconds = time.perf_counter() - work.begun
        try:
            done = work.done()
        except Exception:  # noqa: BLE001 - it looks at what another thread is changing
            return
        work.told = Progress(work.what, work.phase, done, work.total, seconds, left_of(done, work.total, seconds))
        tell(work.listener, work.told)


_clock = _Clock()


@contextmanager
def during(phase: str, what: str, done: Callable[[], float] = lambda: 0, total: float | None = None) -> Iterator[None]:
    """A phase of work, for whoever listens; ``done`` says how far it is, and is called from another thread."""
    listener = heard()
    if listener is None:
        yield
        return
    work = _Work(listener, what, phase, done, total)
    _clock.add(work)
    try:
        yield
    finally:
        _clock.remove(work)


# --- loops ------------------------------------------------------------------------------------------------


class _LoopRun:
    """The runs of one loop in one thread: steps forward and back, and when they began.

    ``whole`` says whether the last forward run has ended.
    """

    def __init__(self) -> None:
        self.steps = self.back = 0
        self.forward, self.whole = True, False
        self.begun = self.last = 0.0


class _Loops(threading.local):
    def __init__(self) -> None:
        self.known: dict[str, _LoopRun] = {}


_loops = _Loops()


class _Switch:
    """Whether anyone may listen to loops: it spares them the question at each step where nobody does."""

    def __init__(self) -> None:
        self.on = True
        self.blocks = 0  # in which someone listens, in any thread

    def changed(self, blocks: int) -> None:
        """A block begins, for 1, or ends, for -1."""
        self.blocks += blocks
        self.on = True  # until a loop finds that nobody listens


SWITCH = _Switch()


def tick(value: Any, loop: str, total: int, event: str) -> Any:
    """What loops call that ask for it: ``event`` is "begin", "step", "end" or "adjoint step". The value, as it is.

    Steps that a checkpointed loop runs again in its adjoint are not told: they are part of the way back. Nor are steps
    on example values: they are part of a recording.
    """
    if not SWITCH.on and event != "begin":
        return value
    listener = heard()
    SWITCH.on = listener is not None or SWITCH.blocks > 0
    if listener is None or CURRENT.get() is not None:
        return value
    run = _loops.known.setdefault(loop, _LoopRun())
    now = time.perf_counter()
    if event == "begin":  # a run before it may have been interrupted
        run.forward, run.whole, run.steps, run.back = True, False, 0, 0
    elif event == "step":
        _forward(listener, run, loop, total, now)
    elif event == "end":
        if run.forward and not run.whole:
            _tell_loop(listener, run, loop, total, now, True)
        run.forward, run.whole, run.back = True, True, 0
    elif event == "adjoint step":
        _backward(listener, run, loop, total, now)
    return value


def _forward(listener: Listener, run: _LoopRun, loop: str, total: int, now: float) -> None:
    if not run.forward and run.back:
        return
    if run.whole or not run.steps:
        run.steps, run.whole, run.begun, run.last = 0, False, now, now
    run.forward = True
    run.steps += 1
    _tell_loop(listener, run, loop, total, now, run.steps == total)
    if run.steps == total:
        run.whole = True


def _backward(listener: Listener, run: _LoopRun, loop: str, total: int, now: float) -> None:
    if run.forward:
        if not run.whole:  # nobody asks for its result, so that nothing has told of its end
            _tell_loop(listener, run, loop, total, now, True)
        run.forward, run.whole, run.back, run.begun, run.last = False, True, 0, now, now
    run.back += 1
    ended = run.back >= run.steps
    _tell_loop(listener, run, loop, run.steps, now, ended)
    if ended:
        run.forward, run.back = True, 0


def _tell_loop(listener: Listener, run: _LoopRun, loop: str, total: int, now: float, ended: bool) -> None:
    """Tell of a loop, from time to time and at its end."""
    if not ended and now - run.last < PAUSE:
        return
    run.last = now
    done, seconds = run.steps if run.forward else run.back, now - run.begun
    most = total if total >= 0 else None
    left = 0.0 if ended else left_of(done, most, seconds)
    tell(listener, Progress(loop, "forward" if run.forward else "adjoint", done, most, seconds, left, ended))


PROVIDERS.append(lambda graph: {"tick": tick})
