"""Keys of dicts and elements of sets: those that change, have another order, lie, or are made anew."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import retrograd as rg


class Key:
    """Equal to others of its name, whatever else it holds."""

    def __init__(self, name: str, w: float) -> None:
        self.name, self.w = name, w

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Meta(type):
    """Classes that say that they equal all others."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 0


class One(metaclass=Meta):
    v = 1.0


class Two(metaclass=Meta):
    v = 2.0


class Liar(enum.Enum):
    """Members that equal each other."""

    P = 1
    Q = 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Liar)

    def __hash__(self) -> int:
        return 0


class Kind(enum.Enum):
    R = 1


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: Kind = Kind.R
    place: Any = (0, 1.0)


class Spelling(enum.StrEnum):
    A = "a"


class Name(str):
    """A user's string."""

    __slots__ = ()


def weighed(x: Any, d: Any) -> Any:
    for key in d:
        x = x * key.w
    return x


def test_a_key_that_changes_is_not_met_by_an_equal_new_one() -> None:
    g, a = rg.jit(weighed), Key("a", 2.0)
    for key, expected in (
        (a, 2.0),
        (a, 3.0),
        (Key("a", 2.0), 2.0),
        (a, 3.0),
        (Key("a", 2.0), 2.0),
        (Key("a", 4.0), 4.0),
    ):
        a.w = expected if key is a else a.w
        assert g(1.0, {key: 0.0}) == expected


@pytest.mark.parametrize("first", [[0, 8], [8, 0]])
@pytest.mark.parametrize("place", [lambda s: s, lambda s: (s, 1), lambda s: {s: 1.0}], ids=["itself", "tuple", "key"])
def test_equal_sets_in_another_order(first: list[int], place: Any) -> None:
    def f(x: Any, s: Any) -> Any:
        for k in s if isinstance(s, frozenset) else next(iter(s)):
            x = x * k + 1
        return x

    g = rg.jit(f)
    for order in (first, first[::-1], first):
        s = place(frozenset(order))
        assert g(1.0, s) == f(1.0, s)


@pytest.mark.parametrize(
    ("read", "one", "other"),
    [
        (lambda c: c.v, One, Two),
        (lambda c: c.value, Liar.P, Liar.Q),
        (lambda d: float(d.isalignedstruct), np.dtype("f8,f8", align=True), np.dtype("f8,f8")),
    ],
    ids=["classes", "members", "dtypes"],
)
@pytest.mark.parametrize("as_key", [False, True])
def test_values_that_say_they_are_equal(read: Any, one: Any, other: Any, as_key: bool) -> None:
    g = rg.jit(lambda x, c: x * read(next(iter(c)) if as_key else c))
    for value in (one, other, one, other):
        assert g(2.0, {value: 0.0} if as_key else value) == 2.0 * read(value)


def test_a_generator_is_a_key_as_it_is() -> None:
    def f(x: Any, d: Any) -> Any:
        for k in d:
            x = x * d[k]
        return x

    assert rg.jit(f)(2.0, {np.random.default_rng(0): 3.0}) == 6.0


@pytest.mark.parametrize(
    "made",
    [
        lambda: Parameter("lr"),
        lambda: Parameter("lr", place=Parameter("inner")),
        lambda: Parameter("lr", place=np.dtype("f4")),
        lambda: Parameter("lr", place=np.sin),
        lambda: Name("lr"),
        lambda: ("lr", frozenset({1.0})),
    ],
    ids=["members", "nested", "dtypes", "ufuncs", "strings", "tuples"],
)
def test_equal_keys_made_anew_share_what_was_compiled(made: Any) -> None:
    g = rg.jit(lambda x, d: x * 2.0 * sum(d.values()))
    for k in range(5):
        assert g(1.0, {made(): float(k)}) == 2.0 * k
    assert g.cache_info().misses == 1


class Incomparable:
    """Keys that are told by their identity, whatever they answer to ``==`` and ``repr``."""

    __hash__ = object.__hash__

    def __init__(self, w: float, answer: Callable[[], Any]) -> None:
        self.w, self.answer = w, answer

    def __eq__(self, other: object) -> Any:
        return self.answer()

    def __repr__(self) -> str:
        raise RuntimeError("no text")


def fail() -> Any:
    raise ValueError("cannot be compared")


