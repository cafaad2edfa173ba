"""Ways of holding state: each makes a fresh world, and returns a function of it and the ways in which it may change.

Every function takes three numbers and returns one, a polynomial of degree three at most, so that derivatives are known
to the last digits. ``energy`` shows the sign of a zero and the type of a number.
"""

# ruff: noqa: PLW0108 - the lambdas are the programs: they look up what they call when they run

from __future__ import annotations

import argparse
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import importlib
import itertools
import linecache
import operator
import os
import random
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tests.state.oracle import World
from tests.state.ways import (
    K,
    Way,
    arrays,
    attribute,
    both,
    contents,
    everything,
    grown,
    item,
    no_attribute,
    no_item,
    nothing,
    numbers,
    rebound,
    reordered,
    shrunk,
)

HOLDERS: dict[str, Callable[[], World]] = {}
FOLDER = Path(__file__).parent / "modules"


def holder(make: Callable[[], World]) -> Callable[[], World]:
    """Into the table, by its name."""
    HOLDERS[make.__name__.rstrip("_")] = make
    return make


def energy(k: Any, x: Any) -> Any:
    """A polynomial of x that tells 0.0 from -0.0, and 2 from 2.0."""
    return np.sum(k * x**2 + np.copysign(1.0, k) * x**3 + (2.0 if isinstance(k, int) else 1.0) * x)


def attributes(o: Any, name: str = "k") -> Callable[[Any], None]:
    """Binds the attribute."""
    return functools.partial(setattr, o, name)


def items(c: Any, key: Any) -> Callable[[Any], None]:
    """Binds the item."""
    return functools.partial(c.__setitem__, key)


