"""Kernels that are alike are one function; their results lie in operands where the plan says so, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from tests.native.test_footprint import said_is_taken
from tests.support import values
from tests.support.native import needs_compiler

pytestmark = needs_compiler
RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(200, 100)), RNG.normal(size=(100, 100)) / 10.0


def bent(x: Any) -> Any:
    return np.exp(-x * x) * x + 0.5


def layers(x: Any) -> Any:
    """The first operand is the caller's, the others are nobody's."""
    return bent(bent(bent(x) @ W) @ W)


def cooled(x: Any) -> Any:
    """A decision after each step."""
    for k in range(9):
        x = x - 0.1 * np.sin(x)
        if np.sum(x * x) < 1e-9:
            return x * k
    return np.sum(x)


def named(source: str) -> list[str]:
    """The functions of a module, without the last one."""
    return [line for line in source.splitlines() if line.startswith("def ")][:-1]


def test_results_lie_in_operands_where_these_are_nobodys() -> None:
    given, f = X.copy(), rg.jit(layers, backend="native")
    expected = rg.jit(layers)(X)
    for x in (given, np.asfortranarray(given)):
        np.testing.assert_allclose(f(x), expected, rtol=1e-12)
    values.assert_same_bits([given], [X])
    assert len(named(f.source(X))) == 2
    written = f.source(X, language="c")
    calls = [part.split("static", 1)[0] for part in written.split("static PyObject *call")[1:]]
    assert ["over(" in call for call in calls] == [False, True]


def test_steps_with_decisions_are_one_function() -> None:
    f = rg.value_and_grad(cooled, backend="native")
    for x in (X, 2.0 * X):
        for one, other in zip(f(x), rg.value_and_grad(cooled)(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11)
    assert len(named(f.source(X))) < 6


def test_alike_but_for_a_number_is_not_alike() -> None:
    def scaled(x: Any) -> Any:
        for factor in (0.5, 0.25, 0.5):
            x = np.sin(x) * factor @ W
        return x

    f = rg.jit(scaled, backend="native")
    np.testing.assert_allclose(f(X), scaled(X), rtol=1e-12, atol=1e-15)
    assert len(named(f.source(X))) == 2


def test_memory_is_as_predicted() -> None:
    said_is_taken(rg.jit(layers, backend="native"), X)
    said_is_taken(rg.value_and_grad(lambda x: np.sum(layers(x)), backend="native"), X)
