"""Large nests on threads: results have the same bits on any number of them, and nothing that users do disturbs them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.shared_objects import compiler
from retrograd.codegen.native.target import REFUSALS
from retrograd.compiler.block_threads import THREADS
from tests.support.native import needs_compiler

pytestmark = needs_compiler

Program = tuple[Callable[..., Any], tuple[Any, ...]]


@contextmanager
def always_helped(*flags: str) -> Iterator[None]:
    """Kernels use threads for the shortest work, and also if these do not make it faster."""
    tool = compiler()
    assert tool is not None
    with pytest.MonkeyPatch.context() as patch, rg.config(backend="native"):
        flags = (*tool.flags, "-DWORTH=-1", "-DLEAST=-1", "-DGAIN=1e9", *flags)
        patch.setattr(shared_objects, "compiler", lambda: replace(tool, flags=flags))
        patch.setattr(shared_objects, "_helpers", [0])
        yield


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads, until the test ends."""
    before = rg.config.threads
    yield lambda n: setattr(rg.config, "threads", n)
    rg.config.threads = before


def long_sums(x: Any) -> Any:
    return np.sum(np.sin(x) * x) + np.max(x) - np.min(np.exp(-x * x))


def rows(x: Any, w: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum(w * e / np.sum(e, axis=1, keepdims=True))


def columns(x: Any, gain: Any) -> Any:
    scaled = (x - np.mean(x, axis=1, keepdims=True)) / np.sqrt(np.var(x, axis=1, keepdims=True) + 1e-5)
    return np.sum(np.tanh(gain * scaled) ** 2)


def sums_in_turn(x: Any) -> Any:
    """Sums over rows: of columns, with axes between, with axes added up in one go; and extrema, numbers, all."""
    y = np.sin(x) * np.cos(x)
    numbers = np.max(y, axis=0), np.sum(y > 0, axis=0), np.sum(y), np.max(np.abs(y))
    sums = [np.sum(y, axis=axis) for axis in (0, (0, 1), (0, 2), (0, 3), (0, 1, 3), (0, 2, 3), 3)]
    return sum(np.sum(np.sin(s / 50)) for s in (*sums, *numbers))


def neighbours(x: Any) -> Any:
    def step(u: Any, _: Any) -> Any:
        v = u.copy()
        v[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
        return v, None

    u, _ = rg.scan(step, x, None, length=3)
    return np.sum(u * u)


def pairs(x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    return np.sum(1.0 / np.sqrt(np.sum(d * d, axis=2) + 0.1))


def differences(x: Any) -> Any:
    return np.sum(np.diff(x) ** 2) + np.sum(np.concatenate((x[:5], x[7:])) * 0.5)


RNG = np.random.default_rng(7)
PROGRAMS: dict[str, Program] = {
    "long sums": (long_sums, (RNG.normal(size=20_011),)),
    "long sums in f32": (long_sums, (RNG.normal(size=20_011).astype("f4"),)),
    "rows": (rows, (RNG.normal(size=(70, 300)), RNG.normal(size=(70, 300)))),
    "long rows": (rows, (RNG.normal(size=(7, 40_000)), RNG.normal(size=(7, 40_000)))),
    "columns": (columns, (RNG.normal(size=(301, 50)), RNG.normal(size=50))),
    "sums in turn": (sums_in_turn, (RNG.normal(size=(501, 3, 20, 11)),)),
    "sums in turn behind a few columns": (sums_in_turn, (RNG.normal(size=(301, 3, 40, 3)),)),
    "sums of long rows in turn": (sums_in_turn, (RNG.normal(size=(11, 2, 30, 700)),)),
    "neighbours": (neighbours, (RNG.normal(size=(211, 207)),)),
    "pairs": (pairs, (RNG.normal(size=(210, 3)),)),
    "differences": (differences, (RNG.normal(size=200_003),)),
    "nan": (long_sums, (np.where(np.arange(20_011) == 15_000, np.nan, 0.5),)),
}


def taken_apart(function: Any, args: tuple[Any, ...]) -> int:
    """The number of nests in parts."""
    return int(function.source(*args, language="c").count("in_parts(kernel"))


def bits(found: Any) -> bytes:
    return b"".join(np.asarray(x).tobytes() for x in rg.tree.flatten(found)[0])


def gradients(names: list[str]) -> None:
    """The gradients of programs on 1, 2 and 3 threads agree to the bit, and with NumPy's; with ``always_helped``."""
    for name in names:
        f, args = PROGRAMS[name]
        g = rg.value_and_grad(f, tuple(range(len(args))))
        found = []
        for n in (1, 2, 3, 64, 2):
            rg.config.threads = n
            found.append(bits(g(*args)))
        assert len(set(found)) == 1, name
        assert taken_apart(g, args) or name == "long rows", name
        with np.errstate(all="ignore"):
            expected = rg.value_and_grad(f, tuple(range(len(args))), backend="numpy")(*args)
        tolerance = 1e-4 if args[0].dtype == np.float32 else 1e-11
        for a, b in zip(rg.tree.flatten(g(*args))[0], rg.tree.flatten(expected)[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_number_of_threads_gives_the_same_bits(name: str, threads: Any) -> None:
    REFUSALS.clear()
    with always_helped("-O1"):
        gradients([name])
    assert not REFUSALS


@pytest.mark.parametrize("shape", [(300, 1000), (300_000,)])
def test_tests_of_large_arrays_have_parts(shape: tuple[int, ...]) -> None:
    def far(x: Any) -> Any:
        y = np.exp(x) + np.tanh(x)
        return np.any(y > 9.0, axis=-1), np.all(y < 9.0, axis=-1), np.sum(y)

    x = np.random.default_rng(0).normal(size=shape)
    f = rg.jit(far, backend="native")
    results = f(x)
    assert f.executable(x).module.kernels
    assert "in_parts(kernel0_part1" in f.source(x, language="c")
    assert not any("total" in why for why in REFUSALS)  # the compiler knows all names
    for mine, numpys in zip(results[:2], far(x)[:2], strict=True):
        assert np.array_equal(mine, numpys)


def test_helpers_compute_parts(threads: Any) -> None:
    x = PROGRAMS["long sums"][1][0]
    with always_helped("-DAWAKE=0"):
        g = rg.grad(long_sums)
        threads(1)
        g(x)
        before = tasks()
        threads(4)
        g(x)
        assert tasks() == before + 3 * (before > 0)


def test_short_works_that_follow_each_other_have_helpers(threads: Any) -> None:
    """All works are short here. On a busy machine, the fifth in a row wakes helpers, and a later one has them."""
    x, w = PROGRAMS["rows"][1]
    with always_helped("-DWORTH=1e18", "-DROW=4", "-DAWAKE=1000000000"):
        g = rg.grad(rows)
        threads(1)
        alone, before = g(x, w), tasks()
        threads(3)
        for _ in range(30):
            np.testing.assert_array_equal(g(x, w), alone)
        assert tasks() == before + 2 * (before > 0)


def test_short_works_now_and_then_have_none(threads: Any) -> None:
    x, w = PROGRAMS["rows"][1]
    with always_helped("-DWORTH=1e18", "-DAWAKE=0"):
        g = rg.grad(rows)
        threads(3)
        before = tasks()
        for _ in range(30):
            g(x, w)
        assert tasks() == before


def tasks() -> int:
    """The threads of this process; 0 where the system does not tell."""
    known = Path("/proc/self/task")
    return len([*known.iterdir()]) if known.is_dir() else 0


def test_what_gives_up_in_a_part_is_numpys(threads: Any) -> None:
    x = np.ones(20_011)
    x[17_000] = 1e20
    with always_helped():
        g = rg.grad(lambda x: np.sum(np.sin(x) * x))
        threads(3)
        np.testing.assert_array_equal(g(x), rg.grad(lambda x: np.sum(np.sin(x) * x), backend="numpy")(x))


def test_calls_from_many_threads_at_once(threads: Any) -> None:
    with always_helped():
        g = rg.grad(rows, backend="native")
        threads(3)
        args = [(RNG.normal(size=(70, 300)), RNG.normal(size=(70, 300))) for _ in range(6)]
        expected = [bits(g(*a)) for a in args]
        with ThreadPoolExecutor(6) as pool:
            for _ in range(20):
                assert list(pool.map(lambda a: bits(g(*a)), args)) == expected


def test_a_call_computes_alone_where_it_shall(threads: Any) -> None:
    threads(3)
    assert shared_objects._threads() == 3
    with THREADS.alone():
        assert shared_objects._threads() == 1


HEAD = """
import os, signal, threading, time
from tests.native.test_threads import *
x = PROGRAMS["long sums"][1][0]
rg.config.threads = 2
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    command, env = [sys.executable, "-c", HEAD + program], {**os.environ, "RETROGRAD_CACHE": "off"}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=100, check=False)


FORK = """
with always_helped("-O1"):
    g = rg.grad(long_sums, backend="native")
    expected = bits(g(x))
    stop = []
    def work():
        while not stop:
            g(x)
    other = threading.Thread(target=work)
    other.start()
    for k in range(20):
        child = os.fork()
        if child == 0:
            assert rg.config.threads == 1
            rg.config.threads = 1 + k % 3
            os._exit(0 if bits(g(x)) == expected else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.append(1)
    other.join()
    assert bits(g(x)) == expected
"""
EXIT = """
with always_helped("-O1"):
    g = rg.grad(long_sums, backend="native")
    g(x)
    def work():
        while True:
            g(x)
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.05)
"""
INTERRUPT = """
with always_helped("-O1"):
    g = rg.grad(long_sums, backend="native")
    expected = bits(g(x))
    caught = 0
    for k in range(50):
        try:
            threading.Timer(0.001 * (k % 7), signal.raise_signal, (signal.SIGINT,)).start()
            while True:
                g(x)
        except KeyboardInterrupt:
            caught += 1
        assert bits(g(x)) == expected
    assert caught == 50
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [FORK, EXIT, INTERRUPT], ids=["fork", "exit", "interrupt"])
def test_forks_ends_and_interrupts(program: str) -> None:
    told = run(program)
    assert told.returncode == 0, told.stderr[-3000:]
