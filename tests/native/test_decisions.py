"""Choices and loops with a condition in C: values, derivatives, and loops that collect what their steps save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import step_loops
from tests.support.native import needs_compiler

pytestmark = needs_compiler
X = np.linspace(0.1, 1.0, 20)


def root(x: Any) -> Any:
    return rg.while_loop(lambda s: np.abs(s * s - x) > 1e-12, lambda s: 0.5 * (s + x / s), x)


def decay(x: Any) -> Any:
    return np.sum(rg.while_loop(lambda s: np.sum(s * s) > 1e-3, lambda s: s * 0.9 - 0.01 * np.sin(s), x) * x)


def branch(x: Any) -> Any:
    return np.sum(rg.cond(np.sum(x) > 0, lambda x: np.sin(x) * x[0], np.exp, x) ** 2)


def among(x: Any) -> Any:
    k = rg.cond(x[0] > 0.4, lambda: 2, lambda: 0) + rg.cond(x[1] > 3, lambda: 7, lambda: -1)
    return np.sum(rg.switch(k, [np.sin, np.cos, np.tanh], x) * x)


def steps(x: Any) -> Any:
    return np.sum(rg.fori_loop(20, lambda i, s: rg.cond(np.sum(s) > 1.0, lambda s: s * 0.5, np.cos, s), x))


def nested(x: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        return rg.while_loop(lambda u: np.sum(u * u) > 1.0, lambda u: u * 0.7, s * 3.0)

    return np.sum(rg.fori_loop(10, step, x))


ARRAYS = [decay, branch, among, steps, nested]
POINTS = [X, -X, X[:3], X[:1] * 5, 5 * X]


@pytest.mark.costly
@pytest.mark.parametrize("function", ARRAYS)
def test_values_and_derivatives(function: Any) -> None:
    for point in POINTS:
        x = np.resize(point, max(2, len(point)))
        np.testing.assert_allclose(rg.jit(function, backend="native")(x), rg.jit(function)(x), rtol=1e-12)
        found, expected = rg.value_and_grad(function, backend="native")(x), rg.value_and_grad(function)(x)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-12)
        pair = rg.jvp(function, (x,), (x * 0.3,), backend="native")
        np.testing.assert_allclose(pair, rg.jvp(function, (x,), (x * 0.3,)), rtol=1e-11)


@pytest.mark.parametrize("function", [decay, branch, among, steps])
def test_a_function_with_decisions_is_one_kernel(function: Any) -> None:
    for transform in (rg.jit, rg.value_and_grad):
        f = transform(function, backend="native")
        f(X)
        assert type(f.executable(X).function).__name__ == "builtin_function_or_method"


def test_a_root_of_a_number() -> None:
    f = rg.value_and_grad(root, backend="native")
    for x in (2.0, 1e-3, 1e6, 1.0):
        value, slope = f(x)
        assert value == pytest.approx(np.sqrt(x), rel=1e-9)
        assert slope == pytest.approx(rg.grad(root)(x), rel=1e-12)
    assert type(f.executable(2.0).function).__name__ == "builtin_function_or_method"


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 193, 1000])
def test_what_steps_save_has_room(n: int) -> None:
    def count(x: Any) -> Any:
        def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
            k, s = state
            return k + 1.0, np.sin(s) + 0.01 * x

        return np.sum(rg.while_loop(lambda state: state[0] < n, step, (0.0, x))[1])

    found, expected = rg.value_and_grad(count, backend="native")(X), rg.value_and_grad(count)(X)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-13)


def test_numpy_goes_on_where_a_loop_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_loops, "MOST", 5)
    f = rg.jit(lambda x: decay(x) * 1.0, backend="native")
    assert f(X) == pytest.approx(decay(X), rel=1e-13)
    assert "== 5" in f.source(X, language="c")


def test_a_position_out_of_bounds_ends_a_loop() -> None:
    at = np.array([3, 99])

    def walk(x: Any, at: Any) -> Any:
        return rg.while_loop(lambda s: s[0] < 1e9, lambda s: (s[0] + x[at[1]] * 0 + 1e8, s[1]), (0.0, x))[0]

    f = rg.jit(walk, backend="native")
    assert f(X, at * 0) == 1e9
    with pytest.raises(IndexError, match="index 99 is out of bounds"):
        f(X, at)


@pytest.mark.parametrize("function", [decay, branch, steps])
def test_lanes_have_the_values_of_single_calls(function: Any) -> None:
    one = rg.grad(function, backend="native")
    rows = np.stack([X, -X, 0.3 * X])
    many = rg.vmap(one, backend="native")(rows)
    for k, x in enumerate(rows):
        assert np.array_equal(many[k], one(x))
