"""SciPy's solvers, handed compiled gradients, Hessians and Jacobians: each method that takes one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import retrograd as rg

START = np.array([-1.2, 1.0, 0.8])


def valley(x: Any, depth: float = 100.0) -> Any:
    return np.sum(depth * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


GRADIENTS = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"]
HESSIANS = ["Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"]
PRODUCTS = ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"]


def convex(x: Any, depth: float = 100.0) -> Any:
    """Positive definite everywhere, as dogleg wants it; least at (1, 1, 1)."""
    return np.sum((x - 1.0) ** 2 + 0.01 * depth * (x - 1.0) ** 4) + np.sum((x[1:] - x[:-1]) ** 2)


def found(f: Callable[..., Any], method: str, **given: Any) -> Any:
    most = {"maxfun" if method == "TNC" else "maxiter": 3000}
    return scipy.optimize.minimize(f, START, (100.0,), method=method, options=most, **given)


@pytest.mark.parametrize("method", [*GRADIENTS, *(m for m in HESSIANS if m != "dogleg")])
def test_methods_with_gradients(method: str) -> None:
    hess = {"hess": rg.hessian(valley)} if method in HESSIANS else {}
    apart = found(valley, method, jac=rg.grad(valley), **hess)
    together = found(rg.value_and_grad(valley), method, jac=True, **hess)
    for solution in (apart, together):
        np.testing.assert_allclose(solution.x, 1.0, atol=5e-3)
    np.testing.assert_array_equal(apart.x, together.x)


@pytest.mark.parametrize("method", HESSIANS)
def test_methods_with_hessians(method: str) -> None:
    given = {"jac": rg.grad(convex), "hess": rg.hessian(convex)}
    np.testing.assert_allclose(found(convex, method, **given).x, 1.0, atol=1e-4)


@pytest.mark.parametrize("method", PRODUCTS)
def test_methods_with_products(method: str) -> None:
    product = rg.jit(lambda x, v, depth: rg.hvp(lambda x: valley(x, depth))(x, v))
    np.testing.assert_allclose(found(valley, method, jac=rg.grad(valley), hessp=product).x, 1.0, atol=1e-3)


@pytest.mark.parametrize("method", ["trust-constr", "SLSQP"])
def test_constraints(method: str) -> None:
    def curve(x: Any) -> Any:
        return np.array([x[0] ** 2 + x[1] ** 2, x[1] * x[2]])

    def curvature(x: Any, v: Any) -> Any:
        return rg.hessian(lambda x: np.sum(v * curve(x)))(x)

    second = method == "trust-constr"
    bends = {"hess": rg.jit(curvature)} if second else {}
    bent = NonlinearConstraint(curve, [0.0, 0.1], [1.0, np.inf], jac=rg.jacobian(curve), **bends)
    straight = LinearConstraint(np.ones((1, 3)), -np.inf, 1.9)
    hess = {"hess": rg.hessian(valley)} if second else {}
    solution = scipy.optimize.minimize(
        valley,
        np.array([0.5, 0.5, 0.5]),
        (1.0,),
        method=method,
        jac=rg.grad(valley),
        bounds=Bounds(-2.0, 2.0),
        constraints=[bent, straight],
        **hess,
    )
    wanted = scipy.optimize.minimize(
        valley,
        np.array([0.5, 0.5, 0.5]),
        (1.0,),
        method="SLSQP",
        bounds=Bounds(-2.0, 2.0),
        constraints=[NonlinearConstraint(curve, [0.0, 0.1], [1.0, np.inf]), straight],
        options={"ftol": 1e-12},
    )
    np.testing.assert_allclose(solution.x, wanted.x, atol=2e-4)


T = np.linspace(0.0, 2.0, 15)
DATA = 2.5 * np.exp(-1.3 * T) + 0.5


def model(t: Any, a: Any, k: Any, c: Any) -> Any:
    return a * np.exp(-k * t) + c


def residuals(p: Any, data: Any = DATA) -> Any:
    return model(T, *p) - data


@pytest.mark.parametrize(
    ("method", "loss"), [*itertools.product(("trf", "dogbox"), ("linear", "soft_l1")), ("lm", "linear")]
)
def test_least_squares(method: str, loss: str) -> None:
    solution = scipy.optimize.least_squares(residuals, np.ones(3), rg.jacobian(residuals), method=method, loss=loss)
    np.testing.assert_allclose(solution.x, [2.5, 1.3, 0.5], rtol=1e-6)
    by_minpack = scipy.optimize.leastsq(residuals, np.ones(3), Dfun=rg.jacobian(residuals))[0]
    np.testing.assert_allclose(by_minpack, solution.x, rtol=1e-6)


@pytest.mark.parametrize("method", ["lm", "trf", "dogbox"])
def test_curve_fit(method: str) -> None:
    jacobian = rg.jit(lambda t, *p: np.stack(rg.jacfwd(model, argnums=(1, 2, 3))(t, *p), axis=-1))
    noisy = DATA + 0.01 * np.sin(9 * T)
    fitted, covariance = scipy.optimize.curve_fit(model, T, noisy, np.ones(3), jac=jacobian, method=method)
    plain, expected = scipy.optimize.curve_fit(model, T, noisy, np.ones(3), method=method)
    np.testing.assert_allclose(fitted, plain, rtol=1e-5)
    np.testing.assert_allclose(covariance, expected, rtol=1e-3)


def crossing(x: Any, shift: float) -> Any:
    return np.array([x[0] ** 2 + x[1] ** 2 - shift, x[0] - np.exp(-x[1])])


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_roots(method: str) -> None:
    solution = scipy.optimize.root(crossing, np.ones(2), (2.0,), method=method, jac=rg.jacobian(crossing))
    np.testing.assert_allclose(crossing(solution.x, 2.0), 0.0, atol=1e-9)
    by_fsolve = scipy.optimize.fsolve(crossing, np.ones(2), (2.0,), fprime=rg.jacobian(crossing))
    np.testing.assert_allclose(by_fsolve, solution.x, rtol=1e-8)


@pytest.mark.parametrize("method", ["newton", "halley"])
def test_roots_of_one_unknown(method: str) -> None:
    def f(x: Any, a: float) -> Any:
        return x**3 + x - a

    slope = rg.grad(f)
    given = {"fprime": slope} | ({"fprime2": rg.grad(slope)} if method == "halley" else {})
    solution = scipy.optimize.root_scalar(f, (3.0,), x0=1.0, method=method, **given)
    assert f(solution.root, 3.0) == pytest.approx(0.0, abs=1e-12)
    assert solution.iterations < 10
    many = scipy.optimize.newton(rg.jit(f), np.ones(2), rg.vmap(slope, in_axes=(0, None)), (3.0,))
    np.testing.assert_allclose(many, solution.root)


def test_searches_that_polish_with_gradients() -> None:
    def bumpy(x: Any) -> Any:
        return np.sum(x**2 + 0.5 * (1.0 - np.cos(3.0 * x)))

    minimizer = {"method": "L-BFGS-B", "jac": rg.grad(bumpy)}
    hopped = scipy.optimize.basinhopping(bumpy, np.full(2, 1.5), niter=5, minimizer_kwargs=minimizer, rng=0)
    np.testing.assert_allclose(hopped.x, 0.0, atol=1e-5)
    annealed = scipy.optimize.dual_annealing(
        bumpy, [(-3.0, 3.0)] * 2, maxiter=5, minimizer_kwargs=minimizer, rng=0, x0=np.full(2, 1.5)
    )
    np.testing.assert_allclose(annealed.x, 0.0, atol=1e-5)
    step = scipy.optimize.line_search(bumpy, rg.grad(bumpy), np.ones(2), -rg.grad(bumpy)(np.ones(2)))
    assert step[0] > 0
    assert scipy.optimize.check_grad(bumpy, rg.grad(bumpy), np.ones(2)) < 1e-6


def test_the_tree_of_unknowns() -> None:
    def loss(p: Any) -> Any:
        return np.sum((p["a"] * np.exp(-p["k"] * T) + p["c"] - DATA) ** 2)

    solution = rg.scipy.minimize(loss, {"a": 1.0, "k": 1.0, "c": np.zeros(1)}, tol=1e-10)
    assert solution.success
    np.testing.assert_allclose([solution.x["a"], solution.x["k"], solution.x["c"][0]], [2.5, 1.3, 0.5], rtol=1e-6)
    flat, unravel = rg.tree.ravel({"a": 1.0, "k": 1.0, "c": np.zeros(1)})
    by_hand = scipy.optimize.minimize(rg.value_and_grad(lambda x: loss(unravel(x))), flat, jac=True, tol=1e-10)
    np.testing.assert_allclose(unravel(by_hand.x)["k"], 1.3, rtol=1e-6)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_stiff_equations(method: str) -> None:
    def robertson(t: Any, y: Any, fast: float) -> Any:
        a, b, c = y
        return np.array([-0.04 * a + fast * b * c, 0.04 * a - fast * b * c - 3e7 * b * b, 3e7 * b * b])

    counted = []

    def jacobian(t: Any, y: Any, fast: float) -> Any:
        counted.append(t)
        return slope(t, y, fast)

    slope = rg.jacobian(robertson, argnums=1)
    options = {"method": method, "rtol": 1e-8, "atol": [1e-10, 1e-12, 1e-10], "args": (1e4,)}
    solution = scipy.integrate.solve_ivp(robertson, (0.0, 40.0), [1.0, 0.0, 0.0], jac=jacobian, **options)
    assert counted
    np.testing.assert_allclose(solution.y[:, -1], [0.7158271, 9.185535e-06, 0.2841637], rtol=2e-5)
    evaluated = scipy.integrate.solve_ivp(robertson, (0.0, 40.0), [1.0, 0.0, 0.0], **options).nfev
    assert solution.nfev <= evaluated
