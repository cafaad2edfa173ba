"""Products in C are rounded before they are added: GCC joins products with sums and differences in turn, unasked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support import values
from tests.support.native import needs_compiler

pytestmark = needs_compiler
SIGNS, FACTORS = np.array([0.26, -0.11, 1.0, -0.7]), np.array([-0.85, -1.22, 1.59, 0.3])
POINTS = np.random.default_rng(0).standard_normal((100, 4))


def written(w: Any) -> Any:
    y = np.zeros(4)
    y[0], y[1], y[2], y[3] = w[0] * w[1], w[1] * w[2], w[2] * w[0], w[3] * w[1]
    y[0] += 0.2
    y[1] -= 0.3
    y[2] += w[0]
    y[3] -= w[0]
    return y


# Sums and differences in turn: GCC makes a difference of a sum with a negative number.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "constants": lambda w: SIGNS + FACTORS * w,
    "squares": lambda w: SIGNS + np.square(w),
    "products of products": lambda w: w * w * w + SIGNS,
    "products of rows": lambda w: np.prod(np.stack([w, w[::-1]], -1), axis=-1) + SIGNS,
    "running products": lambda w: np.cumprod(w) + SIGNS,
    "elements": lambda w: np.array([w[0] * w[1] + w[2], w[1] * w[2] - w[3]]),
    "negated elements": lambda w: np.array([w[0] * w[1] + -w[2], w[1] * w[2] + w[3]]),
    "negative factors": lambda w: np.array([w[2] + w[0] * w[1] * -0.3, w[3] + w[1] * w[2] * 0.3]),
    "one step": lambda w: rg.fori_loop(1, lambda t, c: SIGNS + c * (1.0 - w * w), FACTORS),
    "steps": lambda w: rg.fori_loop(3, lambda t, c: (c[1] * w, SIGNS + c[0], c[2] + FACTORS * c[0]), (w, w, w))[2],
    "writes": written,
}
over_programs = pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)


@over_programs
def test_bits_are_numpys(f: Callable[[Any], Any]) -> None:
    in_c = rg.jit(f, backend="native")
    values.assert_same_bits([in_c(w) for w in POINTS], [f(w) for w in POINTS])


@over_programs
def test_a_batch_has_the_bits_of_its_rows(f: Callable[[Any], Any]) -> None:
    in_c, slope = rg.jit(f, backend="native"), rg.jacrev(f, backend="native")
    values.assert_same_bits([rg.vmap(f, backend="native")(POINTS)], [np.stack([in_c(w) for w in POINTS])])
    values.assert_same_bits([rg.vmap(slope, backend="native")(POINTS)], [np.stack([slope(w) for w in POINTS])])


def test_plans_keep_bits() -> None:
    def loss(w: Any, plan: Any) -> Any:
        c, _ = rg.scan(lambda c, _: ((np.tanh(c[0]), c[0]), None), (w, w), None, 2, memory=plan)
        return c[0] @ FACTORS + c[1] @ SIGNS

    slope = rg.grad(loss, backend="native")
    values.assert_same_bits([slope(w, rg.Snapshots(1)) for w in POINTS], [slope(w, None) for w in POINTS])
