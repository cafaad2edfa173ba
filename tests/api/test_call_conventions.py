"""Options by which other packages call the same transforms: has_aux, axis_size, static_argnums and the like."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])


def with_aux(x, k=2.0):
    return np.sin(x) * k, {"n": len(x), "label": "run", "square": x * x, "mask": x > 0}


@pytest.mark.parametrize("jac", [rg.jacfwd, rg.jacrev, rg.jacobian])
def test_a_jacobian_returns_what_the_function_returns_beside_its_output(jac):
    found, aux = jac(with_aux, has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(2 * np.cos(X)), rtol=1e-15)
    assert (aux["n"], aux["label"]) == (3, "run")
    np.testing.assert_array_equal(aux["square"], X * X)
    np.testing.assert_array_equal(aux["mask"], X > 0)
    by_two, _ = jac(with_aux, (0, "k"), has_aux=True)(X, k=2.0)
    np.testing.assert_allclose(by_two[1], np.sin(X), rtol=1e-15)
    inside = rg.grad(lambda x: np.sum(jac(with_aux, has_aux=True)(x)[1]["square"] ** 2))(X)
    np.testing.assert_allclose(inside, 4 * X**3, rtol=1e-14)


def test_a_function_with_aux_is_run_once_for_its_jacobian():
    runs = []

    def f(x):
        runs.append(1)
        return np.sin(x), x.sum()

    for jac in (rg.jacfwd, rg.jacrev):
        runs.clear()
        jac(f, has_aux=True)(X)
        assert len(runs) == 1


def test_a_hessian_returns_what_the_function_returns_beside_its_output():
    found, aux = rg.hessian(lambda x: (np.sum(x**3), x[0]), has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(6 * X), rtol=1e-15)
    assert aux == X[0]


@pytest.mark.parametrize("jac", [rg.jacfwd, rg.jacrev, rg.jacobian])
def test_has_aux_wants_a_pair(jac):
    with pytest.raises(rg.errors.OptionError, match="a pair"):
        jac(np.sin, has_aux=True)(X)


@pytest.mark.parametrize("jac", [rg.hessian, rg.jacobian])
def test_a_sparse_matrix_comes_without_aux(jac):
    with pytest.raises(rg.errors.OptionError, match="sparse"):
        jac(with_aux, has_aux=True, sparse=True)


def test_axis_size_gives_the_lanes_where_no_argument_is_mapped():
    shared = rg.vmap(lambda x: 2 * x, in_axes=None, axis_size=2)(X)
    np.testing.assert_array_equal(shared, [2 * X, 2 * X])
    assert rg.vmap(lambda: 1.5, axis_size=3)().tolist() == [1.5] * 3
    np.testing.assert_array_equal(rg.vmap(np.sin, axis_size=3)(X), np.sin(X))
    assert rg.vmap(np.sin, in_axes=None, axis_size=0)(1.0).shape == (0,)
    slope = rg.grad(lambda x: np.sum(rg.vmap(np.sin, in_axes=None, axis_size=4)(x)))(0.0)
    assert slope == 4.0


def test_axis_size_agrees_with_the_mapped_axes():
    with pytest.raises(rg.errors.ShapeError, match="axis_size=4"):
        rg.vmap(np.sin, axis_size=4)(X)
    with pytest.raises(rg.errors.ShapeError, match="axis_size"):
        rg.vmap(np.sin, in_axes=None)(X)
    for wrong in (-1, 2.0, True):
        with pytest.raises(rg.errors.OptionError, match="axis_size"):
            rg.vmap(np.sin, axis_size=wrong)
