"""A recording that is too long is refused after ``max_nodes`` operations, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.5, -1.0, 2.0])
STEPS = 10**7
MOST = 500
steps: list[int] = []
slope = rg.grad(lambda x: np.sum(np.sin(x)))


def growing(x: Any) -> Any:
    for _ in note():  # loop
        x = x * 0.5
    return x


def merging(x: Any) -> Any:
    for _ in note():  # loop
        y = np.sin(x)
    return y


def made_inside(x: Any) -> Any:
    for _ in note():  # loop
        table = np.zeros(3)
        table[0] = 1.0
    return x * table


def compiled(x: Any) -> Any:
    for _ in note():  # loop
        y = slope(x)
    return y


def decided(x: Any) -> Any:
    for _ in note():  # loop
        y = x if x[0] > 0 else -x
    return y


def written(x: Any) -> Any:
    for k in note():  # loop
        x[k % 3] = x[0]
    return x


def listed(x: Any) -> Any:
    return [x[0] * x for _ in note()][-1]  # loop


def endless(x: Any) -> Any:
    k = 0
    while k < STEPS:  # loop
        k += 1
        steps.append(k)
        y = np.cos(x) + float(x[1])
    return y


def called(x: Any) -> Any:
    def step(x: Any) -> Any:
        return np.cos(x)

    for _ in note():  # loop
        x = step(x)
    return x


def note() -> Any:
    return (steps.append(k) or k for k in range(STEPS))  # type: ignore[func-returns-value]


LOOPS = [growing, merging, made_inside, compiled, decided, written, listed, endless, called]


def line_of_loop(function: Callable[..., Any]) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = function.__code__.co_firstlineno
    return next(k for k in range(first, len(lines) + 1) if lines[k - 1].endswith("# loop"))


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [rg.jit, lambda f: rg.grad(lambda x: np.sum(f(x)))], ids=["jit", "grad"])
def test_a_loop_that_takes_too_long_is_refused_with_its_line(function: Callable[..., Any], transform: Any) -> None:
    steps.clear()
    with rg.config(max_nodes=MOST), pytest.raises(rg.errors.TraceLengthError) as caught:
        transform(function)(X)
    assert f"more than {MOST} operations" in str(caught.value)
    assert f"{__file__}:{line_of_loop(function)}" in caught.value.what
    assert caught.value.where is not None
    assert caught.value.where.file == __file__
    assert MOST // 10 <= len(steps) <= MOST + 1


def test_loops_in_loops_are_all_named() -> None:
    def function(x: Any) -> Any:
        for _ in range(3):
            for _ in range(STEPS):
                x = np.sin(x)
        return x

    first = function.__code__.co_firstlineno
    with rg.config(max_nodes=MOST), pytest.raises(rg.errors.TraceLengthError) as caught:
        rg.jit(function)(X)
    assert f"in the loops at {__file__}:{first + 1} and {__file__}:{first + 2}" in caught.value.what


def test_the_callers_loops_are_not_named() -> None:
    def deep(x: Any, n: int) -> Any:
        return x if n == 0 else deep(np.sin(x), n - 1)

    for n in (100, 200):
        with rg.config(max_nodes=50), pytest.raises(rg.errors.TraceLengthError) as caught:
            rg.jit(deep)(X, n)
        assert "loop" not in caught.value.what


@pytest.mark.parametrize("count", [1, 2, 10, 30])
def test_the_limit_is_the_number_of_operations(count: int) -> None:
    def function(x: Any) -> Any:
        for _ in range(count):
            x = np.sin(x)
        return x

    with rg.config(max_nodes=count):
        rg.jit(function)(X)
    if count > 1:
        with rg.config(max_nodes=count - 1), pytest.raises(rg.errors.TraceLengthError):
            rg.jit(function)(X)
