"""An object that a function makes and returns is a new one at each call, and one from outside stays the same one."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import io
import itertools
import math
import operator
import random
import threading
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats

import retrograd as rg
from retrograd.tracer.tree import flatten

CALLS = 4  # enough for an UnwatchedWarning


class Own:
    """A class of the user's."""

    def method(self) -> int:
        return 1


class Pair(typing.NamedTuple):
    inner: Any


@dataclasses.dataclass
class Record:
    inner: Any


class Colour(enum.Enum):
    RED = 1


def counting() -> Callable[[], int]:
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


def appended(x: int, to: Any) -> Any:
    to.append(x)
    return to


def taken(x: Any) -> Any:
    return [*x]


MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {  # a maker, and what a use finds and changes
    "Counter": (collections.Counter, lambda c: [c["calls"], c.update(calls=1)]),
    "set": (set, lambda s: [len(s), s.add(1)]),
    "set in a list": (lambda: [set()], lambda s: [len(s[0]), s[0].add(1)]),
    "set in a named tuple": (lambda: Pair(set()), lambda s: [len(s.inner), s.inner.add(1)]),
    "bytearray": (bytearray, lambda b: [len(b), b.append(1)]),
    "StringIO": (lambda: io.StringIO("text"), lambda s: s.read()),
    "SimpleNamespace": (types.SimpleNamespace, lambda s: [len(vars(s)), setattr(s, "a", 1)]),
    "object of a class": (Own, lambda s: [len(vars(s)), setattr(s, "a", 1)]),
    "its method": (lambda: Own().method, lambda m: [len(vars(m.__self__)), setattr(m.__self__, "a", 1)]),
    "random": (lambda: random.Random(1), lambda r: r.random()),
    "generator of NumPy's": (lambda: np.random.default_rng(1), lambda r: r.normal()),
    "generator": (lambda: (k for k in range(3)), taken),
    "zip": (lambda: zip([1], [2], strict=True), taken),
    "map": (lambda: map(abs, [-1]), taken),
    "iter": (lambda: iter([1, 2]), taken),
    "count": (itertools.count, next),
    "closure": (counting, lambda f: f()),
    "default": (lambda: lambda to=[]: appended(1, to), lambda f: len(f())),
    "partial": (lambda: functools.partial(appended, to=[]), lambda f: len(f(1))),
    "method of a list": (lambda: [1].pop, lambda pop: pop()),
    "dtype with names": (lambda: np.dtype([("a", float)]), lambda d: [d.names, setattr(d, "names", ("b",))]),
    "dtype with metadata": (
        lambda: np.dtype(float, metadata={"a": []}),
        lambda d: [len(d.metadata["a"]), d.metadata["a"].append(1)],
    ),
}
FOUND: dict[str, Any] = {  # from outside: plain Python returns the same one at each call
    "set": set(),
    "object": Own(),
    "its method": Own().method,
    "random": random.Random(1),
    "generator of NumPy's": np.random.default_rng(1),
    "iterator": iter([1]),
    "closure": counting(),
    "cache": functools.lru_cache(counting),
    "function": counting,
    "itemgetter": operator.itemgetter(1),
    "sentinel": object(),
    "class": type("Local", (), {}),
    "dtype with names": np.dtype([("a", float)]),
}
CONSTANT: dict[str, Callable[[], Any]] = {
    "text": lambda: "text",
    "bytes": lambda: b"text",
    "enum": lambda: Colour.RED,
    "class": lambda: Own,
    "module": lambda: np,
    "dtype": lambda: np.dtype(np.float32),
    "decimal": lambda: decimal.Decimal(1),
    "timedelta": lambda: dt.timedelta(1),
    "frozenset": lambda: frozenset({1, ("a", 2)}),
    "range": lambda: range(3),
    "annotation": lambda: typing.Optional[int],  # noqa: UP045 - the object is meant
    "function of Python's": lambda: math.sin,
    "function of NumPy's": lambda: np.linalg.norm,
    "ufunc": lambda: np.sin,
    "lambda": lambda: lambda a=1: a,
    "partial": lambda: functools.partial(counting),
    "huge number": lambda: 1 << 100,
    "method of a class in C": lambda: str.upper,
    "method of NumPy's array": lambda: np.ndarray.sum,
    "class method of a class in C": lambda: vars(dict)["fromkeys"],
    "operator of a class in C": lambda: int.__add__,
    "bound operator": lambda: "text".__add__,
    "property of a class in C": lambda: np.ndarray.T,
    "limits of a dtype": lambda: np.finfo(float),
    "object of NumPy's modules": lambda: np.s_,
    "object of SciPy's modules": lambda: scipy.stats.norm,
}
TRANSFORMS: dict[str, tuple[Callable[[Callable[..., Any]], Any], Callable[[Any], Any]]] = {  # and the auxiliary result
    "jit": (rg.jit, lambda r: r[1]),
    "value_and_grad": (lambda f: rg.value_and_grad(f, has_aux=True), lambda r: r[0][1]),
    "grad": (lambda f: rg.grad(f, has_aux=True), lambda r: r[1]),
    "vmap": (rg.vmap, lambda r: r[1]),
    "jacobian": (lambda f: rg.jacobian(f, has_aux=True), lambda r: r[1]),
    "checkpoint": (lambda f: rg.jit(rg.checkpoint(f)), lambda r: r[1]),
    "jit in jit": (lambda f: rg.jit(rg.jit(f)), lambda r: r[1]),
    "branch": (lambda f: rg.jit(lambda x: rg.cond(np.sum(x) > 0, f, f, x)), lambda r: r[1]),
}


