"""What a call or a compilation leaves behind goes at once: without cycles, no collection must find it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import sharing
from tests.support.growing import again

X = np.linspace(0.1, 1.0, 7)


_alive: list[Any] = []  # compiled functions refer to themselves; they would be garbage in the test after theirs


def alive(compiled: Any) -> Any:
    """A compiled function that lives until the tests of this file have run."""
    _alive.append(compiled)
    return compiled


@pytest.fixture(scope="module", autouse=True)
def _until_the_end() -> Iterator[None]:
    yield
    _alive.clear()


@pytest.fixture(autouse=True)
def _no_collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All garbage is there until it is asked for, and none of it is what other tests compiled."""
    monkeypatch.setattr(sharing, "_by_code", {})
    gc.collect()
    gc.freeze()  # what is there already is not looked through again: in a long run of tests that takes seconds
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def left() -> list[str]:
    """Classes of this package with objects that only a collection frees; it frees them."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = {f"{type(x).__module__}.{type(x).__qualname__}" for x in gc.garbage}
    gc.set_debug(0)
    gc.garbage.clear()
    gc.collect()
    return sorted(name for name in found if name.startswith("retrograd"))


def plain(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2 * np.exp(x) + 0.5)


def loop(x: Any) -> Any:
    for _ in range(30):
        x = x + 0.1 * np.sin(x)
    return np.sum(x)


def scanned(x: Any) -> Any:
    carry, _ = rg.scan(lambda c, i: (c + np.sin(c) * 0.1, None), x, None, length=20)
    return np.sum(carry)


def decided(x: Any) -> Any:
    if x[0] > 0:
        x = 2.0 * x
    return np.sum(x * x)


def sorted_by_hand(x: Any) -> Any:
    """Another way for each order."""
    values: list[Any] = []
    for v in x:
        k = 0
        while k < len(values) and values[k] < v:
            k += 1
        values.insert(k, v)
    return sum(k * v * v for k, v in enumerate(values))


def bouncing(y: Any, v: Any) -> Any:
    """Another way for each start, all of them one folded loop."""
    for _ in range(60):
        v = v - 0.1
        y = y + 0.05 * v
        if y < 0:
            y, v = -y, -0.9 * v
    return y * y


FIRST_CALLS: dict[str, Callable[[Any], Any]] = {
    "grad": rg.grad,
    "jit": rg.jit,
    "hessian": rg.hessian,
    "vmap": lambda f: rg.vmap(rg.grad(f), in_axes=None, axis_size=3),
    "native": lambda f: rg.grad(f, backend="native"),
}


@pytest.mark.costly
@pytest.mark.parametrize("transform", FIRST_CALLS)
@pytest.mark.parametrize("f", [plain, loop, scanned, decided])
def test_a_compilation_leaves_nothing(f: Callable[[Any], Any], transform: str) -> None:
    compiled = alive(FIRST_CALLS[transform](again(f)))
    compiled(X)
    assert left() == []


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_new_way_leaves_nothing(backend: Any) -> None:
    slope = alive(rg.value_and_grad(again(sorted_by_hand), backend=backend))
    rng = np.random.default_rng(0)
    for _ in range(12):
        slope(rng.normal(size=7))
    assert left() == []


def test_ways_of_a_folded_loop_leave_nothing() -> None:
    """The fold itself has variables that refer to each other; it is made once."""
    slope = alive(rg.value_and_grad(again(bouncing), argnums=(0, 1)))
    starts = np.random.default_rng(0).uniform(0.5, 3.0, 60).tolist()
    for start in starts[:40]:
        slope(start, 0.1)
    left()
    for start in starts[40:]:
        slope(start, 0.1)
    assert left() == []


def test_another_known_way_leaves_nothing() -> None:
    slope = alive(rg.grad(again(decided)))
    for _ in range(4):
        slope(X)
        slope(-X)
    assert left() == []


def test_a_call_that_raises_leaves_nothing() -> None:
    taken = alive(rg.jit(again(lambda x, i: x[i])))
    taken(X, np.int64(1))
    for _ in range(3):
        with pytest.raises(IndexError):
            taken(X, np.int64(100))
    assert left() == []
