"""Code that runs in the middle of a trace without being part of it gets plain arrays and numbers."""

from __future__ import annotations

import contextvars
import gc
import logging
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy import ones

import retrograd as rg
from retrograd.compiler.cache import Cache
from retrograd.tracer.interception import Interception
from retrograd.tracer.trace import CURRENT

X = np.array([0.5, -1.0, 2.0])
square = rg.grad(lambda x: np.sum(x * x * np.ones(3)))
compiled = rg.jit(np.cumsum)
seen: list[Any] = []


def note(*_: Any) -> None:
    """What a handler may do: compiled functions, new and old ones, loops, NumPy's creation functions."""
    fresh = rg.grad(lambda x: np.sum(np.sin(x)))
    looped = rg.fori_loop(3, lambda i, c: c * 2.0, 1.5)
    made = np.zeros(3)
    made[0] = ones(3)[1]
    seen.append((square(X), compiled(X), fresh(X), rg.vjp(np.sin, X)[1](X)[0], looped, made, np.sum(X)))


def expected() -> tuple[Any, ...]:
    return (
        2 * X,
        np.cumsum(X),
        np.cos(X),
        np.cos(X) * X,
        12.0,
        np.array([1.0, 0.0, 0.0]),
        np.sum(X),
    )


class Noting:
    """An object whose end is noted, or a handler that is an object."""

    def __del__(self) -> None:
        note()

    def handle(self, *_: Any) -> None:
        note()


class Called:
    def __call__(self, *_: Any) -> None:
        note()


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note()


LOG = logging.getLogger("tests.handlers")
LOG.propagate = False


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    seen.clear()
    before, handler = signal.getsignal(signal.SIGUSR1), Handler()
    LOG.addHandler(handler)
    yield
    signal.signal(signal.SIGUSR1, before)
    LOG.removeHandler(handler)


def by_signal(handler: Any) -> Callable[[], None]:
    def run() -> None:
        signal.signal(signal.SIGUSR1, handler)
        signal.raise_signal(signal.SIGUSR1)

    return run


def by_del() -> None:
    Noting()


def by_finalizer() -> None:
    owner = Called()
    weakref.finalize(owner, note)
    del owner


def by_collector() -> None:
    def callback(phase: str, _: Any) -> None:
        if phase == "start":
            note()

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)


def by_log() -> None:
    LOG.warning("in the middle of a trace")


def in_a_thread_with_this_context() -> None:
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(note,))
    thread.start()
    thread.join()


INTERRUPTIONS = {
    "signal": by_signal(note),
    "signal, a lambda": by_signal(lambda number, frame: note()),
    "signal, a method": by_signal(Called().__call__),
    "signal, a partial": by_signal(partial(note, 1)),
    "signal, an object": by_signal(Called()),
    "del": by_del,
    "finalizer": by_finalizer,
    "collector": by_collector,
    "log": by_log,
    "thread": in_a_thread_with_this_context,
}


def check(count: int = 1) -> None:
    assert len(seen) == count
    for results in seen:
        for found, wanted in zip(results, expected(), strict=True):
            assert isinstance(found, (np.ndarray, float))
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", INTERRUPTIONS)
@pytest.mark.parametrize("transform", [rg.grad, rg.hessian, rg.jit, lambda f: rg.jit(rg.grad(f))])
def test_code_that_interrupts_a_trace_is_outside_of_it(kind: str, transform: Any) -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        INTERRUPTIONS[kind]()
        return np.sum(y * np.ones(3) * x)

    found = transform(f)(X)
    assert len(seen) >= 1
    check(len(seen))
    np.testing.assert_array_equal(found, transform(lambda x: np.sum(np.sin(x) * np.ones(3) * x))(X))
    assert CURRENT.get() is None


def test_an_interruption_of_the_engine_is_outside_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler runs between any two instructions, also of ours while they hold a lock."""

    def interrupting(cls: type, name: str) -> None:
        original = getattr(cls, name)

        def method(*args: Any) -> Any:
            signal.raise_signal(signal.SIGUSR1)
            found = original(*args)
            signal.raise_signal(signal.SIGUSR1)
            return found

        monkeypatch.setattr(cls, name, method)

    calls = []

    def handler(*_: Any) -> None:
        if not calls:  # it does not interrupt itself
            calls.append(1)
            try:
                note()
            finally:
                calls.pop()

    signal.signal(signal.SIGUSR1, handler)
    for cls, name in [(Interception, "set_up"), (Interception, "undo"), (Cache, "get"), (Cache, "lock")]:
        interrupting(cls, name)
    f = rg.grad(lambda x: np.sum(np.sin(x) * np.zeros(3)))
    np.testing.assert_array_equal(f(X), np.zeros(3))
    assert len(seen) >= 6
    check(len(seen))


def test_a_handler_may_call_the_function_that_it_interrupts() -> None:
    def f(x: Any) -> Any:
        if not seen:
            seen.append(None)
            signal.raise_signal(signal.SIGUSR1)
        return np.sum(x * x * np.ones(3))

    found = []
    slope = rg.grad(f)
    signal.signal(signal.SIGUSR1, lambda *_: found.append(slope(X)))
    np.testing.assert_array_equal(slope(X), 2 * X)
    assert type(found[0]) is np.ndarray
    np.testing.assert_array_equal(found[0], 2 * X)


def test_a_function_with_the_shape_of_a_handler_is_traced() -> None:
    def scaled(number: Any, frame: Any) -> Any:
        return number * np.full(3, 2.0) * frame

    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(scaled(x, 3.0)))(X), np.full(3, 6.0))


def test_a_compiled_function_of_plain_values_inside_a_trace_still_closes_over_traced_ones() -> None:
    def f(x: Any) -> Any:
        return rg.grad(lambda t: np.sum(np.sin(t * x)))(1.0)

    np.testing.assert_allclose(rg.grad(f)(X), np.cos(X) - X * np.sin(X))
