"""Solutions of equations and minima: SciPy's values, and derivatives of the implicit function theorem."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.optimize
from scipy.special import logsumexp

import retrograd as rg
from retrograd import errors
from retrograd.ops import implicit

A = np.array([2.0, 3.0])
CAPTURED = errors.CapturedTracerError
TIGHT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def crossing(x, a):
    return np.stack([x[0] ** 2 + a[0] * x[1] - 2.0, np.sin(x[0]) + a[1] * x[1] ** 3 - a[0]])


def crossed(a, **options):
    return rg.scipy.root(crossing, np.array([0.5, 0.7]), a, tol=1e-14, **options).x


def test_outside_of_a_trace_the_result_is_scipys():
    found = rg.scipy.root(crossing, np.array([0.5, 0.7]), A)
    jacobian = lambda x, a: np.array([[2 * x[0], a[0]], [np.cos(x[0]), 3 * a[1] * x[1] ** 2]])  # noqa: E731
    expected = scipy.optimize.root(crossing, np.array([0.5, 0.7]), (A,), jac=jacobian)
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-14)
    assert (found.success, found.nfev, found.message) == (True, expected.nfev, expected.message)


def test_inside_a_trace_values_are_those_outside():
    outside = rg.scipy.root(crossing, np.array([0.5, 0.7]), A, tol=1e-14)
    found = rg.jit(lambda a: dict(rg.scipy.root(crossing, np.array([0.5, 0.7]), a, tol=1e-14)))(A)
    np.testing.assert_allclose(found["x"], outside.x, rtol=1e-14)
    np.testing.assert_allclose(found["fun"], outside.fun, atol=1e-14)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["hybr", "lm", "broyden1", "krylov", "df-sane"])
def test_roots_have_derivatives_to_second_order_by_every_method(method):
    options = {"options": {"fatol": 1e-13}} if method in ("broyden1", "krylov") else {}
    rg.check_grads(lambda a: crossed(a, method=method, **options), (A,), order=2, rtol=1e-4, atol=1e-5)
    expected = rg.jacfwd(crossed)(A)
    tolerance = 1e-12 if method in ("hybr", "lm") else 1e-8
    found = rg.jacrev(lambda a: crossed(a, method=method, **options))(A)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_a_square_root_has_its_known_derivatives_of_three_orders():
    def root(a):
        return rg.scipy.root(lambda x: x * x - a, 1.0, tol=1e-14).x[0]

    for derivative, expected in (
        (root, 2.0**0.5),
        (rg.grad(root), 0.5 * 2.0**-0.5),
        (rg.grad(rg.grad(root)), -0.25 * 2.0**-1.5),
        (rg.grad(rg.grad(rg.grad(root))), 0.375 * 2.0**-2.5),
        (rg.jacfwd(rg.jacrev(root)), -0.25 * 2.0**-1.5),
    ):
        np.testing.assert_allclose(derivative(2.0), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [3, implicit.DENSE + 4])
def test_large_systems_are_solved_by_products_alone(size):
    def field(a):
        def residual(x, a):
            right, left = np.roll(x, 1), np.roll(x, -1)
            return 4.0 * x + 0.3 * x**3 - right - 0.5 * left - a

        return rg.scipy.root(residual, np.zeros(size), a, tol=1e-13).x

    a = np.linspace(0.5, 1.5, size)
    loss = lambda a: np.sum(field(a) ** 2)  # noqa: E731
    rg.check_grads(loss, (a,), order=1)
    graph = rg.grad(loss).graph(a)
    assert any(node.prim.name == "solve_krylov" for node in graph.nodes) == (size > implicit.DENSE)
    v = np.cos(a)
    found = rg.hvp(loss)(a, v)
    step = 1e-5
    expected = (rg.grad(loss)(a + step * v) - rg.grad(loss)(a - step * v)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(rg.jvp(field, (a,), (v,))[1] @ v, rg.vjp(field, a)[1](v)[0] @ v, rtol=1e-9)


def test_trees_are_unknowns_and_arguments():
    def found(args):
        def residual(x, args):
            return {"w": x["w"] @ x["w"] - args["s"], "b": (x["b"] - args["t"] * x["w"][0, 0],)}

        start = {"w": np.array([[1.0, 0.1], [0.2, 2.0]]), "b": 0.0}
        x = rg.scipy.root(residual, start, args, tol=1e-14).x
        assert sorted(x) == ["b", "w"]
        return np.sum(x["w"] ** 3) + x["b"] ** 2

    args = {"s": np.array([[2.0, 0.3], [0.1, 4.0]]), "t": 1.5}
    rg.check_grads(found, (args,), order=2, rtol=1e-4)
    outside = rg.scipy.root(lambda x: (x[0] - 1.0, x[1] + np.ones(2)), (0.0, np.zeros(2)))
    assert type(outside.x) is tuple
    assert outside.x[1].shape == (2,)


def test_what_the_function_closes_over_has_derivatives_and_the_start_has_none():
    def loss(a, x0):
        return np.sum(rg.scipy.root(lambda x: crossing(x, a), x0, tol=1e-14).x)

    rg.check_grads(lambda a: loss(a, np.array([0.5, 0.7])), (A,), order=2, rtol=1e-4)
    with pytest.warns(errors.IndependentOutputWarning):
        np.testing.assert_array_equal(rg.grad(loss, 1)(A, np.array([0.5, 0.7])), [0.0, 0.0])


def test_lanes_of_derivatives_and_derivatives_of_lanes():
    lanes = np.stack([A, 1.1 * A, A + 0.2])
    slope = rg.grad(lambda a: np.sum(crossed(a) ** 2))
    expected = np.array([slope(a) for a in lanes])
    np.testing.assert_allclose(rg.vmap(slope)(lanes), expected, rtol=1e-10)
    np.testing.assert_allclose(rg.grad(lambda m: np.sum(rg.vmap(crossed)(m) ** 2))(lanes), expected, rtol=1e-10)


def test_solutions_inside_loops_branches_and_other_solutions():
    def step(x, a):
        y = rg.scipy.brentq(lambda y: y**3 + y - x * a, -5.0, 5.0, xtol=1e-15)
        return y, y * y

    def loop(a):
        last, squares = rg.scan(lambda x, _: step(x, a), 1.0, None, 3)
        return last + np.sum(squares)

    def plain(a):
        x, total = 1.0, 0.0
        for _ in range(3):
            x, y = step(x, a)
            total = total + y
        return x + total

    def branch(a):
        return rg.cond(a > 0, lambda: step(a, 2.0)[0], lambda: a)

    def nested(a):
        def outer(x, a):
            return x - np.cos(rg.scipy.brentq(lambda y: y + 0.1 * y**3 - a * x, -9.0, 9.0, xtol=1e-15))

        return rg.scipy.brentq(outer, -2.0, 2.0, a, xtol=1e-15)

    np.testing.assert_allclose(rg.grad(loop)(1.3), rg.grad(plain)(1.3), rtol=1e-11)
    for f in (loop, branch, nested):
        rg.check_grads(f, (1.3,), order=2, rtol=1e-4)


def test_fixed_points_have_derivatives():
    def settled(a):
        return rg.scipy.fixed_point(
            lambda x, a: np.cos(a * x) / (1.0 + 0.1 * np.sum(x)), np.full(2, 0.5), a, xtol=1e-13
        )

    rg.check_grads(settled, (np.array([0.4, 0.9]),), order=2, rtol=1e-4)
    number = rg.scipy.fixed_point(np.cos, 0.5)
    assert np.shape(number) == ()
    np.testing.assert_allclose(number, scipy.optimize.fixed_point(np.cos, 0.5), rtol=1e-15)


X = np.random.default_rng(0).normal(size=(12, 3))
LABELS = np.arange(12) % 3


def softmax_loss(w, penalty, x):
    scores = x @ w
    return np.mean(logsumexp(scores, axis=1) - scores[np.arange(12), LABELS]) + penalty * np.sum(w * w)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "trust-exact"])
def test_the_minimum_of_a_softmax_regression_has_derivatives_by_every_method(method):
    more = {"options": {"maxfun": 2000}} if method == "TNC" else {}
    tol = 1e-14 if method == "SLSQP" else 1e-9  # of values, while the others take it of gradients

    def fitted(penalty):
        found = rg.scipy.minimize(softmax_loss, np.zeros((3, 3)), penalty, X, method=method, tol=tol, **more)
        return found.x, found.fun

    w = rg.jit(fitted)(0.1)[0]
    assert w.shape == (3, 3)
    hessian = rg.hessian(softmax_loss)(w, 0.1, X).reshape(9, 9)
    expected = -np.linalg.solve(hessian, 2.0 * w.reshape(-1)).reshape(3, 3)
    slope, value_slope = rg.jacfwd(fitted)(0.1)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(rg.jacrev(fitted)(0.1)[0], slope, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(value_slope, np.sum(w * w), rtol=1e-5)


def test_a_bilevel_ridge_has_the_hypergradient_of_its_closed_form():
    rng = np.random.default_rng(1)
    x, y, x2, y2 = rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=(6, 4)), rng.normal(size=6)

    def inner(w, log_c):
        return np.sum((x @ w - y) ** 2) + np.exp(log_c) * np.sum(w * w)

    def outer(log_c):
        return np.sum((x2 @ rg.scipy.minimize(inner, np.zeros(4), log_c, tol=1e-11).x - y2) ** 2)

    def closed(log_c):
        return np.sum((x2 @ np.linalg.solve(x.T @ x + np.exp(log_c) * np.eye(4), x.T @ y) - y2) ** 2)

    for wrap in (rg.jit, rg.grad, lambda f: rg.grad(rg.grad(f))):
        np.testing.assert_allclose(wrap(outer)(0.3), wrap(closed)(0.3), rtol=1e-8)


def test_least_squares_have_the_derivatives_of_their_minimum():
    t = np.linspace(0.0, 1.0, 9)

    def fitted(y):
        model = lambda k, y: k[0] * np.exp(-k[1] * t) - y  # noqa: E731
        return rg.scipy.least_squares(model, np.ones(2), y, **TIGHT)

    y = 1.5 * np.exp(-0.7 * t) + 0.05 * np.sin(9 * t)
    rg.check_grads(lambda y: fitted(y).x, (y,), order=2, rtol=1e-4)
    rg.check_grads(lambda y: fitted(y).cost, (y,), order=1)
    np.testing.assert_allclose(rg.jit(lambda y: fitted(y).cost)(y), fitted(y).cost, rtol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP"])
def test_unknowns_on_active_bounds_do_not_move(method):
    def fitted(a):
        f = lambda x, a: np.sum((x - a) ** 2) + a[0] * x[0] * x[1] + x[2] ** 4  # noqa: E731
        bounds = [(0.0, 1.0), (None, None), (-5.0, 5.0)]
        return rg.scipy.minimize(f, np.full(3, 0.5), a, bounds=bounds, method=method, tol=1e-14).x

    inside, outside = np.array([0.6, 0.2, 1.0]), np.array([3.0, 0.2, 1.0])
    for a in (inside, outside):
        rg.check_grads(fitted, (a,), order=1, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(rg.jacrev(fitted)(outside)[0], np.zeros(3))
    np.testing.assert_allclose(rg.jit(fitted)(outside)[0], 1.0)
    np.testing.assert_allclose(rg.jacfwd(fitted)(outside), rg.jacrev(fitted)(outside), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("pairs", [False, True])
def test_bounds_may_be_arrays_from_outside(pairs):
    low, high, point = np.array([-1.0, 0.0]), np.array([1.0, 1.0]), np.array([0.3, -2.0])

    def nearest(p):
        if pairs:
            bounds = list(zip(low, high, strict=True))
            return rg.scipy.minimize(
                lambda x: np.sum((x - p) ** 2), np.zeros(2), bounds=bounds, method="L-BFGS-B", tol=1e-14
            ).x
        return rg.scipy.least_squares(lambda x: x - p, np.zeros(2), bounds=(low, high), **TIGHT).x

    slope = rg.jacfwd(nearest)
    np.testing.assert_allclose(slope(point), [[1.0, 0.0], [0.0, 0.0]], atol=1e-9)
    low[:] = -3.0, -3.0
    np.testing.assert_allclose(slope(point), np.eye(2), atol=1e-9)
    with pytest.raises(rg.errors.UnsupportedError, match="traced bounds"):
        rg.jit(lambda c: rg.scipy.least_squares(lambda x: x - point, np.zeros(2), bounds=(c, 1.0)).x)(low)


@pytest.mark.slow
def test_least_squares_within_bounds_move_with_the_others_fixed():
    matrix = np.random.default_rng(0).normal(size=(5, 3))
    b = np.array([1.0, 2.0, -1.0, 0.5, 3.0])
    low, high = np.array([-1.0, 0.0, 0.0]), 1.0

    def squares(b):
        return rg.scipy.least_squares(lambda x: matrix @ x - b, np.full(3, 0.2), bounds=(low, high), **TIGHT).x

    found = squares(b)
    np.testing.assert_allclose(found[:2], [-1.0, 0.0], atol=1e-15)
    assert 0.0 < found[2] < 1.0
    expected = np.zeros((3, 5))
    expected[2] = matrix[:, 2] / (matrix[:, 2] @ matrix[:, 2])
    np.testing.assert_allclose(rg.jacfwd(squares)(b), expected, atol=1e-12)
    np.testing.assert_allclose(rg.jacrev(squares)(b), expected, atol=1e-12)

    def bent(p):
        f = lambda x: np.stack([np.exp(x[0]) - p[0], (x[1] - p[1]) * (1 + x[0] ** 2)])  # noqa: E731
        return rg.scipy.least_squares(f, np.full(2, 0.5), bounds=(0.0, 1.0), **TIGHT).x

    slope = lambda x, p: (np.exp(x) - p[0]) * np.exp(x) + (1 - p[1]) ** 2 * (1 + x * x) * 2 * x  # noqa: E731
    held = lambda p: rg.scipy.root(lambda x: slope(x, p), 0.1, tol=1e-14).x  # noqa: E731
    p = np.array([2.0, 3.0])
    np.testing.assert_allclose(rg.jacfwd(bent)(p)[0], rg.jacfwd(held)(p)[0], rtol=1e-6)
    second = rg.jacfwd(rg.jacrev(bent))(p)[0]
    np.testing.assert_allclose(second, rg.jacfwd(rg.jacfwd(held))(p)[0], rtol=1e-5)
    outside = rg.scipy.least_squares(lambda x: x - 3.0, np.ones(2) * 0.5, bounds=(0, 1), method="trf").x
    np.testing.assert_allclose(outside, 1.0, rtol=1e-6)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_bound_that_just_begins_to_hold_has_no_derivative(p):
    nearest = lambda p: rg.scipy.minimize(lambda x: (x[0] - p) ** 2, 0.5, bounds=[(0, 1)], tol=1e-14).x[0]  # noqa: E731
    assert abs(nearest(p) - p) < 1e-12
    with pytest.raises(errors.SolutionError, match="singular"):
        rg.grad(nearest)(p)


class Square:
    def __init__(self, c):
        self.c = c

    def residual(self, x):
        return x * x - self.c


SCALE = np.array([4.0, 9.0])


@pytest.mark.parametrize("solver", ["root", "brentq", "fixed_point", "minimize", "least_squares"])
def test_a_later_call_outside_of_a_trace_records_and_compiles_nothing(solver, monkeypatch):
    calls = []

    def f(x, a):
        calls.append(x)
        if solver == "minimize":
            return np.sum((x - a) ** 2)
        return np.cos(x) * a if solver == "fixed_point" else x * x - a

    def solved(a):
        if solver == "brentq":
            return rg.scipy.brentq(f, 0.0, 10.0, a)
        found = getattr(rg.scipy, solver)(f, np.array([0.5]), a)
        return found if solver == "fixed_point" else found.x

    solved(0.5)
    recorded = len(calls)
    made = []
    monkeypatch.setattr("retrograd.compiler.executable.Executable.__init__", lambda *args, **options: made.append(args))
    first, second = solved(0.25), solved(0.75)
    assert (len(calls), made) == (recorded, [])
    assert not np.allclose(first, second)


def test_what_the_equations_read_may_change_between_calls():
    solved = lambda: rg.scipy.root(lambda x: x * x - SCALE, np.ones(2)).x  # noqa: E731
    np.testing.assert_allclose(solved(), [2.0, 3.0])
    SCALE[:] = [16.0, 25.0]
    np.testing.assert_allclose(solved(), [4.0, 5.0])
    square = Square(4.0)
    assert rg.scipy.root(square.residual, 1.0).x[0] == pytest.approx(2.0)
    square.c = 9.0
    assert rg.scipy.root(square.residual, 1.0).x[0] == pytest.approx(3.0)
    assert rg.scipy.root(Square(25.0).residual, 1.0).x[0] == pytest.approx(5.0)
    roots = [rg.scipy.root(lambda x, k: x * x - k, 1.0, k).x[0] for k in (4, 9, 16)]
    np.testing.assert_allclose(roots, [2.0, 3.0, 4.0])


@pytest.mark.slow
def test_large_minima_with_bounds_and_large_least_squares_agree_with_differences():
    n = implicit.DENSE + 44
    points, weights = np.linspace(-1.0, 2.0, n), np.random.default_rng(2).normal(size=n)

    def bounded(p):
        def f(x, p):
            return np.sum((x - p * points) ** 2) + 0.05 * np.sum((x[1:] - x[:-1]) ** 2 * (1.0 + x[1:] ** 2))

        options = {"maxiter": 5000, "maxfun": 10**6, "gtol": 1e-11}
        return rg.scipy.minimize(f, np.full(n, 0.5), p, bounds=[(0, 1)] * n, tol=1e-14, options=options).x

    def squares(p):
        f = lambda x, p: np.concatenate([x + 0.1 * x**3 - p * points, 0.3 * (x[1:] - x[:-1])])  # noqa: E731
        return rg.scipy.least_squares(f, np.ones(n), p, xtol=1e-15, ftol=1e-15, gtol=1e-13).x

    for solve, tolerance in ((bounded, 1e-3), (squares, 1e-6)):
        expected = (solve(1.1 + 1e-4) - solve(1.1 - 1e-4)) / 2e-4
        np.testing.assert_allclose(rg.jacfwd(solve)(1.1), expected, rtol=tolerance, atol=1e-2 * tolerance)
        found = rg.grad(lambda p, solve=solve: weights @ solve(p))(1.1)
        np.testing.assert_allclose(found, weights @ rg.jacfwd(solve)(1.1), rtol=1e-8)


def test_a_solver_of_ones_own_is_traced_or_called():
    calls = []

    def residual(x, a, m):
        return {"u": m @ x["u"] + x["u"] ** 3 - a, "v": x["v"] - np.sum(x["u"])}

    @rg.implicit(residual)
    def called(a, m):
        calls.append(type(a))
        u = scipy.optimize.fsolve(lambda u: m @ u + u**3 - a, np.ones(2), xtol=1e-12)
        return {"u": u, "v": float(np.sum(u))}

    @rg.implicit(residual)
    def traced(a, m):
        u = np.ones(2)
        for _ in range(12):
            u = u - np.linalg.solve(m + np.diag(3 * u**2), m @ u + u**3 - a)
        return {"u": u, "v": np.sum(u)}

    m = np.array([[2.0, 0.3], [-0.4, 1.5]])
    for solver in (called, traced):
        loss = lambda a, m, solver=solver: np.sum(solver(a, m)["u"] ** 2) + solver(a, m)["v"]  # noqa: E731
        rg.check_grads(loss, (A, m), order=2, rtol=1e-4)
        lanes = np.stack([A, 2 * A])
        expected = [rg.grad(loss)(a, m) for a in lanes]
        np.testing.assert_allclose(rg.vmap(rg.grad(loss), in_axes=(0, None))(lanes, m), expected, rtol=1e-9)
    assert np.ndarray in calls
    assert type(called(A, m)["v"]) is float
    assert "fsolve" not in rg.grad(loss).source(A, m)


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: rg.scipy.root(lambda x: (x - 1.0) ** 3 * a, 0.5, tol=1e-10).x[0],
        lambda a: rg.scipy.root(lambda x: (x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - 2 * a), np.ones(2)).x[0],
        lambda a: rg.scipy.minimize(lambda x: (x[0] - a) ** 4, 0.5).x[0],
        lambda a: rg.scipy.minimize(lambda x: (x[0] - a * x[1]) ** 2, np.ones(2)).x[0],
        rg.implicit(lambda x, a: 0.0 * x * a)(lambda a: 1.0 * a),
        lambda a: rg.scipy.root(lambda x: np.sum(x) - a + 0.0 * x, np.ones(implicit.DENSE + 1)).x[0],
    ],
    ids=["triple root", "dependent rows", "flat minimum", "valley", "not an equation", "large"],
)
def test_a_singular_jacobian_is_an_error_where_a_derivative_is_wanted(solve):
    for derivative in (rg.grad, rg.jacfwd):
        with pytest.raises(errors.SolutionError):
            derivative(solve)(1.3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "solve",
    [
        lambda a: rg.scipy.root(lambda x: x * x + a, 1.0).x,
        lambda a: rg.scipy.root(lambda x: x * x + a, 1.0, method="lm").x,
        lambda a: rg.scipy.root(lambda x: (1e-9 * (x[0] ** 2 - a), 1e12 * (x[1] - 1e-6)), (1.0, 1e-6)).x,
        lambda a: rg.scipy.brentq(lambda x: x * x + a, 0.0, 1.0),
        lambda a: rg.scipy.brentq(lambda x: x**3 - a, 0.0, 9.0, maxiter=2),
        lambda a: rg.scipy.fixed_point(lambda x: a - x, 1.0, method="iteration"),
        lambda a: rg.scipy.minimize(lambda x: np.sum(-a * x), np.ones(2)).x,
        lambda a: rg.scipy.least_squares(lambda x: np.exp(x) - a, -9.0, max_nfev=1).x,
    ],
    ids=[
        "no root",
        "a minimum",
        "badly scaled",
        "one sign",
        "few steps",
        "no fixed point",
        "no minimum",
        "few evaluations",
    ],
)
def test_a_solver_that_does_not_converge_is_an_error(solve):
    with pytest.raises(errors.SolutionError):
        rg.jit(solve)(1.3)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda a: rg.scipy.root(lambda x: (x[0], a, a), np.ones(2)).x, errors.ShapeError),
        (lambda a: rg.scipy.minimize(lambda x: x * a, np.ones(2)).x, errors.ShapeError),
        (
            lambda a: rg.scipy.minimize(lambda x: a, np.ones(2), constraints=({"type": "eq"},)).x,
            errors.UnsupportedError,
        ),
        (lambda a: rg.scipy.minimize(lambda x: a, np.ones(2), jac=np.cos).x, errors.UnsupportedError),
        (lambda a: rg.scipy.minimize(lambda x: a, 1.0, bounds=[(0, 1)], method="Powell").x, errors.UnsupportedError),
        (lambda a: rg.scipy.minimize(lambda x: a, 1.0, bounds=[(0, a)]).x, errors.UnsupportedError),
        (lambda a: rg.scipy.minimize(lambda x: a, 1.0, bounds=[(0, 1), (0, 1)]).x, errors.OptionError),
        (lambda a: rg.scipy.least_squares(lambda x: x - a, 1.0, loss="huber").x, errors.UnsupportedError),
        (lambda a: rg.scipy.least_squares(lambda x: x - a, 1.0, bounds=(0, 1), method="trf"), errors.UnsupportedError),
        (lambda a: rg.scipy.least_squares(lambda x: x - a, 1.0, bounds=(0, a)).x, errors.UnsupportedError),
        (lambda a: rg.scipy.root(lambda x: x - a, 1.0 + 1.0j).x, errors.UnsupportedError),
        (lambda a: rg.scipy.root(lambda x: x - a, "start").x, errors.OptionError),
        (lambda a: rg.scipy.root(lambda x: x - a, 1.0, tol=a).x, errors.OptionError),
        (lambda a: rg.scipy.root(lambda x: x if x[0] > 0 else x - a, 1.0).x, errors.ControlFlowError),
        (rg.implicit(lambda x, a: np.ones(3))(lambda a: np.ones(2)), errors.ShapeError),
        (lambda a: rg.scipy.root(3, 1.0).x, errors.OptionError),
        (lambda a: rg.implicit(lambda x: x - a)(lambda: scipy.optimize.newton(lambda x: x - a, 0.0))(), CAPTURED),
    ],
)
def test_what_is_not_solved_is_refused(call, error):
    with pytest.raises(error):
        rg.jit(call)(1.3)


@pytest.mark.parametrize("solver", ["bisect", "brenth", "brentq", "ridder"])
def test_solvers_of_scipy_in_c_end_at_the_first_traced_value(solver: str):
    """They would go on with the error pending, and lookups of methods that Python does not remember fail then."""
    calls = []

    def f(a):
        def equation(x):
            calls.append(float(x))
            sys._clear_type_cache()
            return x - a

        return getattr(scipy.optimize, solver)(equation, 0.0, 9.0)

    with pytest.raises(errors.TracerConversionError, match="traced value"):
        rg.grad(f)(2.0)
    assert calls == [0.0]


@pytest.mark.parametrize(
    ("module", "ask"),
    [
        ("scipy.sparse.linalg", lambda: rg.grad(lambda a: np.sum(square_root(a)))(np.full(300, 4.0))),
        ("scipy.optimize", lambda: rg.scipy.root(lambda x: x - 1.0, np.zeros(2))),
        ("scipy.optimize", lambda: rg.grad(lambda a: rg.scipy.root(lambda x: x - a, np.zeros(1)).x[0])(1.0)),
    ],
)
def test_what_needs_scipy_says_so_where_it_is_missing(module, ask, monkeypatch):
    implicit.helper.cache_clear()
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, module, None)
        with pytest.raises(rg.errors.UnsupportedError, match="needs SciPy, which is not installed"):
            ask()
        assert rg.grad(lambda a: np.sum(square_root(a)))(np.full(3, 4.0)) == pytest.approx([0.25] * 3)
    ask()  # nothing of the failure is kept


@rg.implicit(lambda x, a: x * x - a)
def square_root(a):
    return np.sqrt(a)
