"""Values that Python calls equal, or that code in C reads unseen: no call gets the numbers of another one's values."""

from __future__ import annotations

import array
import collections
import ctypes
import functools
import io
import operator
import struct
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg

X, NAN = np.array([1.0, 2.0, 3.0]), float("nan")


def subclass(base: type, **members: Any) -> Any:
    """A class of the user's, whose objects have attributes of their own."""
    return type(f"My{base.__name__.title()}", (base,), {"__module__": __name__, **members})


def with_attribute(made: Any, w: Any) -> Any:
    made.w = w
    return made


Int, Text, Bytes, Complex = subclass(int), subclass(str), subclass(bytes), subclass(complex)
Day, Moment, Clock, Span = subclass(date), subclass(datetime), subclass(time), subclass(timedelta)
Price, Ratio, Fault, NumPyText = subclass(Decimal), subclass(Fraction), subclass(ValueError), subclass(np.str_)
Buffer, Numbers, Struct, Stream = (
    subclass(bytearray),
    subclass(array.array),
    subclass(struct.Struct),
    subclass(io.StringIO),
)
Partial, Path, Pair, Row = subclass(functools.partial), subclass(PurePosixPath), subclass(tuple), subclass(list)
Queue, Table, Bag = subclass(collections.deque), subclass(dict), subclass(frozenset)
Liar = subclass(
    int, __eq__=lambda a, b: True, __hash__=lambda a: 0, __repr__=lambda a: "liar", __reduce__=lambda a: (int, ())
)
Unhashable = subclass(str, __hash__=None)
Space = subclass(SimpleNamespace)
Color = IntEnum("Color", ["RED", "BLUE"])
Name = StrEnum("Name", ["A"])
Real = subclass(float)
UTC_A, UTC_B = (timezone(timedelta(0), name) for name in ("A", "BBB"))


class Point(ctypes.Structure):
    _fields_ = (("k", ctypes.c_int),)


def raw(numbers: Any) -> float:
    return float(sum(numbers))


