"""The direct sum: lists of pairs up to order, merging of points and zero entries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg

Pairs = rg.functions.FunctionCotangent

points = st.sampled_from([0.0, 0.5, 1.0, -2.0, 3.5])
numbers = st.floats(-1e6, 1e6, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-9)
lists = st.lists(st.tuples(points, numbers), max_size=12)


@given(lists, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert Pairs(shuffled) == Pairs(pairs)


@given(lists, st.integers(0, 11), st.floats(0.0, 1.0))
def test_a_point_may_be_split_and_merged(pairs, at, share):
    if at < len(pairs):
        x, ct = pairs[at]
        parts = [(x, share * ct), (x, ct - share * ct)]
        assert Pairs([*pairs[:at], *parts, *pairs[at + 1 :]]) == Pairs(pairs)
    assert Pairs(pairs).normalized() == Pairs(pairs)
    merged = [x for x, _ in Pairs(pairs).normalized().pairs]
    assert len(set(merged)) == len(merged)


@given(lists, points)
def test_zero_entries_do_not_matter(pairs, x):
    assert Pairs([*pairs, (x, 0.0)]) == Pairs(pairs)
    assert all(ct != 0 for _, ct in Pairs(pairs).normalized().pairs)


@given(lists, points, numbers.filter(bool))
def test_anything_else_matters(pairs, x, ct):
    big = 1e3 + sum(abs(c) for _, c in pairs)
    assert Pairs([*pairs, (x, big)]) != Pairs(pairs)
    assert Pairs([*pairs, (x, big), (7.0, -big)]) != Pairs(pairs)
    assert Pairs([(x, ct)]) != Pairs([(x, 2 * ct)])


@given(lists, lists, lists)
def test_the_sum_is_commutative_and_associative_and_has_a_zero(a, b, c):
    a, b, c = Pairs(a), Pairs(b), Pairs(c)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Pairs() == a == Pairs() + a == sum([a])
    assert (a + b).pairs == a.pairs + b.pairs


@given(lists, lists)
def test_everything_made_of_it_respects_the_quotient_and_is_additive(one, two):
    a, b = Pairs(one), Pairs(two)
    scale = 1e-12 * (1.0 + sum(abs(ct) for _, ct in (*one, *two)))

    def line(w):
        return lambda x: w * x * x

    for measure in (
        lambda p: p.pair(np.cos),
        lambda p: p.fold(lambda x, ct: x * ct),
        lambda p: p(0.5),
        lambda p: p.pull_into(line(2.0))["w"],
    ):
        assert measure(a + b) == pytest.approx(measure(a) + measure(b), rel=1e-12, abs=scale * 100)
        assert measure(a.normalized()) == pytest.approx(measure(a), rel=1e-12, abs=scale * 100)
        assert measure(a.batched()) == pytest.approx(measure(a), rel=1e-12, abs=scale * 100)
    assert a.batched() == a


def test_the_rounding_of_a_sum_is_forgiven_and_nothing_more():
    tenths = [(1.0, 0.1)] * 10
    assert Pairs(tenths) == Pairs([(1.0, 1.0)])
    assert Pairs([(1.0, 1.0 + 1e-12)]) != Pairs([(1.0, 1.0)])
    assert Pairs([(1.0, 1e-300)]) != Pairs()
    assert Pairs([(1.0, np.float32(0.1))] * 10) == Pairs([(1.0, np.float32(1.0))])


def test_points_are_equal_by_value():
    assert Pairs([(0.5, 1.0)])(np.float64(0.5)) == 1.0
    assert Pairs([(np.array([1.0, -0.0]), 1.0)])(np.array([1.0, 0.0])) == 1.0
    assert Pairs([(np.array([1.0, 2.0]), 1.0)])(np.array([[1.0, 2.0]])) == 0.0
    assert Pairs([(2, 1.0)]) == Pairs([(2.0, 1.0)])
    assert Pairs([(2**60 + 1, 1.0)]) != Pairs([(2**60, 1.0)])
    assert Pairs([((1.0, 2.0), 3.0)])(1.0, 2.0) == 3.0
    assert Pairs([((1.0, 2.0), 3.0)])(2.0, 1.0) == 0.0
    assert Pairs([(0.5, 1.0)]) == Pairs([(0.5 + 0j, 1.0)])


def test_values_are_arrays_and_trees():
    ct = Pairs([(1.0, {"u": np.ones(2), "v": 2.0}), (1.0, {"u": np.arange(2.0), "v": 1.0})])
    np.testing.assert_array_equal(ct(1.0)["u"], [1.0, 2.0])
    assert ct(1.0)["v"] == 3.0
    np.testing.assert_array_equal(ct(9.0)["u"], [0.0, 0.0])
    x, stacked = ct.stack()
    np.testing.assert_array_equal(x, [1.0, 1.0])
    np.testing.assert_array_equal(stacked["u"], [[1.0, 1.0], [0.0, 1.0]])
    assert len(ct.normalized().pairs) == 1
    assert ct.pair(lambda x: {"u": np.array([1.0, 10.0]), "v": x}) == 1.0 + 20.0 + 3.0


def test_pairs_of_many_are_batched_by_shape():
    ct = Pairs([(1.0, 2.0), (np.ones(2), np.ones(2)), (3.0, 4.0), (2, 1.0), (np.zeros(2), np.ones(2))])
    assert [block.sizes for block in ct.batched().blocks] == [(2,), (2,), ()]
    assert ct.batched() == ct


def test_a_zero_has_no_shape_and_a_place_in_every_sum():
    assert Pairs() == 0
    assert Pairs().pair(np.cos) == 0.0
    assert Pairs().fold(lambda x, ct: ct, zero=5.0) == 5.0
    assert Pairs()(1.0) == 0.0
    w = 2.0
    assert Pairs().pull_into(lambda x: w * x) == {"w": 0.0}
    with pytest.raises(rg.errors.ShapeError):
        Pairs().stack()


def test_what_does_not_fit_is_refused():
    w = np.ones(2)
    with pytest.raises(rg.errors.ShapeError):
        Pairs([(1.0, np.ones(3))]).pull_into(lambda x: w * x)
    with pytest.raises(rg.errors.TreeError):
        Pairs([(1.0, (1.0, 2.0))]).pull_into(lambda x: w[0] * x)
    with pytest.raises(rg.errors.ShapeError):
        Pairs([(1.0, 1.0), (np.ones(2), 1.0)]).stack()
    with pytest.raises(rg.errors.TreeError):
        Pairs([(1.0, 1.0), (1.0, (1.0, 1.0))]).normalized()
    with pytest.raises(TypeError):
        hash(Pairs())
    assert Pairs() != "zero"


def test_it_shows_its_pairs():
    assert repr(Pairs([(3.0, 18.0), (9.0, 1.0)])) == "FunctionCotangent([(3.0, 18.0), (9.0, 1.0)])"
