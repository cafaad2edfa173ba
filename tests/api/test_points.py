"""vjp, jvp, linearize and linear_transpose: derivatives at a point, as values."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg

X = np.array([0.5, -1.0, 2.0])
W = np.array([[1.0, 2.0, 3.0], [0.5, -0.5, 0.25]])


def layer(x, w):
    return np.tanh(w @ x) * np.sum(x**2)


def several(x, y):
    """A tree of results; one is an integer array, one a string."""
    return {"p": x * y, "s": np.sum(np.sin(x)), "n": np.argmax(y), "name": "several", "t": (y, None)}


ROUTES = {
    "elementwise": (lambda x: np.exp(x) * np.sin(x), (X,)),
    "several arguments": (layer, (X, W)),
    "reductions": (lambda x: (np.max(x), np.mean(x, axis=0), np.sum(x * x)), (W,)),
    "moved elements": (lambda x: np.concatenate([x.T.reshape(-1), x[0, ::-1]]), (W,)),
    "writes": (lambda x: written(x), (X,)),  # noqa: PLW0108 - it is defined below
    "a scan": (lambda x: rg.scan(lambda c, v: (np.sin(c * v), c), 0.5, x), (X,)),
    "a captured array": (lambda x: x @ W.T, (X,)),
    "a Python float": (lambda x: x**3 + 2.0 / x, (1.5,)),
    "an inner gradient": (rg.grad(lambda v: np.sum(v**3)), (X,)),
    "float32": (lambda x, y: x * y, (X.astype(np.float32), X)),
}


def written(x):
    y = np.zeros(4)
    y[:3] = x * x
    y[-1] = y[0] * x[1]
    y[1:3] += y[:2]
    return y


def dot(a, b):
    return sum(np.sum(np.asarray(x) * np.asarray(y)) for x, y in zip(leaves(a), leaves(b), strict=True))


def leaves(tree):
    return [x for v in tree for x in leaves(v)] if isinstance(tree, tuple) else [tree]


def random_like(tree, rng):
    if isinstance(tree, tuple):
        return tuple(random_like(v, rng) for v in tree)
    return np.asarray(rng.standard_normal(np.shape(tree))).astype(np.asarray(tree).dtype)[()]


@pytest.mark.parametrize(("f", "args"), ROUTES.values(), ids=ROUTES.keys())
def test_forward_and_reverse_mode_are_adjoint(f, args):
    rng = np.random.default_rng(0)
    out, pullback = rg.vjp(f, *args)
    value, linear = rg.linearize(f, *args)
    v = tuple(random_like(a, rng) for a in args)
    u = random_like(out, rng)
    pushed, tangent = rg.jvp(f, args, v)
    tolerance = 1e-5 if any(getattr(a, "dtype", None) == np.float32 for a in args) else 1e-12
    assert dot(u, tangent) == pytest.approx(dot(pullback(u), v), rel=tolerance)
    for a, b, c, e in zip(leaves(out), leaves(value), leaves(pushed), leaves(f(*args)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
        np.testing.assert_allclose(a, e, rtol=1e-6 if tolerance == 1e-5 else 1e-14)
    for a, b in zip(leaves(tangent), leaves(linear(*v)), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance)
    for a, b in zip(leaves(pullback(u)), leaves(rg.linear_transpose(linear, *args)(u)), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance)


@pytest.mark.parametrize(("f", "args"), ROUTES.values(), ids=ROUTES.keys())
def test_cotangents_and_tangents_have_the_dtypes_and_shapes_of_their_values(f, args):
    out, pullback = rg.vjp(f, *args)
    cts = pullback(random_like(out, np.random.default_rng(1)))
    assert type(cts) is tuple
    assert len(cts) == len(args)
    for ct, x in zip(cts, args, strict=True):
        assert np.shape(ct) == np.shape(x)
        assert np.asarray(ct).dtype == np.asarray(x).dtype
    pushed, tangent = rg.jvp(f, args, args)
    for t, y in zip(leaves(tangent), leaves(pushed), strict=True):
        assert np.shape(t) == np.shape(y)
        assert np.asarray(t).dtype == np.asarray(y).dtype


def test_a_pullback_gives_a_tuple_also_for_one_argument():
    out, pullback = rg.vjp(np.sin, 0.0)
    assert out == 0.0
    assert pullback(2.0) == (2.0,)
    assert rg.vjp(lambda x, y: x * y, 3.0, 4.0)[1](1.0) == (4.0, 3.0)


def test_a_pullback_is_a_value():
    out, pullback = rg.vjp(layer, X, W)
    seeds = [np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([2.0, -3.0])]
    once = [pullback(u) for u in seeds]
    order = [2, 0, 1, 1, 0, 2, 2]
    random.Random(0).shuffle(order)
    other = rg.vjp(layer, 2 * X, W)[1]
    for k in order:
        other(seeds[k])
        rg.grad(lambda x: np.sum(layer(x, W)))(X)
        for a, b in zip(pullback(seeds[k]), once[k], strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(2 * once[0][0] - 3 * once[1][0], once[2][0], rtol=1e-12)
    np.testing.assert_array_equal(out, layer(X, W))


def test_a_pullback_does_not_see_later_changes_of_arguments_results_and_captures():
    x, w = X.copy(), W.copy()
    captured = np.array([1.0, 2.0])
    out, pullback = rg.vjp(lambda x, w: np.exp(w @ x) * captured, x, w)
    _, linear = rg.linearize(lambda x, w: np.exp(w @ x) * captured, x, w)
    expected, pushed = pullback(np.ones(2)), linear(x.copy(), w.copy())
    x0, w0 = x.copy(), w.copy()
    x[:], w[:], out[:], captured[:] = 7.0, 8.0, 9.0, 10.0
    for a, b in zip(pullback(np.ones(2)), expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(linear(x0, w0), pushed)


def test_a_dropped_pullback_frees_what_it_kept():
    big = np.ones(1000)
    out, pullback = rg.vjp(lambda x: np.sum(np.sin(x) * x), big)
    mark = weakref.ref(pullback)
    del pullback
    gc.collect()
    assert mark() is None
    assert out == pytest.approx(1000 * np.sin(1.0))


def test_results_that_have_no_derivative_need_no_cotangent_of_their_own():
    out, pullback = rg.vjp(several, X, 2 * X)
    assert out["name"] == "several"
    assert out["t"][1] is None
    assert out["n"] == 2
    cx, cy = pullback({"p": np.ones(3), "s": 1.0, "n": 0, "name": "ignored", "t": (np.ones(3), None)})
    np.testing.assert_allclose(cx, 2 * X + np.cos(X))
    np.testing.assert_allclose(cy, X + 1.0)
    pushed, tangent = rg.jvp(several, (X, 2 * X), (np.ones(3), np.zeros(3)))
    np.testing.assert_allclose(tangent["p"], 2 * X)
    assert (tangent["name"], tangent["n"]) == ("several", 0)
    assert pushed["name"] == "several"


def test_has_aux_gives_a_third_result():
    out, pullback, aux = rg.vjp(lambda x: (np.sum(x**2), {"y": x + 1, "k": 3, "s": "text"}), X, has_aux=True)
    assert out == pytest.approx(np.sum(X**2))
    np.testing.assert_array_equal(pullback(1.0)[0], 2 * X)
    np.testing.assert_array_equal(aux["y"], X + 1)
    assert (aux["k"], aux["s"]) == (3, "text")
    out, pullback, aux = rg.vjp(lambda x: ((x, 2 * x), None), X, has_aux=True)
    assert aux is None
    np.testing.assert_array_equal(pullback((np.ones(3), np.ones(3)))[0], 3 * np.ones(3))


@pytest.mark.parametrize("ct", [1, 1.0, np.float32(1), np.array(1), np.True_, 1 + 0])
def test_a_cotangent_may_have_another_dtype(ct):
    assert rg.vjp(np.sin, 0.0)[1](ct) == (1.0,)
    np.testing.assert_array_equal(rg.vjp(np.negative, X)[1](np.full(3, ct))[0], -np.ones(3))
    (found,) = rg.vjp(np.negative, X.astype(np.float32))[1](np.full(3, ct))
    assert found.dtype == np.float32


def test_tangents_of_integer_leaves_may_be_anything_or_none():
    def f(d):
        return d["a"] * d["n"]

    for n in (None, 0, 5, "x"):
        assert rg.jvp(f, ({"a": 2.0, "n": 3},), ({"a": 1.0, "n": n},)) == (6.0, 3.0)
        assert rg.linearize(f, {"a": 2.0, "n": 3})[1]({"a": 1.0, "n": n}) == 3.0


def test_linearize_gives_a_linear_function():
    _, linear = rg.linearize(layer, X, W)
    rng = np.random.default_rng(2)
    v, w = ((rng.standard_normal(3), rng.standard_normal((2, 3))) for _ in range(2))
    both = linear(*(2 * a - 3 * b for a, b in zip(v, w, strict=True)))
    np.testing.assert_allclose(both, 2 * linear(*v) - 3 * linear(*w), rtol=1e-10)
    np.testing.assert_array_equal(linear(np.zeros(3), np.zeros((2, 3))), np.zeros(2))


def test_linear_transpose_is_the_transposed_matrix():
    transposed = rg.linear_transpose(lambda x: W @ x, np.zeros(3))
    np.testing.assert_array_equal(np.stack([transposed(e)[0] for e in np.eye(2)]), W)
    both = rg.linear_transpose(lambda x, y: (x + 2 * y, np.sum(x), x[::-1]), np.zeros(2), np.zeros(2))
    x, y = both((np.array([1.0, 2.0]), 3.0, np.array([5.0, 7.0])))
    np.testing.assert_array_equal(x, [1 + 3 + 7, 2 + 3 + 5])
    np.testing.assert_array_equal(y, [2.0, 4.0])


@pytest.mark.parametrize("f", [lambda x: x + 1.0, lambda x: np.concatenate([x, [0.5]]), lambda x: x - np.ones(3)])
def test_affine_functions_have_no_transpose(f):
    with pytest.raises(rg.errors.NonDifferentiableError, match="not zero where its arguments are"):
        rg.linear_transpose(f, X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.where(x > 1.0, x, 0.0),
        lambda x: np.select([x > 1.0, x > 0.5], [x, 2.0 * x], 0.0),
        lambda x: rg.cond(x[0] > 1.0, lambda: x, lambda: 2.0 * x),
        lambda x: rg.while_loop(lambda c: np.sum(c) < 10.0, lambda c: 2.0 * c, x),  # at zero it does not end
        lambda x: rg.fori_loop(0, 3, lambda k, c: (c[0] * c[0], 2.0 * c[1]), (x, 1.0))[0],
        lambda x: rg.scan(lambda c, y: ((c[0] * c[1], 2.0 * c[0], c[2] + y), y), (x, x, 0.0), np.ones(3))[0][0],
        lambda x: x.astype(int).astype(float),
    ],
)
def test_functions_that_only_vanish_at_zero_have_no_transpose(f):
    with pytest.raises(rg.errors.NonDifferentiableError, match="is not linear") as caught:
        rg.linear_transpose(f, X)
    assert "rg.linearize" in str(caught.value)


def test_loops_whose_factors_are_known_have_a_transpose():
    def doubled(x):
        return rg.while_loop(lambda c: c[1] < 10.0, lambda c: (c[0] * c[1], 2.0 * c[1]), (x, 1.0))[0]

    np.testing.assert_array_equal(rg.linear_transpose(doubled, X)(X)[0], 64.0 * X)


def test_linear_loops_whose_results_are_rounding_have_a_transpose():
    def lost(x):  # what diffusion adds to the sum
        u = rg.fori_loop(0, 50, lambda i, u: u + 0.1 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)), x)
        return np.sum(u) - np.sum(x)

    def projected(x):  # out of all directions
        q = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
        return rg.scan(lambda c, v: (c - v * (v @ c), None), x, q.T)[0]

    for f in (lost, projected, lambda x: rg.fori_loop(0, 10, lambda i, c: c - 0.1 * x, x)):
        (found,) = rg.linear_transpose(f, np.zeros(6))(f(np.ones(6)))
        np.testing.assert_allclose(found, np.zeros(6), atol=1e-12)


def test_a_loop_of_a_function_that_draws_has_a_transpose():
    rng = np.random.default_rng(5)

    def f(x):
        return rg.scan(lambda c, w: (0.5 * c + x * w, None), x, np.ones(5))[0] * rng.normal()

    rg.linear_transpose(f, np.zeros(3))


def test_infinite_factors_are_linear():
    assert np.isinf(rg.linear_transpose(lambda x: x * np.inf, X)(X)[0]).all()


def test_the_transpose_of_the_transpose_is_the_function():
    def f(x):
        return W @ np.flip(x) if False else W @ x[::-1]

    once = rg.linear_transpose(f, X)
    twice = rg.linear_transpose(lambda u: once(u)[0], np.zeros(2))
    np.testing.assert_allclose(twice(X)[0], f(X), rtol=1e-15)


def test_only_shapes_and_dtypes_of_the_examples_count():
    for example in (np.zeros(3), np.full(3, np.nan), X):
        np.testing.assert_array_equal(rg.linear_transpose(lambda x: x * 2, example)(X)[0], 2 * X)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=5), st.integers(0, 100))
def test_reverse_mode_pairs_as_forward_mode_at_random_points(xs, seed):
    x = np.array(xs)
    rng = np.random.default_rng(seed)
    v, u = rng.standard_normal(x.shape), rng.standard_normal(x.shape)

    def f(x):
        return np.sin(x) * np.sum(x) + x**2 * 0.5

    assert rg.vjp(f, x)[1](u)[0] @ v == pytest.approx(u @ rg.jvp(f, (x,), (v,))[1], rel=1e-9, abs=1e-9)


def test_points_inside_a_trace():
    @rg.jit
    def f(x, u):
        out, pullback = rg.vjp(lambda v: np.sin(v) * v, x)
        _, linear = rg.linearize(lambda v: v**2, x)
        _, tangent = rg.jvp(np.exp, (x,), (u,))
        (turned,) = rg.linear_transpose(lambda v: 3.0 * v, x)(u)
        return out, pullback(u)[0], linear(u), tangent, turned

    u = np.array([1.0, 2.0, 3.0])
    expected = np.sin(X) * X, u * (np.cos(X) * X + np.sin(X)), 2 * X * u, np.exp(X) * u, 3 * u
    for a, b in zip(f(X, u), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("point", [(2.0, np.float64(3)), (np.float32(2), np.float32(3)), (2.0, np.array(3.0))])
@pytest.mark.parametrize("along", [(1.0, 1.0), (1, 1), (np.float64(1), 1.0)])
def test_tangents_may_be_numbers_of_another_kind(point, along):
    def f(x, y):
        return np.sum((x + y)[None] * 3)

    value, slope = rg.jvp(f, point, along)
    assert (value, slope) == (15.0, 6.0)
    assert slope.dtype == value.dtype == f(*point).dtype