# Two values, and what a program makes of one: a number that differs.
VALUES: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "int, added": (Int(1), Int(2), lambda v: v + 1),
    "int, converted": (Int(1), Int(2), float),
    "int, as an index": (Int(1), Int(2), lambda v: [5.0, 7.0, 9.0][v]),
    "int, its bits": (Int(1), Int(2), lambda v: v.bit_length() * 1.0),
    "int, its truth": (Int(0), Int(2), lambda v: 3.0 if v else 5.0),
    "int and its subclass": (1, Int(1), lambda v: 2.0 if type(v) is int else 3.0),
    "int and bool": (1, True, lambda v: 2.0 if v is True else 3.0),
    "an attribute of an int": (with_attribute(Int(1), 2.0), with_attribute(Int(1), 3.0), lambda v: v.w),
    "an int with an attribute": (with_attribute(Int(1), 2.0), with_attribute(Int(2), 2.0), lambda v: v.w * v),
    "an int that lies": (Liar(1), Liar(2), lambda v: int.__mul__(v, 3) * 1.0),
    "text, compared": (Text("a"), Text("b"), lambda v: 2.0 if v == "a" else 3.0),
    "text, by a method": (Text("a"), Text("b"), lambda v: 2.0 if v.upper() == "A" else 3.0),
    "text, formatted": (Text("a"), Text("b"), lambda v: 2.0 if f"{v}" == "a" else 3.0),
    "text, its length": (Text("a"), Text("bb"), lambda v: len(v) * 1.0),
    "text, sliced": (Text("ac"), Text("bc"), lambda v: 2.0 if v[:1] == "a" else 3.0),
    "text, as a key": (Text("a"), Text("b"), lambda v: {"a": 2.0, "b": 3.0}[v]),
    "text and its subclass": ("a", Text("a"), lambda v: 2.0 if type(v) is str else 3.0),
    "text without a hash": (Unhashable("a"), Unhashable("b"), lambda v: 2.0 if v.upper() == "A" else 3.0),
    "NumPy's text": (NumPyText("a"), NumPyText("b"), lambda v: 2.0 if v.upper() == "A" else 3.0),
    "bytes": (Bytes(b"a"), Bytes(b"b"), lambda v: v[0] * 1.0),
    "a buffer": (Buffer(b"a"), Buffer(b"b"), lambda v: v[0] * 1.0),
    "a buffer, decoded": (Buffer(b"a"), Buffer(b"b"), lambda v: 2.0 if v.decode() == "a" else 3.0),
    "an array": (Numbers("d", [1.0]), Numbers("d", [2.0]), lambda v: v[0]),
    "an array, summed": (Numbers("d", [1.0]), Numbers("d", [2.0]), sum),
    "a date": (Day(2000, 1, 1), Day(2001, 1, 1), lambda v: v.year * 1.0),
    "a date, by a method": (Day(2000, 1, 1), Day(2001, 1, 1), lambda v: v.toordinal() * 1.0),
    "a date, subtracted": (Day(2000, 1, 1), Day(2001, 1, 1), lambda v: (v - date(1999, 1, 1)).days * 1.0),
    "a date, compared": (Day(2000, 1, 1), Day(2002, 1, 1), lambda v: 2.0 if v < date(2001, 1, 1) else 3.0),
    "a moment twice a year": (Moment(2000, 1, 1), Moment(2000, 1, 1, fold=1), lambda v: 2.0 + v.fold),
    "moments in two zones": (
        datetime(2000, 1, 1, 12, tzinfo=UTC),
        datetime(2000, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))),
        lambda v: v.hour * 1.0,
    ),
    "zones of one offset": (
        timezone(timedelta(0), "A"),
        timezone(timedelta(0), "B"),
        lambda v: 2.0 if v.tzname(None) == "A" else 3.0,
    ),
    "a time": (Clock(1), Clock(2), lambda v: v.hour * 1.0),
    "a span": (Span(1), Span(2), lambda v: v.days * 1.0),
    "a span, divided": (Span(1), Span(2), lambda v: v / timedelta(1)),
    "a price": (Price(1), Price(2), float),
    "a price, added": (Price(1), Price(2), lambda v: float(v + 1)),
    "a price, its digits": (Price("1.0"), Price("1.00"), lambda v: len(str(v)) * 1.0),
    "decimals, their digits": (Decimal("1.0"), Decimal("1.00"), lambda v: len(str(v)) * 1.0),
    "a ratio": (Ratio(1, 2), Ratio(1, 3), float),
    "a ratio, multiplied": (Ratio(1, 2), Ratio(1, 3), lambda v: float(v * 2)),
    "a ratio, its parts": (Ratio(1, 2), Ratio(1, 3), lambda v: v.denominator * 1.0),
    "an exception": (Fault(1.0), Fault(2.0), lambda v: v.args[0]),
    "an exception, as text": (Fault("a"), Fault("bb"), lambda v: len(str(v)) * 1.0),
    "a structure": (Struct("d"), Struct("i"), lambda v: v.size * 1.0),
    "a stream": (Stream("a"), Stream("bb"), lambda v: len(v.getvalue()) * 1.0),
    "fields in C": (Point(1), Point(2), lambda v: v.k * 1.0),
    "a partial call": (Partial(max, 1.0), Partial(max, 2.0), lambda v: v(0.0)),
    "a path": (Path("a"), Path("bb"), lambda v: len(str(v)) * 1.0),
    "a path, joined": (Path("a"), Path("bb"), lambda v: len(str(v / "c")) * 1.0),
    "a tuple": (Pair([1.0]), Pair([2.0]), lambda v: v[0]),
    "an attribute of a tuple": (with_attribute(Pair([1.0]), 2.0), with_attribute(Pair([1.0]), 3.0), lambda v: v.w),
    "a list": (Row([1.0]), Row([2.0]), sum),
    "a queue": (Queue([1.0]), Queue([2.0]), lambda v: v[0]),
    "the length of a queue": (Queue([1.0], 2), Queue([1.0], 3), lambda v: v.maxlen * 1.0),
    "a table": (Table(a=1.0), Table(a=2.0), lambda v: v["a"]),
    "a set": (Bag([1]), Bag([2]), lambda v: sum(v) * 1.0),
    "a set, iterated": (Bag([1]), Bag([2]), lambda v: next(iter(v)) * 1.0),
    "a set, joined": (Bag([1]), Bag([1, 2]), lambda v: len(v | {7}) * 1.0),
    "a set, its numbers": (Bag([1]), Bag([True]), lambda v: 2.0 if type(next(iter(v))) is int else 3.0),
    "a name space": (Space(k=1.0), Space(k=2.0), lambda v: v.k),
    "members": (Color.RED, Color.BLUE, lambda v: v * 1.0),
    "a member and its number": (Color.RED, 1, lambda v: 2.0 if type(v) is int else 3.0),
    "zeros in sets": (frozenset([0.0]), frozenset([-0.0]), lambda v: np.copysign(1.0, next(iter(v)))),
    "numbers in sets": (frozenset([1]), frozenset([True]), lambda v: 2.0 if type(next(iter(v))) is int else 3.0),
    "numbers in tuples in sets": (
        frozenset([(1, "a")]),
        frozenset([(1.0, "a")]),
        lambda v: 2.0 if type(next(iter(v))[0]) is int else 3.0,
    ),
    "texts in sets": (
        frozenset([with_attribute(Text("a"), 2.0)]),
        frozenset([with_attribute(Text("a"), 3.0)]),
        lambda v: next(iter(v)).w,
    ),
    "the end of a range": (range(0, 3, 2), range(0, 4, 2), lambda v: v.stop * 1.0),
    "dtypes with notes": (
        np.dtype("f8", metadata={"k": 2.0}),
        np.dtype("f8", metadata={"k": 3.0}),
        lambda v: v.metadata["k"],
    ),
    "aligned dtypes": (
        np.dtype("u1,f8", align=True),
        np.dtype({"names": ["f0", "f1"], "formats": ["u1", "f8"], "offsets": [0, 8], "itemsize": 16}),
        lambda v: 2.0 + v.isalignedstruct,
    ),
    "moments in zones of one offset": (
        datetime(2000, 1, 1, tzinfo=UTC_A),
        datetime(2000, 1, 1, tzinfo=UTC_B),
        lambda v: len(v.tzname()) * 1.0,
    ),
    "times in zones of one offset": (time(1, tzinfo=UTC_A), time(1, tzinfo=UTC_B), lambda v: len(v.tzname()) * 1.0),
    "paths of Windows": (PureWindowsPath("A"), PureWindowsPath("a"), lambda v: 2.0 if str(v) == "A" else 3.0),
    "numbers of makers": (
        uuid.UUID(int=1, is_safe=uuid.SafeUUID.safe),
        uuid.UUID(int=1, is_safe=uuid.SafeUUID.unsafe),
        lambda v: 2.0 if v.is_safe is uuid.SafeUUID.safe else 3.0,
    ),
    "unions of types": (int | str, str | int, lambda v: 2.0 if v.__args__[0] is int else 3.0),
}
OF_KEYS: dict[str, tuple[Any, Any, Callable[[Any], Any]]] = {
    "zeros": (0.0, -0.0, lambda v: np.copysign(1.0, v)),
    "int and float": (1, 1.0, lambda v: 2.0 if type(v) is int else 3.0),
    "float and NumPy's": (1.0, np.float64(1.0), lambda v: 2.0 if type(v) is float else 3.0),
    "NumPy's zeros": (np.float64(0.0), np.float64(-0.0), lambda v: np.copysign(1.0, v)),
    "complex zeros": (0j, -0j, lambda v: np.copysign(1.0, v.real)),
    "zeros of the user's": (Real(0.0), Real(-0.0), lambda v: np.copysign(1.0, v)),
    "complex zeros of the user's": (Complex(0j), Complex(-0j), lambda v: np.copysign(1.0, v.real)),
    "a member and its text": (Name.A, "a", lambda v: len(repr(v)) * 1.0),
    "NumPy's text and its text": (np.str_("a"), "a", lambda v: len(repr(v)) * 1.0),
    "zeros in tuples": ((0.0, "a"), (-0.0, "a"), lambda v: np.copysign(1.0, v[0])),
    "nans in tuples": ((NAN, "a"), (-NAN, "a"), lambda v: np.copysign(1.0, v[0])),
    "nans in tuples of tuples": ((("a", (NAN,)),), (("a", (-NAN,)),), lambda v: np.copysign(1.0, v[0][1][0])),
    "nans in long tuples": ((("a", 1),) * 20 + (NAN,), (("a", 1),) * 20 + (-NAN,), lambda v: np.copysign(1.0, v[-1])),
    "complex nans in tuples": (
        (complex(0.0, NAN), "a"),
        (complex(0.0, -NAN), "a"),
        lambda v: np.copysign(1.0, v[0].imag),
    ),
    "nans": (NAN, -NAN, lambda v: np.copysign(1.0, v)),
    "ints in tuples": ((1, ("a", 1)), (1, ("a", True)), lambda v: 2.0 if v[1][1] is True else 3.0),
}
UNHASHED = (list, dict, collections.deque, bytearray, array.array, SimpleNamespace, ctypes.Structure, Unhashable)
KEYS = {name: case for name, case in {**VALUES, **OF_KEYS}.items() if not isinstance(case[0], UNHASHED)}


