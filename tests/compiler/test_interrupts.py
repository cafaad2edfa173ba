"""An interrupt (Ctrl-C) at any line of a first call leaves everything as it was, and the next call is right."""

from __future__ import annotations

import dis
import functools
import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from numpy import zeros

import retrograd as rg
from retrograd.compiler.settings import OVERRIDES
from retrograd.tracer import around
from retrograd.tracer.interception import INTERCEPTION, PATCHERS, StandIn
from retrograd.tracer.python_numbers import LOOK_ALIKES
from retrograd.tracer.state.reads import SWAPPED
from retrograd.tracer.trace import CURRENT, READER, STOPPED

# Python drops interrupts that come in callbacks of weak references, and warns of files that it must close itself.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
PACKAGE = str(Path(rg.__file__).parent)
SAMPLE = 40  # positions of each program and kind in a normal run
X = np.array([0.5, -1.0, 2.0])
STEPS = 6
LOCK = threading.Lock()  # of the user's


@functools.cache
def ends_with(code: CodeType, at: int) -> bool:
    """Whether the instruction is the first of the end of a ``with``: it hands three times None to ``__exit__``.

    If the block returns, the result is put aside before.
    """
    following = [i for i in dis.get_instructions(code) if i.offset >= at and i.opname != "SWAP"][:3]
    return [(i.opname, i.argval) for i in following] == [("LOAD_CONST", None)] * 3


