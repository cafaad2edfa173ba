"""The example of function space: the table memorises, inner learners learn."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("matplotlib")
EXAMPLE = "function_space"


@pytest.fixture(scope="module")
def courses(example):
    points = example.data()
    return {name: example.learn(way, 60, points) for name, way in example.WAYS.items()}


def test_the_table_is_perfect_on_its_points_and_unchanged_elsewhere(example, courses):
    x, y, between, _ = example.data()
    table, start = courses["table"].f, example.network()
    np.testing.assert_allclose([table(p) for p in x], y, rtol=1e-13)
    assert not set(x) & set(between)
    assert [table(p) for p in between] == [start(p) for p in between]
    assert courses["table"].held_out[-1] == courses["table"].held_out[0]
    assert courses["table"].seen[-1] < 1e-28


def test_learners_learn_what_they_were_not_shown(courses):
    untouched = courses["table"].held_out[-1]
    assert courses["gradient descent"].held_out[-1] < 0.5 * untouched
    assert courses["inner learner"].held_out[-1] < 0.5 * courses["gradient descent"].held_out[-1]
    assert courses["least squares"].held_out[-1] < 0.1 * untouched


def test_gradient_descent_is_that_on_the_weights(example, courses):
    """The learner with one inner step, compared with gradients of the weights as arguments."""
    x, y, *_ = example.data()
    f = rg.functions.fn(example.network())
    weights = f.captures["weights"]
    slope = rg.grad(lambda weights: example.loss(f.over({"weights": weights}), x, y))
    options = example.WAYS["gradient descent"].options
    for _ in range(60):
        grads = slope(weights)
        weights = {name: w - options["alpha"] * options["eta"] * grads[name] for name, w in weights.items()}
    for name, w in courses["gradient descent"].f.captures["weights"].items():
        np.testing.assert_allclose(w, weights[name], rtol=1e-9, atol=1e-12)


def test_it_prints_a_table_and_writes_a_picture(example, tmp_path, capsys):
    assert example.main(tmp_path, steps=3) == 0
    printed = capsys.readouterr().out
    assert "24 pairs in 1 block" in printed
    assert all(name in printed for name in example.WAYS)
    assert (tmp_path / "function_space.png").read_bytes().startswith(b"\x89PNG")
