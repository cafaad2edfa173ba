"""Containers: arguments, results, gradients, tangents and cotangents are trees."""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer.tree import flatten, key_orders, written


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Layer:
    W: Any
    b: Any
    n: int = 2
    name: str = "layer"


@dataclass(frozen=True)
class Frozen:
    x: Any
    y: Any = None


@dataclass(slots=True)
class Slots:
    x: Any
    inner: Any = field(default_factory=dict)


class Box:
    """A container that the user registers."""

    def __init__(self, content, label):
        self.content, self.label = content, label


rg.register_container(Box, lambda box: ((box.content,), box.label), lambda label, children: Box(*children, label))

A, B = np.array([1.0, 2.0]), np.array([3.0, 4.0])

TREES = {
    "a leaf": A,
    "a tuple": (A, B),
    "a list": [A, [B, A]],
    "a dict": {"b": A, "a": {"c": B}},
    "a dict with numbers as keys": {2: A, 1: B},
    "a dict with mixed keys": {"x": A, 1: B, (0, "y"): A},
    "an ordered dict": collections.OrderedDict([("z", A), ("a", B)]),
    "a default dict": collections.defaultdict(list, {"x": A, "y": B}),
    "a deque": collections.deque([A, B]),
    "a namedtuple": Pair(A, Pair(B, A)),
    "a dataclass": Layer(A, B),
    "a frozen dataclass": Frozen(A, [B]),
    "a dataclass with slots": Slots(A, {"k": B}),
    "a registered class": Box([A, B], "box"),
    "None beside a leaf": (None, A, {"x": None}),
    "deep": {"a": [Layer((A, None), {"b": Pair(B, [A])})]},
    "empty containers": ((), [], {}, A),
    "python floats": {"x": 1.0, "y": [2.0, A]},
}
each_tree = pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())


def leaves(tree: Any) -> list[Any]:
    """An independent flattening: dataclasses by fields, dicts by insertion."""
    if isinstance(tree, Box):
        return leaves(tree.content)
    if hasattr(tree, "__dataclass_fields__"):
        return [x for name in tree.__dataclass_fields__ for x in leaves(getattr(tree, name))]
    if isinstance(tree, dict):
        return [x for value in tree.values() for x in leaves(value)]
    if isinstance(tree, (list, tuple, collections.deque)):
        return [x for value in tree for x in leaves(value)]
    return [] if tree is None or isinstance(tree, (int, str)) else [tree]


def cost(tree: Any) -> Any:
    return sum(np.sum(x**2) * (k + 1) for k, x in enumerate(leaves(tree)))


def assert_like(found: Any, tree: Any) -> None:
    """The same containers, with the same keys; ints and strings became None."""
    assert type(found) is type(tree) or isinstance(tree, (float, int, str))
    if isinstance(tree, Box):
        assert found.label == tree.label
        assert_like(found.content, tree.content)
    elif hasattr(tree, "__dataclass_fields__"):
        for name in tree.__dataclass_fields__:
            assert_like(getattr(found, name), getattr(tree, name))
    elif isinstance(tree, dict):
        assert set(found) == set(tree)
        for key in tree:
            assert_like(found[key], tree[key])
    elif isinstance(tree, (list, tuple, collections.deque)):
        assert len(found) == len(tree)
        for a, b in zip(found, tree, strict=True):
            assert_like(a, b)
    elif isinstance(tree, (int, str)):
        assert found is None
    elif tree is not None:
        assert np.shape(found) == np.shape(tree)


@each_tree
def test_a_gradient_is_a_tree_like_its_argument(tree):
    value, slope = rg.value_and_grad(cost)(tree)
    assert value == pytest.approx(cost(tree))
    assert_like(slope, tree)
    for k, (g, x) in enumerate(zip(leaves(slope), leaves(tree), strict=True)):
        np.testing.assert_allclose(g, 2 * x * (k + 1), rtol=1e-14)


@each_tree
def test_a_tree_comes_back_from_jit(tree):
    found = rg.jit(lambda t: t)(tree)
    for a, b in zip(leaves(found), leaves(tree), strict=True):
        np.testing.assert_array_equal(a, b)
    assert type(found) is type(tree)


@each_tree
def test_vjp_jvp_and_linearize_take_trees(tree):
    out, pullback = rg.vjp(cost, tree)
    (ct,) = pullback(1.0)
    assert_like(ct, tree)
    slope = rg.grad(cost)(tree)
    for a, b in zip(leaves(ct), leaves(slope), strict=True):
        np.testing.assert_array_equal(a, b)
    pushed = rg.jvp(cost, (tree,), (slope,))
    squares = sum(np.sum(g**2) for g in leaves(slope))
    assert pushed == (pytest.approx(out), pytest.approx(squares))
    value, linear = rg.linearize(cost, tree)
    assert (value, linear(slope)) == (pytest.approx(out), pytest.approx(squares))