def beside(make: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda x: (np.sum(x * x), make())


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
@pytest.mark.parametrize("name", MADE)
def test_an_object_that_the_function_makes_is_new_at_each_call(name: str) -> None:
    make, use = MADE[name]
    f = rg.jit(beside(make))
    expected = use(make())
    assert [use(f(np.ones(2))[1]) for _ in range(CALLS)] == [expected] * CALLS


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
def test_a_sentinel_that_the_function_makes_is_another_one_at_each_call() -> None:
    f = rg.jit(beside(object))
    found = [f(np.ones(2))[1] for _ in range(CALLS)]
    assert len(set(map(id, found))) == CALLS


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_it_is_new_under_each_transform(transform: str) -> None:
    over, auxiliary = TRANSFORMS[transform]
    f = over(beside(collections.Counter))
    counters = [auxiliary(f(np.ones(2))) for _ in range(CALLS)]
    assert len(set(map(id, counters))) == CALLS


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
def test_a_generator_function_gives_its_values_at_each_call() -> None:
    @rg.jit
    def steps(x: float) -> Iterator[int]:
        yield from range(3)

    assert [list(steps(1.0)) for _ in range(CALLS)] == [[0, 1, 2]] * CALLS


def test_what_an_inner_function_makes_does_not_keep_the_outer_one_from_being_compiled() -> None:
    inner = rg.jit(beside(collections.Counter))

    @rg.jit
    def outer(x: Any) -> Any:
        first = inner(x)[1]
        first["a"] += 5
        return np.sum(x) * (1 + inner(x)[1]["a"])

    assert [outer(np.ones(2)) for _ in range(CALLS)] == [2.0] * CALLS
    assert outer.cache_info().misses == 1


@pytest.mark.parametrize("name", FOUND)
def test_an_object_from_outside_is_the_same_one_and_the_function_is_compiled(name: str) -> None:
    kept = FOUND[name]
    f = rg.jit(beside(lambda: kept))
    found = [f(np.ones(2))[1] for _ in range(CALLS)]
    assert all(x is kept or x == kept for x in found)
    assert f.cache_info().misses == 1


LEAVES: dict[str, Callable[[], Any]] = {  # objects in containers from outside
    "set": lambda: {1, 2},
    "Counter": collections.Counter,
    "lock": threading.Lock,
    "object": Own,
    "closure": counting,
    "iterator": lambda: iter([1]),
}
HOLDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # containers of one, and what they hold
    "tuple": (lambda x: (x, "text"), lambda c: c[0]),
    "list": (lambda x: [x], lambda c: c[0]),
    "dict": (lambda x: {"a": x}, lambda c: c["a"]),
    "ordered dict": (lambda x: collections.OrderedDict(a=x), lambda c: c["a"]),
    "deque": (lambda x: collections.deque([x]), lambda c: c[0]),
    "named tuple": (Pair, lambda c: c.inner),
    "dataclass": (Record, lambda c: c.inner),
    "dict in a list": (lambda x: [{"a": (x,)}], lambda c: c[0]["a"][0]),
}
WAYS: dict[str, Callable[[Any], Any]] = {  # how a function returns a container from outside
    "itself": lambda c: c,
    "in a list": lambda c: [c],
    "in a dataclass": Record,
}


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("holder", HOLDS)
def test_what_a_container_from_outside_holds_is_from_outside(holder: str, leaf: str) -> None:
    hold, held = HOLDS[holder]
    kept = hold(LEAVES[leaf]())
    f = rg.jit(beside(lambda: kept))
    assert all(held(f(np.ones(2))[1]) is held(kept) for _ in range(CALLS))
    assert f.cache_info().misses == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_it_is_from_outside_under_each_transform(transform: str, way: str) -> None:
    over, auxiliary = TRANSFORMS[transform]
    own = types.SimpleNamespace(state=({1, 2}, "meta"))
    f = over(beside(lambda: WAYS[way](own.state)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [flatten(auxiliary(f(np.ones(2))))[0] for _ in range(CALLS)]
    assert all(leaves[0] is own.state[0] for leaves in found)


@pytest.mark.parametrize("way", WAYS)
def test_what_an_attribute_of_an_argument_holds_is_from_outside(way: str) -> None:
    own, state = Own(), ({1, 2}, "meta")
    vars(own)["state"] = state
    f = rg.jit(lambda x, of: (np.sum(x), WAYS[way](of.state)))
    found = [flatten(f(np.ones(2), own))[0] for _ in range(CALLS)]
    assert all(leaves[1] is state[0] for leaves in found)
    assert f.cache_info().misses == 1


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {  # a container, and a change of what it holds
    "list appended": (lambda: [1, "a"], lambda c: c.append(5)),
    "list assigned": (lambda: ["a", 2], lambda c: operator.setitem(c, 0, "b")),
    "dict": (lambda: {"a": 1}, lambda c: c.update(b=2)),
    "dict in a tuple": (lambda: ({"a": "x"},), lambda c: c[0].update(a="y")),
    "deque": (lambda: collections.deque([1]), lambda c: c.append(2)),
    "dataclass": (lambda: Record("a"), lambda c: setattr(c, "inner", "b")),
    "array in a list": (lambda: [np.ones(2)], lambda c: operator.setitem(c[0], 0, 5.0)),
    "another set": (lambda: [{1}], lambda c: operator.setitem(c, 0, {2})),
    "the set": (lambda: [{1}], lambda c: c[0].add(2)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_container_from_outside_is_returned_as_it_is_now(name: str, way: str) -> None:
    make, change = CHANGES[name]
    kept = make()
    f = rg.jit(beside(lambda: WAYS[way](kept)))
    for _ in range(2):
        assert repr(f(np.ones(2))[1]) == repr(WAYS[way](kept))
    change(kept)
    for _ in range(2):
        assert repr(f(np.ones(2))[1]) == repr(WAYS[way](kept))
    assert f.cache_info().misses <= 2


@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
@pytest.mark.parametrize("holder", HOLDS)
def test_what_a_container_that_the_function_makes_holds_is_new(holder: str) -> None:
    hold, held = HOLDS[holder]
    f = rg.jit(beside(lambda: hold({1, 2})))
    found = [held(f(np.ones(2))[1]) for _ in range(CALLS)]
    assert len(set(map(id, found))) == CALLS


@pytest.mark.parametrize("name", CONSTANT)
def test_a_constant_is_compiled(name: str) -> None:
    f = rg.jit(beside(CONSTANT[name]))
    expected = CONSTANT[name]()
    for _ in range(CALLS):
        found = f(np.ones(2))[1]
        assert type(found) is type(expected)
        assert found is expected or callable(expected) or found == expected
    assert f.cache_info().misses == 1


@pytest.mark.parametrize("name", ["function of Python's", "function of NumPy's", "ufunc"])
def test_a_function_that_means_another_one_in_traced_code_is_returned_as_itself(name: str) -> None:
    assert rg.jit(beside(CONSTANT[name]))(np.ones(2))[1] is CONSTANT[name]()


def test_a_generator_is_returned_as_itself_where_it_stands_in_the_stream() -> None:
    generator, plain = np.random.default_rng(3), np.random.default_rng(3)
    f = rg.jit(lambda x: (x * generator.normal(), generator))
    for _ in range(2):
        value, found = f(1.0)
        assert value == plain.normal()
        assert found is generator
        assert found.normal() == plain.normal()


def traced_values(x: Any) -> Iterator[Any]:
    for k in range(3):
        yield x * k


HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {  # of traced values: a maker, and a use
    "generator": (traced_values, taken),
    "map": (lambda x: map(np.sin, [x]), taken),
    "object of a class": (lambda x: types.SimpleNamespace(a=x), lambda s: s.a + 1),
    "set": (lambda x: {x}, lambda s: [e + 1 for e in s]),
    "closure": (lambda x: lambda y: x + y, lambda f: f(1.0)),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_traced_value_in_such_an_object_is_an_error_where_it_is_used(name: str) -> None:
    make, use = HOLDERS[name]
    held = rg.jit(make)(2.0)
    with pytest.raises(rg.errors.LeakedTracerError, match="list, tuple, dict or dataclass"):
        use(held)


def test_the_warning_names_the_class_and_the_place() -> None:
    f = rg.jit(beside(collections.Counter))
    found = [f(np.ones(2)) for _ in range(2)]
    with pytest.warns(rg.errors.UnwatchedWarning, match=r"class Counter that the function makes.*_results\.py"):
        found.append(f(np.ones(2)))


def test_a_constant_or_an_object_from_outside_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = Own()
        f = rg.jit(lambda x: (x, kept, [Colour.RED, None, "a"], {"a": np.sin}))
        for _ in range(CALLS):
            f(1.0)


SCALARS = [np.timedelta64(1, "s"), np.datetime64("2020"), np.longdouble(2), np.clongdouble(2j), np.str_("a")]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda x: type(x).__name__)
def test_a_scalar_that_is_not_computed_with_is_returned_as_it_is(scalar: Any) -> None:
    held = [scalar]
    f = rg.jit(lambda x: (x + x, held[0]))
    assert f(1.0)[1] is scalar
    assert f(2.0)[1] is scalar
    held[0] = type(scalar)(scalar)
    assert f(2.0) == (4.0, scalar)
    assert rg.grad(lambda x: (x * x, held[0]), has_aux=True)(3.0) == (6.0, scalar)


def test_such_a_function_is_not_saved(tmp_path: Any) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="makes and returns"):
        rg.jit(beside(set)).save(tmp_path / "f.rg", np.ones(2))
