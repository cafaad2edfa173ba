"""Random indices: reads and writes equal NumPy's, and their derivatives are right."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import retrograd as rg

shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@st.composite
def with_bools(draw, index):
    """Single bools among the items of an index: in NumPy, they and all ints make one axis."""
    items = list(index) if isinstance(index, tuple) else [index]
    for one in draw(st.lists(st.sampled_from([True, True, False, np.True_, np.array(True)]), min_size=1, max_size=3)):
        items.insert(draw(st.integers(0, len(items))), one)
    return tuple(items)


@st.composite
def indexed(draw):
    """A shape, and an index of any kind that NumPy takes."""
    shape = draw(shapes)
    kind = draw(st.sampled_from(["basic", "bools", "arrays", "mixed", "mask"]))
    if kind in ("basic", "bools"):
        index = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
        return shape, index if kind == "basic" else draw(with_bools(index))
    if kind == "mask":
        mask = draw(hnp.arrays(bool, shape[: draw(st.integers(1, len(shape)))]))
        return shape, mask
    arrays = draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    if kind == "arrays" or len(shape) == 1:
        return shape, arrays
    items = list(arrays)
    place = draw(st.integers(0, len(items) - 1))
    items[place] = draw(st.sampled_from([slice(None), slice(None, None, -1), slice(1, None), 0, -1]))
    return shape, tuple(items)


def plain(shape):
    return np.sin(np.arange(float(np.prod(shape)))).reshape(shape) + 2.0


@given(indexed())
def test_a_read_is_numpys(case):
    shape, index = case
    x = plain(shape)
    expected = x[index]
    found = rg.jit(lambda x: x[index])(x)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected)


@given(indexed(), st.integers(0, 5))
def test_the_derivative_of_a_read_adds_up(case, seed):
    shape, index = case
    x = plain(shape)
    ct = np.random.default_rng(seed).standard_normal(np.shape(x[index]))
    expected = np.zeros(shape)
    np.add.at(expected, index, ct)
    np.testing.assert_allclose(rg.vjp(lambda x: x[index], x)[1](ct)[0], expected, rtol=1e-13)
    v = np.random.default_rng(seed + 1).standard_normal(shape)
    np.testing.assert_array_equal(rg.jvp(lambda x: x[index], (x,), (v,))[1], v[index])


@given(indexed())
def test_a_write_is_numpys_and_its_derivative_erases(case):
    shape, index = case
    x = plain(shape)
    value = np.cos(x[index] * 3.0)

    def write(x, value):
        y = x * 1.0
        y[index] = value
        return y

    np.testing.assert_array_equal(rg.jit(write)(x, value), write(x, value))
    ct = plain(shape)
    into_x, into_value = rg.vjp(write, x, value)[1](ct)
    kept = ct.copy()
    kept[index] = 0.0
    np.testing.assert_array_equal(into_x, kept)
    again = np.full(shape, -1)
    again[index] = np.arange(np.size(value)).reshape(np.shape(value))
    won = again[index] == np.arange(np.size(value)).reshape(np.shape(value))
    np.testing.assert_array_equal(into_value, np.where(won, ct[index], 0.0))


@given(indexed())
def test_a_sum_in_place_is_numpys(case):
    shape, index = case
    x = plain(shape)

    def add(x):
        y = x.copy()
        y[index] += np.sum(x) * 0.5
        y[index] *= 2.0
        return y

    np.testing.assert_allclose(rg.jit(add)(x), add(x), rtol=1e-14)


@given(indexed())
def test_a_read_under_vmap_is_the_read_of_each_lane(case):
    shape, index = case
    x = np.stack([plain(shape), 2 * plain(shape)])
    found = rg.vmap(lambda x: x[index])(x)
    np.testing.assert_array_equal(found, np.stack([lane[index] for lane in x]))
