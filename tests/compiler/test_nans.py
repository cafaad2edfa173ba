"""nan_safe: a zero annihilates an infinity. debug_nans: the first nan or infinity has a name and a line."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.0, 2.0, -1.0])


def logarithm(x):
    return np.sum(np.where(x > 0, np.log(x), 0.0))


def root(x):
    return np.sum(np.where(x > 0, np.sqrt(x), x * 2))


def quotient(x):
    return np.sum(np.where(x != 0, np.sin(x) / x, 1.0))


def looped(x):
    return rg.scan(lambda c, _: (c + np.sum(np.where(x > 0, np.log(x), 0.0)), None), 0.0, length=3)[0]


@rg.jit
def compiled(x):
    return np.where(x > 0, np.log(x) * np.sqrt(x) / x, 0.0) + np.where(x > 0, np.cbrt(x), np.exp(x)) * np.log(x * x + 1)


def called(x):
    return np.sum(compiled(x) * compiled(x + 1.5))


CASES = [logarithm, root, quotient, looped, called]


def quiet() -> Any:
    """NumPy's warnings about the infinities that are met on purpose are silent."""
    return np.errstate(all="ignore")


def by_parts(function: Any, x: Any) -> Any:
    """Differences, of a function that is smooth to both sides of the points that are no edges."""
    h = 1e-6
    steps = h * np.eye(x.size)
    with quiet():
        return np.array([(function(x + s) - function(x - s)) / (2 * h) for s in steps])


@pytest.mark.parametrize("function", CASES)
def test_nan_safe_gradients_are_finite_and_right(function):
    with quiet():
        found = rg.grad(function, nan_safe=True)(X)
        plain = rg.grad(function)(X)
        value, same = rg.value_and_grad(function, nan_safe=True)(X)
    assert np.isfinite(found).all()
    assert np.isnan(plain[0])
    np.testing.assert_allclose(found[1:], by_parts(function, X)[1:], atol=1e-7)
    np.testing.assert_array_equal(same, found)
    with quiet():
        np.testing.assert_allclose(value, function(X), rtol=1e-15)


@pytest.mark.parametrize("function", CASES)
def test_forward_mode_and_higher_orders_are_nan_safe(function):
    with quiet(), rg.config(nan_safe=True):
        gradient = rg.grad(function)(X)
        for i, unit in enumerate(np.eye(3)):
            assert rg.jvp(function, (X,), (unit,))[1] == pytest.approx(gradient[i])
            assert rg.linearize(function, X)[1](unit) == pytest.approx(gradient[i])
        np.testing.assert_allclose(rg.vjp(function, X)[1](1.0)[0], gradient)
        assert np.isfinite(rg.hessian(function)(X)).all()
        np.testing.assert_allclose(rg.jacfwd(rg.jacrev(function))(X), rg.hessian(function)(X), atol=1e-12)


def test_the_setting_is_part_of_what_is_compiled():
    gradient = rg.grad(logarithm)
    with quiet():
        assert np.isnan(gradient(X)[0])
        with rg.config(nan_safe=True):
            assert gradient(X)[0] == 0
        assert np.isnan(gradient(X)[0])


def test_derivatives_inside_a_nan_safe_jit_are_so():
    with quiet():
        assert rg.jit(lambda x: 2 * rg.grad(logarithm)(x), nan_safe=True)(X)[0] == 0
        assert np.isnan(rg.jit(lambda x: 2 * rg.grad(logarithm)(x))(X)[0])
        assert rg.jit(nan_safe=True)(lambda x: 2 * rg.grad(logarithm)(x))(X)[0] == 0


def test_without_it_the_source_is_as_it_was():
    assert "np.where" not in rg.grad(lambda x: np.sum(np.sin(x) * x)).source(X)


@pytest.mark.parametrize("transform", [rg.grad, rg.value_and_grad, rg.jit])
def test_wrong_options_are_refused(transform):
    with pytest.raises(rg.errors.OptionError, match="nan_safe"):
        transform(logarithm, nan_safe=1)


# ---------------------------------------------------------------------------------------------- debug_nans


def fault_of(call: Any) -> rg.errors.NanError:
    with quiet(), rg.debug_nans(), pytest.raises(rg.errors.NanError) as caught:
        call()
    return caught.value


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def deep(x):
    y = x - 1.0
    z = np.sqrt(y)
    return np.sum(z * 2.0)


def test_a_nan_in_the_function_names_the_operation_and_the_line():
    for call in (
        lambda: rg.jit(deep)(X),
        lambda: rg.grad(deep)(X),
        lambda: rg.vjp(deep, X),
        lambda: rg.jvp(deep, (X,), (X,)),
        lambda: rg.linearize(deep, X),
        lambda: rg.hessian(deep)(X),
        lambda: rg.vmap(deep)(X[None]),
    ):
        fault = fault_of(call)
        assert fault.what == "sqrt made nan in the function"
        assert (fault.where.file, fault.where.line) == (__file__, line_of(deep, "np.sqrt"))


def test_an_infinity_in_the_derivative_says_so():
    one = np.ones(3)
    for call in (
        lambda: rg.grad(deep)(one),
        lambda: rg.vjp(deep, one)[1](1.0),
        lambda: rg.jvp(deep, (one,), (one,)),
        lambda: rg.linearize(deep, one)[1](one),
    ):
        fault = fault_of(call)
        assert fault.what == "div made inf in the derivative"
        assert fault.where.line == line_of(deep, "np.sqrt")
    with rg.debug_nans():
        assert rg.jit(deep)(one) == 0.0


