"""Objects, dicts, functions and numbers that are passed as arguments: what is read of them is as it is at each call."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.state import oracle
from tests.state.holders import Model, Spring, energy
from tests.state.oracle import LANES, POINTS, outcome
from tests.state.test_contract import agree
from tests.state.ways import K, Way, arrays, both, contents, grown, item, no_attribute, no_item, numbers, rebound

Case = tuple[Callable[..., Any], list[Any], list[Way]]  # f(argument, x), a list of the argument, ways to change it
CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


@case
def plain_object() -> Case:
    s = Model()
    return (
        lambda m, x: m.energy(x),
        [s],
        [
            *both(lambda k: setattr(s, "k", k)),
            item(s.hyper, "l2", 5.0, "unread"),
            no_attribute(s, "k"),
        ],
    )


@case
def object_of_the_same_class() -> Case:
    s = [Model()]

    def another() -> None:
        s[0] = Model()
        s[0].k = 5.0

    return lambda m, x: m.energy(x), s, [Way("another object", another, lambda: s.__setitem__(0, Model()))]


@case
def object_of_another_class() -> Case:
    s: list[Any] = [Model()]
    return lambda m, x: m.energy(x), s, [item(s, 0, Spring(3.0), "another class")]


@case
def object_in_a_tuple() -> Case:
    s = Model()
    return lambda m, x: m[0].energy(x) + m[1] * x[0], [(s, 1.0)], both(lambda k: setattr(s, "k", k))


@case
def nested_object() -> Case:
    s = Model()
    s.hyper["layers"] = layers = [SimpleNamespace(k=K)]
    return (
        lambda m, x: sum(energy(layer.k, x) for layer in m.hyper["layers"]),
        [s],
        [
            *both(lambda k: setattr(layers[0], "k", k)),
            grown(layers, SimpleNamespace(k=1.0)),
        ],
    )


@case
def object_without_hash() -> Case:
    s = SimpleNamespace(k=K)
    return lambda m, x: energy(m.k, x), [s], both(lambda k: setattr(s, "k", k))


@case
def options_of_a_program() -> Case:
    s = argparse.Namespace(k=K, kind="spring")
    return (
        lambda o, x: energy(o.k, x) if o.kind == "spring" else np.sum(x),
        [s],
        [
            *both(lambda k: setattr(s, "k", k)),
            Way("a text", lambda: setattr(s, "kind", "none"), lambda: setattr(s, "kind", "spring")),
        ],
    )


@case
def namespaces_that_are_compared() -> Case:
    s, other = SimpleNamespace(k=K), SimpleNamespace(k=K)
    return lambda o, x: np.sum(x**2) if o == other else np.sum(3.0 * x), [s], both(lambda k: setattr(s, "k", k))


@case
def slice_of_an_array() -> Case:
    s = [slice(0, 2)]
    return lambda i, x: np.sum(x[i] ** 2), s, [item(s, 0, slice(1, 3)), item(s, 0, slice(None, None, 2), "by two")]


class Position:
    """What counts as an index."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __index__(self) -> int:
        return self.k


@case
def slice_from_a_position() -> Case:
    p = Position(0)
    return lambda i, x: np.sum(x[i] ** 2), [slice(p, None)], [rebound(lambda k: setattr(p, "k", k), 1, 0)]


@case
def slice_of_namespaces() -> Case:
    s = SimpleNamespace(k=K)
    return lambda i, x: energy(i.stop.k, x), [slice(None, s)], both(lambda k: setattr(s, "k", k))


@case
def data_class() -> Case:
    s = Spring()
    return lambda m, x: m.energy(x), [s], both(lambda k: setattr(s, "k", k))


@case
def function() -> Case:
    s = SimpleNamespace(k=K)
    return lambda h, x: h(x), [lambda x: energy(s.k, x)], both(lambda k: setattr(s, "k", k))


