"""Sparse Jacobians and Hessians are the dense ones, found by few products."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

scipy = pytest.importorskip("scipy")

X = np.linspace(0.1, 1.2, 12) ** 2
PLACES = np.array([3, 1, 1, 7])


BANDED = np.eye(12) + np.eye(12, k=1)


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
    (stepped, 77),
    (lambda x: rg.jit(lambda y: np.tanh(y) * y + np.cos(y) - np.sin(y) ** 2 + np.exp(-y * y))(x)[3:], 9),
    (lambda x: np.diag(x**2), 12),
    (lambda x: np.sort(x.reshape(4, 3), axis=1), 36),
    (branching, 20),
    (lambda x: np.cross(x.reshape(4, 3), np.sin(x.reshape(4, 3))), 24),
    (lambda x: BANDED @ x**2, 23),
    (lambda x: x**2 @ BANDED, 23),
    (lambda x: np.einsum("ij,j->i", BANDED, np.sin(x)), 23),
    (lambda x: (np.eye(4, k=1) * 2) @ x.reshape(4, 3) ** 2, 9),
    (lambda x: x.reshape(3, 4) ** 2 @ np.tri(4), 30),
    (lambda x: scipy.sparse.csr_array(BANDED) @ (x**2), 23),
    (lambda x: BANDED[0] * x**2, 2),
    (lambda x: np.convolve(x, [1.0, 0.0, 2.0], "same"), 22),
    (lambda x: np.linalg.inv(x.reshape(3, 2, 2) + np.eye(2)), 48),
    (lambda x: np.linalg.solve(BANDED[:4, :4], x.reshape(4, 3)), 48),
    (lambda x: np.fft.irfft(np.fft.rfft(x.reshape(3, 4)) ** 2), 48),
    (lambda x: rg.vmap(lambda r: np.linalg.norm(r) * r)(x.reshape(4, 3)), 36),
    (lambda x: rg.cond(np.sum(x) > 2, lambda y: y * y, lambda y: y * y[::-1], x), 24),
    (lambda x: rg.fori_loop(3, lambda i, c: c * c[np.array([0, *range(11)])], x), 42),
    (lambda x: rg.scan(lambda c, i: (c, x[i] ** 2), 0.0, np.arange(12)[::-1].copy())[1], 12),
    (lambda x: rg.scan(lambda c, r: (r, c * r), 1.0, x, reverse=True)[1], 23),
    (lambda x: rg.while_loop(lambda c: np.sum(c) < 90.0, lambda c: np.roll(c, 6) + c, x), 24),
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


def project(camera: Any, point: Any) -> Any:
    """The image of each point in its camera: rotation about an axis, a shift, focal length and radial distortion."""
    axis, theta = camera[:, :3], np.sqrt(np.sum(camera[:, :3] ** 2, axis=1, keepdims=True))
    unit, moved = axis / theta, point - camera[:, 3:6]
    turned = moved * np.cos(theta) + np.cross(unit, moved) * np.sin(theta)
    turned = turned + unit * np.sum(unit * moved, axis=1, keepdims=True) * (1 - np.cos(theta))
    flat = turned[:, :2] / turned[:, 2:]
    r2 = np.sum(flat**2, axis=1, keepdims=True)
    return flat * (1 + camera[:, 9:10] * r2 + camera[:, 10:11] * r2**2) * camera[:, 6:7] + camera[:, 7:9]


def test_bundle_adjustment_has_as_many_entries_as_its_residuals_have_parameters() -> None:
    cameras, points, seen = 20, 200, 200
    rng = np.random.default_rng(0)
    of_camera, of_point = rng.integers(0, cameras, seen), rng.integers(0, points, seen)
    image = rng.normal(size=(seen, 2))

    def residuals(x: Any) -> Any:
        camera, rest = x[: 11 * cameras].reshape(-1, 11), x[11 * cameras :]
        point, weight = rest[: 3 * points].reshape(-1, 3), rest[3 * points :]
        errors = weight[:, None] * (project(camera[of_camera], point[of_point]) - image)
        return np.concatenate([errors.reshape(-1), 1 - weight**2])

    x = rng.normal(size=11 * cameras + 3 * points + seen) + 4.0
    found = rg.jacobian(residuals, sparse=True)(x)
    assert found.nnz == 2 * seen * (10 + 3 + 1) + seen  # each coordinate of the image has a centre of its own
    np.testing.assert_allclose(found.toarray(), rg.jacfwd(residuals)(x), rtol=1e-12, atol=1e-12)


def test_the_zeros_of_a_constant_are_those_of_each_call() -> None:
    matrix = np.eye(12)
    sparse = rg.jacobian(lambda x, m: m @ x + matrix @ x, sparse=True)
    for m in (np.eye(12, k=1), np.zeros((12, 12)), np.tri(12), np.eye(12, k=-1)):
        for matrix in (np.eye(12), np.eye(12, k=2), BANDED):
            np.testing.assert_array_equal(sparse(X, m).toarray(), m + matrix)
    assert sparse(X, np.zeros((12, 12))).nnz == 23


def test_all_steps_of_a_long_loop_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    few = np.argsort(X)
    loops: list[Callable[..., Any]] = [
        stepped,
        lambda x: rg.fori_loop(3, lambda i, c: c * c[np.array([0, *range(11)])] + x[i], x),
        lambda x: rg.scan(lambda c, k: ((c[1], c[0] * x[k]), c[0]), (x[0], x[1]), few, reverse=True)[1],
        lambda x: rg.scan(lambda c, r: (c * r[0], r * r), 1.0, x.reshape(6, 2))[1],
    ]
    exact = [rg.jacobian(f, sparse=True)(X) for f in loops]
    monkeypatch.setattr("retrograd.passes.find_sparsity.MOST_NODES", 0)
    for f, few_entries in zip(loops, exact, strict=True):
        found = rg.jacobian(lambda x, f=f: f(x), sparse=True)(X)
        np.testing.assert_allclose(found.toarray(), rg.jacfwd(f)(X).reshape(found.shape), rtol=1e-13, atol=1e-13)
        assert found.nnz >= few_entries.nnz


def test_loops_of_unknown_length_count_all_steps_as_one() -> None:
    def shifted(x: Any, n: Any) -> Any:
        return rg.fori_loop(n, lambda i, c: np.concatenate([c[:1] * 0.5, c[:-1] * c[1:]]), x)

    sparse = rg.jacobian(shifted, sparse=True)
    for n in (0, 1, 3):
        np.testing.assert_allclose(sparse(X, n).toarray(), rg.jacfwd(shifted)(X, n), rtol=1e-13, atol=1e-13)


def test_without_scipy_a_sparse_jacobian_is_a_named_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(rg.errors.UnsupportedError, match="needs SciPy"):
        rg.jacobian(np.sin, sparse=True)(np.ones(3))