@dataclass
class Box:
    v: Any


class Holder:
    def __init__(self, v: Any) -> None:
        self.v = v


class Registered:
    def __init__(self, v: Any) -> None:
        self.v = v


rg.register_container(Registered, lambda r: ((r.v,), None), lambda _, parts: Registered(*parts))

# Where a value may stand in an argument: how to put it there, and how a program finds it.
PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "alone": (lambda v: v, lambda a: a),
    "in a list": (lambda v: [1.5, v], lambda a: a[1]),
    "in a dict": (lambda v: {"b": v, "a": 1.5}, lambda a: a["b"]),
    "in a queue": (lambda v: collections.deque([v]), lambda a: a[0]),
    "in a field": (Box, lambda a: a.v),
    "in an object": (Holder, lambda a: a.v),
    "in a container of the user's": (Registered, lambda a: a.v),
}
KEY_PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "of a dict": (lambda k: {k: 1.5}, lambda a: next(iter(a))),
    "of an ordered dict": (lambda k: collections.OrderedDict([(k, 1.5)]), lambda a: next(iter(a))),
    "of a default dict": (lambda k: collections.defaultdict(float, {k: 1.5}), lambda a: next(iter(a))),
    "of a dict in an object": (lambda k: Holder({k: 1.5}), lambda a: next(iter(a.v))),
    "of a dict in a list": (lambda k: [{k: 1.5}], lambda a: next(iter(a[0]))),
    "in a tuple": (lambda k: {(k, "z"): 1.5}, lambda a: next(iter(a))[0]),
    "in a set": (lambda k: frozenset([k]), lambda a: next(iter(a))),
}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {"jit": rg.jit, "grad": lambda f: rg.grad(lambda x, a: np.sum(f(x, a)))}


