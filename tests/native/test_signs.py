"""Signs of values: what is claimed of random programs holds of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.signs import has_sign

Program = Callable[[Any], Any]
X = np.array([[0.0, -0.0, 2.0], [-3.0, 0.5, 1.0], [7.0, -0.25, -1.0]])

KNOWN: dict[str, tuple[Program, int]] = {
    "a square": (lambda x: x * x, 1),
    "a negative square": (lambda x: -np.square(x), -1),
    "a bell's exponent": (lambda x: -0.5 * x**2 / np.exp(x), -1),
    "negative numbers times negative ones": (lambda x: -np.abs(x) * -np.sqrt(np.abs(x)), 1),
    "a sum": (lambda x: np.sum(np.exp(x) + x * x, axis=1), 1),
    "a difference": (lambda x: -np.exp(x) - np.abs(x), -1),
    "less the largest of a row": (lambda x: x - np.max(x, axis=1, keepdims=True), -1),
    "less the largest of a column": (lambda x: x - np.max(x, axis=0), -1),
    "less the largest of a row, by None": (lambda x: x - np.max(x, axis=1)[:, None], -1),
    "less the largest": (lambda x: x - np.max(x), -1),
    "less the smallest of a row": (lambda x: x - np.min(x, axis=1).reshape(3, 1), 1),
    "less the larger one": (lambda x: x - np.maximum(x, np.sin(x)), -1),
    "at least zero": (lambda x: np.maximum(0.0, np.sin(x)), 1),
    "at most zero": (lambda x: np.minimum(np.sin(x), 0.0), -1),
    "less the largest of another axis": (lambda x: x - np.max(x, axis=1), 0),
    "less the largest of another axis, by None": (lambda x: x - np.max(x, axis=0)[:, None], 0),
    "less the largest, turned": (lambda x: x - np.max(x, axis=1, keepdims=True)[::-1], 0),
    "less the largest of others": (lambda x: x - np.max(2.0 * x, axis=1, keepdims=True), 0),
    "a difference of squares": (lambda x: x * x - np.exp(x), 0),
    "numbers": (np.sin, 0),
}


def claimed(f: Program, x: Any) -> int:
    """1, -1 or 0, if no sign is known; an operand that is 0 has both."""
    graph = rg.jit(f).graph(x)
    return sum(s for s in (1, -1) if has_sign(graph.outputs[0], s, graph.producer))


@pytest.mark.parametrize("name", KNOWN)
def test_the_sign_of_a_program(name: str) -> None:
    f, wanted = KNOWN[name]
    assert claimed(f, X) == wanted
    assert np.all(f(X) * wanted >= 0)


ONE: list[Callable[[Any], Any]] = [
    *(np.exp, np.abs, np.square, np.negative, np.sin, np.cosh),
    *(lambda v: v * v, lambda v: np.sqrt(np.abs(v)), lambda v: v - np.max(v, axis=1, keepdims=True)),
    *(lambda v: v - np.max(v, axis=0), lambda v: v - np.min(v), lambda v: v.T, lambda v: v[::-1] * 0.5),
    *(lambda v: v + 0.0 * np.sum(v * v), lambda v: np.reshape(v.T, v.shape), lambda v: -2.0 * v),
]
TWO: list[Callable[[Any, Any], Any]] = [
    *(np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum),
    *(lambda v, w: v - np.maximum(v, w), lambda v, w: np.where(v > w, v, w)),
]


def test_the_sign_of_random_programs() -> None:
    rng, claims = np.random.default_rng(5), 0
    for _ in range(300):
        steps = [(rng.integers(2), rng.integers(len(ONE)), rng.integers(len(TWO)), rng.integers(9)) for _ in range(5)]

        def f(x: Any, steps: Any = steps) -> Any:
            made = [x]
            for two, one, other, at in steps:
                last, before = made[-1], made[at % len(made)]
                made.append(TWO[other](last, before) if two else ONE[one](last))
            return made[-1]

        with np.errstate(all="ignore"):
            found = claimed(f, X)
        claims += found != 0
        for x in (X, -X, rng.standard_normal((3, 3)), np.zeros((3, 3))):
            with np.errstate(all="ignore"):
                value = f(x)
            assert np.all((np.sign(value) * found >= 0) | np.isnan(value)), steps
    assert claims > 100
