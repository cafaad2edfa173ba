"""Many threads that compile and call the same functions at once get the same bits as one."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.executable import Executable, _gone
from retrograd.tracer.interception import INTERCEPTION

RNG = np.random.default_rng(3)
POINTS = [RNG.normal(size=n) for n in (3, 4)]
SCALE = np.linspace(0.5, 1.5, 4)


def _functions() -> list[Callable[..., Any]]:
    """Twenty compiled functions with nothing compiled yet."""

    def made(k: int) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            table = np.zeros(len(x))
            table[0] = x[1] * k
            y = np.sin(x) * SCALE[: len(x)] + np.arange(len(x)) * table
            return np.sum(np.tanh(y) if x[0] > 0 else np.cos(y))

        return f

    def loss(k: int) -> Callable[..., Any]:
        return lambda x: np.sum(rg.fori_loop(k, lambda i, c: np.sin(c), x, memory=rg.Snapshots(2)))

    ways: list[Callable[..., Any]] = [
        rg.grad,
        rg.value_and_grad,
        rg.jit,
        rg.hessian,
        lambda f: rg.jit(rg.grad(f)),
        lambda f: rg.vmap(rg.grad(lambda t: np.tanh(t) * t)),
        lambda f: lambda x: rg.vjp(f, x)[1](1.0),
    ]
    return [*(way(made(k)) for way in ways for k in (2, 3)), *(rg.grad(loss(k)) for k in range(5, 11))]


def bits(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(bits, x))
    return type(x), np.shape(x), np.asarray(x).tobytes()


@pytest.fixture
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def differing(threads: int, calls: int) -> list[Any]:
    """The calls, of so many in each of these threads, whose results are not those of one thread."""
    expected = {(k, n): bits(f(x)) for k, f in enumerate(_functions()) for n, x in enumerate(POINTS)}
    functions = _functions()
    assert len(functions) == 20
    barrier = threading.Barrier(threads, timeout=120)

    def work(number: int) -> list[Any]:
        rng = np.random.default_rng(number)
        barrier.wait()
        wrong = []
        for _ in range(calls):
            k, n = int(rng.integers(len(functions))), int(rng.integers(len(POINTS)))
            if bits(functions[k](POINTS[n])) != expected[k, n]:
                wrong.append((number, k, n))
        return wrong

    with ThreadPoolExecutor(threads) as pool:
        wrong = [x for found in pool.map(work, range(threads)) for x in found]
    for f in functions:
        if hasattr(f, "cache_info"):  # each signature is compiled once
            assert f.cache_info().misses <= len(POINTS)
    assert not INTERCEPTION._holders
    return wrong


@pytest.mark.usefixtures("_switching_often")
def test_threads_get_the_bits_that_one_gets() -> None:
    assert differing(8, 25) == []


@pytest.mark.slow
@pytest.mark.usefixtures("_switching_often")
def test_many_threads_get_the_bits_that_one_gets() -> None:
    assert differing(32, 300) == []


@pytest.mark.usefixtures("_switching_often")
def test_sources_come_and_go_in_many_threads() -> None:
    graph = rg.jit(np.sin).graph(1.0)
    barrier = threading.Barrier(6, timeout=60)

    def work(_: int) -> None:
        barrier.wait()
        for _ in range(40):
            made = Executable(graph)
            assert linecache.getline(made.filename, 1)
            del made

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    last = Executable(graph)
    assert not _gone
    assert last.filename in linecache.cache