def check(build: Any, case: Any, place: Any, transform: str, turn: int) -> None:
    """Calls with both values, by turns: each gives what plain Python gives."""
    *values, measure = case
    put, find = place
    f = build(lambda x, a: x * measure(find(a)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (0, 1, 0, 1, 1, 0):
            v = values[k ^ turn]
            expected = measure(v) * (X if transform == "jit" else np.ones(3))
            np.testing.assert_array_equal(f(X, put(v)), expected)


@pytest.mark.whole
@pytest.mark.parametrize("name", VALUES)
def test_an_argument_is_told_by_its_value(name: str) -> None:
    check(rg.jit, VALUES[name], PLACES["alone"], "jit", 0)


@pytest.mark.whole
@pytest.mark.parametrize("name", KEYS)
def test_a_dict_is_told_by_its_keys(name: str) -> None:
    check(rg.jit, KEYS[name], KEY_PLACES["of a dict"], "jit", 0)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_told_apart(name: str, place: str, transform: str) -> None:
    for turn in (0, 1):
        check(TRANSFORMS[transform], VALUES[name], PLACES[place], transform, turn)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("place", KEY_PLACES)
@pytest.mark.parametrize("name", KEYS)
def test_keys_are_told_apart(name: str, place: str, transform: str) -> None:
    for turn in (0, 1):
        check(TRANSFORMS[transform], KEYS[name], KEY_PLACES[place], transform, turn)


ORDERED: dict[str, Callable[[dict[str, float]], Any]] = {
    "a dict": dict,
    "an ordered dict": collections.OrderedDict,
    "a default dict": lambda d: collections.defaultdict(float, d),
}
AROUND: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **PLACES,
    "in an ordered dict": (lambda d: collections.OrderedDict(k=d), lambda a: a["k"]),
    "in a default dict": (lambda d: collections.defaultdict(float, k=d), lambda a: a["k"]),
}


@pytest.mark.parametrize("place", AROUND)
@pytest.mark.parametrize("kind", ORDERED)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_order_of_keys_is_told(transform: str, kind: str, place: str) -> None:
    def measure(d: Any) -> Any:
        found = 0.0
        for v in d.values():
            found = 2.0 * found + v
        return found

    values = [ORDERED[kind](d) for d in ({"a": 1.0, "b": 10.0}, {"b": 10.0, "a": 1.0})]
    for turn in (0, 1):
        check(TRANSFORMS[transform], (*values, measure), AROUND[place], transform, turn)


class Tagged:
    """A container that holds a number besides its part."""

    def __init__(self, part: Any, tag: Any) -> None:
        self.part, self.tag = part, tag


rg.register_container(Tagged, lambda t: ((t.part,), t.tag), lambda tag, parts: Tagged(*parts, tag))


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1, True), (1, 1.0), ((0.0,), (-0.0,))])
def test_what_containers_hold_besides_their_parts_is_told(one: Any, other: Any) -> None:
    def f(t: Any) -> Any:
        number = t.tag[0] if isinstance(t.tag, tuple) else t.tag
        return t.part * (2.0 if type(number) is int else 3.0 if number is True else np.copysign(4.0, number))

    g = rg.jit(f)
    for tag in (one, other, one):
        np.testing.assert_array_equal(g(Tagged(X, tag)), f(Tagged(X, tag)))


