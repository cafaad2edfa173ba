"""Trees and shapes: rg.tree and rg.eval_shape."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])
M = np.arange(6.0).reshape(2, 3)
Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - plain, as users write it


@dataclass
class Spring:
    stretch: float
    stiffness: np.ndarray


TREES = [
    {"w": M, "b": X, "n": 2.0},
    [X, (M, None), {"x": ()}],
    Pair(1.5, M.T),
    Spring(0.5, X),
    {"f": np.float32(2), "g": X.astype(np.float32), "i": np.array([1, 2])},
    {"z": X + 1j, "r": X},
    1.5,
    None,
    {},
    np.zeros((0, 3)),
]


def same(a, b):
    leaves, structure = rg.tree.flatten(a)
    others, other = rg.tree.flatten(b)
    assert structure == other
    for x, y in zip(leaves, others, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert isinstance(x, np.ndarray) == isinstance(y, np.ndarray)
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_a_tree_is_the_tree_of_its_flat_numbers(tree):
    same(rg.tree.unflatten(*rg.tree.flatten(tree)[::-1]), tree)
    flat, unravel = rg.tree.ravel(tree)
    assert flat.ndim == 1
    assert flat.size == sum(np.size(x) for x in rg.tree.leaves(tree))
    same(unravel(flat), tree)
    again, back = rg.tree.ravel(unravel(flat))
    np.testing.assert_array_equal(again, flat)
    assert back == unravel
    assert hash(back) == hash(unravel)


def test_map_goes_over_several_trees():
    same(rg.tree.map(np.negative, {"a": X, "b": [1.0]}), {"a": -X, "b": [-1.0]})
    assert rg.tree.map(lambda a, b, c: (a, b, c), (1, [2]), (3, [4]), (5, [{6}])) == ((1, 3, 5), [(2, 4, {6})])
    with pytest.raises(rg.errors.TreeError):
        rg.tree.map(np.add, {"a": X}, {"b": X})
    with pytest.raises(rg.errors.TreeError):
        rg.tree.unflatten(rg.tree.flatten([1, 2])[1], [1])


def test_trees_are_raveled_inside_of_what_is_differentiated():
    params = {"w": M, "b": X, "n": 2.0}

    def loss(params):
        return np.sum(np.sin(params["w"] @ params["b"])) * params["n"]

    flat, unravel = rg.tree.ravel(params)
    by_tree, back = rg.tree.ravel(rg.grad(loss)(params))
    assert back == unravel
    np.testing.assert_allclose(rg.grad(lambda v: loss(unravel(v)))(flat), by_tree, rtol=1e-15)
    pushed = rg.jacfwd(lambda v: loss(unravel(v)))(flat)
    np.testing.assert_allclose(pushed, by_tree, rtol=1e-13)
    within = rg.grad(lambda p: np.sum(rg.tree.ravel(p)[0] ** 2))(params)
    same(within, rg.tree.map(lambda x: 2 * np.asarray(x)[()], params))
    hessian = rg.hessian(lambda v: loss(rg.tree.map(lambda x: x * x, unravel(v))))(flat)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-12)
    lanes = rg.vmap(lambda v: unravel(v)["w"])(np.stack([flat, 2 * flat]))
    np.testing.assert_array_equal(lanes, [M, 2 * M])


def test_a_new_unravel_of_equal_trees_compiles_nothing():
    def slope(params):
        flat, unravel = rg.tree.ravel(params)
        gradient = rg.grad(lambda v: np.sum(unravel(v)["w"] ** 2))
        gradient(flat)
        return gradient.cache_info().misses

    assert [slope({"w": M, "b": k}) for k in (1.0, 2.0, 3.0)][-1] == 1


def test_what_unravel_returns_is_a_copy():
    flat, unravel = rg.tree.ravel({"w": X})
    unravel(flat)["w"][:] = 0
    np.testing.assert_array_equal(flat, X)


def test_what_does_not_ravel():
    with pytest.raises(rg.errors.OptionError, match="not a number"):
        rg.tree.ravel({"name": "run"})
    flat, unravel = rg.tree.ravel({"w": X})
    with pytest.raises(rg.errors.ShapeError, match="3 numbers"):
        unravel(flat[:2])
    with pytest.raises(rg.errors.OptionError, match="complex"):
        unravel(flat + 1j)


def test_shapes_of_results_are_known_without_values():
    def f(p, n, *, axis=0):
        return {"s": np.sum(p["w"], axis=axis), "t": (p["w"].astype(np.float32), p["b"] * 2), "label": "run", "n": n}

    wanted = rg.eval_shape(f, {"w": M, "b": 1.5}, 3, axis=1)
    assert wanted["label"] == "run"
    assert [(x.shape, x.dtype) for x in (wanted["s"], *wanted["t"])] == [((2,), float), ((2, 3), "f4"), ((), float)]
    like = SimpleNamespace(shape=(2, 3), dtype="f4")
    assert rg.eval_shape(np.linalg.norm, like) == rg.eval_shape(np.linalg.norm, M.astype("f4"))
    assert rg.eval_shape(np.linalg.inv, SimpleNamespace(shape=(3, 3), dtype=float)).shape == (3, 3)
    twice = rg.eval_shape(lambda x: x.T, rg.eval_shape(lambda x: x.T, M))
    assert (twice.shape, twice.ndim, twice.size) == ((2, 3), 2, 6)
    assert rg.eval_shape(rg.grad(lambda x: np.sum(x**2)), like).shape == (2, 3)


def test_shapes_that_depend_on_values_are_refused():
    for f in (lambda x: x[x > 0], lambda x: x if np.sum(x) > 0 else 1.0):
        with pytest.raises(rg.errors.ControlFlowError):
            rg.eval_shape(f, X)


def test_long_loops_are_not_run_for_shapes():
    assert rg.eval_shape(lambda x: rg.fori_loop(10**9, lambda i, c: np.cos(c) + i, x), X).shape == (3,)
    assert rg.eval_shape(lambda x: rg.scan(lambda c, _: (c + x, c), x, None, 10**3), 1.0)[1].shape == (1000,)
