"""Vectors that are tuples or trees, and Jacobians of complex numbers: against what autograd gives."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd.compat.autograd as ag
from retrograd.errors import ShapeError, TreeError

X, Y, LONG = np.array([1.0, 2.0]), np.array([0.5, 0.25]), np.array([3.0, 4.0, 5.0])
Z = np.array([1 + 2j, 0.5 - 1j, 2j])
C = 0.5 - 2j


def curved(x, y):
    return np.sum(x**2 * y)


def each(x, y):
    return x**2 * y


def close(found, expected):
    assert type(found) is type(expected) or not isinstance(expected, (tuple, list, dict))
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, (tuple, list)):
        for x, y in zip(found, expected, strict=True):
            close(x, y)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
        assert np.shape(found) == np.shape(expected)


# ------------------------------------------------------------------------------------------- products with vectors

# The argument, the vector, and the product of the Hessian of sum(x² y) with it.
ALONG_X, ALONG_Y = np.array([2.0, 2.0]), np.array([2.0, 8.0])
HESSIANS = {
    "a pair": (curved, (0, 1), (X, Y), (X, Y), (ALONG_X, ALONG_Y)),
    "a list": (curved, [0, 1], (X, Y), [X, Y], (ALONG_X, ALONG_Y)),
    "an array": (curved, (0, 1), (X, Y), np.stack([X, Y]), (ALONG_X, ALONG_Y)),
    "one of one": (curved, (0,), (X, Y), (X,), (np.array([1.0, 1.0]),)),
    "the last": (lambda x, y: np.sum(x**2 * y**2), -1, (X, Y), X, np.array([2.0, 16.0])),
    "numbers": (lambda x, y: x**3 * y, (0, 1), (2.0, 3.0), (1.0, 1.0), (48.0, 12.0)),
    "a tuple": (lambda p: curved(*p), 0, ((X, Y),), (X, Y), (ALONG_X, ALONG_Y)),
    "a list as argument": (lambda p: curved(*p), 0, ([X, Y],), [X, Y], [ALONG_X, ALONG_Y]),
    "a dict": (lambda p: curved(p["x"], p["y"]), 0, ({"x": X, "y": Y},), {"x": X, "y": Y}, None),
    "other shapes": (
        lambda x, y: np.sum(x**2) * np.sum(y**2),
        (0, 1),
        (X, LONG),
        (X, LONG),
        (np.array([300.0, 600.0]), np.array([90.0, 120.0, 150.0])),
    ),
    "a vector as a list": (lambda x: np.sum(x**3), 0, (X,), [1.0, 2.0], np.array([6.0, 24.0])),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_products_of_a_hessian_with_trees(name):
    f, argnum, args, v, expected = HESSIANS[name]
    expected = {"x": ALONG_X, "y": ALONG_Y} if expected is None else expected
    close(ag.hessian_vector_product(f, argnum)(*args, v), expected)
    close(ag.hessian_tensor_product(lambda *a, k: k * f(*a), argnum)(*args, v, k=1.0), expected)
    if not isinstance(v, np.ndarray) or isinstance(argnum, int):
        close(ag.make_hvp(f, argnum)(*args)[0](v), expected)


def test_products_of_a_jacobian_with_trees():
    close(ag.tensor_jacobian_product(each, (0, 1))(X, Y, X), (np.array([1.0, 2.0]), np.array([1.0, 8.0])))
    close(ag.vector_jacobian_product(each, (0,))(X, Y, X), (np.array([1.0, 2.0]),))
    close(ag.tensor_jacobian_product(lambda p: each(*p))([X, Y], X), [np.array([1.0, 2.0]), np.array([1.0, 8.0])])
    close(ag.tensor_jacobian_product(each)(X, Y, [1.0, 2.0]), np.array([1.0, 2.0]))
    close(ag.tensor_jacobian_product(each, -1)(X, Y, X), np.array([1.0, 8.0]))
    powers = ag.tensor_jacobian_product(lambda x: {"a": x**2, "b": (x**3,)})
    close(powers(X, {"a": X, "b": (Y,)}), 2 * X * X + 3 * X**2 * Y)
    close(ag.tensor_jacobian_product(lambda x: [x**2, x**3])(X, (X, Y)), 2 * X * X + 3 * X**2 * Y)


def test_vectors_that_do_not_fit():
    with pytest.raises(TreeError, match="the vector"):
        ag.hessian_vector_product(curved, (0, 1))(X, Y, (X,))
    with pytest.raises(ShapeError, match="different shapes"):
        ag.hessian_vector_product(lambda x: np.sum(x**3))(X, (X, LONG))
    with pytest.raises(TreeError):
        ag.make_jvp(each, (0, 1))(X, Y)((X,))


def test_vectors_may_be_lists_of_numbers():
    close(ag.make_vjp(np.sin)(X)[0]([1.0, 2.0]), np.cos(X) * [1.0, 2.0])
    close(ag.make_jvp(np.sin)(X)([1.0, 2.0])[1], np.cos(X) * [1.0, 2.0])
    close(ag.make_jvp(each, (0, 1))(X, Y)([[1.0, 2.0], Y])[1], 2 * X * Y * [1.0, 2.0] + X**2 * Y)
    close(ag.make_jvp(lambda p: p[0] * p[1])([2.0, 3.0])([1.0, 1.0]), (6.0, 5.0))
    close(ag.make_ggnvp(np.sin)(X)([1.0, 2.0]), np.cos(X) ** 2 * [1.0, 2.0])


def test_a_tuple_may_stand_for_a_list():
    close(ag.make_vjp(lambda x: (x * 2, {"k": [x * 3]}))(X)[0]([X, {"k": (X,)}]), 5 * X)
    close(ag.make_vjp(lambda x: [x * 2, x * 3])(X)[0]((X, X)), 5 * X)
    close(ag.make_jvp(lambda p: p[0] * p[1])([X, Y])((X, X))[1], X * Y + X * X)
    close(ag.make_ggnvp(each, f_argnum=(0, 1))(X, Y)([X, X]), (np.array([2.0, 10.0]), np.array([2.0, 40.0])))


def test_results_that_are_trees():
    close(ag.elementwise_grad(lambda x: (x**2, {"k": x**3}))(X), 2 * X + 3 * X**2)
    close(ag.elementwise_grad(lambda p: p[0] * p[1])((X, Y)), (Y, X))
    close(ag.grad_and_aux(lambda x: [np.sum(x * x), 2 * x])(X), (2 * X, 2 * X))
    pulled, value = ag.make_vjp(lambda x: ag.builtins.tuple((x * 2, x * 3)))(X)
    close((pulled((X, X)), value), (5 * X, (2 * X, 3 * X)))
    outer = ag.make_ggnvp(lambda x: (x**2, x**3), lambda t: np.sum(t[0] ** 2 * t[1]))
    close(outer(X)(X), np.array([32.0, 2048.0]))


# ------------------------------------------------------------------------------------- Jacobians of complex numbers


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("wide", [False, True])
def test_a_jacobian_by_complex_numbers_does_not_depend_on_the_shape(count, wide):
    z = Z[:count]
    stacked = 2 if wide else 1
    found = ag.jacobian(lambda z: np.concatenate([np.abs(z) ** 2] * stacked))(z)
    close(found, np.concatenate([np.diag(2 * np.conj(z))] * stacked))
    close(ag.jacobian(lambda z: np.sum(np.abs(z) ** 2))(z), 2 * np.conj(z))


def test_a_jacobian_of_a_complex_number():
    close(ag.jacobian(lambda z: np.abs(z) ** 2)(1 + 1j), 2 - 2j)
    close(ag.jacobian(np.real)(1 + 1j), 1 + 0j)
    close(ag.jacobian(np.imag)(1 + 1j), -1j)
    close(ag.jacobian(lambda z: np.array([np.real(z), np.imag(z)]))(1 + 1j), np.array([1, -1j]))
    single = ag.jacobian(lambda z: np.abs(z) ** 2)(np.complex64(1 + 1j))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, 2 - 2j, rtol=1e-6)


# Functions of complex numbers, and what autograd's make_vjp gives for unit cotangents, row by row.
EXPONENTIAL = [
    [-0.3170650022926714 - 0.11807847973164672j] + [0.07312196559805964 + 0.1138807140643681j] * 2,
    [
        2.3855167309591354 + 1.3032137296869954j,
        -6.725854056448764 + 0.9718476370647124j,
        2.3855167309591354 + 1.3032137296869954j,
    ],
]
ROWS = {
    "conjugates": (lambda z: C * np.conj(z), np.diag([0.5 + 2j] * 3)),
    "not holomorphic": (lambda z: z * np.abs(z) ** 2, np.diag([7 - 4j, 1.75 + 1j, 4 + 0j])),
    "cubes": (lambda z: z**3, np.diag([-9 + 12j, -2.25 - 3j, -12 + 0j])),
    "fewer results": (lambda z: np.exp(1j * z[:2]) * np.sum(z), np.array(EXPONENTIAL)),
    "more results": (lambda z: np.concatenate([z**2, C * z]), np.concatenate([np.diag(2 * Z), np.diag([C] * 3)])),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_complex_results_are_those_of_make_vjp(name):
    f, expected = ROWS[name]
    close(ag.jacobian(f)(Z), expected)
    pull, value = ag.make_vjp(f)(Z)
    close(np.stack([pull(unit) for unit in np.eye(len(value), dtype=complex)]), expected)


def test_complex_results_of_real_numbers_have_both_parts():
    t = np.array([0.3, 0.7])
    diagonal = np.diag(1j * np.exp(1j * t))
    close(ag.jacobian(lambda t: np.exp(1j * t))(t), diagonal)
    close(ag.jacobian(lambda t: np.sum(np.exp(1j * t)))(t), np.sum(diagonal, axis=0))
    close(ag.jacobian(lambda t: np.exp(1j * t))(0.3), 1j * np.exp(0.3j))
    close(ag.jacobian(lambda t: np.exp(1j * np.sum(t)) * LONG)(np.zeros(5)), np.outer(1j * LONG, np.ones(5)))
    close(ag.hessian(lambda t: np.sum(np.exp(1j * t)))(t), np.diag(-np.exp(1j * t)))
    close(ag.tensor_jacobian_product(lambda t: np.exp(1j * t))(t, C * X), X * C * 1j * np.exp(1j * t))
    by_both = ag.jacobian(lambda t, z: t * np.sum(z**2) * 1j, (0, 1))(X, Z)
    close(by_both, (np.eye(2) * np.sum(Z**2) * 1j, np.outer(X, 2j * Z)))


def test_products_with_complex_jacobians():
    close(ag.tensor_jacobian_product(lambda z: np.abs(z) ** 2)(Z, LONG), LONG * 2 * np.conj(Z))
    close(ag.tensor_jacobian_product(lambda z: z**2)(Z, C * LONG), C * LONG * 2 * Z)


def test_the_hessian_of_a_real_part():
    close(ag.hessian(lambda z: np.real(np.sum(z**3)))(Z), np.diag(6 * Z))
    close(ag.jacobian(ag.jacobian(lambda z: np.real(np.sum(z**3))))(Z), np.diag(6 * Z))
