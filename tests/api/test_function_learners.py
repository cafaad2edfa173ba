"""fit_pairs: learning in place of the optimiser, in four ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import retrograd as rg

Pairs = rg.functions.FunctionCotangent


def line(t0, t1):
    return lambda x: t0 + t1 * x


def thetas(f):
    return [f.captures["t0"], f.captures["t1"]]


def loss(f, x, y):
    return 0.5 * np.sum((f(x) - y) ** 2)


X = np.array([0.0, 0.5, 1.5, 2.0])
Y = np.array([0.3, 1.2, 0.1, 0.8])


def test_one_inner_step_is_gradient_descent_with_the_product_of_the_rates():
    f = line(1.0, 1.0)
    learned = rg.functions.fit_pairs(f, [(2.0, -2.0)], alpha=0.5, eta=0.1)
    np.testing.assert_allclose(thetas(learned), [1.1, 1.2], rtol=1e-15)
    np.testing.assert_allclose(
        thetas(rg.functions.fit_pairs(f, [(2.0, -2.0)], "sgd", alpha=0.5, eta=0.1)), [1.1, 1.2], rtol=1e-15
    )
    slopes = Pairs([(2.0, -2.0)]).pull_into(f)
    assert [1.0 - 0.05 * slopes["t0"], 1.0 - 0.05 * slopes["t1"]] == thetas(learned)


def test_many_inner_steps_reach_the_target():
    learned = rg.functions.fit_pairs(line(1.0, 1.0), [(2.0, -2.0)], "targets", alpha=0.5, eta=0.1, steps=200)
    assert learned(2.0) == pytest.approx(4.0, rel=1e-12)
    assert rg.functions.fit_pairs(line(1.0, 1.0), [(2.0, -2.0)], steps=0)(2.0) == 3.0


def test_least_squares_is_exact_for_a_linear_model_and_of_least_norm():
    learned = rg.functions.fit_pairs(line(1.0, 1.0), [(2.0, -2.0)], "least_squares", alpha=0.5)
    np.testing.assert_allclose(thetas(learned), [1.2, 1.4], rtol=1e-14)
    ct = rg.vjp(loss, line(0.2, 0.1), X, Y, fns="pairs")[1](1.0)[0]
    fitted = rg.functions.fit_pairs(line(0.2, 0.1), ct, "least_squares", alpha=1.0)
    np.testing.assert_allclose(thetas(fitted), np.polyfit(X, Y, 1)[::-1], rtol=1e-12)


def test_least_squares_of_a_model_that_is_not_linear_takes_steps():
    def wave(w):
        return lambda x: np.sin(w[0] * x + w[1])

    targets = wave(np.array([1.2, 0.4]))
    start = wave(np.array([1.0, 0.2]))
    ct = Pairs([(x, start(x) - targets(x)) for x in X])
    learned = rg.functions.fit_pairs(start, ct, "least_squares", steps=8)
    np.testing.assert_allclose(learned.captures["w"], [1.2, 0.4], rtol=1e-10)


def test_the_table_fits_its_points_at_once_and_is_unchanged_elsewhere():
    f = line(0.2, 0.1)
    ct = rg.vjp(lambda f: loss(rg.vmap(f), X, Y), f, fns="pairs")[1](1.0)[0]
    table = rg.functions.fit_pairs(f, ct, "table")
    np.testing.assert_allclose([table(x) for x in X], Y, rtol=1e-14)
    elsewhere = np.linspace(0.01, 1.99, 57)
    assert [table(x) for x in elsewhere] == [f(x) for x in elsewhere]
    assert loss(rg.vmap(table), X, Y) == pytest.approx(0.0, abs=1e-28)


def test_the_table_is_a_function_value_like_others():
    w = np.array([1.0, 2.0])
    table = rg.functions.fit_pairs(
        lambda x: w * np.sum(x), [(np.ones(2), np.array([1.0, 0.0])), (np.zeros(3), w)], "table"
    )
    np.testing.assert_array_equal(table(np.ones(2)), [1.0, 4.0])
    np.testing.assert_array_equal(table(np.zeros(3)), [-1.0, -2.0])
    np.testing.assert_array_equal(table(np.zeros(2)), [0.0, 0.0])
    slopes = rg.grad(lambda f, x: np.sum(f(x)))(table, np.ones(2))
    np.testing.assert_array_equal(slopes["base"]["base"]["w"], [2.0, 2.0])
    np.testing.assert_array_equal(rg.jit(lambda x: table(x))(np.ones(2)), [1.0, 4.0])  # noqa: PLW0108 - called inside
    again = rg.functions.fit_pairs(table, [(np.ones(2), np.array([0.0, 1.0]))], "table", alpha=2.0)
    np.testing.assert_array_equal(again(np.ones(2)), [1.0, 2.0])


def test_the_table_has_entries_for_several_arguments_and_results():
    table = rg.functions.fit_pairs(lambda x, y: (x * y, x), [((2.0, 3.0), (1.0, -1.0)), ((2, 4), (1.0, 1.0))], "table")
    assert table(2.0, 3.0) == (5.0, 3.0)
    assert table(2, 4) == (7.0, 1.0)
    assert table(3.0, 2.0) == (6.0, 3.0)


@pytest.mark.parametrize("learner", ["sgd", "targets", "least_squares", "table"])
def test_learners_respect_the_quotient(learner):
    f = line(0.3, -0.2)
    one = [(0.5, 1.0), (1.5, -2.0), (2.0, 0.5)]
    other = [(2.0, 0.25), (1.5, -2.0), (7.0, 0.0), (0.5, 1.0), (2.0, 0.25)]
    a, b = (rg.functions.fit_pairs(f, pairs, learner, alpha=0.5, eta=0.2) for pairs in (one, other))
    for x in (0.5, 1.5, 2.0, 7.0, 3.0):
        assert a(x) == pytest.approx(b(x), rel=1e-12)


@pytest.mark.parametrize("learner", ["sgd", "targets", "least_squares"])
def test_learning_to_fit_is_descent(learner):
    f = line(0.3, -0.2)
    losses = []
    for _ in range(30):
        value, df = rg.value_and_grad(lambda f: loss(rg.vmap(f), X, Y), fns="pairs")(f)
        losses.append(value)
        f = rg.functions.fit_pairs(f, df, learner, alpha=1.0, eta=0.1)
    best = loss(line(*np.polyfit(X, Y, 1)[::-1]), X, Y)
    assert losses[0] > 2 * best
    assert losses[-1] == pytest.approx(best, rel=0.3 if learner != "least_squares" else 1e-12)
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(losses))


def test_captures_in_trees_with_other_things_in_them():
    params = {"w": np.array([1.0, 2.0]), "n": 2, "name": "model"}
    learned = rg.functions.fit_pairs(
        lambda x: np.sum(params["w"] * x) ** params["n"], [(np.ones(2), 1.0)], "sgd", eta=0.5
    )
    np.testing.assert_array_equal(learned.captures["params"]["w"], [-2.0, -1.0])
    assert learned.captures["params"]["n"] == 2


def test_nothing_to_learn_changes_nothing():
    for learner in ("sgd", "targets", "least_squares", "table"):
        assert rg.functions.fit_pairs(line(1.0, 2.0), [(3.0, 0.0)], learner)(3.0) == 7.0
        assert rg.functions.fit_pairs(line(1.0, 2.0), [], learner)(3.0) == 7.0


def test_wrong_options_are_named():
    for wrong in (
        lambda: rg.functions.fit_pairs(line(1.0, 1.0), [], "adam"),
        lambda: rg.functions.fit_pairs(line(1.0, 1.0), [], steps=-1),
        lambda: rg.functions.fit_pairs(np.sin, [(1.0, 1.0)]),
    ):
        with pytest.raises(rg.errors.OptionError):
            wrong()
