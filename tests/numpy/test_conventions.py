"""The rows of docs/edges.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

Z = np.array([0.5 + 1.0j, -1.0 + 0.25j])


def slope(function: Any, x: Any) -> Any:
    with np.errstate(all="ignore"):
        return rg.grad(lambda x: np.sum(function(x)))(x)


ROWS: dict[str, tuple[Any, Any, Any]] = {
    "abs": (np.abs, np.zeros(2), [0.0, 0.0]),
    "sqrt": (np.sqrt, np.zeros(1), [np.inf]),
    "power": (lambda x: x ** np.zeros(1), np.zeros(1), [0.0]),
    "maximum": (lambda x: np.maximum(x, 0.0), np.zeros(1), [0.5]),
    "ties of max": (np.max, np.array([2.0, 1.0, 2.0, 2.0]), [1 / 3, 0.0, 1 / 3, 1 / 3]),
    "ties of sort": (lambda x: np.sort(x) * [1.0, 2.0, 3.0], np.array([1.0, 0.0, 0.0]), [3.0, 1.0, 2.0]),
    "clip": (lambda x: np.clip(x, 0.0, 1.0), np.array([0.0, 0.5, 1.0]), [0.5, 1.0, 0.5]),
    "where": (lambda x: np.where(x > 0, np.log(x), 0.0), np.array([0.0, 2.0]), [np.nan, 0.5]),
    "norm": (np.linalg.norm, np.zeros(3), [0.0, 0.0, 0.0]),
    "norm of order 3": (lambda x: np.linalg.norm(x, 3), np.zeros(3), [0.0, 0.0, 0.0]),
    "relu": (rg.nn.relu, np.array([-1.0, 0.0, 1.0]), [0.0, 0.0, 1.0]),
    "complex": (lambda z: np.real(z * (2 + 3j)), Z, [2 + 3j, 2 + 3j]),
    "complex modulus": (lambda z: np.abs(z) ** 2, Z, 2 * np.conj(Z)),
    "hypot": (lambda x: np.hypot(x, 0.0), np.zeros(1), [0.0]),
    "arctan2": (lambda x: np.arctan2(x, 0.0), np.zeros(1), [0.0]),
    "det": (np.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]]), [[4.0, -2.0], [-2.0, 1.0]]),
    "cholesky": (lambda a: np.linalg.cholesky(a)[1, 0], np.eye(2), [[0.0, 0.0], [1.0, 0.0]]),
}


@pytest.mark.parametrize("name", ROWS)
def test_conventions(name):
    function, x, expected = ROWS[name]
    np.testing.assert_allclose(slope(function, x), expected, rtol=1e-12, atol=1e-15)


def test_a_wider_constant_does_not_widen_the_gradient():
    x = np.ones(3, np.float32)
    assert slope(lambda x: x * np.arange(3.0), x).dtype == np.float32


@pytest.mark.parametrize("x", [3, np.arange(3)])
def test_integers_have_no_derivative(x):
    with pytest.raises(rg.errors.NonDifferentiableError):
        rg.grad(lambda x: np.sum(x * 1.0))(x)


def test_vectors_of_a_double_eigenvalue_are_nan():
    assert np.isnan(slope(lambda a: np.linalg.eigh(a)[1] * [[1.0, 2.0], [3.0, 4.0]], np.eye(2))).any()


def test_the_gradient_of_a_complex_argument_is_that_of_its_parts():
    def loss(z):
        return np.sum(np.abs(np.sin(z)) ** 2)

    real, imaginary = rg.grad(lambda a, b: loss(a + 1j * b), argnums=(0, 1))(Z.real, Z.imag)
    np.testing.assert_allclose(rg.grad(loss)(Z), real - 1j * imaginary, rtol=1e-13)
