"""Reads of one element of each row, as a cross-entropy has them: what is written, and that the numbers stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.values import assert_same_bits


def cross_entropy(scores: Any, labels: Any) -> Any:
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(logs[np.arange(len(scores)), labels])


def drawn(n: int, k: int, dtype: str = "f8") -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, k)).astype(dtype), rng.integers(-k, k, n)


def text(f: Callable[..., Any], *args: Any) -> str:
    return f.at(*args).source  # type: ignore[attr-defined, no-any-return]  # only compiled functions come


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("n", "k"), [(1, 3), (5, 4), (127, 9), (128, 9), (300, 70)])
def test_a_cross_entropy(n: int, k: int, dtype: str, exact: bool) -> None:
    scores, labels = drawn(n, k, dtype)
    slope = rg.grad(cross_entropy)
    with rg.config(exact=exact):
        found = slope(scores, labels)
        source = text(slope, scores, labels)
    wide = np.exp(scores.astype("f8"))
    expected = wide / wide.sum(axis=1, keepdims=True)
    expected[np.arange(n), labels] -= 1.0
    np.testing.assert_allclose(found, expected / n, atol=16 * np.finfo(dtype).eps / n, rtol=0)
    assert found.dtype == scores.dtype
    assert n == 1 or "np.add.at" not in source
    if n > 1 and not exact:
        assert "zeros" not in source, "no array for the chosen elements alone"


def test_reads_that_may_name_an_element_twice_add_up() -> None:
    x = np.arange(12.0).reshape(4, 3)
    rows, columns = np.array([1, 1, 0, 1]), np.array([2, 2, 1, -1])
    expected = np.zeros((4, 3))
    np.add.at(expected, (rows, columns), np.arange(1.0, 5.0))
    for f in (
        lambda x, r, c: np.sum(x[r, c] * np.arange(1.0, 5.0)),
        lambda x, r, c: np.sum(x[np.abs(r), c] * np.arange(1.0, 5.0)),
        lambda x, r, c: np.sum(x[np.array([1, 1, 0, 1]), c] * np.arange(1.0, 5.0)),
        lambda x, r, c: np.sum(x[np.arange(4) // 4 + r, c] * np.arange(1.0, 5.0)),
    ):
        np.testing.assert_array_equal(rg.grad(f)(x, rows, columns), expected)
    chosen = rg.grad(lambda x, c: np.sum(x[c, np.arange(3)] ** 2))(x, np.array([1, 1, 3]))
    np.testing.assert_array_equal(chosen, np.where(chosen != 0, 2 * x, 0))


@pytest.mark.parametrize("exact", [False, True])
def test_rows_that_are_not_read_and_axes_behind(exact: bool) -> None:
    x, y = np.random.default_rng(0).normal(size=(5, 4)), np.random.default_rng(1).normal(size=(3, 4, 2))
    labels = np.array([3, -4, 0])
    with rg.config(exact=exact):
        for array in (x, y, x + 1j * x):
            found = rg.grad(lambda x, c: np.sum(np.abs(x[np.arange(3), c]) ** 2))(array, labels)
            expected = np.zeros_like(array)
            expected[np.arange(3), labels] = 2 * array[np.arange(3), labels]
            np.testing.assert_allclose(found, expected if array.dtype.kind == "f" else found, rtol=1e-15)
        sums = rg.grad(
            lambda x, c: np.sum(np.sum(x - np.mean(x, axis=1, keepdims=True), axis=0)[c] * x[np.arange(3), c])
        )
        rg.check_grads(lambda x: np.sum(np.tanh(x)[np.arange(3), labels] ** 2), (x,), order=2)
        assert np.isfinite(sums(x, labels)).all()
        with pytest.raises(IndexError):
            rg.grad(lambda x, c: np.sum(x[np.arange(3), c]))(x, np.array([0, 4, 0]))


def test_special_values_stay_where_they_are() -> None:
    x, labels = np.zeros((3, 4)), np.array([0, 1, 2])

    def f(x: Any, c: Any) -> Any:
        return np.sum((np.exp(x) * np.array([[np.nan], [np.inf], [-0.0]]))[np.arange(3), c])

    with np.errstate(invalid="ignore"):
        found = rg.grad(f)(x, labels)
    expected = np.zeros((3, 4))
    expected[0], expected[1] = np.nan, np.nan  # 0 times these, as in all products
    expected[1, 1] = np.inf
    np.testing.assert_array_equal(found, expected)


def test_maps_and_derivatives() -> None:
    scores = np.random.default_rng(2).normal(size=(3, 6, 5))
    labels = np.random.default_rng(3).integers(0, 5, (3, 6))
    slope = rg.grad(cross_entropy)
    together = rg.vmap(slope)(scores, labels)
    for k in range(3):
        np.testing.assert_allclose(together[k], slope(scores[k], labels[k]), rtol=1e-13, atol=1e-16)
    rg.check_grads(lambda s: cross_entropy(s, labels[0]), (scores[0],), order=2)
    kept = rg.grad(rg.checkpoint(cross_entropy))
    assert_same_bits(kept(scores[0], labels[0]), slope(scores[0], labels[0]))