def test_faults_inside_loops_and_calls_are_found():
    def loop(x):
        return rg.scan(lambda c, v: (np.log(c - v), None), 2.0, x)[0]

    assert fault_of(lambda: rg.jit(loop)(np.array([1.0, 5.0]))).what == "log made nan in the function"
    inner = rg.jit(lambda x: np.log(x * 1.0))
    assert fault_of(lambda: rg.jit(lambda x: inner(x) + 1)(X)).what == "log made nan in the function"


def test_what_is_not_finite_already_is_no_fault():
    with rg.debug_nans():
        assert rg.jit(lambda x: x * 2)(np.inf) == np.inf
        assert rg.jit(lambda x: np.minimum(x, np.inf))(1.0) == 1.0
        np.testing.assert_array_equal(rg.grad(lambda x: np.sum(np.sin(x)))(X), np.cos(X))


def test_outside_nothing_is_looked_at():
    compiled = rg.jit(deep)
    fault_of(lambda: compiled(X))
    with quiet():
        assert np.isnan(compiled(X))


@pytest.mark.parametrize("at", [np.array([0.0, 1.0, 4.0]), np.float32([0.0, 1.0, 4.0])], ids=["f64", "f32"])
def test_a_nan_safe_derivative_does_not_warn_where_the_program_does_not(at: Any) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0)) + np.where(x[0] > 0, np.sqrt(x[0]), x[0])

    g = rg.grad(f, nan_safe=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            found = g(at)
            assert found.dtype == at.dtype
            np.testing.assert_allclose(found, [1.0, 0.5, 0.25])
        with rg.config(nan_safe=True):
            lanes = rg.vmap(rg.grad(f))(np.stack([at, at]))
    np.testing.assert_allclose(lanes, [[1.0, 0.5, 0.25]] * 2)


CHAINS = {
    "the root of a maximum": lambda v: np.sqrt(np.maximum(v, 0.0)),
    "the root of a product with a mask": lambda v: np.sqrt(v * (v > 0)),
    "the root of a product with zeros": lambda v: np.sqrt(np.abs(v) * np.where(np.arange(np.size(v)) % 2, 1.0, 0.0)),
    "a power below one": lambda v: np.maximum(v, 0.0) ** 0.3,
    "a logarithm": lambda v: np.exp(np.log(np.maximum(v, 0.0))),
    "a quotient": lambda v: 1.0 / (1.0 + np.sqrt(np.maximum(v, 0.0))),
    "a quotient by an infinity": lambda v: np.sqrt(np.maximum(v, 0.0)) / np.where(v > 0, 1.0, np.inf),
    "the square of a root": lambda v: np.sqrt(np.maximum(v, 0.0)) ** 2,
    "a root of a root": lambda v: np.sqrt(np.sqrt(np.maximum(v, 0.0) * np.maximum(v, 0.0))),
    "a choice": lambda v: np.where(v > 0, np.sqrt(v * v), np.cbrt(v * 0.0)),
}


@pytest.mark.parametrize("size", [1, 4, 12, 13, 40_000])
@pytest.mark.parametrize("chain", CHAINS)
def test_nan_safe_modes_agree_where_a_zero_slope_precedes_an_infinite_one(chain, size):
    x = np.resize([-1.0, 0.0, 2.0, -0.5], size)
    function = CHAINS[chain]
    with quiet(), rg.config(nan_safe=True):
        reverse = rg.grad(lambda v: np.sum(function(v)))(x)
        forward = rg.jvp(function, (x,), (np.ones(size),))[1]
        twice = rg.jvp(rg.grad(lambda v: np.sum(function(v))), (x,), (np.ones(size),))[1]
        backward = rg.vjp(lambda v: np.sum(rg.jvp(function, (v,), (np.ones(size),))[1]), x)[1](1.0)[0]
        alone = [rg.grad(lambda v: np.sum(function(v)))(float(t)) for t in x[:4]]
    np.testing.assert_allclose(reverse, forward, rtol=1e-12)
    np.testing.assert_allclose(twice, backward, rtol=1e-12, atol=1e-12)
    assert np.isfinite(reverse[x != 0]).all()
    if "zeros" not in chain:
        np.testing.assert_allclose(reverse[:4], alone, rtol=1e-12)
    here = np.flatnonzero(x != 0)[:3]
    step = 1e-6
    with quiet():
        differences = [(function(x + step)[k] - function(x - step)[k]) / (2 * step) for k in here]
    np.testing.assert_allclose(reverse[here], differences, atol=1e-6)


def test_debug_nans_with_nan_safe_ignores_an_infinity_that_a_zero_wins_over():
    def f(v):
        return np.sqrt(np.maximum(v, 0.0))

    with quiet(), rg.debug_nans():
        with pytest.raises(rg.errors.NanError, match="nan_safe=True"):
            rg.grad(f)(-1.0)
        assert rg.grad(f, nan_safe=True)(-1.0) == 0.0
        with rg.config(nan_safe=True):
            assert rg.jvp(f, (-1.0,), (1.0,))[1] == 0.0
        with pytest.raises(rg.errors.NanError, match="div made inf in the derivative"):
            rg.grad(np.sqrt, nan_safe=True)(0.0)
