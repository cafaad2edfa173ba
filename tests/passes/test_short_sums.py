"""Sums along short rows add whole arrays: the bits of NumPy's sums, but for the sign of a zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.cheaper_rules import FEW_PLACES, SHORTEST_ROW
from retrograd.passes.cheaper_rules import FEWEST_ROWS as FEWEST
from tests.support.memory import measured


def values(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(shape[-1])
    x = (rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape)).astype(dtype)
    flat = x.reshape(-1, shape[-1])
    flat[0], flat[1], flat[2, 0], flat[3, -1] = -0.0, 0.0, np.inf, np.nan
    return x


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("lead", [(FEWEST - 1,), (FEWEST,), (17, 31), (3, 5, 40)])
@pytest.mark.parametrize("n", [*range(1, SHORTEST_ROW)])
def test_bits(n: int, lead: tuple[int, ...], dtype: str, keepdims: bool) -> None:
    f = rg.jit(lambda x: np.sum(x, axis=-1, keepdims=keepdims))
    for x in (values((*lead, n), dtype), np.asfortranarray(values((*lead, n), dtype))):
        with np.errstate(invalid="ignore"):
            found, expected = f(x), np.sum(x, axis=-1, keepdims=keepdims)
        assert found.dtype == expected.dtype
        if x.flags.c_contiguous:
            np.testing.assert_array_equal(found, expected)
            with rg.config(exact=True):
                np.testing.assert_array_equal(np.signbit(f(x)), np.signbit(expected))
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert ("reduce" in f.at(x).source) != (n == 1 or np.prod(lead) >= FEWEST)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [1, 2, 7, FEW_PLACES, FEW_PLACES + 1])
def test_extrema(n: int, dtype: str, name: str) -> None:
    for keepdims in (False, True):
        f = rg.jit(lambda x, keepdims=keepdims: getattr(np, name)(x, axis=-1, keepdims=keepdims))
        for lead in ((FEWEST - 1,), (FEWEST,), (17, 31)):
            x = values((*lead, n), dtype)
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(f(x), getattr(np, name)(x, axis=-1, keepdims=keepdims))
            assert ("reduce" in f.at(x).source) != (2 <= n <= FEW_PLACES and np.prod(lead) >= FEWEST)
    x = np.round(values((300, n), "f8")[10:] * 2) / 2  # with ties
    slope = rg.grad(lambda x: np.sum(getattr(np, name)(x, axis=1)))
    extreme = x == getattr(np, name)(x, axis=1, keepdims=True)
    np.testing.assert_allclose(slope(x), extreme / np.sum(extreme, axis=1, keepdims=True))


def test_other_sums_stay() -> None:
    whole = np.arange(3000).reshape(1000, 3)
    for f, x in (
        (rg.jit(lambda x: np.sum(x, axis=1)), whole),
        (rg.jit(lambda x: np.sum(x, axis=0)), whole.T * 1.0),
        (rg.jit(lambda x: np.sum(x, axis=None)), whole * 1.0),
        (rg.jit(lambda x: np.sum(x, axis=(0, 1))), np.ones((20, 30, 3))),
    ):
        np.testing.assert_array_equal(f(x), f.__wrapped__(x))
        assert "reduce" in f.at(x).source


def test_in_gradients_and_loops() -> None:
    x = np.random.default_rng(0).normal(size=(300, 3))

    def steps(x: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            return y / np.sqrt(1.0 + np.sum(y * y, axis=1, keepdims=True)) + np.sum(y, axis=1)[:, None], None

        return np.sum(rg.scan(step, x, None, length=3)[0] ** 2)

    rg.check_grads(steps, (x,), order=1)


def test_the_memory_of_a_call_is_foretold() -> None:
    f = rg.jit(lambda x: np.sum(np.sin(x), axis=1))
    x = np.random.default_rng(0).normal(size=(100_000, 3))
    found = measured(f, x)
    assert abs(found - f.plan(x).peak_bytes) <= 0.01 * found + 4096
