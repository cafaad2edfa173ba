"""jacfwd, jacrev and hessian."""

from __future__ import annotations

import pickle

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


Z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
COMPLEX = {  # a function, a point, and the derivative as a matrix
    "real to complex": (lambda x: x * x * 1j + x, X, np.diag(2j * X + 1.0)),
    "real to one complex": (lambda x: np.sum(x * x) * 1j + x[:1], X, 2j * X[None] + [[1.0, 0.0, 0.0]]),
    "transform": (np.fft.rfft, X, np.fft.rfft(np.eye(3), axis=0)),
    "complex to real": (lambda z: np.abs(z) ** 2, Z, np.diag(2.0 * Z.conj())),
    "complex to one real": (lambda z: np.sum(z.real * z.imag)[None], Z, (Z.imag - 1j * Z.real)[None]),
    "holomorphic": (lambda z: np.exp(z) * z, Z, np.diag(np.exp(Z) * (Z + 1.0))),
    "holomorphic to one": (lambda z: np.prod(z)[None], Z, Z[None, ::-1]),
    "not holomorphic": (lambda z: z * np.conj(z) + np.conj(z) ** 2, Z, np.diag(Z.conj())),
    "single precision": (lambda z: z**3, Z.astype(np.complex64), np.diag(3.0 * Z**2)),
}
WAYS = {
    "forward": rg.jacfwd,
    "reverse": rg.jacrev,
    "cheaper": rg.jacobian,
    "columns": lambda f: rg.jacobian(f, sparse=True, mode="fwd"),
    "rows": lambda f: rg.jacobian(f, sparse=True, mode="rev"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("f", "x", "expected"), COMPLEX.values(), ids=COMPLEX)
def test_every_way_gives_one_derivative_by_complex_numbers(way, f, x, expected):
    found = way(f)(x)
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    assert dense.dtype == (np.complex64 if x.dtype == np.complex64 else np.complex128)
    np.testing.assert_allclose(dense, expected, rtol=1e-5 if x.dtype == np.complex64 else 1e-13, atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_hessian_by_complex_numbers_is_refused(sparse):
    with pytest.raises(rg.errors.NonDifferentiableError, match="several numbers"):
        rg.hessian(lambda z: np.sum(np.abs(z) ** 2), sparse=sparse)(Z)
    found = rg.hessian(lambda a, b: np.sum(np.abs(a + 1j * b) ** 2), argnums=(0, 1))(Z.real, Z.imag)
    np.testing.assert_allclose(found[0][0], 2.0 * np.eye(2))
    np.testing.assert_allclose(found[0][1], 0.0, atol=1e-15)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_jacobians_of_bools_have_the_dtype_of_the_argument(way):
    for x in (X, X.astype(np.float32)):
        found = way(lambda x: x > 0)(x)
        assert found.dtype == x.dtype
        assert abs(found).sum() == 0.0


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_jacobians_of_nothing_are_empty(way):
    assert way(lambda x: x * 2.0)(np.zeros(0)).shape == (0, 0)
    assert way(lambda x: np.concatenate([x, x * 2.0]))(np.zeros(0)).shape == (0, 0)
    assert way(lambda x: np.sum(x)[None] + np.zeros(2))(np.zeros(0)).shape == (2, 0)
    assert rg.hessian(np.sum, sparse=True)(np.zeros(0)).shape == (0, 0)


def test_all_kinds_of_derivatives_are_pickled():
    for made in (rg.jacobian(np.sin), rg.hessian(np.sin), rg.jacfwd(np.sin), rg.jacrev(np.sin)):
        assert pickle.loads(pickle.dumps(made))(0.3) == made(0.3)
    assert pickle.loads(pickle.dumps(rg.hvp(np.sin)))(0.3, 2.0) == rg.hvp(np.sin)(0.3, 2.0)


@both
def test_results_without_derivatives(jacobian):
    assert [float(d) for d in jacobian(lambda x: (x * x, 3, 2**70, True))(1.5)] == [3.0, 0.0, 0.0, 0.0]
    with pytest.raises(rg.errors.NonDifferentiableError, match="object of type str"):
        jacobian(lambda x: (x * x, "two"))(1.5)
