"""Captured matrices of scipy.sparse: a compiled function sees every change of them, in every format."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")

Function = Callable[..., Any]
X = np.array([1.0, 2.0, 3.0])
DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]])


@pytest.fixture(autouse=True)
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def entry(a: Any) -> None:
    a[0, 0] = 7.0


def new_entry(a: Any) -> None:
    a[0, 1] = 7.0


def other_values(a: Any) -> None:
    a.data = 2.0 * a.data


def values_in_place(a: Any) -> None:
    a.data[0] = 7.0


def scaled(a: Any) -> None:
    a *= 2


def other_pattern(a: Any) -> None:
    a.indices[:] = a.indices[::-1].copy()


def other_row(a: Any) -> None:
    a.rows[0], a.data[0] = [0, 1], [5.0, 6.0]


def other_diagonals(a: Any) -> None:
    a.offsets = -a.offsets


def smaller(a: Any) -> None:
    a.resize((2, 3))


COMPRESSED = (entry, new_entry, other_values, values_in_place, scaled, other_pattern, smaller)
CHANGES: dict[str, tuple[Function, ...]] = {
    "csr": COMPRESSED,
    "csc": COMPRESSED,
    "coo": (other_values, values_in_place, scaled, smaller),
    "bsr": (other_values, values_in_place, scaled),
    "dia": (other_values, values_in_place, other_diagonals),
    "lil": (entry, new_entry, other_row, smaller),
    "dok": (entry, new_entry, smaller),
}

USES: dict[str, Function] = {
    "A @ x": lambda a, x: np.sum(a @ x),
    "x @ A": lambda a, x: np.sum((x[: a.shape[0]] @ a) * X),
    "A.T @ x": lambda a, x: np.sum((a.T @ x[: a.shape[0]]) * X),
    "A.T twice": lambda a, x: np.sum(a.T @ (a @ x) + a.T @ (a @ (2.0 * x))),
    "A.dot(x)": lambda a, x: np.sum(a.dot(x)),
    "A * 2": lambda a, x: np.sum((a * 2.0) @ x),
    "the sum of all": lambda a, x: np.sum(a) * x[0],
    "sums of columns": lambda a, x: np.sum(a.sum(axis=0) * x),
    "the number of entries": lambda a, x: a.nnz * x[0],
    "the shape": lambda a, x: a.shape[0] * x[0],
    "another format": lambda a, x: np.sum(a.tocsc() @ x),
    "in a scan": lambda a, x: rg.scan(lambda c, _: (np.sum(a @ (c * x)), None), 1.0, None, 2)[0],
    "in a loop": lambda a, x: rg.fori_loop(2, lambda i, c: c + np.sum(a.T @ (a @ (x * c))), 1.0),
    "in a branch": lambda a, x: rg.cond(x[0] > 0, lambda: np.sum(a @ x), lambda: 0.0),
    "in a batch": lambda a, x: np.sum(rg.vmap(lambda s: a @ (s * x))(X)),
    "in a gradient": lambda a, x: np.sum(rg.grad(lambda x: np.sum((a @ x) ** 2))(x)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_seen(name: str, use: Function) -> None:
    a = sparse.coo_array(DENSE).asformat(name)
    f, slope = rg.jit(lambda x: use(a, x)), rg.grad(lambda x: use(a, x) * 1.0)
    f(X), slope(X)
    for change in CHANGES[name]:
        change(a)
        np.testing.assert_allclose(f(X), use(a, X), rtol=1e-13, err_msg=change.__name__)
    np.testing.assert_allclose(slope(X), rg.grad(lambda x: use(a.copy(), x) * 1.0)(X), rtol=1e-13)


@pytest.mark.parametrize("name", CHANGES)
def test_solutions_of_equations(name: str) -> None:
    a = sparse.coo_array(DENSE).asformat(name)
    f = rg.jit(lambda x: linalg.spsolve(a.tocsc(), x))
    for change in CHANGES[name]:
        if change not in (other_pattern, smaller):
            np.testing.assert_allclose(f(X), np.linalg.solve(a.toarray(), X), rtol=1e-13)
            change(a)
    np.testing.assert_allclose(f(X), np.linalg.solve(a.toarray(), X), rtol=1e-13)


@pytest.mark.parametrize("name", ["csr", "csc"])
def test_equations_of_a_matrix_whose_entries_are_in_no_order(name: str) -> None:
    ordered = sparse.coo_array(DENSE + DENSE.T).asformat(name)
    a = ordered.copy()
    for start, end in zip(a.indptr, a.indptr[1:], strict=False):
        a.indices[start:end], a.data[start:end] = a.indices[start:end][::-1].copy(), a.data[start:end][::-1].copy()
    found, before = rg.jit(lambda x: linalg.spsolve(a, x))(X), a.indices.copy()
    np.testing.assert_allclose(found, linalg.spsolve(ordered, X), rtol=1e-13)
    np.testing.assert_array_equal(a.indices, before)


REFERENCES: dict[str, Function] = {
    "A @ x": lambda a, x: a @ x,
    "x @ A": lambda a, x: x @ a,
    "A.T @ x": lambda a, x: a.T @ x,
    "A.T twice": lambda a, x: a.T @ (a @ (a.T @ x)),
    "a solution": linalg.spsolve,
}


@pytest.mark.parametrize("use", REFERENCES.values(), ids=REFERENCES)
@pytest.mark.parametrize("name", ["csr", "csc"])
def test_other_entries_compile_nothing(name: str, use: Function) -> None:
    held = {"a": sparse.coo_array(DENSE).asformat(name)}
    f = rg.jit(lambda x: use(held["a"], x))
    f(X)
    for k in (1.0, 2.0):
        held["a"].data = k * held["a"].data
        held["a"].data[0] += k
        np.testing.assert_allclose(f(X), use(held["a"], X), rtol=1e-13)
        held["a"] = k * held["a"]
        np.testing.assert_allclose(f(X), use(held["a"], X), rtol=1e-13)
    assert f.cache_info().misses == 1


def test_properties_of_an_object_of_a_library_are_asked_again() -> None:
    spline = pytest.importorskip("scipy.interpolate").BSpline(np.arange(4.0), np.ones(2), 1)
    f = rg.jit(lambda x: x * np.sum(spline.tck[1]))
    assert f(1.0) == 2.0
    spline.c[0] = 7.0
    assert f(1.0) == 8.0
    assert f.cache_info().misses == 1
    spline.c = np.full(2, 5.0)
    assert f(1.0) == 10.0
