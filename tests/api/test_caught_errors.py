"""Functions that catch what Python's numbers raise: each call gives what the plain function gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support import values

INF, NAN = float("inf"), float("nan")


def quotient(x: Any) -> Any:
    try:
        if 1.0 / x > 5.0:
            return x * x
        return 2.0 * x
    except ZeroDivisionError:
        return 100.0 * x


def whole(x: Any) -> Any:
    try:
        return x * int(x)
    except OverflowError:
        return -x
    except ValueError:
        return 7.0


def whole_element(a: Any) -> Any:
    try:
        return a[0] * int(a[0])
    except (OverflowError, ValueError):
        return -1.0


def remainder(x: Any) -> Any:
    try:
        return 7 % x + 7 // x
    except ZeroDivisionError:
        return 100.0 + x


def inverse_power(x: Any) -> Any:
    try:
        return x**-2.0
    except ZeroDivisionError:
        return x


def large_power(x: Any) -> Any:
    try:
        return x**400.0
    except OverflowError:
        return -x


def rounded(a: Any) -> Any:
    try:
        return a[0] * round(a[0])
    except (OverflowError, ValueError):
        return -1.0


CASES: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "quotient": (quotient, [0.0, 2.0, 0.1]),
    "whole": (whole, [INF, 3.25, NAN]),
    "whole element": (whole_element, [np.array([INF]), np.array([2.5]), np.array([NAN])]),
    "remainder": (remainder, [0.0, 2.5]),
    "inverse power": (inverse_power, [0.0, 2.0]),
    "large power": (large_power, [1e9, 1.1]),
    "rounded": (rounded, [np.array([INF]), np.array([2.25]), np.array([NAN])]),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize(("f", "points"), CASES.values(), ids=CASES)
def test_handlers_run_for_the_values_that_raise_alone(f: Any, points: list[Any], backend: str) -> None:
    for k, order in enumerate(permutations(points)):
        own = FunctionType(f.__code__, f.__globals__, f"{f.__name__}_{backend}_{k}")  # no compilation of another order
        made = rg.jit(own, backend=backend)
        for x in (*order, *order):
            values.assert_close([made(x)], [f(x)], 1e-14)


def test_gradients_of_handlers() -> None:
    slope = rg.grad(quotient)
    assert [slope(x) for x in (0.0, 2.0, 0.1, 0.0, 2.0)] == [100.0, 2.0, 0.2, 100.0, 2.0]


def test_an_int_among_the_arguments_of_a_function_that_catches() -> None:
    def inverse(x: Any, n: int) -> Any:
        try:
            return np.linalg.inv(x * n)
        except np.linalg.LinAlgError:
            return x * 3

    def until(x: Any, n: int) -> Any:
        s = 0.0
        for k in range(5):
            try:
                s = s + x[k] * n
            except IndexError:
                break
        return s

    for use in (rg.jit, rg.jacobian):
        for f, x in ((inverse, np.eye(2)), (until, np.array([1.0, 2.0]))):
            made = use(f)
            for n in (2, 0, 1, 2, 3):
                values.assert_close([made(x, n)], [use(f)(x, n)], 1e-14)
    assert [rg.jit(until)(np.array([1.0, 2.0]), n) for n in (1, 2)] == [3.0, 6.0]
