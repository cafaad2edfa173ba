"""Loops whose steps need nothing of each other: threads share them, with the bits of one loop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy import at_once
from retrograd.compiler import block_threads
from retrograd.compiler.block_threads import THREADS
from tests.support.limits import other_limits
from tests.support.memory import measured

SHORT = {"codegen.numpy.at_once": {"WORTH": 8, "LONG": 8, "FEWEST": 2}}
ALWAYS = {"compiler.block_threads": {"WORTH": -1.0, "GAIN": float("inf")}}
NEVER = {"codegen.numpy.at_once": {"WORTH": 1 << 60}}
W = np.random.default_rng(0).normal(size=(4, 3))
XS = np.random.default_rng(1).normal(size=(7, 5, 4))
PLACES = np.array([[1, 0], [3, 3], [2, 1], [0, 0], [1, 2], [3, 1], [2, 2]])


def mapped(step: Any, xs: Any, **options: Any) -> Any:
    return rg.scan(lambda s, x: (s, step(x)), (), xs, **options)[1]


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "products": (lambda w, xs: mapped(lambda x: np.tanh(x @ w), xs), (W, XS)),
    "kinds": (lambda xs: mapped(lambda x: (np.sum(x), x[0] > 0, np.argmax(x[0]), 1j * x[0]), xs), (XS,)),
    "backwards": (lambda xs: mapped(lambda x: np.exp(x) - x, xs, reverse=True), (XS,)),
    "one operand, twice": (lambda xs: mapped(lambda x: (x, x, x + 1.0), xs), (XS,)),
    "views": (lambda xs: mapped(lambda x: (np.sin(x).T, x[::-1], x[1:, 0]), xs), (XS,)),
    "constants": (lambda xs: mapped(lambda x: (np.ones(3), 2.0, x * 0.0 + W[:, 0]), xs), (XS,)),
    "writes": (lambda xs: mapped(written, xs), (XS,)),
    "places": (lambda w, xs: mapped(lambda p: w[p] @ w[p].T, xs), (W, PLACES)),
    "single precision": (lambda xs: mapped(lambda x: np.sqrt(np.abs(x)) @ x.T, xs), (XS.astype(np.float32),)),
    "two steps": (lambda xs: mapped(lambda x: x * 3.0 - np.sin(x), xs), (XS[:2],)),
    "of lanes": (rg.vmap(lambda x: mapped(lambda row: np.cumsum(row) * row, x)), (XS,)),
}
PROGRAMS["in a loop"] = (
    lambda w, xs: rg.scan(lambda s, v: (s + np.sum(mapped(np.sin, xs * v)), None), 0.0, w)[0],
    (W, XS[..., :3]),
)


def written(x: Any) -> Any:
    y = np.zeros(6)
    y[1:5] = x[2]
    y[2] += y[1]
    return y


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Threads share the least work, and the number of them is as before."""
    before = THREADS.number
    with other_limits(ALWAYS):
        yield
    THREADS.number = before


def bits(result: Any) -> list[tuple[Any, ...]]:
    leaves = result if isinstance(result, (tuple, list)) else [result]
    return [(x.dtype, x.shape, x.tobytes()) for leaf in leaves for x in [np.asarray(leaf)]]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_do_not_depend_on_the_number_of_threads(name: str, backend: str) -> None:
    function, args = PROGRAMS[name]
    with other_limits(NEVER):
        plain = rg.jit(lambda *args: function(*args), backend="numpy")  # noqa: PLW0108 - equal code is compiled once
        expected = bits(plain(*args))
        assert "in_steps" not in plain.source(*args)
    with other_limits(SHORT):
        f = rg.jit(function, backend=backend)
        for number in (1, 2, 3, 5, 64):
            rg.config.threads = number
            found = bits(f(*args))
            if backend == "numpy":
                assert found == expected
            else:
                for (_, shape, a), (kind, other, b) in zip(found, expected, strict=True):
                    assert shape == other
                    np.testing.assert_allclose(np.frombuffer(a, kind), np.frombuffer(b, kind), rtol=1e-5)
        assert backend == "native" or "in_steps(" in f.source(*args)