@case
def function_over_a_variable() -> Case:
    k: Any = K

    def put(new: Any) -> None:
        nonlocal k
        k = new

    return lambda h, x: h(x), [lambda x: energy(k, x)], numbers(put)


@case
def another_function() -> Case:
    s: list[Any] = [lambda x: np.sum(x**2)]
    return lambda h, x: h(x), s, [item(s, 0, lambda x: np.sum(3.0 * x), "another function")]


@case
def bound_method() -> Case:
    s = Model()
    return lambda h, x: h(x), [s.energy], both(lambda k: setattr(s, "k", k))


@case
def mapping() -> Case:
    d = {"k": K, "b": 1.0}
    return (
        lambda p, x: energy(p["k"], x) + p["b"] * x[0],
        [d],
        [
            rebound(lambda k: d.__setitem__("k", k)),
            *arrays(lambda k: d.__setitem__("k", k)),
            item(d, "b", 5.0),
            no_item(d, "b"),
        ],
    )


@case
def order_of_a_mapping() -> Case:
    s = [{"a": np.array([1.0, 2.0, 3.0]), "b": np.array([0.5, 0.0, -1.0])}]

    def f(params: Any, x: Any) -> Any:
        for name, w in params.items():
            x = np.tanh(w) * x + (1.0 if name == "a" else w)
        return np.sum(x**2)

    return (
        f,
        s,
        [
            item(s, 0, dict(reversed(s[0].items())), "keys reordered"),
            contents(s[0]["a"], (3.0, 0.0, 1.0)),
            item(s, 0, {"z": s[0]["b"]}, "another key"),
        ],
    )


@case
def list_that_grows() -> Case:
    terms = [K, 1.0]
    return lambda t, x: sum(np.sum(k * x**2) for k in t), [terms], [grown(terms, 3.0), item(terms, 0, 5.0)]


@case
def unread_int() -> Case:
    s = [0]
    return lambda i, x: np.sum(x**2), s, [item(s, 0, 7)]


@case
def int_in_arithmetic() -> Case:
    s = [2]
    return lambda i, x: np.sum(i * x**2) + x[0] / (i + 1), s, [item(s, 0, 7), item(s, 0, -3, "negative")]


@case
def int_that_counts() -> Case:
    s = [2]

    def f(n: Any, x: Any) -> Any:
        for _ in range(n):
            x = 0.5 * x + 1.0
        return np.sum(x**2)

    return f, s, [item(s, 0, 5), item(s, 0, 0, "none")]


@case
def int_that_chooses() -> Case:
    s = [2]
    return lambda n, x: np.sum(x**2) if n % 2 else x[n], s, [item(s, 0, 1), item(s, 0, -1, "negative")]


@case
def text() -> Case:
    s = ["l2"]
    return lambda t, x: np.sum(x**2) if t == "l2" else np.sum(3.0 * x), s, [item(s, 0, "l1")]


@case
def number_or_flag() -> Case:
    s: list[Any] = [True]
    return lambda b, x: np.sum(x**2) if b is True else np.sum(3.0 * x), s, [item(s, 0, 1), item(s, 0, False)]


@case
def zero() -> Case:
    s = [0.0]
    return lambda k, x: np.sum(np.copysign(1.0, k) * x**2), s, [item(s, 0, -0.0)]


TRANSFORMS = {
    "jit": (rg.jit, oracle.value),
    "grad": (lambda f: rg.grad(f, 1), oracle.gradient),
    "value_and_grad": (lambda f: rg.value_and_grad(f, 1), oracle.value_and_gradient),
    "jit(grad)": (lambda f: rg.jit(rg.grad(f, 1)), oracle.gradient),
    "jacfwd": (lambda f: rg.jacfwd(f, 1), oracle.gradient),
    "jacrev": (lambda f: rg.jacrev(f, 1), oracle.gradient),
    "hessian": (lambda f: rg.hessian(f, 1), oracle.hessian),
    "vmap(grad)": (
        lambda f: lambda o, x: rg.vmap(lambda x: rg.grad(f, 1)(o, x))(x + LANES),
        oracle.OfLanes(oracle.gradient),
    ),
}


