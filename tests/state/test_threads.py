"""State that changes while another thread records: no entry outlives what it was recorded from."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy import zeros

import retrograd as rg
from tests.state.holders import program
from tests.state.oracle import POINTS

WAIT = 20.0  # seconds, after which a thread that should have come has failed


def total(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of what it gives."""
    return lambda x: np.sum(g(x))


BUILDS: dict[str, Callable[[Any], Any]] = {
    "jit": rg.jit,
    "grad": lambda f: total(rg.grad(f)),
    "jit(grad)": lambda f: total(rg.jit(rg.grad(f))),
    "hessian": lambda f: total(rg.hessian(f)),
}
HOLDS = {
    "global": ("K = 2.0", "K", lambda p, k: p.__setitem__("K", k)),
    "attribute": ("s = SimpleNamespace(k=2.0)", "s.k", lambda p, k: setattr(p["s"], "k", k)),
    "item": ("d = {'k': 2.0}", "d['k']", lambda p, k: p["d"].__setitem__("k", k)),
    "array": ("w = np.full(3, 2.0)", "w", lambda p, k: p.__setitem__("w", np.full(3, k))),
}


def wanted(build: str, k: float, x: Any) -> float:
    """The number for ``sum(k * x**2)``."""
    return float({"jit": np.sum(k * x**2), "hessian": 6 * k}.get(build, np.sum(2 * k * x)))


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("hold", HOLDS)
def test_what_is_bound_anew_while_another_thread_records_is_seen(hold: str, build: str) -> None:
    head, read, put = HOLDS[hold]
    inside, go = threading.Event(), threading.Event()

    def pause() -> None:
        inside.set()
        assert go.wait(WAIT)

    p = program(
        f"{head}\ndef f(x):\n    y = np.sum({read} * x**2)\n    pause()\n    return y",
        pause=pause,
        SimpleNamespace=SimpleNamespace,
    )
    g = BUILDS[build](p["f"])
    thread = threading.Thread(target=g, args=(POINTS[0],))
    thread.start()
    assert inside.wait(WAIT)
    put(p, 5.0)
    go.set()
    thread.join(WAIT)
    for x in POINTS:
        np.testing.assert_allclose(g(x), wanted(build, 5.0, x))


@pytest.mark.parametrize("hold", HOLDS)
def test_threads_see_the_state_that_all_have_agreed_on(hold: str) -> None:
    head, read, put = HOLDS[hold]
    p = program(f"{head}\ndef f(x):\n    return np.sum({read} * x**2)", SimpleNamespace=SimpleNamespace)
    gradients = {name: build(p["f"]) for name, build in BUILDS.items()}
    wrong: list[Any] = []
    numbers = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    ready, done = threading.Barrier(4, action=lambda: put(p, next(numbers))), threading.Barrier(4)

    def work(seed: int) -> None:
        for step in range(6):
            ready.wait(WAIT)
            k = float(step + 1)
            for name, g in gradients.items():
                x = POINTS[(seed + step) % len(POINTS)]
                if not np.allclose(found := g(x), wanted(name, k, x)):
                    wrong.append((name, step, found, wanted(name, k, x)))
            done.wait(WAIT)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(4 * WAIT)
    assert not wrong
    assert not any(t.is_alive() for t in threads)


MODEL = """
class Model:
    gain = property(lambda self: K)
    def __mul__(self, other): return K * other
    def __call__(self): return K
    def method(self): return K
def helper(k=None): return K
"""
SHARED = {  # what two functions share, and how they use it
    "function": ("helper", "s()"),
    "partial": ("functools.partial(helper, k=1.0)", "s()"),
    "method": ("Model().method", "s()"),
    "property": ("Model()", "s.gain"),
    "operator": ("Model()", "(s * 1.0)"),
    "object that is called": ("Model()", "s()"),
    "class": ("Model", "s().gain"),
}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("share", SHARED)
def test_code_that_two_threads_record_is_seen_by_both(share: str, build: str) -> None:
    """The second one meets it while the first one records, and runs it when that has ended."""
    made, use = SHARED[share]
    inside, met, ended = threading.Event(), threading.Event(), threading.Event()

    def pause(at: threading.Event, until: threading.Event) -> None:
        at.set()
        assert until.wait(WAIT)

    p = program(
        f"{MODEL}shared = {made}\n"
        f"def one(x):\n    s = shared\n    y = np.sum({use} * x**2)\n    pause(inside, met)\n    return y\n"
        f"def two(x):\n    s = shared\n    pause(met, ended)\n    return np.sum({use} * x**2)\n",
        pause=pause,
        inside=inside,
        met=met,
        ended=ended,
        functools=functools,
    )
    f, g = BUILDS[build](p["one"]), BUILDS[build](p["two"])
    thread = threading.Thread(target=f, args=(POINTS[0],))
    thread.start()
    assert inside.wait(WAIT)
    second = threading.Thread(target=g, args=(POINTS[0],))
    second.start()
    thread.join(WAIT)
    ended.set()
    second.join(WAIT)
    p["K"] = 5.0
    for x in POINTS:
        np.testing.assert_allclose(f(x), wanted(build, 5.0, x))
        np.testing.assert_allclose(g(x), wanted(build, 5.0, x))


def test_another_thread_calls_a_recorded_helper_plainly() -> None:
    p = program(
        "def helper(x):\n    pause()\n    return K * x\ndef f(x):\n    return np.sum(helper(x))", pause=lambda: None
    )
    stop, wrong = threading.Event(), []

    def spin() -> None:
        while not stop.is_set():
            if type(found := p["helper"](POINTS[0])) is not np.ndarray:
                wrong.append(found)

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        for i in range(20):
            np.testing.assert_allclose(rg.jit(lambda x, i=i: p["f"](x) + i)(POINTS[0]), 2.0 * np.sum(POINTS[0]) + i)
    finally:
        stop.set()
        thread.join(WAIT)
    assert not wrong


def test_names_bound_early_stay_themselves_while_other_threads_trace() -> None:
    """A stand-in takes the place of ``zeros`` in this module meanwhile."""

    def f(v: Any) -> Any:
        table = zeros(3)
        table[0] = float(v[1])
        return np.sum(table * v)

    g = rg.grad(f)
    point = np.array([1.0, 2.0, 3.0])
    expected = g(point)
    stop = threading.Event()

    def trace() -> None:
        k = 0.0
        while not stop.is_set():
            k += 1.0
            rg.grad(lambda v, k=k: np.sum(zeros(3) + v * k))(point)

    threads = [threading.Thread(target=trace) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        np.testing.assert_array_equal(g(point), expected)
    stop.set()
    for thread in threads:
        thread.join()
    assert g.cache_info().misses <= 2