class Interrupter:
    """Raises KeyboardInterrupt at the n-th line that the package or code that it generated runs.

    The end of a ``with`` is no such line: it calls ``__exit__`` at once, and Python looks for signals after calls and
    jumps back alone. ``runs`` are the numbers at which each line of a file runs.
    """

    def __init__(self, at: int = -1) -> None:
        self.at, self.count = at, 0
        self.runs: dict[tuple[str, int], list[int]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((PACKAGE, "<generated")):
            return None
        if event == "line" and not ends_with(frame.f_code, frame.f_lasti):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
            if self.at < 0:
                self.runs.setdefault((name, frame.f_lineno), []).append(self.count)
        return self

    def during(self, call: Callable[[], Any]) -> bool:
        """Whether the call was interrupted."""
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


@dataclass
class Program:
    """A function that makes compiled functions anew, so that each first call is one; ``directory`` is for states."""

    make: Callable[[str], Callable[..., Any]]
    cold: bool = False  # whether NumPy's substitutes are made anew, too

    def __call__(self, directory: str) -> Callable[..., Any]:
        if self.cold:
            INTERCEPTION._known.clear()
        return self.make(directory)


def _creation(_: str) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        table = zeros(3)
        table[0] = float(x[1])
        kept = np.empty_like(x)
        kept[:] = np.linspace(0.0, 1.0, 3)
        return np.sum(np.sin(x) * kept) + table[0] * (x[2] if x[0] > 0 else x[1])

    return rg.value_and_grad(f)


def _nested(_: str) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        with rg.config(nan_safe=True), LOCK, rg.no_grad():
            scale = np.sqrt(np.abs(x))
        return np.sum(rg.vmap(rg.grad(lambda t: np.tanh(t) ** 2))(x) * scale)

    return rg.grad(f, nan_safe=True)


def _on_disk(directory: str) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        plan = rg.Tiered(1, 2, directory)
        return np.sum(rg.fori_loop(STEPS, lambda i, c: np.sin(c), x, memory=plan))

    return rg.grad(f)


def _at_a_point(_: str) -> Callable[..., Any]:
    spline = scipy.interpolate.CubicSpline(np.arange(5.0), np.arange(5.0) ** 2)

    def call(x: Any) -> Any:
        value, pullback = rg.vjp(lambda x: np.cumsum(spline(x) * rg.cond(x[0] > 0, np.sin, np.cos, x)), x)
        return value, pullback(np.ones(3))[0]

    return call


def _custom(_: str) -> Callable[..., Any]:
    @rg.custom_vjp
    def double(x: Any) -> Any:
        return 2.0 * x

    double.defvjp(lambda x: (double(x), None), lambda _, ct: (5.0 * ct,))
    return rg.grad(lambda x: np.sum(double(x) ** 2))


PROGRAMS = {
    "creation": Program(_creation),
    "cold": Program(_creation, cold=True),
    "nested": Program(_nested),
    "disk": Program(_on_disk),
    "point": Program(_at_a_point),
    "custom": Program(_custom),
}


def bits(x: Any) -> Any:
    return tuple(map(bits, x)) if isinstance(x, tuple) else (type(x), np.asarray(x).tobytes())


@pytest.fixture(autouse=True)
def _tracing_as_before() -> Any:
    before = sys.gettrace()
    yield
    sys.settrace(before)


def check_all_is_as_before(before: tuple[Any, ...]) -> None:
    assert type(np) is type(np.linalg) is type(np.random) is ModuleType
    assert not INTERCEPTION._holders
    assert not around._taken.items
    assert CURRENT.get() is None
    assert not STOPPED.get()
    assert READER.get() is None
    assert OVERRIDES.get() is None
    assert (gc.isenabled(), gc.get_threshold()) == before
    assert not gc.get_freeze_count()
    assert not isinstance(zeros, StandIn)
    assert not LOOK_ALIKES.keys() & globals().keys()
    assert not SWAPPED._known
    assert not LOCK.locked()
    assert not any(patcher._patched for patcher in PATCHERS)
    assert type(np.zeros(2)) is np.ndarray


def interrupted(name: str, positions: Callable[[Interrupter], list[int]], directory: Path) -> int:
    program = PROGRAMS[name]
    expected = bits(program(str(directory))(X))
    counter, function = Interrupter(), program(str(directory))
    assert not counter.during(lambda: function(X))
    before = gc.isenabled(), gc.get_threshold()
    met = 0
    for at in positions(counter):
        function = program(str(directory))
        met += Interrupter(at).during(lambda: function(X))  # noqa: B023 - it is called at once
        check_all_is_as_before(before)
        assert bits(function(X)) == expected, f"after an interrupt at line {at}"
        check_all_is_as_before(before)
    return met


@pytest.fixture(autouse=True)
def each_first_call_is_cold() -> Iterator[None]:
    """Nothing is kept with the code of the programs."""
    before, rg.config.cache_size = rg.config.cache_size, 0
    yield
    rg.config.cache_size = before


@pytest.mark.costly
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_one_of_many_lines_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    rng = random.Random(7)
    sample = 2 * SAMPLE

    def some(counter: Interrupter) -> list[int]:
        count = counter.count
        assert count > 1000
        return sorted({1, 2, 3, count - 1, count, *rng.sample(range(1, count + 1), sample)})

    assert interrupted(name, some, tmp_path) >= SAMPLE


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this platform has no timers")
def test_a_real_interrupt_at_any_moment_leaves_nothing_behind() -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def first_call() -> None:
        with suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, longest))
            functions[-1](X)
            signal.setitimer(signal.ITIMER_REAL, 0)

    rng, functions = random.Random(3), [_creation("")]
    start = time.perf_counter()
    expected = bits(functions[0](X))
    longest = time.perf_counter() - start
    before = signal.signal(signal.SIGALRM, interrupt)
    collecting = gc.isenabled(), gc.get_threshold()
    try:
        for _ in range(100):
            functions.append(_creation(""))
            first_call()
            signal.setitimer(signal.ITIMER_REAL, 0)
            check_all_is_as_before(collecting)
            assert bits(functions[-1](X)) == expected
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_interrupt_at_any_line_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    """Each line is interrupted where it runs first, last and halfway between: a first call runs 50,000 lines."""

    def each(counter: Interrupter) -> list[int]:
        return sorted({at for runs in counter.runs.values() for at in (runs[0], runs[len(runs) // 2], runs[-1])})

    assert interrupted(name, each, tmp_path) > 3000