@pytest.mark.parametrize("made", [lambda k: {"gain": k}, lambda k: [k], lambda k: {"all": [{"gain": k}, "a"]}])
def test_containers_may_hold_what_has_no_hash(made: Any) -> None:
    def f(t: Any) -> Any:
        found = t.tag
        while isinstance(found, (dict, list)):
            found = next(iter(found.values())) if isinstance(found, dict) else found[0]
        return t.part * found

    g = rg.jit(f)
    for k in (2.0, 3.0, 2.0):
        np.testing.assert_array_equal(g(Tagged(X, made(k))), k * X)
    assert g.cache_info().misses == 2


def test_what_a_container_holds_may_change_in_place() -> None:
    g, held = rg.jit(lambda t: t.part * t.tag["gain"]), {"gain": 2.0}
    for k in (2.0, 5.0, 2.0):
        held["gain"] = k
        for tag in (held, {"gain": 2.0}, {"gain": 5.0}):
            np.testing.assert_array_equal(g(Tagged(X, tag)), tag["gain"] * X)


def test_what_a_container_holds_by_an_array_in_its_data() -> None:
    """A table that holds another array now is not taken for one that holds the first."""
    g = rg.jit(lambda t: t.part * t.tag["w"])
    first, w = {"w": X}, X + 1.0
    for table in (first, {"w": X}):
        np.testing.assert_array_equal(g(Tagged(X, table)), X * X)
    first["w"] = w
    for table in (first, {"w": X}, {"w": w}):
        np.testing.assert_array_equal(g(Tagged(X, table)), X * table["w"])