@each_tree
def test_a_result_may_be_any_tree(tree):
    def f(x):
        return rg.jit(lambda t: t)(tree), x  # a tree of constants beside a traced value

    found, _ = rg.jit(f)(2.0)
    for a, b in zip(leaves(found), leaves(tree), strict=True):
        np.testing.assert_array_equal(a, b)


def test_integers_strings_and_none_in_a_tree_have_no_gradient():
    layer = Layer(A, B, n=3)
    slope = rg.grad(lambda p: np.sum(p.W * p.b * p.n))(layer)
    assert type(slope) is Layer
    assert (slope.n, slope.name) == (None, None)
    np.testing.assert_array_equal(slope.W, 3 * B)
    np.testing.assert_array_equal(slope.b, 3 * A)
    mixed = rg.grad(lambda d: np.sum(d["x"][d["k"]]) * d["m"])({"x": A, "k": np.array([0, 0]), "m": 2, "f": True})
    assert (mixed["k"], mixed["m"], mixed["f"]) == (None, None, None)
    np.testing.assert_array_equal(mixed["x"], [4.0, 0.0])


def test_the_static_part_of_a_tree_is_part_of_the_signature():
    f = rg.jit(lambda p: p.W * p.n)
    np.testing.assert_array_equal(f(Layer(A, B, n=2)), 2 * A)
    np.testing.assert_array_equal(f(Layer(A, B, n=5)), 5 * A)
    np.testing.assert_array_equal(f(Layer(B, B, n=5)), 5 * B)
    assert f.cache_info().misses == 2
    g = rg.jit(lambda box: box.content * len(box.label))
    np.testing.assert_array_equal(g(Box(A, "ab")), 2 * A)
    np.testing.assert_array_equal(g(Box(A, "abc")), 3 * A)


def test_dicts_in_another_order_give_the_same_numbers():
    f = rg.jit(lambda d: d["a"] - 2 * d["b"])
    np.testing.assert_array_equal(f({"a": A, "b": B}), A - 2 * B)
    np.testing.assert_array_equal(f({"b": B, "a": A}), A - 2 * B)
    first = rg.jit(lambda d: next(iter(d.values())))
    np.testing.assert_array_equal(first({"a": A, "b": B}), A)
    np.testing.assert_array_equal(first({"b": B, "a": A}), B)
    slope = rg.grad(lambda d: np.sum(d["a"] - 2 * d["b"]))({"b": B, "a": A})
    np.testing.assert_array_equal(slope["a"], [1.0, 1.0])
    np.testing.assert_array_equal(slope["b"], [-2.0, -2.0])


def test_other_containers_are_other_signatures():
    f = rg.jit(lambda t: t[0] + t[1])
    for t in ((1.0, 2.0), [1.0, 2.0], Pair(1.0, 2.0), {0: 1.0, 1: 2.0}):
        assert f(t) == 3.0
    assert f.cache_info().misses == 4


def test_arguments_of_several_trees_and_kinds():
    def f(layer, pair, scale, *, bias):
        return np.sum(layer.W @ pair.first) * scale + np.sum(bias["b"]) + np.sum(layer.b)

    W = np.ones((2, 2))
    slopes = rg.grad(f, ("layer", "bias", 1))(Layer(W, B), Pair(A, None), 2.0, bias={"b": B})
    np.testing.assert_array_equal(slopes[0].W, 2 * np.outer(np.ones(2), A))
    np.testing.assert_array_equal(slopes[0].b, np.ones(2))
    np.testing.assert_array_equal(slopes[1]["b"], np.ones(2))
    np.testing.assert_array_equal(slopes[2].first, [4.0, 4.0])
    assert slopes[2].second is None


def test_a_tree_without_leaves_may_be_differentiated_beside_another():
    for nothing in (None, (), {}, []):
        empty, slope = rg.grad(lambda n, x: np.sum(x), (0, 1))(nothing, A)
        assert empty == nothing
        np.testing.assert_array_equal(slope, [1.0, 1.0])
        assert rg.vjp(lambda n, x: np.sum(x), nothing, A)[1](1.0)[0] == nothing


def test_jacobians_of_trees_have_blocks_of_the_output_around_blocks_of_the_argument():
    def f(d):
        return {"p": d["a"] * d["b"], "s": np.sum(d["a"] ** 2)}

    point = {"a": A, "b": B}
    for jacobian in (rg.jacfwd(f)(point), rg.jacrev(f)(point)):
        np.testing.assert_array_equal(jacobian["p"]["a"], np.diag(B))
        np.testing.assert_array_equal(jacobian["p"]["b"], np.diag(A))
        np.testing.assert_array_equal(jacobian["s"]["a"], 2 * A)
        np.testing.assert_array_equal(jacobian["s"]["b"], np.zeros(2))
    hessian = rg.hessian(lambda d: np.sum(d["a"] ** 2 * d["b"]))(point)
    np.testing.assert_array_equal(hessian["a"]["a"], np.diag(2 * B))
    np.testing.assert_array_equal(hessian["a"]["b"], np.diag(2 * A))
    np.testing.assert_array_equal(hessian["b"]["a"], np.diag(2 * A))
    np.testing.assert_array_equal(hessian["b"]["b"], np.zeros((2, 2)))