@pytest.mark.parametrize("name", ["products", "backwards", "views", "single precision", "in a loop"])
def test_derivatives(name: str) -> None:
    function, args = PROGRAMS[name]

    def loss(*args: Any) -> Any:
        found = function(*args)
        return sum(np.sum(np.cos(x)) for x in (found if isinstance(found, (tuple, list)) else [found]))

    with other_limits(NEVER):
        expected = bits(rg.grad(lambda *args: loss(*args), argnums=len(args) - 1)(*args))  # noqa: PLW0108 - equal code is compiled once
    with other_limits(SHORT):
        rg.config.threads = 3
        assert bits(rg.grad(loss, argnums=len(args) - 1)(*args)) == expected


def test_a_source_runs_on_numpy_alone() -> None:
    function, args = PROGRAMS["products"]
    with other_limits(SHORT):
        f = rg.jit(function)
        expected = f(*args)
        scope: dict[str, Any] = {}
        exec(f.source(*args), scope)
    *_, main = (x for x in scope.values() if callable(x))
    assert bits(main(*args)) == bits(expected)


@pytest.mark.parametrize(
    "loop",
    [
        lambda xs: rg.scan(lambda s, x: (s + x, x * 2.0), np.zeros((5, 4)), xs),
        lambda xs: mapped(lambda x: np.sin(x) * x, xs[:1]),
        lambda xs: mapped(lambda x: rg.fori_loop(0, 3, lambda i, y: np.sin(y), x), xs),
        lambda xs: mapped(lambda x: np.sin(x[0, 0]) + 1.0, xs),
    ],
    ids=["a carry", "one step", "a loop inside", "short operations"],
)
def test_other_loops_stay(loop: Any) -> None:
    with other_limits({"codegen.numpy.at_once": {"WORTH": 8, "LONG": 64, "FEWEST": 2}}):
        f = rg.jit(loop)
        f(XS)
        assert "in_steps" not in f.source(XS)


def test_an_exception_of_any_step_is_that_of_the_loop() -> None:
    table = np.arange(12.0).reshape(4, 3)
    with other_limits(SHORT):
        f = rg.jit(lambda table, places: mapped(lambda p: table[p] * 2.0, places))
        rg.config.threads = 2
        f(table, PLACES)
        for k in range(len(PLACES)):
            wrong = PLACES.copy()
            wrong[k, 1] = 17
            with pytest.raises(IndexError, match="index 17 is out of bounds"):
                f(table, wrong)
        assert bits(f(table, PLACES)) == bits(table[PLACES] * 2.0)


def test_several_threads_work(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()

    def between(steps: Any, operands: Any, start: int, stop: int) -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.01)
        steps(start, stop, *operands)

    monkeypatch.setattr(block_threads, "_steps_between", between)
    function, args = PROGRAMS["products"]
    with other_limits(SHORT):
        rg.config.threads = 3
        rg.jit(function)(*args)
    assert len(names) == 3


def large(w: Any, xs: Any) -> Any:
    return np.sum(mapped(lambda x: np.sum(np.tanh(x @ w) * np.exp(x)), xs))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_memory_is_that_which_is_predicted(number: int) -> None:
    w, xs = (np.random.default_rng(0).normal(size=s) * 0.1 for s in ((100, 100), (8, 500, 100)))
    rg.config.threads = number
    f = rg.jit(large)
    f(w, xs)
    assert "in_steps(" in f.source(w, xs)
    predicted = f.plan(w, xs).peak_bytes
    assert predicted is not None
    step = 2 * xs[0].nbytes  # a step keeps two arrays, and as many steps run as there are threads
    assert number * step <= predicted <= 1.01 * number * step + 4096
    assert measured(f, w, xs) <= 1.01 * predicted + 16_384


def test_the_limits_are_those_of_the_benchmark() -> None:
    """Steps of arrays that are just too short for threads, and just long enough."""
    rows = at_once.LONG // 2 // 8
    for n, made in ((rows - 1, False), (rows, True)):
        xs = np.ones((max(at_once.FEWEST, at_once.WORTH // at_once.LONG), n))
        f = rg.jit(lambda xs: mapped(np.sin, xs))
        f(xs)
        assert ("in_steps(" in f.source(xs)) == made
