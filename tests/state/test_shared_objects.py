"""Two places that hold one array or object when a further way is recorded, and held two before or hold two after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

a = b = c = np.zeros(2)


class Holder:
    """Three arrays, or three objects that have one."""

    first: Any
    second: Any
    third: Any


class Weights:
    """An object with an array."""

    def __init__(self, *values: float) -> None:
        self.w = np.array(values)


def of_globals() -> tuple[Callable[[Any], Any], Callable[[Any, Any, Any], None]]:
    def read(_: Any) -> tuple[Any, Any, Any]:
        return a, b, c

    def write(first: Any, second: Any, third: Any) -> None:
        global a, b, c
        a, b, c = first.w, second.w, third.w

    return read, write


def of_attributes() -> tuple[Callable[[Any], Any], Callable[[Any, Any, Any], None]]:
    pair = Holder()

    def read(_: Any) -> tuple[Any, Any, Any]:
        return pair.first, pair.second, pair.third

    def write(first: Any, second: Any, third: Any) -> None:
        pair.first, pair.second, pair.third = first.w, second.w, third.w

    return read, write


def of_objects() -> tuple[Callable[[Any], Any], Callable[[Any, Any, Any], None]]:
    pair = Holder()

    def read(_: Any) -> tuple[Any, Any, Any]:
        return pair.first.w, pair.second.w, pair.third.w

    def write(first: Any, second: Any, third: Any) -> None:
        pair.first, pair.second, pair.third = first, second, third

    return read, write


def of_an_argument() -> tuple[Callable[[Any], Any], Callable[[Any, Any, Any], None]]:
    pair = Holder()

    def read(static: Any) -> tuple[Any, Any, Any]:
        return static.first.w, static.second.w, static.third.w

    def write(first: Any, second: Any, third: Any) -> None:
        pair.first, pair.second, pair.third = first, second, third

    read.pair = pair  # type: ignore[attr-defined]
    return read, write


PLACES = [of_globals, of_attributes, of_objects, of_an_argument]
ONE, TWO, OTHER = Weights(1.0, 2.0), Weights(10.0, 20.0), Weights(100.0, 200.0)


@pytest.mark.filterwarnings("ignore::retrograd.errors.RetraceWarning")
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("seed", range(20))
def test_ways_read_what_is_there_now(places: Any, seed: int) -> None:
    read, write = places()
    rng = np.random.default_rng(seed)

    def chosen(x: Any, static: Any) -> Any:
        if x > 1:
            return read(static)[:2]
        if x > 0:
            return read(static)[1::-1]
        return read(static)[1:] if x > -1 else read(static)[2:] * 2

    def f(x: Any, static: Any) -> Any:
        first, second = chosen(x, static)
        for k in range(3):
            if x > k:
                first = first * 2.0
        return x * x * first.sum() + x * second.sum()

    g = rg.grad(f)
    static = getattr(read, "pair", None)
    for _ in range(12):
        write(*rng.choice([ONE, TWO, OTHER], 3).tolist())
        for x in rng.permutation([-2.0, -0.5, 0.5, 1.5, 2.5])[:3]:
            first, second = chosen(x, static)
            factor = 2.0 ** sum(x > k for k in range(3))
            assert g(x, static) == pytest.approx(2.0 * x * factor * first.sum() + second.sum())


def test_an_array_that_a_way_finds_in_another_place() -> None:
    pair = Holder()
    pair.first = pair.third = np.array([1.0, 2.0])
    g = rg.grad(lambda x: x * (pair.first if x > 0 else pair.third).sum())
    assert (g(1.0), g(-1.0)) == (3.0, 3.0)
    pair.third = np.array([10.0, 20.0])
    assert (g(1.0), g(-1.0)) == (3.0, 30.0)
    pair.first = np.array([0.5, 0.5])
    assert (g(1.0), g(-1.0)) == (1.0, 30.0)