PARAMS = [pytest.param(name, i, id=f"{name}-{w.name}") for name, make in CASES.items() for i, w in enumerate(make()[2])]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("name", "way"), PARAMS)
def test_arguments_are_read_anew(name: str, way: int, transform: str) -> None:
    build, measure = TRANSFORMS[transform]
    f, argument, ways = CASES[name]()
    g = build(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in oracle.history(ways[way], len(POINTS)):
            x = POINTS[call]
            wanted = outcome(lambda x: measure(lambda x: f(argument[0], x), x), x)
            found = outcome(lambda x: g(argument[0], x), x)
            assert agree(found, wanted), f"call {call} gives {found!r}; plain Python gives {wanted!r}"


class Key:
    """An object that is told from others by identity alone."""

    def __init__(self, k: float = 0.0) -> None:
        self.k = k

    def of_table(self, x: Any) -> Any:
        return TABLE[self] * np.sum(x)


FIRST, SECOND = Key(1.0), Key(2.0)
TABLE = {FIRST: 1.0, SECOND: 2.0}
X = np.array([1.0, 2.0, 3.0])
IDENTITIES: dict[str, Callable[..., Any]] = {
    "a key": lambda a, b, x: TABLE[a] * np.sum(x),
    "sought": lambda a, b, x: (1.0 if a in {FIRST, None} else 2.0) * np.sum(x),
    "both in one place": lambda a, b, x: (1.0 if a is b else 2.0) * np.sum(x),
    "equal": lambda a, b, x: (1.0 if a == b else 2.0) * np.sum(x),
    "read of both": lambda a, b, x: a.k * np.sum(x) + b.k,
    "a method": lambda a, b, x: a.of_table(x) + b.k,
    "by identity": lambda a, b, x: (1.0 if id(a) == id(FIRST) else 2.0) * np.sum(x),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_which_object_an_argument_is_may_matter(name: str) -> None:
    f = IDENTITIES[name]
    g = rg.jit(f)
    for a, b in ((FIRST, FIRST), (FIRST, SECOND), (SECOND, SECOND), (SECOND, FIRST), (FIRST, FIRST)):
        assert g(a, b, X) == f(a, b, X)


def test_functions_as_two_arguments_are_told_apart() -> None:
    g = rg.jit(lambda f, h, x: np.sum(f(x)) + 3.0 * np.sum(h(x)))
    once, twice = (lambda v: v), (lambda v: 2 * v)
    for f, h in ((once, once), (twice, once), (once, twice), (twice, twice)):
        assert g(f, h, X) == np.sum(f(X)) + 3.0 * np.sum(h(X))


def installed(name: str, source: str) -> ModuleType:
    """A module as an installed package has it."""
    module = ModuleType(name)
    module.__file__ = f"/site-packages/{name}.py"
    exec(compile(source, module.__file__, "exec"), vars(module))
    return module


TABLES = """
import numpy as np

class Table:
    def __init__(self, x):
        self.renew(x)
    def renew(self, x):
        self._x = np.array(x)
    def __array__(self, dtype=None, copy=None):
        return self._x
"""


def test_an_array_of_a_library_is_refused_as_an_argument_and_read_anew_as_a_capture(monkeypatch):
    library = installed("tables", TABLES)
    monkeypatch.setitem(sys.modules, "tables", library)
    table = library.Table([1.0, 2.0, 3.0])
    with pytest.raises(
        rg.errors.OptionError, match=r"the class tables\.Table, which is not traced\n.*\n  remedy: pass np"
    ):
        rg.grad(lambda x, t: np.sum(x * np.asarray(t)))(X, table)
    slope = rg.grad(lambda x: np.sum(x * np.asarray(table)))
    for found in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        table.renew(found)
        np.testing.assert_array_equal(slope(X), found)
