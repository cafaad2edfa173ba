"""Options that JAX's transforms have, too: auxiliary results, constants of own rules, axes, leaves of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([1.0, 2.0, 3.0])


@dataclass
class Pair:
    a: Any
    b: Any


@pytest.mark.parametrize("debug", [False, True])
def test_jvp_returns_auxiliary_results(debug: bool) -> None:
    def f(x: Any) -> Any:
        return np.sin(x), {"square": x**2, "name": "f", "n": 3}

    with rg.debug_nans() if debug else rg.config(verify=1):
        out, dot, aux = rg.jvp(f, (X,), (2.0 * X,), has_aux=True)
    plain = rg.jvp(lambda x: f(x)[0], (X,), (2.0 * X,))
    np.testing.assert_array_equal(out, plain[0])
    np.testing.assert_array_equal(dot, plain[1])
    np.testing.assert_array_equal(aux.pop("square"), X**2)
    assert aux == {"name": "f", "n": 3}
    again = rg.jit(lambda x: rg.jvp(f, (x,), (2.0 * x,), True)[1])(X)
    np.testing.assert_allclose(again, dot, rtol=1e-15)


def test_jvp_with_auxiliary_results_needs_a_pair() -> None:
    with pytest.raises(rg.errors.OptionError, match="pair"):
        rg.jvp(np.sin, (X,), (X,), has_aux=True)


def test_jvp_along_a_function_returns_auxiliary_results() -> None:
    out, dot, aux = rg.jvp(lambda f, x: (f(x), 2.0 * x), (np.sin, 1.0), (np.cos, 0.0), has_aux=True)
    assert (out, dot, aux) == (pytest.approx(np.sin(1.0)), pytest.approx(np.cos(1.0)), 2.0)


@pytest.mark.parametrize("nondiff", [0, (0,)])
def test_a_forward_rule_takes_constants_first(nondiff: Any) -> None:
    @rg.custom_jvp(nondiff_argnums=nondiff)
    def powered(k: Any, x: Any, y: Any) -> Any:
        return x**k * y

    @powered.defjvp
    def rule(k: Any, primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        return powered(k, x, y), 10.0 * k * x ** (k - 1.0) * y * dx + x**k * dy

    for transform in (rg.grad, rg.jacfwd):
        kxy = [float(d) for d in transform(powered, (0, 1, 2))(3.0, 2.0, 5.0)]
        assert kxy == [0.0, 10.0 * 3.0 * 4.0 * 5.0, 8.0]
    functional = rg.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
    functional.defjvp(lambda f, primals, tangents: (f(*primals), 7.0 * tangents[0]))
    assert rg.grad(lambda x: functional(np.sin, x))(1.0) == 7.0


def test_constants_of_a_forward_rule_are_arguments() -> None:
    f = rg.custom_jvp(lambda x: x, nondiff_argnums=(3,))
    f.defjvp(lambda *given: given[-2:])
    with pytest.raises(rg.errors.ArgnumsError, match="nondiff_argnums names 3"):
        f(1.0)
    with pytest.raises(rg.errors.OptionError, match="defjvps"):
        f.defjvps(None)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_associative_scan_along_an_axis(n: int, axis: int, reverse: bool) -> None:
    shape = [2, 3, 4]
    shape[axis] = n
    x = np.random.default_rng(0).normal(size=shape)
    tree = {"sum": x, "largest": 2.0 * x}

    def f(a: Any, b: Any) -> Any:
        assert a["sum"].ndim == 3
        return {"sum": a["sum"] + b["sum"], "largest": np.maximum(a["largest"], b["largest"])}

    found = rg.associative_scan(f, tree, reverse=reverse, axis=axis)
    turned = np.flip(x, axis) if reverse else x
    sums, largest = np.cumsum(turned, axis), np.maximum.accumulate(2.0 * turned, axis)
    back = (lambda y: np.flip(y, axis)) if reverse else np.asarray
    np.testing.assert_allclose(found["sum"], back(sums), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(found["largest"], back(largest))


def test_trees_with_containers_as_leaves() -> None:
    tree = {"a": (1.0, 2.0), "b": [Pair(3.0, 4.0), (5.0,)]}

    def is_leaf(x: Any) -> bool:
        return isinstance(x, (tuple, Pair))

    assert rg.tree.leaves(tree, is_leaf=is_leaf) == [(1.0, 2.0), Pair(3.0, 4.0), (5.0,)]
    found, structure = rg.tree.flatten(tree, is_leaf=is_leaf)
    assert structure == rg.tree.structure(tree, is_leaf=is_leaf)
    assert rg.tree.unflatten(structure, found) == tree
    assert rg.tree.map(lambda x: 1, tree, is_leaf=is_leaf) == {"a": 1, "b": [1, 1]}
    assert rg.tree.structure(tree) == rg.tree.flatten(tree)[1]


def test_leaves_of_a_tree_are_combined() -> None:
    tree = {"b": 3.0, "a": [1.0, 2.0]}
    assert rg.tree.reduce(lambda s, x: [*s, x], tree, []) == [1.0, 2.0, 3.0]
    assert rg.tree.reduce(max, tree) == 3.0
    assert rg.tree.reduce(lambda n, x: n + len(x), [(1, 2), (3,)], 0, lambda x: type(x) is tuple) == 3
    assert rg.grad(lambda t: rg.tree.reduce(lambda s, x: s + x**2, t, 0.0))(tree) == {"b": 6.0, "a": [2.0, 4.0]}
    with pytest.raises(rg.errors.OptionError, match="without leaves"):
        rg.tree.reduce(max, [])


def test_a_transpose_takes_shapes() -> None:
    shape = rg.eval_shape(lambda: X)
    (found,) = rg.linear_transpose(lambda x: 2.0 * x, shape)(X)
    np.testing.assert_array_equal(found, 2.0 * X)


def test_axes_of_one_argument_are_a_tuple() -> None:
    axes = {"a": 0, "b": None}
    with pytest.raises(rg.errors.TreeError, match=r"in_axes=\(\{'a': 0, 'b': None\},\)"):
        rg.vmap(lambda p: p["a"] * p["b"], in_axes=axes)({"a": X, "b": 2.0})
    np.testing.assert_array_equal(rg.vmap(lambda p: p["a"] * p["b"], in_axes=(axes,))({"a": X, "b": 2.0}), 2.0 * X)


@pytest.mark.parametrize("axis", [None, 1.5, True, "a", (0,), 2, -3])
def test_no_axis_of_an_associative_scan(axis: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="does not exist in an array with 2 axes"):
        rg.associative_scan(np.add, np.ones((2, 3)), axis=axis)
    with pytest.raises(rg.errors.OptionError, match="does not exist in an array with 2 axes"):
        rg.grad(lambda x: np.sum(rg.associative_scan(np.add, x, axis=axis)))(np.ones((2, 3)))
