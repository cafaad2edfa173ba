"""Function values at the edges: shapes without elements, arguments of all kinds, results that are no numbers."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

W = 2.0
X = np.arange(3.0)


def product(t, c, w=W):
    return w * t * c


def written(x, w=W):
    x = x * 1.0
    x *= w
    return x


SINGLE = np.float32(W)


CASES = {
    "lanes beside a constant": (lambda f, x: np.sum(rg.vmap(lambda t: f(t, 2.0))(x)), product, X, 6.0),
    "lanes of integers": (lambda f, x: np.sum(rg.vmap(f)(x, np.arange(3))), product, X, 5.0),
    "no steps": (lambda f, x: rg.scan(lambda c, t: (c + f(t, c), None), 0.5, x)[0], product, np.zeros(0), 0.0),
    "no lanes": (lambda f, x: np.sum(rg.vmap(lambda t: f(t, t))(x)), product, np.zeros(0), 0.0),
    "no elements": (lambda f, x: np.sum(f(x, x)), product, np.zeros((0, 3)), 0.0),
    "an array of no axes": (lambda f, x: f(x, x), product, np.array(3.0), 9.0),
    "bools": (lambda f, x: np.sum(f(x, x > 1.0)), product, X, 2.0),
    "branches that are never taken": (
        lambda f, x: np.sum(rg.map(lambda t: rg.cond(t > 9.0, lambda: f(t, t), lambda: t), x)),
        product,
        X,
        0.0,
    ),
    "a generator": (lambda f, x: sum(f(t, t) for t in x), product, X, 5.0),
    "writes into what it made": (lambda f, x: np.sum(f(x) ** 2), written, X, 20.0),
    "no arguments": (lambda f, x: f() * x[1], lambda w=W: w * 3.0, X, 3.0),
    "a dict": (lambda f, x: f({"a": x, "b": 2.0})[1], lambda d, w=W: w * d["a"] * d["b"], X, 2.0),
    "a tuple": (lambda f, x: f((x[1], x[2])), lambda d, w=W: w * d[0] * d[1], X, 2.0),
    "text": (lambda f, x: f(x[2], "double"), lambda t, how, w=W: w * t * (2 if how == "double" else 1), X, 4.0),
    "a list": (lambda f, x: sum(f(x[2])), lambda t, w=W: [w * t, t, {"w": w}["w"]], X, 3.0),
    "nothing": (lambda f, x: np.sum(x) if f(x) is None else 0.0, lambda t, w=W: None, X, 0.0),
    "a constant": (lambda f, x: f(x) * x[1], lambda t, w=W: 3.0, X, 0.0),
    "its argument": (lambda f, x: np.sum(f(x) * x), lambda t, w=W: t, X, 0.0),
    "its capture": (lambda f, x: f(x) * x[2], lambda t, w=W: w, X, 2.0),
    "complex numbers": (lambda f, x: np.sum(np.abs(f(x)) ** 2), lambda t, w=W: (w + 1j) * t**2, X, 68.0),
    "single precision": (lambda f, x: np.sum(f(x)), lambda t, w=SINGLE: w * t, X.astype(np.float32), 3.0),
}


@pytest.mark.parametrize(("run", "f", "x", "expected"), CASES.values(), ids=CASES.keys())
def test_pairs_captures_and_arithmetic_agree(run, f, x, expected):
    before = x.copy()
    out, pullback = rg.vjp(run, f, x, fns="pairs")
    df, dx = pullback(1.0)
    captured, same = rg.vjp(run, f, x)[1](1.0)
    (name,) = captured
    assert captured[name] == pytest.approx(expected, rel=1e-14)
    assert df.pull_into(f)[name] == pytest.approx(expected, rel=1e-14)
    assert df.normalized().pull_into(f)[name] == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(dx, same, rtol=1e-14)
    np.testing.assert_allclose(out, run(f, x.copy()), rtol=1e-14)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(("run", "f", "x", "expected"), CASES.values(), ids=CASES.keys())
@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
def test_compiled_twice_and_again(run, f, x, expected):
    pairs, captures = rg.grad(run, fns="pairs"), rg.grad(run)
    for _ in range(2):
        found = captures(f, x)
        assert pairs(f, x).pull_into(f) == pytest.approx(found)
        assert list(found.values()) == [pytest.approx(expected, rel=1e-14)]
