"""Keys of dicts and elements of sets: those that change, have another order, lie, or are made anew."""

from __future__ import annotations

import enum
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
