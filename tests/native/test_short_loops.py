"""Short Python loops are loops in C, whatever they compute: GCC would take a second for their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import cholesky_by_rows, n_body
from retrograd.compiler.rolled import rolled_from
from tests.support.blocks import loops
from tests.support.growing import again
from tests.support.native import needs_compiler

pytestmark = [needs_compiler, pytest.mark.usefixtures("all_in_c")]
NEVER = 10**9


def of_numbers(a: Any, b: Any) -> Any:
    for _ in range(30):
        a = np.sin(a) * b + 0.1
        b = b * 0.99 + 0.01 * a
    return a * b


def of_vectors(x: Any, y: Any) -> Any:
    for k in range(20):
        x = np.tanh(x) * y + 0.1 * k
        y = y * 0.99 + 0.01 * x
    return np.sum(x * y)


def of_plates(u: Any, v: Any) -> Any:
    for _ in range(10):
        u = u.copy()
        u[1:-1, 1:-1] += v * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return np.sum(u**2)


DRAW = np.random.default_rng(0).random
PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (of_numbers, (0.3, 0.7)),
    (of_vectors, (DRAW(3), DRAW(3))),
    (of_vectors, (DRAW(1000), DRAW(1000))),
    (of_plates, (DRAW((20, 30)), 0.1)),
    (n_body, (DRAW((11, 3)), DRAW((11, 3)), DRAW(11))),
]


@pytest.mark.costly
@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_short_loop_has_the_values_of_its_steps(function, args):
    folded = rg.value_and_grad(function, argnums=(0, 1), backend="native")
    value, slopes = folded(*args)
    with rolled_from(NEVER):
        unrolled = rg.value_and_grad(again(function), argnums=(0, 1), backend="native")
        same, others = unrolled(*args)
    plain = rg.value_and_grad(function, argnums=(0, 1))
    assert (loops(folded, *args), loops(unrolled, *args)) == (2, 0)
    assert value == same  # bit by bit
    for found, other, expected in zip(slopes, others, plain(*args)[1], strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_seven_steps_stay_apart():
    def seven(x: Any, y: Any) -> Any:
        for _ in range(7):
            for _ in range(2):
                x = np.tanh(x) * y + np.exp(-x) * 0.1 + np.sin(x * y) / (1.0 + y * y)
            y = y * 0.99 + 0.01 * x
        return np.sum(x * y)

    f = rg.value_and_grad(seven, argnums=(0, 1), backend="native")
    f(DRAW(5), DRAW(5))
    assert loops(f, DRAW(5), DRAW(5)) == 0


def test_loops_of_64_operations_fold_in_longer_programs():
    """... where nothing longer does: on slices of growing lengths, the short ones would be in the way."""

    def stepped(x: Any, y: Any) -> Any:
        for _ in range(9):
            x = np.tanh(x) * y + np.exp(-x) * 0.1 + np.sin(x * y)
        a, b, c, d, e = np.cos(x), np.exp(y), np.tanh(x - y), np.sin(x) * y, x / (1.0 + y * y)
        more = (a + b) * (c - d) + np.sqrt(1.0 + e * e) * (a - c) + (b * d - a * e) / (2.0 + c * c) + d * np.exp(-e)
        return np.sum(more * a + np.cos(more) * b + np.tanh(more) * (c + d) - more * more * np.sin(e))

    x, y = DRAW(300), DRAW(300)
    native, numpy = (rg.value_and_grad(again(stepped), argnums=(0, 1), backend=b) for b in ("native", "numpy"))
    for found, expected in zip(native(x, y), numpy(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert loops(native, x, y) == 2
    assert loops(numpy, x, y) == 0


def test_long_loops_fold_first():
    """The rows of a factorisation have loops of 64 operations; folded first, they would hide longer ones."""
    a = 32.0 * np.eye(32) + DRAW((32, 32))
    f = rg.value_and_grad(again(cholesky_by_rows), backend="native")
    for found, expected in zip(f(a), rg.value_and_grad(cholesky_by_rows)(a), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert f.source(a, language="c").count("\n") < 3000
