"""Functions as results, and functions from functions to functions."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

Pairs = rg.functions.FunctionCotangent


def test_a_function_result_resumes_into_its_captures():
    out, pullback = rg.vjp(lambda a: lambda x: np.sin(a * x), 0.7)
    assert out(2.0) == np.sin(1.4)
    assert pullback([(1, 2), (3, -1)])[0] == pytest.approx(3.04422268836855, rel=1e-14)
    assert pullback(Pairs([(1.0, 2.0), (3.0, -1.0)]))[0] == pytest.approx(3.04422268836855, rel=1e-14)
    assert pullback([])[0] == 0.0


def test_composition_is_differentiated_in_both_functions():
    out, pullback = rg.vjp(lambda f, g: lambda x: g(f(x)), lambda x: x**2, np.sin, fns="pairs")
    df, dg = pullback([(0.5, 2)])
    assert out(0.5) == np.sin(0.25)
    assert df.pairs == ((0.5, pytest.approx(1.9378248434, rel=1e-10)),)
    assert dg.pairs == ((0.25, 2.0),)


def test_composition_in_captures():
    a, b = 1.5, 0.4
    _, pullback = rg.vjp(lambda f, g: lambda x: g(f(x)), lambda x: a * x**2, lambda y: np.sin(b * y))
    df, dg = pullback([(0.5, 2.0), (1.0, 1.0)])
    slopes = rg.grad(lambda a, b: 2.0 * np.sin(b * a * 0.25) + np.sin(b * a), (0, 1))(a, b)
    np.testing.assert_allclose([df["a"], dg["b"]], slopes, rtol=1e-13)


def test_results_of_both_kinds():
    def run(a, w):
        return {"number": a**2 * np.sum(w), "function": lambda x: a * np.sum(w * x)}

    w = np.array([1.0, 2.0])
    out, pullback = rg.vjp(run, 3.0, w)
    assert out["number"] == 27.0
    assert out["function"](2.0) == 18.0
    da, dw = pullback({"number": 2.0, "function": [(1.0, 1.0), (np.array([0.0, 5.0]), -1.0)]})
    assert da == 2.0 * 18.0 + 3.0 - 10.0
    np.testing.assert_array_equal(dw, 2.0 * 9.0 + 3.0 - np.array([0.0, 15.0]))


def test_auxiliary_results_beside_a_function():
    out, pullback, aux = rg.vjp(lambda a: (lambda x: a * x, {"a": a}), 2.0, has_aux=True)
    assert (out(3.0), aux, pullback([(5.0, 1.0)])) == (6.0, {"a": 2.0}, (5.0,))


def test_a_function_of_a_function_of_a_function():
    curried = rg.vjp(lambda a: lambda x: lambda y: a * x * y**2, 2.0)[1]
    assert curried([(3.0, Pairs([(5.0, 1.0), (1.0, 2.0)])), (1.0, Pairs([(1.0, 1.0)]))])[0] == 3 * 25 + 3 * 2 + 1


def test_results_over_several_arguments():
    _, pullback = rg.vjp(lambda a: lambda x, y: (a * x, np.sum(y) / a), 2.0)
    assert pullback([((3.0, np.ones(2)), (1.0, 4.0))])[0] == 3.0 - 4.0 * 2.0 / 4.0


def test_many_pairs_of_one_call_are_pulled_back_together():
    """A cotangent that came out of lanes goes on as one block."""
    xs = np.linspace(0.0, 1.0, 500)
    (df, _) = rg.vjp(lambda f, x: np.sum(rg.vmap(f)(x) ** 2), lambda x: np.sin(0.7 * x), xs, fns="pairs")[1](1.0)
    (da,) = rg.vjp(lambda a: lambda x: np.sin(a * x), 0.7)[1](df)
    assert da == pytest.approx(np.sum(2 * np.sin(0.7 * xs) * np.cos(0.7 * xs) * xs), rel=1e-13)
    assert len(df.blocks) == 1


def test_function_results_under_an_outer_gradient():
    def run(b):
        out, pullback = rg.vjp(lambda a: lambda x: np.sin(a * b * x), 0.7)
        return out(2.0) + pullback([(1.0, 1.0)])[0]

    b, eps = 1.3, 1e-6
    assert rg.grad(run)(b) == pytest.approx((run(b + eps) - run(b - eps)) / (2 * eps), rel=1e-8)
    assert rg.jit(run)(b) == pytest.approx(run(b), rel=1e-14)


def test_the_uncurried_function_has_the_same_gradient():
    """λ is adjoint to application: pulling back through λx. f(a, x) is pulling back through f at each pair."""

    def f(a, x):
        return np.tanh(a @ x) * x

    a = np.random.default_rng(0).normal(size=(3, 3))
    xs = np.random.default_rng(1).normal(size=(5, 3))
    cts = np.random.default_rng(2).normal(size=(5, 3))
    (da,) = rg.vjp(lambda a: lambda x: f(a, x), a)[1](zip(xs, cts, strict=True))
    expected = sum(rg.vjp(f, a, x)[1](ct)[0] for x, ct in zip(xs, cts, strict=True))
    np.testing.assert_allclose(da, expected, rtol=1e-13)
    # … and application gives the pair back: d/df of f(x) at ct is [(x, ct)].
    df, dx = rg.vjp(lambda f, x: f(x), lambda x: f(a, x), xs[0], fns="pairs")[1](cts[0])
    assert df == Pairs([(xs[0], cts[0])])
    np.testing.assert_allclose(dx, rg.vjp(f, a, xs[0])[1](cts[0])[1], rtol=1e-13)
