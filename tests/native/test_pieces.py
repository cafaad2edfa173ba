"""Arrays that are made of pieces: loops in C step through views of them, of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.native import needs_compiler

pytestmark = [needs_compiler, pytest.mark.usefixtures("all_in_c")]

MADE: dict[str, Callable[[Any], Any]] = {
    "joined": lambda x: np.concatenate((x, x)),
    "a part of joined": lambda x: np.concatenate((x, 2.0 * x))[1:],
    "joined and turned": lambda x: np.concatenate((x, x))[::-1],
    "joined columns": lambda x: np.concatenate((x, x), 1).T,
    "numbers of joined": lambda x: np.concatenate((x, x)).reshape(-1)[3:],
    "sines of a part of joined": lambda x: np.sin(np.concatenate((x, x))[2:]),
    "padded": lambda x: np.pad(x, ((1, 2), (0, 0)))[1:],
    "rolled and turned": lambda x: np.roll(x, 1, 0)[::-1],
    "repeated": lambda x: np.repeat(x, 2, 0)[1:],
    "stacked": lambda x: np.stack([x, x * 2.0], 1).reshape(-1, x.shape[1]),
}


@pytest.mark.parametrize("n", [3, 6, 40])
@pytest.mark.parametrize("name", MADE)
def test_steps_over_views_of_pieces(name: str, n: int) -> None:
    def f(x: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            new = np.sin(c) * 0.5 + row
            return new, new * 2.0

        rows = MADE[name](x)
        c, ys = rg.scan(step, rows[0] * 0.0, rows)
        return np.sum(c) + np.sum(ys * ys)

    x = np.random.default_rng(0).normal(size=(n, 3))
    value, slope = rg.value_and_grad(f, backend="native")(x)
    expected, gradient = rg.value_and_grad(f)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-12, atol=1e-13)
