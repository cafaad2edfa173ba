"""Bools in arithmetic on Python's numbers: where Python raises, the same code on NumPy's numbers must not raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

BOOLS: dict[str, Callable[[Any], Any]] = {
    "not": np.logical_not,
    "and": lambda x: np.logical_and(x, x - 1.0),
    "or": lambda x: np.logical_or(x - 1.0, x - 1.0),
    "xor": lambda x: np.logical_xor(x, 1.0),
    "inverse": lambda x: ~(x > 0.0),
    "sign": np.signbit,
    "choice": lambda x: np.where(x > 0.0, False, True),
    "comparison": lambda x: x > 5.0,
}
NUMBERS: list[Callable[[Any], Any]] = [
    lambda b: b * 1.5,
    lambda b: b + 0.0,
    lambda b: b.astype(float),
    lambda b: -(b * 1.0),
]
USES: dict[str, Callable[[Any], Any]] = {
    "quotient": lambda z: 1.0 / z,
    "remainder": lambda z: 1.0 % z,
    "floor": lambda z: 1.0 // z,
    "reciprocal": np.reciprocal,
    "divmod": lambda z: divmod(1.0, z)[0],
    "power": lambda z: z**-1.0,
}


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", BOOLS)
def test_a_division_by_a_bool_is_numpys(kind: str, use: str) -> None:
    for number in NUMBERS:
        for x in (np.ones(3), np.array([1.0, 0.0]), np.float64(1.0)):

            def f(x: Any, a: Any, number: Callable[[Any], Any] = number) -> Any:
                return np.sum(USES[use](number(BOOLS[kind](x)))) + np.exp(a) + np.sin(a) + np.cos(a)

            np.testing.assert_array_equal(rg.jit(f)(x, 0.5), f(x, 0.5))
