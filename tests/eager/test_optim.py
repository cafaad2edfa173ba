"""Optimisers: the formulas step by step, trees, compiled updates, dtypes, wrong options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import retrograd as rg

SLOPES = [np.array([1.0, -2.0]), np.array([0.5, 3.0]), np.array([-1.0, 0.25])]
START = np.array([1.0, 2.0])


def steps(optimiser, run=None):
    params, state = START, optimiser.init(START)
    for g in SLOPES:
        params, state = (run or optimiser.update)(g, state, params)
    return params, state


def test_sgd_is_its_formula():
    params, _ = steps(rg.optim.sgd(0.1))
    np.testing.assert_allclose(params, START - 0.1 * sum(SLOPES), rtol=1e-15)


def test_momentum_is_its_formula():
    p, v = START, np.zeros(2)
    for g in SLOPES:
        v = 0.8 * v + g
        p = p - 0.1 * v
    params, state = steps(rg.optim.momentum(0.1, 0.8))
    np.testing.assert_allclose(params, p, rtol=1e-15)
    np.testing.assert_allclose(state["velocity"], v, rtol=1e-15)


def test_adam_is_its_formula():
    p, m, v = START, np.zeros(2), np.zeros(2)
    for t, g in enumerate(SLOPES, start=1):
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g**2
        p = p - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    params, state = steps(rg.optim.adam(0.1, 0.9, 0.99))
    np.testing.assert_allclose(params, p, rtol=1e-13)
    assert state["step"] == 3


@dataclass
class Model:
    W: Any
    b: Any
    n: int


ALL = {
    "sgd": rg.optim.sgd(0.1),
    "momentum": rg.optim.momentum(0.1),
    "adam": rg.optim.adam(0.1),
}
each = pytest.mark.parametrize("optimiser", ALL.values(), ids=ALL.keys())


@each
def test_gradients_of_trees_move_what_has_one(optimiser):
    model = Model(np.ones((2, 2)), [np.float32(1.0) * np.ones(3, np.float32)], 3)
    slopes = rg.grad(lambda m: np.sum(m.W**2) * m.n + np.sum(m.b[0]))(model)
    moved, state = optimiser.update(slopes, optimiser.init(model), model)
    assert isinstance(moved, Model)
    assert moved.n == 3
    assert np.all(moved.W < 1.0)
    assert moved.b[0].dtype == np.float32
    again, _ = optimiser.update(slopes, state, moved)
    assert again.b[0].dtype == np.float32
    np.testing.assert_array_equal(model.W, np.ones((2, 2)))


@each
def test_a_compiled_update_is_the_plain_one(optimiser):
    plain, compiled = steps(optimiser), steps(optimiser, rg.jit(optimiser.update))
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-13)
    assert compiled[1].keys() == plain[1].keys()


@each
def test_a_compiled_update_compiles_once_and_keeps_dtypes(optimiser):
    update = rg.jit(optimiser.update)
    params = {"w": np.ones(3, np.float32)}
    state = optimiser.init(params)
    for _ in range(5):
        params, state = update({"w": np.ones(3, np.float32)}, state, params)
    assert params["w"].dtype == np.float32
    assert update.cache_info().size <= 2  # the number of steps is a Python number in the first state only


@each
def test_every_optimiser_finds_the_minimum(optimiser):
    loss = rg.grad(lambda p: np.sum((p["x"] - 3.0) ** 2) + (p["y"] + 1.0) ** 2)
    params = {"x": np.zeros(2), "y": 0.0}
    state = optimiser.init(params)
    for _ in range(400):
        params, state = optimiser.update(loss(params), state, params)
    np.testing.assert_allclose(params["x"], 3.0, atol=1e-3)
    assert params["y"] == pytest.approx(-1.0, abs=1e-3)


def test_a_step_is_differentiable():
    optimiser = rg.optim.momentum(0.1)

    def after(p):
        moved, _ = optimiser.update(rg.grad(lambda q: np.sum(q**3))(p), optimiser.init(p), p)
        return np.sum(moved)

    np.testing.assert_allclose(rg.grad(after)(START), 1 - 0.6 * START, rtol=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: rg.optim.sgd(0.0),
        lambda: rg.optim.momentum(0.1, 1.0),
        lambda: rg.optim.adam(-1.0),
        lambda: rg.optim.adam(0.1, beta2=1.5),
        lambda: rg.optim.adam(0.1, epsilon=0.0),
    ],
)
def test_a_wrong_option_is_refused(wrong):
    with pytest.raises(rg.errors.OptionError) as caught:
        wrong()
    assert __file__ in str(caught.value)


def test_gradients_of_another_structure_are_refused():
    optimiser = rg.optim.sgd(0.1)
    with pytest.raises(rg.errors.TreeError):
        optimiser.update({"v": START}, optimiser.init({"w": START}), {"w": START})
