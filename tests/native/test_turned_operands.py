"""Matrices that steps multiply by short vectors lie by columns in C; results are those of NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import correlation
from retrograd.codegen.native.turned_operands import LARGEST, ROWS, SHORT_ROW
from tests.support.native import needs_compiler

pytestmark = needs_compiler


def products(a: Any, v: Any) -> Any:
    """Products of the last columns of a matrix and the last elements of a vector."""
    out = np.zeros(a.shape)
    for i in range(a.shape[1] - 1):
        out[:, i] = a[:, i + 1 :] @ v[i + 1 :]
    return out


def products_and_sums(a: Any, v: Any) -> Any:
    """The same; steps also add up the rows of the matrix."""
    out = np.zeros(a.shape)
    for i in range(a.shape[1] - 1):
        out[:, i] = a[:, i + 1 :] @ v[i + 1 :] + np.sum(a[:, i + 1 :], axis=1)
    return out


def kernel(function: Any, *args: Any) -> str:
    source: str = function.source(*args, language="c")
    found = source[source.index("static int kernel0(") :]
    return found[: found.index("static PyObject *call0")]


def lies_by_columns(source: str, rows: int) -> bool:
    """Whether the step along an axis of a matrix is the number of its rows."""
    return re.search(rf"\b{rows} \* [kz]", source) is not None


SHAPES = [
    (ROWS - 1, 60, False),
    (ROWS, 60, True),
    (40, SHORT_ROW + 1, True),
    (40, SHORT_ROW + 2, False),
    (101, 60, True),
    (LARGEST // 64, 64, True),
    (LARGEST // 64 + 1, 64, False),
]


@pytest.mark.parametrize(("rows", "columns", "turns"), SHAPES)
@pytest.mark.parametrize("dtype", ["d", "f"])
def test_products_are_numpys(rows: int, columns: int, turns: bool, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(rows, columns)).astype(dtype), rng.normal(size=columns).astype(dtype)
    f = rg.jit(products, backend="native")
    np.testing.assert_allclose(
        f(a, v), products(a, v), rtol=1e-11 if dtype == "d" else 1e-3, atol=1e-14 if dtype == "d" else 1e-5
    )
    assert lies_by_columns(kernel(f, a, v), rows) == turns


def test_a_matrix_that_steps_read_otherwise_stays_as_it_is() -> None:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(40, 60)), rng.normal(size=60)
    f = rg.jit(products_and_sums, backend="native")
    np.testing.assert_allclose(f(a, v), products_and_sums(a, v), rtol=1e-11, atol=1e-14)
    assert not lies_by_columns(kernel(f, a, v), 40)


def test_infinities_outside_of_a_part_have_no_part_in_its_product() -> None:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(40, 60)), rng.normal(size=60)
    a[3, 4], a[5, 6], v[7] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(rg.jit(products, backend="native")(a, v), products(a, v), rtol=1e-11, atol=1e-14)


def test_gradients() -> None:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(40, 60)), rng.normal(size=60)

    def loss(a: Any, v: Any) -> Any:
        return np.sum(np.sin(products(a, v)))

    found, expected = (rg.grad(loss, argnums=(0, 1), backend=backend)(a, v) for backend in ("native", "numpy"))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_the_benchmarks_correlation() -> None:
    data = np.random.default_rng(0).normal(size=(100, 40))
    g = rg.grad(correlation, backend="native")
    np.testing.assert_allclose(g(data), rg.grad(correlation)(data), rtol=1e-10, atol=1e-12)
    assert lies_by_columns(kernel(g, data), 100)


def sums_of_products(a: Any, v: Any) -> Any:
    """The products, as a batch writes them."""
    out = np.zeros(a.shape)
    for i in range(a.shape[1] - 1):
        out[:, i] = np.sum(a[:, i + 1 :] * v[i + 1 :], axis=1)
    return out


@pytest.mark.parametrize("function", [products, sums_of_products])
@pytest.mark.parametrize(("rows", "columns"), [(40, 60), (ROWS - 1, 60), (40, SHORT_ROW + 2), (513, 64)])
def test_lanes_have_the_bits_of_single_calls(function: Any, rows: int, columns: int) -> None:
    """Matrices of lanes are not turned, but their rows are added in the same order."""
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(3, rows, columns)), rng.normal(size=(3, columns))

    def gradient(a: Any, v: Any) -> Any:
        return rg.grad(lambda a: np.sum(function(a, v) ** 2))(a)

    for each in (function, gradient):
        one, many = rg.jit(each, backend="native"), rg.vmap(each, backend="native")(a, v)
        for k in range(3):
            np.testing.assert_array_equal(many[k], one(a[k], v[k]))
