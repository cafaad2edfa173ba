"""Sparse Jacobians and Hessians are the dense ones, found by few products."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("scipy")

X = np.linspace(0.1, 1.2, 12) ** 2
PLACES = np.array([3, 1, 1, 7])


def heat(u: Any) -> Any:
    v = u.copy()
    v[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) ** 2
    return v


def assembled(x: Any) -> Any:
    out = np.zeros(12)
    np.add.at(out, PLACES, x[PLACES] ** 2)
    np.add.at(out, PLACES + 2, x[PLACES] * x[PLACES + 1])
    return out


def stepped(x: Any) -> Any:
    return rg.scan(lambda c, r: (0.5 * c + r, c * r), 0.0, x)[1]


def branching(x: Any) -> Any:
    return x[1:] * x[:-1] if x[0] > 1.0 else x[2:] * x[0]


FUNCTIONS: list[tuple[Callable[..., Any], int]] = [  # and how many entries they have
    (lambda x: x[1:] * x[:-1], 22),
    (lambda x: np.sin(x) ** 2 + x[::-1], 24),
    (heat, 32),
    (assembled, 9),
    (lambda x: np.sum(x.reshape(3, 4) ** 2, axis=0), 12),
    (lambda x: np.cumsum(x.reshape(3, 4) ** 2, axis=1), 48),
    (lambda x: x.reshape(3, 4) @ np.sin(x.reshape(4, 3)), 60),
    (lambda x: x[PLACES] * x[PLACES + 1], 8),
    (lambda x: np.concatenate([x[:3] ** 2, np.roll(x, 1)[3:]]), 12),
    (lambda x: np.where(x > 0.5, x**2, 3.0), 12),
    (lambda x: np.floor(x) + np.argsort(x), 0),
    (lambda x: np.diff(x, 2) * x[0], 39),
    (stepped, 144),
    (lambda x: rg.jit(lambda y: np.tanh(y) * y + np.cos(y) - np.sin(y) ** 2 + np.exp(-y * y))(x)[3:], 9),
    (lambda x: np.diag(x**2), 12),
    (lambda x: np.sort(x.reshape(4, 3), axis=1), 36),
    (branching, 20),
]


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize(("function", "entries"), FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_a_sparse_jacobian_is_the_dense_one(function: Callable[..., Any], entries: int, mode: str) -> None:
    sparse = rg.jacobian(function, mode=mode, sparse=True)
    for x in (X, X[::-1].copy()):
        found = sparse(x)
        dense = rg.jacfwd(function)(x).reshape(found.shape)
        np.testing.assert_allclose(found.toarray(), dense, rtol=1e-13, atol=1e-13)
    assert sparse(X).nnz == entries


def test_few_products_suffice() -> None:
    n = 3000

    def energy(x: Any) -> Any:
        return np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum(np.cos(x))

    sparse = rg.hessian(energy, sparse=True)
    found = sparse(np.linspace(0.0, 1.0, n))
    assert found.nnz == 3 * n - 2
    (compression,) = sparse._found.values()
    assert compression.count == 3
    small = np.linspace(0.0, 1.0, 7)
    np.testing.assert_allclose(sparse(small).toarray(), rg.hessian(energy)(small), rtol=1e-12, atol=1e-12)


def test_another_argument_and_other_indices() -> None:
    def f(scale: float, i: Any, x: Any) -> Any:
        return scale * x[i] ** 2

    sparse = rg.jacobian(f, "x", sparse=True)
    for i in (PLACES, PLACES[::-1].copy(), PLACES):
        np.testing.assert_array_equal(sparse(2.0, i, x=X).toarray(), rg.jacobian(f, "x")(2.0, i, x=X))


def test_what_is_not_one_array_to_one_array_is_refused() -> None:
    with pytest.raises(rg.errors.OptionError, match="one array"):
        rg.jacobian(lambda x: (x, x), sparse=True)(X)
    with pytest.raises(rg.errors.OptionError, match="one array"):
        rg.jacobian(lambda x: x["a"] + x["b"], sparse=True)({"a": X, "b": X})
    with pytest.raises(rg.errors.UnsupportedError, match="cannot be traced"):
        rg.jit(lambda x: rg.jacobian(np.sin, sparse=True)(x) @ x)(X)


def test_without_scipy_a_sparse_jacobian_is_a_named_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(rg.errors.UnsupportedError, match="needs SciPy"):
        rg.jacobian(np.sin, sparse=True)(np.ones(3))
