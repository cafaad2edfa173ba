"""Calls that C serves with containers, keywords and static arguments: it takes them apart as the general way does."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.compiled import UNSERVED
from tests.native.test_served_calls import servers
from tests.support.native import needs_compiler

pytestmark = needs_compiler
X, Y = np.random.default_rng(1).normal(size=(2, 5))


@dataclass
class Layer:
    w: Any
    b: Any


class Pair(NamedTuple):
    a: Any
    b: Any


class Lazy:
    """What is not a container: known by what is read of it."""

    def __init__(self, k: float) -> None:
        self.k = k


def of_keywords(x: Any, *, y: Any) -> Any:
    return {"sum": np.sum(x * y), "all": [x + y, (y * y,)]}


def of_layers(layers: Any, x: Any) -> Any:
    for layer in layers:
        x = layer.w * x + layer.b
    return x * x


def of_dict(p: Any) -> Any:
    return sum(k * x * x for k, x in enumerate(p.values(), 1))


def of_statics(x: Any, n: int, name: str, flag: bool, nothing: Any) -> Any:
    return x * n + len(name) * x if flag and nothing is None else x * 2.0 - x


def of_pair(p: Any, q: Any) -> Any:
    return p.a * q[0] + p.b * q[1]


def of_numbers(z: Any, x: Any) -> Any:
    return np.array([1.0, 2.0]) * z * x + z


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "keywords": (of_keywords, (X,), {"y": Y}),
    "one keyword": (lambda x: x * x + x, (), {"x": X}),
    "dataclasses": (of_layers, ([Layer(X, Y), Layer(2.0, X)], Y), {}),
    "a dict": (of_dict, ({"b": X, "a": Y},), {}),
    "a dict of ints": (of_dict, ({2: X, 1: Y},), {}),
    "a namedtuple and a pair": (of_pair, (Pair(X, 2.0), (Y, X)), {}),
    "static arguments": (of_statics, (X, 3, "ab", True, None), {}),
    "numbers of Python's": (of_numbers, (1.5 + 2j, 0.5), {}),
    "a text of bytes": (lambda x, s: x * len(s) + x, (X, b"abc"), {}),
}


def compiled(function: Callable[..., Any]) -> Any:
    """A compiled function that nothing has called: those of one function share what they have compiled."""
    f = rg.jit(function, backend="native")
    f._cache.clear()
    f._servers.clear()
    return f


def served(f: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of the first server in C that takes a call, or UNSERVED."""
    return next((x for serve in servers(f) if (x := serve(f, args, kwargs)) is not UNSERVED), UNSERVED)


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_general_way(name: str) -> None:
    function, args, kwargs = CASES[name]
    f = compiled(function)
    first = f(*args, **kwargs)
    again = served(f, *args, **kwargs)
    assert type(again) is type(first)
    assert repr(again) == repr(first) == repr(f(*args, **kwargs))
    for a, b in zip(rg.tree.leaves(again), rg.tree.leaves(function(*args, **kwargs)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_gradients_have_the_structure_of_the_arguments() -> None:
    def loss(p: Any, x: Any) -> Any:
        return np.sum((p["w"] * x + p["b"]["inner"][0]) ** 2)

    p = {"w": X, "b": {"inner": [Y]}}
    f = rg.value_and_grad(loss, backend="native")
    first = f(p, 2.0)
    again = served(f, p, 2.0)
    assert repr(again) == repr(first)
    assert [*again[1]] == [*first[1]]
    np.testing.assert_allclose(again[1]["w"], 2 * (2 * X + Y) * 2.0, rtol=1e-13)


OTHERS: dict[str, tuple[str, Any]] = {
    "other keys": ("a dict", lambda p: ({"b": p["b"], "c": p["a"]},)),
    "another order of keys": ("a dict", lambda p: (dict(reversed(p.items())),)),
    "a further key": ("a dict", lambda p: ({**p, "c": p["a"]},)),
    "a missing key": ("a dict", lambda p: ({"b": p["b"]},)),
    "an ordered dict": ("a dict", lambda p: (OrderedDict(p),)),
    "keys of another type": ("a dict of ints", lambda p: ({2.0: p[2], 1.0: p[1]},)),
    "a number in a dict": ("a dict", lambda p: ({**p, "a": 2.0},)),
    "a longer list": ("dataclasses", lambda p, x: ([*p, p[0]], x)),
    "a tuple for a list": ("dataclasses", lambda p, x: ((*p,), x)),
    "another shape in a dataclass": ("dataclasses", lambda p, x: ([p[0], Layer(p[1].w, np.ones((5, 1)))], x)),
    "single precision": ("dataclasses", lambda p, x: ([p[0], Layer(p[1].w, x.astype("f4"))], x)),
    "another order in memory": ("dataclasses", lambda p, x: ([p[0], Layer(p[1].w, np.ones(10)[::2])], x)),
    "an array for a number": ("a namedtuple and a pair", lambda p, q: (Pair(p.a, np.array(p.b)), q)),
    "a scalar of NumPy's": ("a namedtuple and a pair", lambda p, q: (Pair(p.a, np.float64(p.b)), q)),
    "another int": ("static arguments", lambda x, *rest: (x, 4, *rest[1:])),
    "a bool for an int": ("static arguments", lambda x, *rest: (x, True, *rest[1:])),
    "another text": ("static arguments", lambda x, n, t, *rest: (x, n, "abc", *rest)),
    "another bool": ("static arguments", lambda x, n, t, b, none: (x, n, t, False, none)),
    "something for None": ("static arguments", lambda x, n, t, b, none: (x, n, t, b, 0)),
    "a real number": ("numbers of Python's", lambda z, x: (2.0, x)),
}


@pytest.mark.parametrize("case", sorted({case for case, _ in OTHERS.values()}))
def test_other_arguments_are_left_to_the_general_way(case: str) -> None:
    function, args, _ = CASES[case]
    f = compiled(function)
    f(*args)
    for changed, change in OTHERS.values():
        if changed == case:
            other = change(*args)
            assert served(f, *other) is UNSERVED
            for a, b in zip(rg.tree.leaves(f(*other)), rg.tree.leaves(function(*other)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6)
            assert served(f, *args) is not UNSERVED


def test_keywords_have_an_order() -> None:
    f = rg.jit(lambda **p: of_dict(p), backend="native")
    f(a=X, b=Y)
    assert served(f, b=Y, a=X) is UNSERVED
    np.testing.assert_allclose(f(b=Y, a=X), Y * Y + 2 * X * X, rtol=1e-13)
    np.testing.assert_allclose(f(a=X, b=Y), X * X + 2 * Y * Y, rtol=1e-13)
    assert served(f, a=X) is UNSERVED
    assert served(f, X, b=Y) is UNSERVED


def test_ints_that_vary_are_operands() -> None:
    f = rg.jit(lambda x, n: x * n + x, backend="native")
    for n in (2, 3, 4, -5, 2**40):
        np.testing.assert_array_equal(f(X, n), X * n + X)
    np.testing.assert_array_equal(served(f, X, 7), X * 7 + X)
    assert served(f, X, 2**60) is UNSERVED
    assert served(f, X, 10**30) is UNSERVED
    np.testing.assert_array_equal(f(X, 2**60), X * 2**60 + X)
    assert served(f, X, True) is UNSERVED


def test_what_is_read_of_static_objects_is_checked() -> None:
    f = rg.jit(lambda m, x: m.k * x + x, backend="native")
    m = Lazy(2.0)
    f(m, X)
    np.testing.assert_allclose(served(f, m, X), 3.0 * X, rtol=1e-14)
    m.k = 4.0
    assert served(f, m, X) is UNSERVED
    np.testing.assert_allclose(f(m, X), 5.0 * X, rtol=1e-14)
    np.testing.assert_allclose(f(Lazy(1.0), X), 2.0 * X, rtol=1e-14)
    np.testing.assert_allclose(f(m, X), 5.0 * X, rtol=1e-14)


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (2.0, 2), (1.5, 1.25), (1, True), (float("nan"), 1.0)])
def test_static_numbers_are_told_apart(one: Any, other: Any) -> None:
    def function(x: Any, k: Any) -> Any:
        return np.sqrt(x * x) * np.copysign(1.0, k) + np.abs(x - 1.0) * k

    f = rg.jit(function, static_argnums=1, backend="native")
    for k in (one, other, one, other):
        np.testing.assert_array_equal(f(X, k), function(X, k))
    assert len(servers(f)) == 2
    assert served(f, X, one) is not UNSERVED
    assert served(f, X, np.float64(1.5)) is UNSERVED


def test_static_arguments_by_name() -> None:
    f = rg.jit(lambda x, k: x * k[0] + x, static_argnames="k", backend="native")
    for _ in range(3):
        np.testing.assert_allclose(f(X, k=(2.0, "a")), 3 * X, rtol=1e-14)
        np.testing.assert_allclose(f(X, k=(3.0, "a")), 4 * X, rtol=1e-14)
    assert served(f, X, k=(3.0, "a")) is not UNSERVED
    assert served(f, X, k=(3.0, "b")) is UNSERVED


def test_instances_that_share_a_compilation_are_served() -> None:
    class Model:
        @rg.jit(backend="native")
        def act(self, x: Any) -> Any:
            return x * x + x

    one, other = Model(), Model()
    for model in (one, other, one, other):
        model.act(X)
    assert served(one.act, X) is not UNSERVED
    assert served(other.act, X) is not UNSERVED


def test_attributes_that_are_code_may_fail() -> None:
    @dataclass
    class Odd:
        w: Any
        fails: Any = None

        def __getattribute__(self, name: str) -> Any:
            if name == "w" and object.__getattribute__(self, "fails"):
                raise object.__getattribute__(self, "fails")
            return object.__getattribute__(self, name)

    f = rg.jit(lambda o: o.w * o.w + o.w, backend="native")
    f(Odd(X))
    f(Odd(X))
    assert served(f, Odd(X)) is not UNSERVED
    assert served(f, Odd(X, ValueError("no"))) is UNSERVED
    with pytest.raises(KeyboardInterrupt):
        served(f, Odd(X, KeyboardInterrupt()))


def test_nothing_is_lost_over_many_calls() -> None:
    class Mark:
        pass

    layer, mark, text = Layer(X.copy(), Y.copy()), Mark(), "".join(sorted("text"))
    f = rg.jit(lambda p, m, s, x: {"a": (p["l"].w * x + p["l"].b,), "b": [x]}, backend="native")
    args = ({"l": layer}, mark, text, X.copy())
    f(*args)
    assert served(f, *args) is not UNSERVED
    held = (layer, layer.w, layer.b, mark, text, args[0], args[3], f, dict, Layer)
    counts = [sys.getrefcount(x) for x in held]
    for _ in range(200):
        served(f, *args)
        served(f, {"l": Layer(layer.w, None)}, mark, text, args[3])
        served(f, args[0], mark, 5, args[3])
        served(f, {"m": layer}, mark, text, args[3])
    assert [sys.getrefcount(x) for x in held] == counts
