"""Methods and functions of SciPy are found by what they are, however they are reached."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import scipy.linalg
from scipy.stats import levy, multivariate_normal, norm, poisson, rv_continuous

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])
bound = norm.logpdf
held = {"density": norm.logpdf, "list": [norm.cdf]}


def twice(function, x):
    return 2 * function(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: bound(x),  # noqa: PLW0108 - the name is read when it is called
        held["density"],
        lambda x: twice(norm.logpdf, x) / 2,
        partial(norm.logpdf, loc=0.0),
        lambda x: next(map(norm.logpdf, [x])),
        lambda x: norm(0.0, 1.0).logpdf(x),
    ],
)
def test_a_method_that_was_bound_before_is_traced(f):
    np.testing.assert_allclose(rg.grad(lambda x: np.sum(f(x)))(X), -X, rtol=1e-15)
    np.testing.assert_allclose(rg.jit(f)(X), norm.logpdf(X), rtol=1e-14)


def test_a_method_is_transformed_itself():
    assert rg.grad(norm.logpdf)(0.5) == -0.5
    assert rg.grad(norm.logpdf, 1)(0.5, 0.25) == 0.25
    assert rg.grad(partial(norm.logpdf, scale=2.0))(0.5) == -0.125
    np.testing.assert_allclose(rg.vmap(rg.grad(norm.cdf))(X), norm.pdf(X), rtol=1e-14)
    np.testing.assert_allclose(rg.jacobian(norm.logpdf)(X), np.diag(-X), rtol=1e-15)
    rg.check_grads(norm.logpdf, (0.5,))
    assert rg.grad(held["list"][0])(0.0) == norm.pdf(0.0)
    assert rg.grad(lambda mu: poisson.logpmf(2, mu))(4.0) == -0.5


@pytest.mark.parametrize("jac", [rg.jacfwd, rg.jacrev, rg.jacobian])
def test_the_jacobian_of_a_function_of_scipy(jac):
    found = jac(scipy.linalg.sqrtm)(np.diag([1.0, 4.0, 9.0]))
    roots = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(np.einsum("ijij->ij", found), 1 / (roots[:, None] + roots), rtol=1e-12)


def test_the_methods_are_as_they_were_after_a_trace():
    before = rv_continuous.logpdf.__code__
    seen = []

    def f(x):
        seen.append(rv_continuous.logpdf.__code__ is before)
        return norm.logpdf(x)

    rg.grad(f)(0.5)
    with pytest.raises(rg.errors.UnsupportedError, match="levy"):
        rg.grad(levy.logpdf)(0.5)
    assert rv_continuous.logpdf.__code__ is before
    assert seen == [False]
    assert norm.logpdf(0.5, scale=2.0) == norm(0.0, 2.0).logpdf(0.5)


def test_functions_of_modules_that_are_imported_inside():
    program = """
import sys
import numpy as np, retrograd as rg
def f(x):
    import scipy.signal as s
    return np.sum(s.convolve(x, x))
def g(x):
    from scipy.stats import norm
    return np.sum(norm.logpdf(x))
assert not any(name.startswith("scipy.signal") or name == "scipy.stats" for name in sys.modules)
x = np.array([1.0, 2.0])
print(rg.grad(f)(x).tolist(), rg.grad(g)(x).tolist())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "[6.0, 6.0] [-1.0, -2.0]", run.stderr


SINGULAR = np.array([[2.0, 1.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("cov", [SINGULAR, SINGULAR + np.eye(3), 2.0, np.zeros((3, 3))])
@pytest.mark.parametrize(
    "x", [np.array([0.2, 0.1, 0.5]), np.array([[0.2, 0.1, 0.5], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])]
)
def test_normal_distributions_on_a_subspace(cov, x):
    def logpdf(x, cov=cov):
        return multivariate_normal.logpdf(x, np.zeros(3), cov, allow_singular=True)

    cov = cov if np.ndim(cov) else cov * np.eye(3)
    np.testing.assert_allclose(rg.jit(logpdf)(x), logpdf(x), rtol=1e-12)
    frozen = multivariate_normal(np.zeros(3), cov, allow_singular=True)
    np.testing.assert_allclose(rg.jit(frozen.logpdf)(x), logpdf(x), rtol=1e-12)
    slope = rg.grad(lambda x: np.sum(np.where(np.isfinite(logpdf(x)), logpdf(x), 0.0)), nan_safe=True)(x)
    on = np.isfinite(np.atleast_1d(logpdf(x)))[:, None]
    np.testing.assert_allclose(slope, (np.where(on, -x @ np.linalg.pinv(cov), 0.0)).reshape(x.shape), atol=1e-12)


def test_the_gradient_in_a_covariance_that_may_be_singular():
    x, cov = np.array([0.2, 0.1, 0.5]), SINGULAR + np.eye(3)
    found, expected = (
        rg.grad(lambda c, s=s: multivariate_normal.logpdf(x, np.zeros(3), c, allow_singular=s))(cov)
        for s in (True, False)
    )
    np.testing.assert_array_equal(found, expected)