def test_an_attribute_of_a_key_is_read_anew() -> None:
    key = Holder(2.0)
    f = rg.jit(lambda d: next(k.v * w for k, w in d.items()))
    for v in (2.0, 3.0, 2.0):
        key.v = v
        np.testing.assert_array_equal(f({key: X}), v * X)


@dataclass(frozen=True)
class Site:
    row: int
    at: float


def test_equal_values_share_what_was_compiled() -> None:
    """Objects that are made anew for each call, and hold the same, compile nothing."""
    calls: list[Callable[[], Any]] = [
        lambda: {Site(1, 0.5): X, (1, "a"): X},
        lambda: Int(3),
        lambda: with_attribute(Text("a"), 2.0),
        lambda: Holder(Moment(2000, 1, 1)),
        lambda: Price("1.0"),
        lambda: frozenset([1, ("a", 2.0)]),
    ]
    f = rg.jit(lambda a, x: x * (getattr(a, "w", 1.0) if not isinstance(a, Holder) else a.v.year))
    for make in calls:
        f(make(), X)
        before = f.cache_info().misses
        f(make(), X)
        f(make(), X)
        assert f.cache_info().misses == before


ONE, OTHER = Site(1, 0.5), Site(1, 0.5)
SHARED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], tuple[Any, Any]]]] = {
    "in a tuple": (lambda a, b: {(a, b): 1.0}, lambda d: next(iter(d))),
    "in tuples": (lambda a, b: {((a,), (b,)): 1.0}, lambda d: tuple([k for (k,) in next(iter(d))])),
    "in two dicts": (lambda a, b: [{a: 1.0}, {b: 1.0}], lambda d: tuple([k for each in d for k in each])),
}


@pytest.mark.parametrize("how", SHARED)
def test_whether_two_keys_are_one_object_is_told(how: str) -> None:
    put, keys = SHARED[how]
    f = rg.jit(lambda x, d: x * (2.0 if operator.is_(*keys(d)) else 3.0))
    for a, b in ((ONE, ONE), (ONE, OTHER), (OTHER, OTHER), (OTHER, ONE)):
        assert f(1.0, put(a, b)) == (2.0 if a is b else 3.0)
    assert f.cache_info().misses == 2


def test_many_values_of_a_class_of_the_users_are_kept() -> None:
    f = rg.jit(lambda n, x: x * n)
    for _ in range(2):
        for k in range(12):
            np.testing.assert_array_equal(f(Int(k), X), k * X)
    assert f.cache_info().misses == 12


def test_what_is_never_read_does_not_count() -> None:
    f = rg.jit(lambda n, x: 2.0 * x)
    for k in range(3):
        f(Stream(str(k)), X)
    assert f.cache_info().misses == 1


def test_static_numbers_of_the_users_classes() -> None:
    f = rg.jit(lambda n, x: x * n, static_argnums=0)
    lying = subclass(float, __repr__=lambda a: "liar")
    for n in (Liar(1), Liar(2), lying(1.0), lying(2.0), Color.RED, Color.BLUE, True, 1, 1.0, -0.0, 0.0):
        np.testing.assert_array_equal(f(n, X), X * n if not isinstance(n, Liar) else int.__mul__(n, 1) * X)