def test_a_dataclass_made_inside_the_function_may_be_returned():
    found = rg.jit(lambda x: Layer(x * 2, [x, None], n=7))(A)
    assert type(found) is Layer
    assert (found.n, found.name) == (7, "layer")
    np.testing.assert_array_equal(found.W, 2 * A)
    np.testing.assert_array_equal(found.b[0], A)
    assert found.b[1] is None


@dataclass
class Body:
    place: Any
    mass: Any = field(default=2.0, metadata={"nondiff": True})
    parts: Any = field(default_factory=list, metadata={"nondiff": True})


def energy(body):
    return np.sum(body.mass * body.place**2) + sum(np.sum(p) for p in body.parts)


def test_a_field_that_is_not_differentiated_has_the_gradient_none():
    body = Body(np.array([1.0, 2.0]), 3.0, [np.ones(2)])
    for gradient in (rg.grad(energy)(body), rg.vjp(energy, body)[1](1.0)[0], rg.lens.of(energy).at(body).pull(1.0)):
        assert isinstance(gradient, Body)
        np.testing.assert_array_equal(gradient.place, [6.0, 12.0])
        assert gradient.mass is None
        assert gradient.parts == [None]
    assert rg.grad(energy)(Body(1.0, 5.0)).place == 10.0


def test_a_field_that_is_not_differentiated_inside_other_containers():
    bodies = {"a": [Body(np.array([1.0]), 3.0), 2.0]}
    gradient = rg.grad(lambda bodies: energy(bodies["a"][0]) * bodies["a"][1])(bodies)
    assert (gradient["a"][0].place, gradient["a"][0].mass, gradient["a"][1]) == (12.0, None, 3.0)


def test_nothing_to_differentiate_is_an_error():
    @dataclass
    class Fixed:
        mass: Any = field(default=2.0, metadata={"nondiff": True})

    with pytest.raises(rg.errors.NonDifferentiableError):
        rg.grad(lambda f: f.mass * 2.0)(Fixed())


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (1.0, "a single value"),
        (None, "None"),
        ((1.0,), "(·,)"),
        ([(), [], {}], "[(), [], {}]"),
        ({"b": 1.0, ("a", 2): None}, "{'b': ·, ('a', 2): None}"),
        (Pair(1.0, [2.0]), "Pair(first=·, second=[·])"),
        (Frozen(1.0), "Frozen(x=·, y=None)"),
        (collections.OrderedDict(a=1.0), "OrderedDict({'a': ·})"),
        (collections.deque([1.0, 2.0]), "deque([·, ·])"),
    ],
)
def test_a_structure_is_written_as_python_writes_it(tree: Any, text: str) -> None:
    assert written(flatten(tree)[1]) == text


def test_a_deep_structure_is_cut() -> None:
    tree: Any = 1.0
    for _ in range(100):
        tree = [tree]
    assert written(flatten(tree)[1]) == "[" * 12 + "..." + "]" * 12


@pytest.mark.parametrize(
    "around", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}, Frozen], ids=["list", "tuple", "dict", "frozen"]
)
def test_trees_of_many_levels_are_differentiated(around: Callable[[Any], Any]) -> None:
    tree: Any = np.array([1.0, 3.0])
    for _ in range(900):
        tree = around(tree)
    (found,), spec = flatten(rg.grad(lambda t: np.sum(flatten(t)[0][0] ** 2))(tree))
    np.testing.assert_array_equal(found, [2.0, 6.0])
    assert spec == flatten(tree)[1] or around is Frozen


def test_too_many_levels_and_circles_are_refused_by_name() -> None:
    deep: Any = 1.0
    for _ in range(2000):
        deep = [deep]
    circle: list[Any] = [1.0]
    circle.append(circle)
    for tree in (deep, circle):
        with pytest.raises(rg.errors.TreeError, match="nested too deeply, or one contains itself") as caught:
            rg.grad(lambda t: t[0])(tree)
        assert "fewer than 1000 levels" in str(caught.value)


def test_the_orders_of_keys_are_told_in_one_order_of_containers() -> None:
    inner = {"z": {"b": 1, "a": 2}, "y": [{"d": 1, "c": 2}]}
    rg.tree.leaves(Layer(1, 2))  # from now on, it is a container
    assert key_orders([inner, Layer({"q": 1}, {})]) == (("z", "y"), ("b", "a"), ("d", "c"), ("q",), ())