class Same:
    """Keys whose hashes are the same, which must be compared."""

    def __init__(self, w: float) -> None:
        self.w = w

    def __eq__(self, other: object) -> bool:
        raise ValueError("cannot be compared")

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "made",
    [lambda w: Incomparable(w, lambda: np.array([True, False])), lambda w: Incomparable(w, fail), Same],
    ids=["arrays", "errors", "one hash"],
)
def test_keys_that_cannot_be_compared(made: Any) -> None:
    g = rg.jit(weighed)
    keys = [made(2.0), made(3.0)]
    for key in (*keys, *keys, made(4.0)):
        assert g(1.0, {key: 0.0}) == key.w


@dataclass(frozen=True, eq=False)
class Node:
    name: str
    parent: Any = None


@dataclass(frozen=True)
class Ring:
    """A key that holds itself, and does not ask for it in its hash."""

    name: str
    next: Any = None

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ring) and self.name == other.name


@pytest.mark.parametrize("kind", [Node, Ring])
@pytest.mark.parametrize("place", [lambda k: {k: 1.0}, lambda k: frozenset([k])], ids=["key", "element"])
def test_keys_that_hold_themselves(kind: Any, place: Any) -> None:
    a = kind("a")
    object.__setattr__(a, "next" if kind is Ring else "parent", kind("b", a))
    g = rg.jit(lambda x, o: x * len(next(iter(o)).name))
    assert [g(2.0, place(a)) for _ in range(3)] == [2.0] * 3


def nested(depth: int) -> Any:
    found: Any = "a"
    for _ in range(depth):
        found = (found,)
    return found


def test_keys_and_static_arguments_that_are_nested_deeply() -> None:
    g, h = rg.jit(lambda x, d: x * len(d)), rg.jit(lambda x, t: x * len(t), static_argnums=1)
    same = nested(600)
    for key in (same, same, nested(600)):
        assert g(2.0, {key: 0.0}) == h(2.0, key) == 2.0
    assert g.cache_info().misses == h.cache_info().misses == 1


def steps_of(call: Callable[[], Any]) -> int:
    """How many functions a call calls."""
    count = 0

    def noted(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(noted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@dataclass(frozen=True)
class Site:
    k: int


QUICK: dict[str, Any] = {
    "frozen dataclasses": {Site(k): 1.0 for k in range(100)},
    "objects": {Node(str(k)): 1.0 for k in range(100)},
    "members": dict.fromkeys(enum.Enum("Many", [f"m{k}" for k in range(100)]), 1.0),
    "texts in tuples": {("a", str(k)): 1.0 for k in range(100)},
    "pairs in a set": frozenset((k, float(k)) for k in range(100)),
}


@pytest.mark.parametrize("name", QUICK)
def test_the_same_keys_are_not_told_again(name: str) -> None:
    g, same = rg.jit(lambda x, o: x * len(o)), QUICK[name]
    assert g(2.0, same) == g(2.0, same) == 200.0
    assert steps_of(lambda: g(2.0, same)) < 50 + 2 * len(same)


def test_a_long_static_tuple_is_told_at_once() -> None:
    g, long = rg.jit(lambda x, o: x * len(o), static_argnums=1), (*range(1000),)
    assert g(2.0, long) == g(2.0, long) == 2000.0
    assert steps_of(lambda: g(2.0, long)) < 500


def test_a_frozen_dataclass_that_changes_is_told_again() -> None:
    g, a = rg.jit(lambda x, d: x * next(iter(d)).k), Site(2)
    for k in (2, 2, 3, 3, 2):
        object.__setattr__(a, "k", k)
        for key in (a, Site(2), Site(3)):
            assert g(1.0, {key: 0.0}) == key.k


def test_keys_of_a_captured_dict_are_told_by_their_types() -> None:
    table: dict[Any, float] = {}

    def f(x: Any) -> Any:
        for key in table:
            x = x * len(repr(key))
        return x

    g = rg.jit(f)
    for key in ("a", Spelling.A, np.str_("a"), Name("a"), "a", Spelling.A):
        table.clear()
        table[key] = 1.0
        assert g(2.0) == f(2.0)


@pytest.mark.parametrize("make", [lambda: float("nan"), lambda: (1, float("nan"))])
def test_a_static_nan_that_is_made_anew_compiles_once(make: Callable[[], Any]) -> None:
    f = rg.jit(lambda x, s: x, static_argnums=1)
    for _ in range(3):
        f(1.0, make())
    assert f.cache_info().misses == 1


def test_nans_of_both_signs_are_two_static_values() -> None:
    f = rg.jit(lambda x, s: x * np.copysign(1.0, s), static_argnums=1)
    assert [f(2.0, s) for s in (float("nan"), -float("nan"), float("nan"))] == [2.0, -2.0, 2.0]
