"""Integers and bools on the native target: NumPy's values, dtypes and warnings, at the ends of the numbers too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.native import needs_compiler

pytestmark = needs_compiler
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
X = np.array([7, -7, 7, -7, 0, LEAST, MOST, LEAST, 1, -1, 3, MOST, 0, 5])
Y = np.array([2, 2, -2, -2, 5, -1, -1, 0, 0, 63, 64, 2, 0, LEAST])
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "quotients": lambda x, y: ((x + 1) // y, x // -1, (x + y) // -7),
    "remainders": lambda x, y: ((x + 1) % y, x % -1, (x + y) % 7, (x + y) % -8, np.fmod(x, y)),
    "both": lambda x, y: (*np.divmod(x + 1, y), *np.divmod(x, -3)),
    "true quotients": lambda x, y: ((x + 1) / y, x / 2),
    "shifts": lambda x, y: ((x + 1) << (y & 63), (x + 1) >> (y & 63), x << y, x >> y),
    "sums that wrap": lambda x, y: (x + y + x, x - y - y, np.sum(x * y), -(x + 0), np.cumsum(x + y)),
    "products that wrap": lambda x, y: (x * y * 3, np.square(x + 1), (x + 1) ** 3, np.prod(x | 1), np.dot(x + 1, y)),
    "sizes and signs": lambda x, y: (np.abs(x * 1) + y, np.sign(x) * y, np.clip(x * y, -3, 9)),
    "bits": lambda x, y: (~(x + y), (x & y) ^ (x | y), np.bitwise_count(x + 1) + y),
    "choices": lambda x, y: (np.where(x > y, x + 1, y * 2), np.maximum(x, y) - np.minimum(x, y), np.max(x - y)),
    "bools": lambda x, y: ((x > 0) + (y > 0), (x > 0) * y, ~(x > 0) | (y > 0), (x > 0) ^ (y > 0), np.sum(x > y) + x),
    "means": lambda x, y: (np.mean(x + y), (x + 1).astype(float) * y, np.any(x * y) | (x > 0), np.sum(x[:, None] * y)),
}


def told(f: Callable[[Any, Any], Any], x: Any, y: Any) -> tuple[Any, set[str]]:
    """The results of a call, and its warnings without the operation that they name."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = f(x, y)
    return found, {str(warning.message).split(" encountered")[0] for warning in seen}


@pytest.mark.parametrize("repeats", [1, 100])
@pytest.mark.parametrize("name", PROGRAMS)
def test_integers_are_numpys(name: str, repeats: int) -> None:
    x, y = np.tile(X, repeats), np.tile(Y, repeats)
    expected, said = told(PROGRAMS[name], x, y)
    found, heard = told(rg.jit(PROGRAMS[name], backend="native"), x, y)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    if "quotients" in name or name in ("remainders", "both"):
        assert said
        assert heard == said


FAR = np.array([1e300, -1e300, np.nan, np.inf, -np.inf, 2.7, -2.7, 9.3e18, -9.3e18, -0.0, 2.0**63, -(2.0**63)])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_])
def test_numbers_become_integers_as_numpys_do(dtype: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y).astype(dtype), np.rint(x).astype(dtype), (x * 1).astype(np.float32).astype(dtype)

    expected, said = told(f, FAR, 1.0)
    found, heard = told(rg.jit(f, backend="native"), FAR, 1.0)
    np.testing.assert_array_equal(found, expected)
    assert heard == said


@pytest.mark.parametrize("y", [3.0, -0.3, 0.0, np.inf, -np.inf, np.nan, 5e-324])
def test_quotients_and_remainders_of_floats_are_numpys(y: float) -> None:
    x = np.array([*FAR, 0.0, 0.3, -0.3, 0.9, 1e-300, 5e-324])
    with np.errstate(all="ignore"):
        for f in (lambda x, y: (x * 1) // y, lambda x, y: (x * 1) % y, lambda x, y: np.fmod(x * 1, y)):
            expected = f(x, np.full_like(x, y))
            found = rg.jit(f, backend="native")(x, np.full_like(x, y))
            np.testing.assert_array_equal(found, expected)
            zero = expected == 0
            np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))
