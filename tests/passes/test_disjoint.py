"""Indices that are said to lie apart name no element in common."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.passes.early_views import disjoint

bounds = st.one_of(st.none(), st.integers(-6, 6))
items = st.one_of(
    st.integers(-4, 3), st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -2])), st.just(...), st.none()
)
indices = st.lists(items, max_size=2).map(tuple).filter(lambda i: i.count(...) <= 1)


@given(indices, indices)
def test_what_is_disjoint_shares_nothing(a, b):
    numbers = np.arange(16).reshape(4, 4)
    if disjoint(a, b, numbers.shape):
        assert not np.isin(numbers[a], numbers[b]).any()


def test_rows_and_columns_are_told_apart():
    assert disjoint((0,), (1,), (4, 4))
    assert disjoint((-1,), (slice(None, 3),), (4, 4))
    assert disjoint((slice(None), 0), (slice(None), slice(1, None)), (4, 4))
    assert not disjoint((slice(None, None, 2),), (2,), (4, 4))


def test_a_view_beside_a_write_is_no_copy_and_one_below_it_is():
    def beside(x):
        y = x * 1.5
        row = y[0]
        y[1] = 7.0
        return y, np.sin(row) * y[1]

    def below(x):
        y = x * 1.5
        row = y[0]
        kept = row * 1.0
        y[0] = 7.0
        return y, np.sin(kept) * y[1], np.cos(row)

    for width in (3, 5000):
        x = np.linspace(0.0, 1.0, 3 * width).reshape(3, width)
        for f in (beside, below):
            for a, b in zip(rg.jit(f)(x), f(x), strict=True):
                np.testing.assert_array_equal(a, b)
        assert ".copy()" not in rg.jit(beside).source(x)
