"""Casts to narrower floating-point numbers round, at every length: GCC 12 left it out for pairs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.native import needs_compiler

pytestmark = needs_compiler
PROGRAMS: list[Callable[[Any], Any]] = [
    lambda x: x.astype(np.float32).astype(np.float64),
    lambda x: np.sum(x.astype(np.float32).astype(np.float64)),
    lambda x: np.square(x).astype(np.float32) @ x,
    lambda x: (-np.abs(x.astype(np.float32))).astype(np.float64),
    lambda x: np.maximum(x.astype(np.float32), np.float32(0.3)).astype(np.float64),
    lambda x: np.where(x > 0.2, x, 2.0 * x).astype(np.float32).astype(np.float64)[::-1],
    lambda x: (x + 3j * x).astype(np.complex64).astype(np.complex128),
    lambda x: np.stack([x, 3.0 * x], axis=1).astype(np.float32).astype(np.float64),
    lambda x: np.array([x[0], x[-1]]).astype(np.float32).astype(np.float64),
]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 7, 9, 15, 27, 63, 66, 1026])
@pytest.mark.parametrize("program", range(len(PROGRAMS)))
def test_casts_round(program: int, n: int) -> None:
    x = np.random.default_rng(n).normal(size=n)
    found, wanted = rg.jit(PROGRAMS[program], backend="native")(x), PROGRAMS[program](x)
    if np.ndim(wanted):
        np.testing.assert_array_equal(found, wanted)
    else:  # the order of a sum may differ, which changes less than a rounding to float32 does
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("n", [2, 7, 30])
def test_cotangents_round_as_the_loop_over_elements_does(n: int) -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.sin(x.astype(np.float32)).astype(np.float64) ** 2)

    x = np.random.default_rng(n).normal(size=n)
    gradient = rg.grad(loss, backend="native")
    np.testing.assert_array_equal(gradient(x), np.concatenate([gradient(x[i : i + 1]) for i in range(n)]))
