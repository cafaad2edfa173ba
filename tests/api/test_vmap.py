"""vmap: a function over lanes equals a Python loop over them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import retrograd as rg

RNG = np.random.default_rng(0)
A = RNG.standard_normal((4, 3, 2))
V = RNG.standard_normal(2)


def looped(f, arrays, in_axes, out_axis):
    """The definition: one call per lane, results stacked."""
    size = next(a.shape[k] for a, k in zip(arrays, in_axes, strict=True) if k is not None)
    lanes = [
        f(*(a if k is None else np.take(a, i, axis=k) for a, k in zip(arrays, in_axes, strict=True)))
        for i in range(size)
    ]
    return np.stack(lanes, axis=out_axis)


FUNCTIONS = {
    "elementwise": lambda x, y: np.sin(x) * y + 1.0,
    "a reduction": lambda x, y: np.sum(x * y),
    "a product of matrices": lambda x, y: (x * y) @ np.ones((x.shape[-1], 3)),
    "shapes": lambda x, y: np.concatenate([x.T.reshape(-1), (x + y)[0, ::-1]]),
    "writes": lambda x, y: written(x * y),
    "a constant": lambda x, y: np.ones(3),
    "a captured array": lambda x, y: x * y * V[0] + np.sum(V),
    "a choice": lambda x, y: np.where(x > y, x, -y),
    "an inner gradient": lambda x, y: rg.grad(lambda v: np.sum(v**3))(x * y),
    "a scan": lambda x, y: rg.scan(lambda c, v: (c * 0.5 + np.sum(v), c), 1.0, x * y)[1],
    "a read by index": lambda x, y: x[np.argmax(y, axis=0) * 0, 0] + np.sum(y),
}


def written(x):
    y = np.zeros(x.shape)
    y[0] = x[-1]
    y[..., 1] += x[..., 0]
    return y


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS.keys())
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0), (1, 0), (0, -1), (2, 1), (-1, None), (-2, -3)])
def test_vmap_equals_a_loop_for_all_axes(f, in_axes):
    size = 4
    arrays = []
    for axis in in_axes:
        shape = [3, 2]
        if axis is not None:
            shape.insert(axis % 3, size)
        arrays.append(np.random.default_rng(1).standard_normal(shape))
    found = rg.vmap(f, in_axes=in_axes)(*arrays)
    np.testing.assert_allclose(found, looped(f, arrays, in_axes, 0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("in_axis", "out_axis"), list(product([0, 1, 2, -1, -2, -3], repeat=2)))
def test_out_axes_say_where_the_lanes_stand(in_axis, out_axis):
    def f(x):
        return np.sin(x) * 2

    found = rg.vmap(f, in_axes=in_axis, out_axes=out_axis)(A)
    np.testing.assert_allclose(found, looped(f, [A], [in_axis], out_axis), rtol=1e-15)


def test_one_axis_for_all_arguments_and_a_list_of_axes():
    np.testing.assert_array_equal(rg.vmap(np.add, 1)(A[0], A[1]), (A[0] + A[1]).T)
    np.testing.assert_array_equal(rg.vmap(np.add, [0, 1])(A[0], A[0].T), 2 * A[0])
    np.testing.assert_array_equal(rg.vmap(np.add, in_axes=(np.int64(0), None))(A[0], V), A[0] + V)


def test_axes_of_trees():
    def f(d, pair):
        return {"s": d["x"] * d["w"], "t": (np.sum(pair[0]), pair[1])}

    d = {"x": A[:, :, 0], "w": np.array([2.0, 3.0, 4.0])}
    pair = (A, V)
    axes = ({"x": 0, "w": None}, (0, None))
    found = rg.vmap(f, in_axes=axes, out_axes={"s": 1, "t": (0, None)})(d, pair)
    np.testing.assert_array_equal(found["s"], (d["x"] * d["w"]).T)
    np.testing.assert_allclose(found["t"][0], A.sum(axis=(1, 2)))
    np.testing.assert_array_equal(found["t"][1], V)
    prefix = rg.vmap(lambda d: d["x"] + d["w"]["y"], in_axes=({"x": 0, "w": None},))({"x": A[0], "w": {"y": V}})
    np.testing.assert_array_equal(prefix, A[0] + V)


def test_an_output_that_is_equal_in_all_lanes_may_stay_single():
    found = rg.vmap(lambda x, y: (x + 1, np.sum(y), 3.0), in_axes=(0, None), out_axes=(0, None, None))(A, V)
    np.testing.assert_array_equal(found[0], A + 1)
    assert found[1:] == (np.sum(V), 3.0)


def test_static_arguments_and_results():
    def f(x, n, name, k):
        assert name == "f"
        return x * n + k[0], name, None, n

    out, name, nothing, n = rg.vmap(f, in_axes=(0, None, None, None), out_axes=(0, None, None, None))(A, 3, "f", [2])
    np.testing.assert_array_equal(out, 3 * A + 2)
    assert (name, nothing, n) == ("f", None, 3)


def test_keyword_arguments_are_mapped_over_their_first_axis():
    np.testing.assert_array_equal(rg.vmap(lambda x, y: x * y)(A, y=A), A * A)


def test_integer_and_bool_lanes():
    k = np.array([2, 0, 1])
    np.testing.assert_array_equal(rg.vmap(lambda i, x: x[i], in_axes=(0, None))(k, A[0, :, 0]), A[0, k, 0])
    np.testing.assert_array_equal(
        rg.vmap(lambda b, x: np.where(b, x, -x))(k > 0, A[0]), np.where(k > 0, A[0].T, -A[0].T).T
    )
    assert rg.vmap(lambda i: i + 1)(k).dtype == k.dtype


def test_no_lanes_and_one_lane():
    for f in FUNCTIONS.values():
        one = rg.vmap(f)(A[:1], A[:1])
        none = rg.vmap(f)(A[:0], A[:0])
        assert none.shape == (0, *one.shape[1:])
        assert none.dtype == one.dtype
    assert rg.vmap(np.log)(np.zeros(0)).shape == (0,)
    assert rg.vmap(lambda x: 1.0 / np.sum(x))(np.zeros((0, 0))).shape == (0,)


def test_lanes_of_empty_arrays():
    assert rg.vmap(np.sin)(np.zeros((3, 0))).shape == (3, 0)
    np.testing.assert_array_equal(rg.vmap(np.sum)(np.zeros((3, 0))), np.zeros(3))


def test_nested_vmap():
    outer = rg.vmap(rg.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(outer(V, A[0, :, 0]), np.multiply.outer(V, A[0, :, 0]))
    np.testing.assert_allclose(rg.vmap(rg.vmap(rg.vmap(np.sin)))(A), np.sin(A))


@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0), (1, 1)])
def test_vmap_commutes_with_derivatives(in_axes):
    shapes = [(3,) if k is None else (4, 3) if k == 0 else (3, 4) for k in in_axes]
    x, y = (RNG.standard_normal(s) for s in shapes)

    def f(x, y):
        return np.sum(np.sin(x) * y**2)

    lanes = rg.vmap(rg.grad(f), in_axes=in_axes)(x, y)
    np.testing.assert_allclose(lanes, looped(rg.grad(f), [x, y], in_axes, 0), rtol=1e-13)
    total = rg.grad(lambda x, y: np.sum(rg.vmap(f, in_axes=in_axes)(x, y)))(x, y)
    spread = np.cos(x) * y**2 if None not in in_axes else looped(lambda a, b: np.cos(a) * b**2, [x, y], in_axes, 0)
    np.testing.assert_allclose(total, spread.sum(axis=0) if in_axes[0] is None else spread, rtol=1e-13)


def test_vmap_of_closures_over_traced_values():
    @rg.grad
    def loss(w):
        return np.sum(rg.vmap(lambda x: x @ w)(A[0]) ** 2)

    np.testing.assert_allclose(loss(V), 2 * A[0].T @ (A[0] @ V), rtol=1e-13)


def test_float32_lanes_stay_float32():
    assert rg.vmap(lambda x: x * 2.0)(A.astype(np.float32)).dtype == np.float32


def test_vmap_compiles_once_for_each_shape():
    f = rg.vmap(np.sin)
    for _ in range(3):
        f(A)
    f(A[0])
    assert f.cache_info().misses == 2
    assert f.cache_info().hits == 2
