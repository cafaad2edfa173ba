"""jacfwd, jacrev and hessian."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.5, -1.0, 2.0])
M = np.arange(6.0).reshape(2, 3) / 4 - 0.5
both = pytest.mark.parametrize("jacobian", [rg.jacfwd, rg.jacrev])


@both
@pytest.mark.parametrize("x", [np.array(0.5), np.array([0.5]), X, M, np.zeros((2, 1, 2))])
@pytest.mark.parametrize("shape", [(), (2,), (1,), (3, 2)])
def test_a_jacobian_has_the_shape_of_the_output_then_that_of_the_argument(jacobian, x, shape):
    weights = np.cos(np.arange(float(np.prod(shape) * x.size))).reshape((*shape, *x.shape))

    def f(x):
        flat = weights.reshape(-1, x.size) @ np.sin(x).reshape(-1)
        return flat.reshape(shape)

    found = jacobian(f)(x)
    assert found.shape == (*shape, *x.shape)
    np.testing.assert_allclose(found, weights * np.cos(x), rtol=1e-13)


@both
def test_a_jacobian_of_numbers_is_a_number(jacobian):
    found = jacobian(np.sin)(0.0)
    assert found == 1.0
    assert np.shape(found) == ()


@both
def test_a_jacobian_in_float32_stays_in_float32(jacobian):
    found = jacobian(np.sin)(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.diag(np.cos(X)), rtol=1e-6)


@both
def test_argnums_of_jacobians(jacobian):
    def f(x, y):
        return x * y**2

    np.testing.assert_allclose(jacobian(f, 1)(X, X), np.diag(2 * X * X))
    np.testing.assert_allclose(jacobian(f, "y")(X, y=X), np.diag(2 * X * X))
    one, two = jacobian(f, (1, 0))(X, X)
    np.testing.assert_allclose(one, np.diag(2 * X * X))
    np.testing.assert_allclose(two, np.diag(X**2))


@both
@pytest.mark.parametrize("shapes", [((0,), (3,)), ((3,), (0,)), ((0,), (0,))])
def test_a_jacobian_of_or_by_nothing_is_empty(jacobian, shapes):
    outs, ins = shapes
    found = jacobian(lambda x: np.zeros(outs) + np.sum(x))(np.zeros(ins))
    assert found.shape == (*outs, *ins)


@both
def test_integer_results_have_a_jacobian_of_zeros_or_none(jacobian):
    found = jacobian(lambda x: {"y": 2.0 * x, "k": np.argmax(x)})(X)
    np.testing.assert_array_equal(found["y"], 2 * np.eye(3))
    assert found["k"] is None or not np.any(found["k"])


def test_both_modes_give_the_same_matrix():
    def f(x):
        return np.tanh(M @ x) / (1 + np.sum(x**2))

    np.testing.assert_allclose(rg.jacfwd(f)(X), rg.jacrev(f)(X), rtol=1e-13)
    np.testing.assert_allclose(rg.jacrev(rg.jacfwd(f))(X), rg.jacfwd(rg.jacrev(f))(X), rtol=1e-12)


def test_a_hessian_is_symmetric_and_right():
    def f(x):
        return np.sum(np.sin(x)) * np.sum(x**3) + np.exp(x[0] * x[1])

    hessian = rg.hessian(f)(X)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    gradient = rg.grad(f)
    step = 1e-5
    columns = [(gradient(X + step * e) - gradient(X - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(hessian, np.stack(columns), rtol=1e-6)
    for other in (rg.jacrev(rg.grad(f)), rg.jacfwd(rg.jacfwd(f)), rg.jacrev(rg.jacrev(f)), rg.jacrev(rg.jacfwd(f))):
        np.testing.assert_allclose(other(X), hessian, rtol=1e-12)


def test_hessians_of_matrices_and_numbers():
    hessian = rg.hessian(lambda m: np.sum(m**3))(M)
    assert hessian.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(hessian.reshape(6, 6), np.diag(6 * M.reshape(-1)))
    assert rg.hessian(lambda x: x**3)(2.0) == 12.0


def test_the_hessian_of_a_linear_function_is_zero():
    np.testing.assert_array_equal(rg.hessian(lambda x: np.sum(3.0 * x))(X), np.zeros((3, 3)))


def test_hessian_of_several_arguments():
    blocks = rg.hessian(lambda x, y: np.sum(x * y**2), (0, 1))(X, X)
    np.testing.assert_allclose(blocks[0][0], np.zeros((3, 3)))
    np.testing.assert_allclose(blocks[0][1], np.diag(2 * X))
    np.testing.assert_allclose(blocks[1][0], np.diag(2 * X))
    np.testing.assert_allclose(blocks[1][1], np.diag(2 * X))


def test_a_hessian_compiles_once():
    h = rg.hessian(lambda x: np.sum(x**3))
    for k in range(3):
        np.testing.assert_allclose(h(X + k), np.diag(6 * (X + k)))
    assert h.cache_info().misses == 1
