"""Equations with a matrix and with its transpose share their factors, and have NumPy's solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.linalg.positive import FEWEST
from tests.support.seeds import SEED

SIZES = [FEWEST - 1, FEWEST, 41]


def values(n: int, dtype: str = "f8") -> tuple[Any, Any, Any]:
    """A matrix that needs pivots, a vector and three columns."""
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((n, n)) + 4 * np.sqrt(n) * np.eye(n)[::-1]
    b, c = rng.standard_normal(n), rng.standard_normal((n, 3))
    if np.dtype(dtype).kind == "c":
        return (x + 1j * x.T).astype(dtype), (b + 2j).astype(dtype), (c * 1j).astype(dtype)
    return x.astype(dtype), b.astype(dtype), c.astype(dtype)


def solutions(x: Any, b: Any, c: Any) -> tuple[Any, ...]:
    """Equations of all forms."""
    first = np.linalg.solve(x, b), np.linalg.solve(x.T, b), np.linalg.solve(x, c), np.linalg.solve(x.T, c)
    return (*first, np.linalg.solve(x, c[:, :0]), np.linalg.solve(x.conj().T, b), np.linalg.solve(x, b[::-1]))


def loss(x: Any, b: Any) -> Any:
    return np.sum(np.sin(np.linalg.solve(x, b)))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize("n", SIZES)
def test_solutions(n: int, dtype: str) -> None:
    args = values(n, dtype)
    f = rg.jit(solutions)
    for found, plain in zip(f(*args), solutions(*args), strict=True):
        assert found.dtype == plain.dtype
        assert found.shape == plain.shape
        np.testing.assert_allclose(found, plain, rtol=0, atol=40 * np.finfo(dtype).eps)
    factorizations = f.at(*args).source.count(" = lu_by_lapack(")
    assert factorizations == (0 if n < FEWEST else 1 if np.dtype(dtype).kind == "f" else 2)
    with rg.config(exact=True):
        for found, plain in zip(rg.jit(solutions)(*args), solutions(*args), strict=True):
            np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("n", SIZES)
def test_derivatives(n: int) -> None:
    x, b, c = values(n)
    rg.check_grads(loss, (x, b), order=2)
    rg.check_grads(loss, (x, c), order=2)
    gradient = rg.grad(loss, argnums=(0, 1))
    assert gradient.source(x, b).count(" = lu_by_lapack(") == (n >= FEWEST)
    xs = np.stack([x, 2.0 * x, x.T])
    for axes, stacked in (((0, None), (xs, b)), ((None, 0), (x, np.stack([b, c[:, 0], c[:, 1]])))):
        lanes = rg.vmap(gradient, axes)(*stacked)
        for lane in range(3):
            one = gradient(*(s if axis is None else s[lane] for s, axis in zip(stacked, axes, strict=True)))
            for found, wanted in zip(lanes, one, strict=True):
                np.testing.assert_allclose(found[lane], wanted, rtol=1e-9, atol=1e-13)


def test_a_budget_and_a_region_change_no_bit() -> None:
    x, b, _ = values(80)

    def chain(x: Any, b: Any) -> Any:
        for _ in range(4):
            b = np.sin(np.linalg.solve(np.cos(x) + x, b))
        return np.sum(b)

    plain = rg.grad(chain, argnums=(0, 1))
    tight = rg.grad(chain, argnums=(0, 1), memory=int(0.95 * plain.plan(x, b).peak_bytes))
    apart = rg.grad(lambda x, b: chain(x, rg.checkpoint(lambda b: np.sin(np.linalg.solve(x, b)))(b)), argnums=(0, 1))
    without = rg.grad(lambda x, b: chain(x, np.sin(np.linalg.solve(x, b))), argnums=(0, 1))
    for one, other in ((plain, tight), (apart, without)):
        for found, wanted in zip(one(x, b), other(x, b), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_in_a_loop() -> None:
    x, b, _ = values(FEWEST)

    def steps(x: Any, b: Any) -> Any:
        return np.sum(
            rg.scan(lambda b, _: (np.linalg.solve(x, b) + np.linalg.solve(x.T, np.cos(b)), None), b, None, 5)[0]
        )

    rg.check_grads(steps, (x, b), order=1)


@pytest.mark.parametrize("n", SIZES)
def test_singular_matrices(n: int) -> None:
    x, b, _ = values(n)
    for form in ("a row of zeros", "a column of zeros", "zeros"):
        singular = x.copy()
        singular[(n // 2, slice(None)) if "row" in form else (slice(None), n // 2) if "column" in form else ...] = 0.0
        for matrix in (singular, singular.T):
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                rg.grad(loss)(matrix, b)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_stays_that(bad: float) -> None:
    x, b, _ = values(FEWEST)
    x[3, 4] = bad
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(rg.jit(np.linalg.solve)(x, b)), np.isnan(np.linalg.solve(x, b)))
        b[2] = bad
        np.testing.assert_array_equal(
            np.isfinite(rg.jit(np.linalg.solve)(values(FEWEST)[0], b)),
            np.isfinite(np.linalg.solve(values(FEWEST)[0], b)),
        )