@functools.cache
def compiled(source: str, name: str) -> types.CodeType:
    """The code of a source that tracebacks can show."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return compile(source, name, "exec")


def program(source: str, **names: Any) -> dict[str, Any]:
    """The namespace of a program that is given as text."""
    scope = {"np": np, "energy": energy, "K": K, "__name__": "program"} | names
    exec(compiled(source, f"<program {abs(hash(source))}>"), scope)
    return scope


def fresh(*names: str) -> list[types.ModuleType]:
    """The modules of the folder beside this file, in this order, each imported anew."""
    made = []
    for name in names:
        made.append(module := types.ModuleType(name))
        sys.modules[name] = module
        path = FOLDER / f"{name}.py"
        exec(compiled(path.read_text(), str(path)), vars(module))
    return made


# names


@holder
def global_number() -> World:
    p = program(
        "def f(x):\n    scale = 2.0 if isinstance(K, int) else 1.0\n"
        "    return scale * np.sum(K * x**2 + np.copysign(1.0, K) * x**3)"
    )
    return p["f"], [*everything(items(p, "K")), no_item(p, "K")]


@holder
def global_read_by_helper() -> World:
    p = program("def helper(x):\n    return energy(K, x)\ndef f(x):\n    return helper(x) + helper(2 * x)")
    return p["f"], [*both(items(p, "K")), item(p, "helper", lambda x: x[0])]


@holder
def global_declared_and_written() -> World:
    p = program("def f(x):\n    global K\n    K = K + 1.0\n    return energy(K, x)")
    return p["f"], [rebound(items(p, "K"), 7.0)]


@holder
def global_in_a_comprehension() -> World:
    p = program("def f(x):\n    return sum([energy(K, i * x) for i in range(3)])")
    return p["f"], numbers(items(p, "K"))


@holder
def closure() -> World:
    k: Any = K

    def put(new: Any) -> None:
        nonlocal k
        k = new

    def f(x: Any) -> Any:
        return np.sum(k * x**2 + np.copysign(1.0, k) * x**3) * (2.0 if isinstance(k, int) else 1.0)

    return f, everything(put)


@holder
def closure_of_closure() -> World:
    k: Any = K

    def put(new: Any) -> None:
        nonlocal k
        k = new

    def outer(x: Any) -> Any:
        def inner() -> Any:
            return energy(k, x)

        return inner()

    return outer, both(put)


@holder
def closure_unbound() -> World:
    p = program(
        "def make():\n    k = K\n    def f(x):\n        return energy(k, x)\n    def put(new):\n        nonlocal k\n"
        "        k = new\n    def drop():\n        nonlocal k\n        del k\n    return f, put, drop"
    )
    f, put, drop = p["make"]()
    return f, [Way("unbound", drop, lambda: put(K))]


@holder
def nonlocal_counter() -> World:
    n = 0.0

    def put(new: float) -> None:
        nonlocal n
        n = new

    def f(x: Any) -> Any:
        nonlocal n
        n += 1.0
        return energy(n, x)

    return f, [rebound(put, 10.0, 0.0)]


@holder
def default() -> World:
    def f(x: Any, k: Any = K) -> Any:
        return energy(k, x)

    return f, everything(lambda k: setattr(f, "__defaults__", (k,)))


@holder
def default_of_helper() -> World:
    def helper(x: Any, k: Any = K) -> Any:
        return energy(k, x)

    return lambda x: helper(x), both(lambda k: setattr(helper, "__defaults__", (k,)))


@holder
def keyword_default() -> World:
    def helper(x: Any, *, k: Any = K) -> Any:
        return energy(k, x)

    return lambda x: helper(x), numbers(lambda k: setattr(helper, "__kwdefaults__", {"k": k}))


@holder
def mutable_default() -> World:
    d = {"k": K}

    def f(x: Any, d: Any = d) -> Any:
        return energy(d["k"], x)

    return f, [*both(items(d, "k")), no_item(d, "k")]


@holder
def code_of_helper() -> World:
    def helper(x: Any) -> Any:
        return np.sum(2.0 * x**2)

    def other(x: Any) -> Any:
        return np.sum(3.0 * x**3)

    old = helper.__code__
    return lambda x: helper(x), [
        rebound(lambda code: setattr(helper, "__code__", code), other.__code__, old, "code replaced")
    ]


@holder
def attribute_of_function() -> World:
    def f(x: Any) -> Any:
        return energy(f.k, x)  # type: ignore[attr-defined]

    attributes(f)(K)
    return f, [*both(attributes(f)), no_attribute(f, "k")]


@holder
def local_class() -> World:
    s = SimpleNamespace(k=K)

    def f(x: Any) -> Any:
        class Spring:
            k = s.k

            def energy(self) -> Any:
                return energy(self.k, x)

        return Spring().energy()

    return f, numbers(attributes(s))


# attributes and items


@holder
def attribute_() -> World:
    s = SimpleNamespace(k=K)
    return lambda x: np.sum(s.k * x**2 + np.copysign(1.0, s.k) * x**3) * (2.0 if isinstance(s.k, int) else 1.0), [
        *everything(attributes(s)),
        no_attribute(s, "k"),
    ]


@holder
def nested_attribute() -> World:
    c = SimpleNamespace(sub=SimpleNamespace(k=K))
    return lambda x: energy(c.sub.k, x), [*both(attributes(c.sub)), attribute(c, "sub", SimpleNamespace(k=5.0))]


@holder
def item_() -> World:
    d = {"k": K}
    return lambda x: energy(d["k"], x), [*both(items(d, "k")), no_item(d, "k")]


@holder
def nested_item() -> World:
    d = {"a": {"k": K}}
    return lambda x: energy(d["a"]["k"], x), [*everything(items(d["a"], "k")), item(d, "a", {"k": 5.0})]


@holder
def item_of_attribute() -> World:
    s = Model()
    return s.regularised, [*both(items(s.hyper, "l2")), attribute(s, "hyper", {"l2": 7.0})]


class Model:
    """A class whose methods read attributes of several kinds."""

    scale: Any = 1.0

    def __init__(self) -> None:
        self.k: Any = K
        self.hyper: dict[str, Any] = {"l2": K}
        self.pair: Any = (K, 1.0)

    def regularised(self, x: Any) -> Any:
        return energy(self.hyper["l2"], x)

    def energy(self, x: Any) -> Any:
        return energy(self.k, x) * self.scale

    def __call__(self, x: Any) -> Any:
        return self.energy(x)


@holder
def bound_method() -> World:
    s = Model()
    return s.energy, [*everything(attributes(s)), attribute(s, "scale", 3.0), no_attribute(s, "k")]


@holder
def method_of_captured() -> World:
    class Local(Model):
        pass

    s = Local()
    return lambda x: s.energy(x), [
        *both(attributes(s)),
        attribute(s, "scale", 3.0),
        attribute(Local, "scale", 4.0, "scale of the class"),
        attribute(s, "energy", lambda x: x[0] * 7.0, "method replaced on the instance"),
        attribute(Local, "energy", lambda self, x: x[0] * self.k, "method replaced on the class"),
        no_attribute(s, "k"),
        Way("class replaced", lambda: setattr(s, "__class__", Softer), lambda: setattr(s, "__class__", Local)),
    ]


class Softer(Model):
    """Another class of the same layout."""

    def energy(self, x: Any) -> Any:
        return 0.25 * super().energy(x)


@holder
def callable_object() -> World:
    s = Model()
    return s, both(attributes(s))


@holder
def call_of_captured() -> World:
    s = Model()
    return lambda x: s(x), both(attributes(s))


@holder
def class_attribute() -> World:
    class Constants:
        k: Any = K

    return lambda x: energy(Constants.k, x), [*both(attributes(Constants)), no_attribute(Constants, "k")]


@holder
def attribute_of_base_class() -> World:
    class Base:
        k: Any = K

        def energy(self, x: Any) -> Any:
            return energy(self.k, x)

    class Derived(Base):
        def energy(self, x: Any) -> Any:
            return 2.0 * super().energy(x)

    s = Derived()
    return lambda x: s.energy(x), [
        *both(attributes(Base)),
        attribute(Derived, "k", 9.0, "shadowed by the class"),
        attribute(s, "k", 8.0, "shadowed by the instance"),
        attribute(Base, "energy", lambda self, x: np.sum(x), "method of the base replaced"),
    ]


@holder
def super_of_two_arguments() -> World:
    class Base:
        k: Any = K

    class Derived(Base):
        k = 1.0

    s = Derived()
    return lambda x: energy(super(Derived, s).k, x), both(attributes(Base))


@holder
def type_of_object() -> World:
    class Named:
        k: Any = K

    s = Named()
    return lambda x: energy(type(s).k, x) + s.__class__.k * x[:1].sum(), numbers(attributes(Named))


@holder
def metaclass_attribute() -> World:
    class Meta(type):
        k: Any = K

        def energy(cls, x: Any) -> Any:
            return energy(cls.k, x)

    class Thing(metaclass=Meta):
        pass

    return lambda x: Thing.energy(x), [*both(attributes(Meta)), attribute(Thing, "k", 9.0, "shadowed by the class")]


@holder
def property_() -> World:
    class Spring:
        def __init__(self) -> None:
            self._k: Any = K

        @property
        def k(self) -> Any:
            return self._k

    s = Spring()
    return lambda x: energy(s.k, x), [
        *everything(attributes(s, "_k")),
        attribute(Spring, "k", property(lambda self: self._k + 1.0), "property replaced"),
    ]


@holder
def property_reading_property() -> World:
    class Spring:
        def __init__(self) -> None:
            self.raw: Any = K

        @property
        def half(self) -> Any:
            return self.raw

        @property
        def k(self) -> Any:
            return self.half

    s = Spring()
    return lambda x: energy(s.k, x), both(attributes(s, "raw"))


@holder
def cached_property() -> World:
    class Spring:
        base: Any = K

        @functools.cached_property
        def k(self) -> Any:
            return self.base * 1.0

    s = Spring()
    return lambda x: energy(s.k, x), [
        Way("forgotten", lambda: (vars(s).pop("k", None), attributes(s, "base")(5.0)), lambda: vars(s).pop("k", None)),
        attribute(s, "base", 5.0, "base rebound behind the cache"),
        Way("cached value replaced", lambda: vars(s).update(k=9.0), lambda: vars(s).pop("k")),
    ]


@holder
def slots() -> World:
    class Spring:
        __slots__ = ("k",)

        def __init__(self) -> None:
            self.k: Any = K

    s = Spring()
    return lambda x: energy(s.k, x), [*both(attributes(s)), no_attribute(s, "k")]


@holder
def class_method() -> World:
    class Spring:
        k: Any = K

        @classmethod
        def energy(cls, x: Any) -> Any:
            return energy(cls.k, x)

    return Spring.energy, both(attributes(Spring))


@holder
def static_method_reading_a_global() -> World:
    p = program("class Spring:\n    @staticmethod\n    def energy(x):\n        return energy(K, x)")
    return lambda x: p["Spring"].energy(x), both(items(p, "K"))


@holder
def dunder_getattr() -> World:
    class Config:
        def __init__(self) -> None:
            self.values: dict[str, Any] = {"k": K}

        def __getattr__(self, name: str) -> Any:
            return self.values[name]

    s = Config()
    return lambda x: energy(s.k, x), [*both(items(s.values, "k")), attribute(s, "k", 9.0, "shadowed")]


@holder
def dunder_getattribute() -> World:
    class Config:
        values: dict[str, Any] = {"k": K}  # noqa: RUF012

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, "values")[name] if name == "k" else object.__getattribute__(self, name)

    s = Config()
    s.values = {"k": K}
    return lambda x: energy(s.k, x), both(items(s.values, "k"))


@holder
def dunder_getitem() -> World:
    class Table:
        def __init__(self) -> None:
            self.rows = [1.0, K]

        def __getitem__(self, i: int) -> Any:
            return self.rows[i]

    s = Table()
    return lambda x: energy(s[1], x), both(items(s.rows, 1))


@holder
def operator_of_user_class() -> World:
    class Scale:
        def __init__(self) -> None:
            self.k: Any = K

        def __mul__(self, x: Any) -> Any:
            return self.k * x

        def __bool__(self) -> bool:
            return bool(self.k > 2.5)

        def __len__(self) -> int:
            return int(self.k)

        def __contains__(self, v: float) -> bool:
            return bool(v < self.k)

    s = Scale()
    return lambda x: np.sum(s * x) * (3.0 if s else 1.0) + len(s) * x[0] + (3.0 in s) * x[1], [rebound(attributes(s))]


@holder
def iterator_of_user_class() -> World:
    class Steps:
        def __init__(self) -> None:
            self.k: Any = K

        def __iter__(self) -> Any:
            yield 1.0
            yield self.k

    s = Steps()
    return lambda x: sum(energy(k, x) for k in s), both(attributes(s))


@holder
def with_statement_of_user_class() -> World:
    class Scope:
        k: Any = K

        def __enter__(self) -> Any:
            return self.k

        def __exit__(self, *_: object) -> None:
            pass

    s = Scope()

    def f(x: Any) -> Any:
        with s as k:
            return energy(k, x)

    return f, both(attributes(s))


@holder
def descriptor() -> World:
    class Place:
        def __init__(self) -> None:
            self.k: Any = K

        def __get__(self, o: Any, owner: Any = None) -> Any:
            return self.k

        def __set__(self, o: Any, k: Any) -> None:
            self.k = k

    class Spring:
        k = Place()

    s = Spring()
    return lambda x: energy(s.k, x), both(attributes(s))


@holder
def getattr_with_computed_name() -> World:
    s = SimpleNamespace(k=K, name="k", other=7.0)
    return lambda x: energy(getattr(s, s.name), x), [*both(attributes(s)), attribute(s, "name", "other")]


@holder
def getattr_with_default() -> World:
    s = SimpleNamespace()
    return lambda x: energy(getattr(s, "k", 1.5), x), [attribute(s, "k", 4.0, "appears")]


@holder
def hasattr_() -> World:
    s = SimpleNamespace()
    return lambda x: np.sum(x**2) * (3.0 if hasattr(s, "k") else 1.0), [attribute(s, "k", 4.0, "appears")]


@holder
def vars_() -> World:
    s = SimpleNamespace(k=K)
    return lambda x: energy(vars(s)["k"], x) + len(vars(s)) * x[0], [*both(attributes(s)), attribute(s, "other", 1.0)]


@holder
def dunder_dict() -> World:
    s = Model()
    return lambda x: energy(s.__dict__["k"], x), both(attributes(s))


@holder
def attrgetter() -> World:
    s = SimpleNamespace(sub=SimpleNamespace(k=K))
    read = operator.attrgetter("sub.k")
    return lambda x: energy(read(s), x), both(attributes(s.sub))


@holder
def local_alias() -> World:
    s = Model()

    def f(x: Any) -> Any:
        h = s.hyper
        return energy(h["l2"], x)

    return f, both(items(s.hyper, "l2"))


@holder
def attribute_written_and_read() -> World:
    s = SimpleNamespace(n=0.0)

    def f(x: Any) -> Any:
        s.n += 1.0
        return energy(s.n, x)

    return f, [rebound(attributes(s, "n"), 10.0, 0.0)]


@holder
def counter_object() -> World:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        def tick(self) -> int:
            self.n += 1
            return self.n

    c = Counter()
    return lambda x: np.sum(c.tick() * x**2), [rebound(attributes(c, "n"), 10, 0)]


@holder
def lazily_filled_attribute() -> World:
    class Spring:
        base: Any = K
        table: Any = None

        def energy(self, x: Any) -> Any:
            if self.table is None:
                self.table = self.base * np.ones(3)
            return energy(self.table, x)

    s = Spring()
    return lambda x: s.energy(x), [
        Way("forgotten", lambda: vars(s).update(table=None, base=5.0), lambda: vars(s).update(table=None, base=K)),
        attribute(s, "base", 5.0, "base rebound behind the cache"),
    ]


# containers


@holder
def list_grown() -> World:
    terms = [K, 1.0]
    return lambda x: sum(energy(k, x) for k in terms), [grown(terms, 3.0), shrunk(terms), *both(items(terms, 0))]


@holder
def list_element() -> World:
    terms = [1.0, K]
    return lambda x: energy(terms[1], x), [*everything(items(terms, 1)), shrunk(terms)]


@holder
def last_element() -> World:
    terms = [1.0, K]
    return lambda x: energy(terms[-1], x), [grown(terms, 5.0), *numbers(items(terms, -1))]


@holder
def slice_of_list() -> World:
    terms = [1.0, K, 3.0]
    return lambda x: sum(energy(k, x) for k in terms[1:]), [grown(terms, 4.0), *numbers(items(terms, 1))]


@holder
def tuple_of_arrays() -> World:
    t = (np.array([1.0, 2.0, 3.0]), np.array([0.5]))
    return lambda x: energy(t[0], x) + np.tanh(t[1])[0] * np.sum(x), [
        contents(t[0], (3.0, -1.0, 0.0)),
        contents(t[1], 2.0, "in place, read alone"),
    ]


@holder
def dict_of_arrays() -> World:
    d = {"w": np.array([1.0, 2.0, 3.0]), "b": np.array([0.5, 0.1, 0.2])}
    return lambda x: energy(d["w"], x) + np.exp(d["b"]) @ x, [
        contents(d["w"], (3.0, -1.0, 0.0)),
        contents(d["b"], 2.0, "in place, read alone"),
        item(d, "w", np.array([4.0, 0.0, 1.0])),
        item(d, "b", np.zeros(3, np.float32), "another dtype"),
        no_item(d, "b"),
    ]


@holder
def array_in_attribute() -> World:
    s = SimpleNamespace(w=np.array([1.0, 2.0, 3.0]))
    return lambda x: np.sum(x * np.tanh(s.w)) + np.sum(s.w[1:]) * x[0], [
        contents(s.w, (3.0, -1.0, 0.0)),
        Way("subtracted in place", lambda: operator.isub(s.w, 0.25), lambda: operator.iadd(s.w, 0.25)),
        attribute(s, "w", np.array([4.0, 0.0, 1.0])),
        attribute(s, "w", np.array([4.0]), "another shape"),
        attribute(s, "w", np.array([4, 0, 1]), "another dtype"),
    ]


@holder
def array_that_decides() -> World:
    s = SimpleNamespace(w=np.array([1.0, 2.0, 3.0]), mask=np.array([True, False, True]), order=np.array([2, 0, 1]))

    def f(x: Any) -> Any:
        scale = 2.0 if s.w[0] > 0 and s.mask.any() else 3.0
        return scale * np.sum(x[s.order] ** 2 * s.w) + np.sum(x[s.mask])

    return f, [
        contents(s.w, (-1.0, 2.0, 3.0)),
        contents(s.mask, (False, True, True), "mask in place"),
        contents(s.mask, False, "empty mask"),
        contents(s.order, (0, 1, 2), "order in place"),
    ]


@holder
def shape_of_array() -> World:
    s = SimpleNamespace(w=np.ones(3))
    return lambda x: np.sum(x**2) * s.w.size + s.w.ndim * x[0] + (s.w.dtype == np.float64) * x[1], [
        attribute(s, "w", np.ones(5), "another length"),
        attribute(s, "w", np.ones((3, 2)), "another number of axes"),
        attribute(s, "w", np.ones(3, np.float32), "another dtype"),
    ]


@holder
def unpacking() -> World:
    s = Model()

    def f(x: Any) -> Any:
        a, b = s.pair
        return energy(a, x) + b * x[0]

    return f, [*both(lambda k: setattr(s, "pair", (k, 1.0))), attribute(s, "pair", (1.0, 2.0, 3.0), "too many")]


@holder
def starred_unpacking() -> World:
    terms = [K, 1.0, 2.0]

    def f(x: Any) -> Any:
        first, *rest = terms
        return energy(first, x) + sum(rest) * x[0]

    return f, [*both(items(terms, 0)), grown(terms, 5.0), shrunk(terms)]


@holder
def star_arguments() -> World:
    s = SimpleNamespace(args=[K, 1.0])
    return lambda x: term(x, *s.args), [*both(items(s.args, 0)), shrunk(s.args)]


@holder
def star_star_arguments() -> World:
    s = SimpleNamespace(kw={"k": K})
    return lambda x: term(x, **s.kw), [
        *both(items(s.kw, "k")),
        item(s.kw, "b", 3.0, "key added"),
        item(s.kw, "no", 1.0, "no such parameter"),
    ]


def term(x: Any, k: Any, b: Any = 0.5) -> Any:
    """A function of several parameters."""
    return energy(k, x) + b * x[0]


@holder
def dict_items() -> World:
    d = {"a": K, "b": 1.0}

    def f(x: Any) -> Any:
        total = 0.0
        for i, (name, k) in enumerate(d.items()):
            total = total + (i + 1.0) * energy(k, x) + (name == "a") * x[i]
        return total

    return f, [*both(items(d, "a")), reordered(d), item(d, "c", 3.0, "key added"), no_item(d, "b")]


@holder
def dict_values() -> World:
    d = {"a": K, "b": 1.0}
    return lambda x: energy(next(iter(d.values())), x) + sum(d.values()) * x[0], [*numbers(items(d, "a")), reordered(d)]


@holder
def sorted_keys() -> World:
    d = {"b": K, "a": 1.0}
    return lambda x: sum((i + 1.0) * energy(d[name], x) for i, name in enumerate(sorted(d))), [
        *numbers(items(d, "b")),
        item(d, "0", 3.0, "key added in front"),
        reordered(d),
    ]


@holder
def contains() -> World:
    d: dict[str, Any] = {"a": 1.0}
    return lambda x: np.sum(x**2) * (3.0 if "k" in d else 1.0), [item(d, "k", 1.0, "appears")]


@holder
def arrays_of_a_dict() -> World:
    d = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([0.5, 0.1, 0.2])}

    def f(x: Any) -> Any:
        first = next(iter(d.values()))
        return np.sum(first * x**2) + sum(np.sum(w**2) for w in [*d.values()]) * x[0] + (x[1] if first[0] > 0 else x[2])

    return f, [
        contents(d["a"], (-1.0, 2.0, 3.0)),
        contents(d["b"], (1.5, 2.0, 3.0), "in place, read alone"),
        item(d, "a", np.array([4.0, 0.0, 1.0])),
        reordered(d),
    ]


@holder
def dict_get() -> World:
    d: dict[str, Any] = {"a": 1.0}
    return lambda x: energy(d.get("k", 1.5), x), [item(d, "k", 4.0, "appears")]


@holder
def length() -> World:
    terms = [1.0, 2.0]
    return lambda x: len(terms) * np.sum(x**2), [grown(terms, 3.0), shrunk(terms)]


@holder
def truth_of_container() -> World:
    terms: list[float] = []
    return lambda x: np.sum(x**2) * (2.0 if terms else 1.0), [grown(terms, 3.0)]


@holder
def set_membership() -> World:
    s = {"l2"}
    return lambda x: np.sum(x**2) * (2.0 if "l2" in s else 1.0) + x[0] * ("l1" in s), [
        Way("removed", lambda: s.remove("l2"), lambda: s.add("l2")),
        Way("added", lambda: s.add("l1"), lambda: s.remove("l1")),
    ]


@holder
def deque() -> World:
    d = collections.deque([K, 1.0], maxlen=3)
    return lambda x: sum(energy(k, x) for k in d) + np.sum(d[0] * x), [
        *both(items(d, 0)),
        grown(d, 3.0),
        Way("rotated", lambda: d.rotate(1), lambda: d.rotate(-1)),
    ]


@holder
def defaultdict() -> World:
    d: Any = collections.defaultdict(lambda: 1.5)
    return lambda x: energy(d.get("k", 1.0), x) + energy(d["z"], x), [
        item(d, "k", 4.0, "appears"),
        Way("filled", lambda: d.update(z=5.0), lambda: d.pop("z")),
    ]


@holder
def counter() -> World:
    c = collections.Counter(a=2)
    return lambda x: np.sum(c["a"] * x**2) + c["b"] * x[0], [
        Way("counted", lambda: c.update(["a"]), lambda: c.subtract(["a"])),
        Way("first of its kind", lambda: c.update(["b"]), lambda: c.pop("b")),
    ]


@holder
def chain_map() -> World:
    c: Any = collections.ChainMap({}, {"k": K})
    return lambda x: energy(c["k"], x), [*both(items(c.maps[1], "k")), item(c, "k", 9.0, "shadowed")]


@holder
def ordered_dict() -> World:
    d = collections.OrderedDict(a=K, b=1.0)
    return lambda x: energy(next(iter(d.values())), x), [
        *numbers(items(d, "a")),
        Way("moved to the end", lambda: d.move_to_end("a"), lambda: d.move_to_end("a", last=False)),
    ]


@holder
def mapping_proxy() -> World:
    d = {"k": K}
    view = types.MappingProxyType(d)
    return lambda x: energy(view["k"], x), both(items(d, "k"))


@holder
def argparse_namespace() -> World:
    options = argparse.ArgumentParser()
    options.add_argument("--k", type=float, default=K)
    s = options.parse_args([])
    return lambda x: energy(s.k, x), [*both(attributes(s)), no_attribute(s, "k")]


@holder
def byte_array() -> World:
    b = bytearray([2, 3])
    return lambda x: np.sum(b[0] * x**2) + len(b) * x[0], [item(b, 0, 5), grown(b, 4)]


@holder
def array_in_object_in_dict_in_list() -> World:
    w = np.array([1.0, 2.0, 3.0])
    world = [{"net": SimpleNamespace(w=w)}]
    return lambda x: energy(world[0]["net"].w, x) + np.cosh(world[0]["net"].w) @ x, [
        contents(w, (3.0, -1.0, 0.0)),
        attribute(world[0]["net"], "w", np.array([5.0, 0.0, 1.0])),
        item(world[0], "net", SimpleNamespace(w=np.array([0.5, 1.5, 1.0]))),
        item(world, 0, {"net": SimpleNamespace(w=np.array([0.5, 1.5, -1.0]))}, "element rebound"),
    ]


@holder
def array_without_axes() -> World:
    s = SimpleNamespace(k=np.array(2.0))
    return lambda x: energy(s.k, x) + (x[0] if s.k > 2.5 else x[1]), [
        contents(s.k, 3.0),
        rebound(attributes(s), 5.0, s.k),
    ]


@holder
def numpy_scalar() -> World:
    s = SimpleNamespace(k=np.float64(2.0))
    return lambda x: energy(s.k, x) + (s.k.dtype == np.float64) * x[0], [
        rebound(attributes(s), np.float64(3.5), np.float64(2.0)),
        rebound(attributes(s), np.float32(2.0), np.float64(2.0), "another dtype"),
        rebound(attributes(s), np.float64(-0.0), np.float64(0.0), "sign of zero"),
        rebound(attributes(s), np.float64("nan"), np.float64(2.0), "nan"),
    ]


@holder
def complex_number() -> World:
    s = SimpleNamespace(k=1.0 + 2.0j)
    return lambda x: np.sum(s.k.imag * x**2) + np.copysign(1.0, s.k.real) * x[0], [
        rebound(attributes(s), 1.0 + 3.0j, 1.0 + 2.0j),
        rebound(attributes(s), complex(-0.0, 2.0), complex(0.0, 2.0), "sign of zero"),
    ]


@holder
def text_chooses() -> World:
    s = SimpleNamespace(norm="l2")
    return lambda x: np.sum(x**2) if s.norm == "l2" else np.sum(3.0 * x), [attribute(s, "norm", "l1")]


@holder
def flag_chooses() -> World:
    s = SimpleNamespace(training=True)
    return lambda x: np.sum(x**2) if s.training else np.sum(3.0 * x), [
        attribute(s, "training", False),
        rebound(attributes(s, "training"), 0, True, "another type"),
    ]


@holder
def loop_count() -> World:
    s = SimpleNamespace(n=2)

    def f(x: Any) -> Any:
        total = np.sum(x**2)
        for _ in range(s.n):
            total = total + x[0]
        return total

    return f, [attribute(s, "n", 5), attribute(s, "n", 0, "none")]


# objects of the standard library


@dataclasses.dataclass
class Spring:
    """A dataclass."""

    k: Any = K

    def energy(self, x: Any) -> Any:
        return energy(self.k, x)


@dataclasses.dataclass(frozen=True)
class Fixed:
    """A frozen one."""

    k: Any = K


class Point(NamedTuple):
    """A named tuple."""

    k: Any
    b: float


class Phase(enum.Enum):
    """An enum that chooses."""

    SOLID = 1.0
    LIQUID = 2.0


@holder
def data_class() -> World:
    s = Spring()
    return lambda x: s.energy(x), both(attributes(s))


@holder
def frozen_data_class_replaced() -> World:
    s = SimpleNamespace(spring=Fixed())
    return lambda x: energy(s.spring.k, x), both(lambda k: setattr(s, "spring", dataclasses.replace(s.spring, k=k)))


@holder
def named_tuple_replaced() -> World:
    s = SimpleNamespace(point=Point(K, 1.0))
    return lambda x: energy(s.point.k, x) + s.point[1] * x[0], both(
        lambda k: setattr(s, "point", s.point._replace(k=k))
    )


@holder
def enumeration() -> World:
    s = SimpleNamespace(phase=Phase.SOLID)
    return lambda x: np.sum(x**2) * s.phase.value + (x[0] if s.phase is Phase.SOLID else x[1]), [
        attribute(s, "phase", Phase.LIQUID)
    ]


@holder
def context_variable() -> World:
    v: contextvars.ContextVar[Any] = contextvars.ContextVar("k")
    v.set(K)
    return lambda x: energy(v.get(), x), both(v.set)


@holder
def environment() -> World:
    put = functools.partial(os.environ.__setitem__, "RETROGRAD_TEST_K")
    return lambda x: energy(float(os.environ["RETROGRAD_TEST_K"]), x), [
        rebound(put, "3.5", "2.0"),
        Way("removed", lambda: os.environ.pop("RETROGRAD_TEST_K"), lambda: put("2.0"), lambda: put("2.0")),
    ]


@holder
def weak_reference() -> World:
    s = Model()
    cell = [Model()]
    ref, other = weakref.ref(s), weakref.ref(cell[0])
    return lambda x: energy(ref().k, x) + (x[0] if other() is None else x[1]) * (s is not None), [  # type: ignore[union-attr]
        *numbers(attributes(s)),
        Way("referent dies", cell.clear, nothing),
    ]


@holder
def iterator() -> World:
    it = itertools.count(1)
    return lambda x: np.sum(next(it) * x**2), [Way("advanced", lambda: next(it), nothing)]


@holder
def generator_object() -> World:
    it = (float(i) for i in range(100))
    return lambda x: np.sum(next(it) * x**2), [Way("advanced", lambda: next(it), nothing)]


@holder
def random_number() -> World:
    random.seed(7)
    return lambda x: np.sum(random.random() * x**2), [Way("seeded", lambda: random.seed(3), lambda: random.seed(4))]


@holder
def random_generator_of_object() -> World:
    s = SimpleNamespace(rng=random.Random(7))
    return lambda x: np.sum(s.rng.random() * x**2), [Way("seeded", lambda: s.rng.seed(3), lambda: s.rng.seed(4))]


@holder
def numpy_generator_of_object() -> World:
    s = SimpleNamespace(rng=np.random.default_rng(7))
    return lambda x: np.sum(s.rng.normal(size=3) * x**2), [
        Way("drawn from", lambda: s.rng.normal(), nothing),
        attribute(s, "rng", np.random.default_rng(3)),
    ]


# functions


@holder
def partial() -> World:
    s = SimpleNamespace(k=K)
    return functools.partial(lambda s, x: energy(s.k, x), s), both(attributes(s))


@holder
def partial_of_captured() -> World:
    h = functools.partial(term, k=K)
    return lambda x: h(x), both(lambda k: h.keywords.update(k=k))


@holder
def partial_by_name() -> World:
    p = program("import functools\nh = functools.partial(lambda k: k, k=K)\ndef f(x):\n    return energy(h(), x)")
    return p["f"], [
        *both(lambda k: p["h"].keywords.update(k=k)),
        rebound(items(p, "h"), functools.partial(lambda k: k, 5.0), p["h"], "partial replaced"),
    ]


@holder
def partial_method() -> World:
    class Net:
        b: Any = K

        def layer(self, b: float, x: Any) -> Any:
            return energy(self.b, x) + b * x[0]

        first = functools.partialmethod(layer, 1.5)

    s = Net()
    return lambda x: s.first(x), both(attributes(s, "b"))


@holder
def function_in_dict() -> World:
    p = program("def linear(x):\n    return energy(K, x)")
    d = {"f": p["linear"]}
    return lambda x: d["f"](x), [*both(items(p, "K")), item(d, "f", lambda x: np.sum(x**2))]


@holder
def functions_in_list() -> World:
    s = SimpleNamespace(k=K)
    steps: list[Any] = [lambda x: s.k * x, lambda x: x + s.k]

    def f(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return np.sum(x**2)

    return f, [*both(attributes(s)), grown(steps, lambda x: -x), shrunk(steps), item(steps, 0, lambda x: 0.5 * x)]


@holder
def lambda_in_attribute() -> World:
    s = SimpleNamespace(k=K)
    s.f = lambda x: energy(s.k, x)
    return lambda x: s.f(x), [*everything(attributes(s)), attribute(s, "f", lambda x: np.sum(x**2))]


@holder
def layers_of_a_net() -> World:
    w = np.array([0.5, -1.0, 2.0])
    net = SimpleNamespace(layers=[SimpleNamespace(w=w, b=0.5), SimpleNamespace(w=w + 1.0, b=K)])

    def f(x: Any) -> Any:
        for layer in net.layers:
            x = layer.w * x + layer.b
        return np.sum(x**2) + sum(np.sum(layer.w**2) for layer in net.layers) * x[0]

    return f, [
        *everything(attributes(net.layers[1], "b")),
        contents(w, (1.0, 0.0, -2.0)),
        grown(net.layers, SimpleNamespace(w=w, b=1.0)),
        shrunk(net.layers),
        Way("reversed", net.layers.reverse, net.layers.reverse),
        item(net.layers, 0, SimpleNamespace(w=3.0 * w, b=0.0)),
    ]


@holder
def decorator_closure() -> World:
    s = SimpleNamespace(k=K)

    def scaled(f: Any) -> Any:
        @functools.wraps(f)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return energy(s.k, args[0]) + f(*args, **kwargs)

        return inner

    return scaled(lambda x: np.sum(s.k * x)), both(attributes(s))


@holder
def context_manager() -> World:
    s = SimpleNamespace(k=K)

    @contextlib.contextmanager
    def scope() -> Any:
        yield s.k

    def f(x: Any) -> Any:
        with scope() as k, contextlib.ExitStack() as stack:
            return energy(k, x) + np.sum(stack.enter_context(scope()) * x)

    return f, both(attributes(s))


@holder
def map_() -> World:
    s = SimpleNamespace(k=K)
    return lambda x: sum(map(lambda v: energy(s.k, v), [x, 2 * x])), both(attributes(s))  # noqa: C417


@holder
def filter_() -> World:
    s = SimpleNamespace(level=1.5)
    terms = [1.0, K]
    return lambda x: sum(energy(k, x) for k in filter(lambda k: k > s.level, terms)), [
        attribute(s, "level", 0.5),
        grown(terms, 4.0),
    ]


@holder
def sorted_by_key() -> World:
    s = SimpleNamespace(sign=1.0)
    terms = [K, 1.0, 3.0, 4.0]
    return lambda x: energy(sorted(terms, key=lambda k: s.sign * k)[1], x), [
        attribute(s, "sign", -1.0),
        grown(terms, 0.5),
        grown(terms, 2.5),
    ]


@holder
def reduce_() -> World:
    s = SimpleNamespace(k=K)
    return lambda x: functools.reduce(lambda a, b: a + s.k * b, [x[0], x[1], x[2]]), [rebound(attributes(s))]


@holder
def generator_expression() -> World:
    s = SimpleNamespace(k=K)
    return lambda x: sum(energy(s.k, i * x) for i in range(3)), both(attributes(s))


@holder
def generator_function() -> World:
    s = SimpleNamespace(k=K)

    def inner() -> Any:
        got = yield s.k
        yield got * s.k

    def steps() -> Any:
        yield from inner()

    def f(x: Any) -> Any:
        g = steps()
        first = next(g)
        return energy(first, x) + g.send(2.0) * x[0]

    return f, [rebound(attributes(s))]


@holder
def single_dispatch() -> World:
    s = SimpleNamespace(k=K, spring=Spring())

    @functools.singledispatch
    def h(o: Any, x: Any) -> Any:
        return np.sum(x)

    @h.register
    def _(o: Spring, x: Any) -> Any:
        return energy(s.k, x) + o.k * x[0]

    return lambda x: h(s.spring, x), [*numbers(attributes(s)), attribute(s, "spring", Fixed(), "another class")]


@holder
def isinstance_dispatch() -> World:
    s = SimpleNamespace(o=Spring())
    return lambda x: np.sum(x**2) if isinstance(s.o, Spring) else np.sum(3.0 * x), [attribute(s, "o", Fixed())]


@holder
def exception_class_dispatch() -> World:
    s = SimpleNamespace(error=ValueError)

    def f(x: Any) -> Any:
        try:
            raise s.error("no")
        except ValueError:
            return np.sum(x**2)
        except KeyError:
            return np.sum(3.0 * x)

    return f, [attribute(s, "error", KeyError), attribute(s, "error", RuntimeError, "not caught")]


@holder
def match_statement() -> World:
    s = SimpleNamespace(o={"a": K, "b": 1.0})

    def f(x: Any) -> Any:
        match s.o:
            case {"a": float(k)} if k < 5:
                return energy(k, x)
            case {"a": k}:
                return 2.0 * np.sum(k * x)
            case Spring(k=k):
                return np.sum(k * x**3)
            case _:
                return x[0]

    return f, [
        *both(items(s.o, "a")),
        rebound(items(s.o, "a"), 9.0, K, "guard fails"),
        attribute(s, "o", Spring(4.0), "another class"),
        Way("key removed", lambda: s.o.pop("a"), lambda: s.o.update(a=K)),
    ]


@holder
def lru_cache_over_a_global() -> World:
    p = program(
        "import functools\n@functools.lru_cache\ndef table(n):\n    return K * n\n"
        "def f(x):\n    return energy(table(1), x)"
    )

    def cleared(k: float) -> None:
        p["table"].cache_clear()
        p["K"] = k

    return p["f"], [
        Way("cleared", lambda: cleared(5.0), lambda: cleared(K)),
        item(p, "K", 5.0, "global rebound behind the cache"),
    ]


CACHED = "import functools\n@functools.lru_cache\ndef table(n, m=1):\n    return K * n * m\n"
ASKED = {
    "positional": "table(1)",
    "keywords": "table(1, m=2)",
    "spread": "table(*(1,), **{'m': 2})",
    "partial": "functools.partial(table, m=2)(1)",
    "map": "sum(map(table, [1, 2]))",
    "key": "min([1, 2], key=table) * table(2)",
}


def refilled(asked: str) -> World:
    """A cache that others clear and ask again before the next call."""
    p = program(f"{CACHED}def f(x):\n    return energy({asked}, x)")

    def refill(k: float) -> None:
        p["table"].cache_clear()
        p["K"] = k
        for _ in range(3):
            p["f"](np.ones(3))

    return p["f"], [Way("cleared and filled", lambda: refill(5.0), lambda: refill(K))]


for _name, _asked in ASKED.items():
    HOLDERS[f"lru_cache_refilled_{_name}"] = functools.partial(refilled, _asked)


@holder
def lru_cache_of_methods() -> World:
    p = program(
        "import functools\nclass Model:\n    def __init__(self, k):\n        self.k = k\n"
        "    @functools.lru_cache\n    def table(self, n):\n        return self.k * n\n"
        "m = Model(K)\ndef f(x):\n    return energy(m.table(1), x)"
    )

    def refill(k: float) -> None:
        p["Model"].table.cache_clear()
        p["m"].k = k
        p["m"].table(1)

    return p["f"], [
        Way("cleared and filled", lambda: refill(5.0), lambda: refill(K)),
        item(p, "m", p["Model"](5.0), "another object"),
    ]


@holder
def lru_cache_of_arrays() -> World:
    p = program(
        "import functools\n@functools.lru_cache\ndef table(n):\n    return np.array([K, 3.0 * n]), [K]\n"
        "def f(x):\n    nodes, (k,) = table(1)\n    return energy(np.sum(nodes) * k, x)"
    )
    return p["f"], [
        Way("array written", lambda: p["table"](1)[0].__setitem__(0, 5.0), lambda: p["table"](1)[0].__setitem__(0, K)),
        Way("list written", lambda: p["table"](1)[1].__setitem__(0, 5.0), lambda: p["table"](1)[1].__setitem__(0, K)),
    ]


@holder
def memo_dict() -> World:
    p = program(
        "memo = {}\ndef table(n):\n    if n not in memo:\n        memo[n] = K * n\n    return memo[n]\n"
        "def f(x):\n    return energy(table(1), x)"
    )
    return p["f"], [
        Way("cleared", lambda: (p["memo"].clear(), p.update(K=5.0)), lambda: (p["memo"].clear(), p.update(K=K))),
        item(p, "K", 5.0, "global rebound behind the memo"),
        Way("entry replaced", lambda: p["memo"].update({1: 7.0}), p["memo"].clear),
    ]


@holder
def memo_dict_of_arrays() -> World:
    p = program(
        "memo = {}\ndef table(n):\n    if n not in memo:\n        memo[n] = np.array([K, 3.0 * n])\n"
        "    return memo[n]\ndef f(x):\n    return energy(np.sum(table(1)), x)"
    )
    return p["f"], [Way("array written", lambda: p["table"](1).__setitem__(0, 5.0), p["memo"].clear)]


@holder
def eval_() -> World:
    s = SimpleNamespace(k=K, text="energy(s.k, x)")
    return lambda x: eval(s.text, {"energy": energy, "s": s, "x": x, "np": np}), [
        *both(attributes(s)),
        attribute(s, "text", "s.k * np.sum(x)"),
    ]


@holder
def exec_() -> World:
    s = SimpleNamespace(k=K)

    def f(x: Any) -> Any:
        scope = {"energy": energy, "s": s, "x": x}
        exec("out = energy(s.k, x)", scope)
        return scope["out"]

    return f, both(attributes(s))


@holder
def log_that_grows() -> World:
    log: list[float] = []

    def f(x: Any) -> Any:
        log.append(1.0)
        return len(log) * np.sum(x**2)

    return f, [grown(log, 1.0)]


# modules


@holder
def module_attribute() -> World:
    (physics,) = fresh("physics")
    return lambda x: energy(physics.G, x), [*everything(attributes(physics, "G")), no_attribute(physics, "G")]


@holder
def function_of_another_module() -> World:
    physics, rig = fresh("physics", "rig")
    return rig.energy, [*everything(attributes(physics, "G")), attribute(rig, "force", lambda x: x[0])]


@holder
def function_imported_into_closure() -> World:
    (physics,) = fresh("physics")
    force = physics.force
    return lambda x: force(x), both(attributes(physics, "G"))


@holder
def two_modules_deep() -> World:
    physics, rig, engine = fresh("physics", "rig", "engine")
    return engine.run, [*both(attributes(physics, "G")), attribute(rig, "energy", lambda x: x[1])]


@holder
def module_by_import_statement() -> World:
    fresh("physics")
    p = program("def f(x):\n    import physics\n    return physics.force(x)")
    return p["f"], numbers(lambda k: setattr(sys.modules["physics"], "G", k))


@holder
def module_made_at_run_time() -> World:
    m = types.ModuleType("planets")
    exec(compiled("import numpy as np\nG = 2.0\ndef force(x):\n    return np.sum(G * x**2)", "<planets>"), vars(m))
    return lambda x: m.force(x), [  # type: ignore[attr-defined]
        rebound(attributes(m, "G")),
        *arrays(attributes(m, "G")),
        attribute(m, "force", lambda x: x[0]),
    ]


@holder
def module_of_the_standard_library() -> World:
    string = importlib.import_module("string")
    return lambda x: len(string.digits) * np.sum(x**2), [rebound(attributes(string, "digits"), "0123", "0123456789")]


# objects handed on


def passed(f: Callable[..., Any], o: Any) -> Callable[[Any], Any]:
    """A function of x alone whose argument ``o`` is passed on."""
    return lambda x: f(o, x)


@holder
def object_handed_on() -> World:
    s = Model()
    return passed(lambda m, x: m.energy(x), s), both(attributes(s))


@holder
def function_handed_on() -> World:
    s = SimpleNamespace(k=K)
    return passed(lambda h, x: h(x), lambda x: energy(s.k, x)), both(attributes(s))
