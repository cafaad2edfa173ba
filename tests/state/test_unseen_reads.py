"""State that is read by operators, by code in C, or in vain: the next call sees what has changed.

Each program reads state that ``change`` alters. Its value is linear in ``x``, so that a difference is its derivative.
"""

# ruff: noqa: RUF005, UP031, B023, C417, PLC0415, PLW0603 - the programs are written as users write them

from __future__ import annotations

import array
import collections
import contextlib
import dataclasses
import itertools
import operator
import random
import sys
import types
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.state.holders import program

Program = tuple[Callable[[Any], Any], Callable[[], object]]
PROGRAMS: dict[str, Callable[[], Program]] = {}

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")


def reads(make: Callable[[], Program]) -> Callable[[], Program]:
    """Into the table, by its name."""
    PROGRAMS[make.__name__.strip("_")] = make
    return make


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_change_takes_effect(name: str) -> None:
    f, change = PROGRAMS[name]()
    value, slope, many = rg.jit(f), rg.grad(f), rg.vmap(rg.grad(f))

    def now() -> float:
        expected = float(f(2.0))
        for _ in range(2):
            assert float(value(2.0)) == expected
            assert float(slope(2.0)) == expected / 2.0
            np.testing.assert_array_equal(many(np.array([2.0, 3.0])), np.full(2, expected / 2.0))
        return expected

    before = now()
    change()
    assert now() != before


def bound(place: Any, name: str, value: Any) -> Callable[[], object]:
    return lambda: setattr(place, name, value)


# what is in indices


class Position:
    """What counts as an index."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __index__(self) -> int:
        return self.k


def indexed(index: Any, change: Callable[[], object]) -> Program:
    return lambda x: np.sum((np.arange(5.0) * x)[index]), change


@reads
def position_in_a_slice() -> Program:
    p = Position(1)
    return indexed(slice(p, None), bound(p, "k", 2))


@reads
def position_in_a_tuple() -> Program:
    p = Position(1)
    return indexed((p,), bound(p, "k", 2))


@reads
def position_in_a_slice_in_a_tuple() -> Program:
    p = Position(1)
    return indexed((slice(None, p), None), bound(p, "k", 3))


@reads
def array_in_a_slice() -> Program:
    a = np.array(1)
    return indexed(slice(a, None), lambda: np.copyto(a, 2))


# what is missing


@reads
def attribute_missing() -> Program:
    o = SimpleNamespace()

    def f(x: Any) -> Any:
        try:
            return o.k * x
        except AttributeError:
            return x

    return f, bound(o, "k", 5.0)


@reads
def attribute_missing_suppressed() -> Program:
    o = SimpleNamespace()

    def f(x: Any) -> Any:
        k = 1.0
        with contextlib.suppress(AttributeError):
            k = o.k
        return k * x

    return f, bound(o, "k", 5.0)


@reads
def key_missing() -> Program:
    d: dict[str, float] = {}

    def f(x: Any) -> Any:
        try:
            return d["k"] * x
        except KeyError:
            return x

    return f, lambda: d.update(k=5.0)


@reads
def key_missing_in_a_loop() -> Program:
    d = {0: 1.0, 2: 3.0}

    def f(x: Any) -> Any:
        total = 0.0 * x
        for key in range(4):
            try:
                total = total + d[key] * x
            except KeyError:
                continue
        return total

    return f, lambda: d.update({3: 5.0})


class Slotted:
    __slots__ = ("k",)


class Table:
    def __init__(self) -> None:
        self.rows: dict[str, float] = {}

    def __getitem__(self, key: str) -> float:
        return self.rows[key]


def lacking(make: Callable[[], Any], read: Callable[[Any], Any], change: Callable[[Any], object]) -> Any:
    def made() -> Program:
        held = make()

        def f(x: Any) -> Any:
            try:
                return read(held) * x
            except (LookupError, AttributeError):
                return x

        return f, lambda: change(held)

    return made


PROGRAMS |= {
    "slot missing": lacking(Slotted, lambda o: o.k, lambda o: setattr(o, "k", 5.0)),
    "class attribute missing": lacking(
        lambda: type("Made", (), {}), lambda cls: cls().k, lambda cls: setattr(cls, "k", 5.0)
    ),
    "method missing": lacking(
        type("Made", (), {}), lambda o: o.given(), lambda o: setattr(type(o), "given", lambda self: 5.0)
    ),
    "attribute of a module missing": lacking(
        lambda: types.ModuleType("of_the_user"), lambda module: module.k, lambda module: setattr(module, "k", 5.0)
    ),
    "key within missing": lacking(lambda: {"a": {}}, lambda d: d["a"]["b"], lambda d: d["a"].update(b=5.0)),
    "key missing for a getter": lacking(Table, lambda table: table["k"], lambda table: table.rows.update(k=5.0)),
    "index missing": lacking(list, lambda items: items[0], lambda items: items.append(5.0)),
    "index of a deque missing": lacking(collections.deque, lambda items: items[0], lambda items: items.append(5.0)),
}


class Rows:
    def __init__(self) -> None:
        self.held = [1.0, 2.0]

    def __getitem__(self, k: int) -> float:
        return self.held[k]


@reads
def rows_without_an_iterator() -> Program:
    rows: Any = Rows()

    def f(x: Any) -> Any:
        total = 0.0
        for row in rows:
            total = total + row
        return total * x

    return f, lambda: rows.held.append(5.0)


def asked_for(make: Callable[[], Any], place: Callable[[Any], Any]) -> Any:
    def made() -> Program:
        held = make()
        place_of_change = place(held)
        return (lambda x: getattr(held, "k", 1.0) * (2.0 if hasattr(held, "k") else 1.0) * x), bound(
            place_of_change, "k", 5.0
        )

    return made


PROGRAMS |= {
    "getattr of an object": asked_for(SimpleNamespace, lambda o: o),
    "getattr of a class": asked_for(lambda: type("Made", (), {}), lambda cls: cls),
    "getattr of its object": asked_for(type("Made", (), {}), type),
    "getattr of a module": asked_for(lambda: types.ModuleType("of_the_user"), lambda module: module),
}


@reads
def getattr_of_an_object_made_inside() -> Program:
    class Made:
        pass

    return (lambda x: getattr(Made(), "k", 1.0) * (2.0 if hasattr(Made(), "k") else 1.0) * x), bound(Made, "k", 5.0)


@reads
def global_missing() -> Program:
    p = program("def f(x):\n    try:\n        return GAIN * x\n    except NameError:\n        return x")
    return p["f"], lambda: p.update(GAIN=5.0)


@reads
def variable_of_an_enclosing_function_missing() -> Program:
    def f(x: Any) -> Any:
        try:
            return k * x
        except NameError:
            return x

    def change() -> None:
        nonlocal k
        k = 5.0

    k: float
    return f, change


@reads
def module_missing() -> Program:
    def f(x: Any) -> Any:
        try:
            import missing_until_now  # type: ignore[import-not-found]  # it is made at run time
        except ImportError:
            return x
        return missing_until_now.k * x

    def change() -> None:
        module: Any = types.ModuleType("missing_until_now")
        module.k = 5.0
        sys.modules["missing_until_now"] = module

    sys.modules.pop("missing_until_now", None)
    return f, change


@reads
def attribute_imported_by_name() -> Program:
    module: Any = types.ModuleType("imported_by_name")
    module.k = 3.0
    sys.modules["imported_by_name"] = module

    def f(x: Any) -> Any:
        from imported_by_name import k  # type: ignore[import-not-found]  # it is made at run time

        return k * x

    return f, bound(module, "k", 5.0)


# operators


def of_list(read: Callable[[list[Any]], float], change: Callable[[list[Any]], object]) -> Callable[[], Program]:
    def make() -> Program:
        held: list[Any] = [1.0, 2.0]
        return (lambda x: read(held) * x), (lambda: change(held))

    return make


def of_dict(read: Callable[[dict[str, Any]], float]) -> Callable[[], Program]:
    def make() -> Program:
        held = {"a": 1.0}
        return (lambda x: read(held) * x), (lambda: held.update(a=7.0))

    return make


def of_set(read: Callable[[set[int]], float]) -> Callable[[], Program]:
    def make() -> Program:
        held = {1, 2}
        return (lambda x: read(held) * x), (lambda: held.add(3))

    return make


def grow(items: Any) -> None:
    items.append(9.0)


PROGRAMS |= {
    "list + list": of_list(lambda held: sum(held + [1.0]), grow),
    "list from the right": of_list(lambda held: sum([1.0] + held), grow),
    "list * int": of_list(lambda held: sum(held * 2), grow),
    "list == list": of_list(lambda held: 2.0 if held == [1.0, 2.0] else 1.0, grow),
    "list != list": of_list(lambda held: 2.0 if held != [1.0, 2.0] else 1.0, grow),
    "list < list": of_list(lambda held: 2.0 if held < [1.0, 2.0, 0.0] else 1.0, grow),
    "list in a tuple": of_list(lambda held: 2.0 if (held,) == ([1.0, 2.0],) else 1.0, grow),
    "list in lists": of_list(lambda held: 2.0 if [1.0, 2.0] in [held, [3.0]] else 1.0, grow),
    "list in an f-string": of_list(lambda held: float(len(f"{held}")), grow),
    "list in an f-string, as repr": of_list(lambda held: float(len(f"{held!r:>3}")), grow),
    "list %": of_list(lambda held: float(len("%s" % held)), grow),
    "list % in a tuple": of_list(lambda held: float(len("%d %s" % (1, held))), grow),
    "dict | dict": of_dict(lambda held: (held | {"b": 1.0})["a"]),
    "dict == dict": of_dict(lambda held: 2.0 if held == {"a": 1.0} else 1.0),
    "dict %": of_dict(lambda held: float("%(a)s" % held)),
    "set & set": of_set(lambda held: float(len(held & {1, 2, 3}))),
    "set | set": of_set(lambda held: float(len(held | {1}))),
    "set - set": of_set(lambda held: float(len(held - {1}))),
    "set ^ set": of_set(lambda held: float(len(held ^ {1, 3}))),
    "set <= set": of_set(lambda held: 2.0 if held <= {1, 2} else 1.0),
}


@reads
def element_of_a_sum() -> Program:
    o = SimpleNamespace(k=2.0)
    held = [o]
    return (lambda x: (held + [])[0].k * x), bound(o, "k", 5.0)


@reads
def array_of_a_sum() -> Program:
    held = [np.array([1.0, 2.0])]
    return (lambda x: np.sum((held + [])[0]) * x), (lambda: held[0].__setitem__(0, 5.0))


@reads
def array_in_an_f_string() -> Program:
    held = {"a": np.ones(2)}
    return (lambda x: len(f"{held}") * x), lambda: held["a"].__setitem__(0, 123456.5)


@reads
def array_in_a_list_compared() -> Program:
    held = [np.ones(1)]
    return (lambda x: 2.0 * x if held == [1.0] else x), lambda: held[0].__setitem__(0, 5.0)


@reads
def dataclass_equal() -> Program:
    @dataclasses.dataclass
    class Held:
        items: list[float]

    held = Held([1.0])
    return (lambda x: 2.0 * x if held == Held([1.0]) else x), lambda: held.items.append(2.0)


@reads
def namespace_equal() -> Program:
    held = SimpleNamespace(k=1.0)
    return (lambda x: 2.0 * x if held == SimpleNamespace(k=1.0) else x), bound(held, "k", 5.0)


class OwnList(collections.UserList[float]):
    pass


class OwnMapping(collections.abc.Mapping[str, float]):
    def __init__(self, **held: float) -> None:
        self.held = held

    def __getitem__(self, key: str) -> float:
        return self.held[key]

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Any:
        return iter(self.held)


def of_own_list(read: Callable[[Any], float]) -> Callable[[], Program]:
    def make() -> Program:
        held = OwnList([1.0, 2.0])
        return (lambda x: read(held) * x), (lambda: held.append(9.0))

    return make


PROGRAMS |= {
    "own list, len": of_own_list(lambda held: float(len(held))),
    "own list, sum": of_own_list(sum),
    "own list, last": of_own_list(lambda held: held[-1]),
    "own list + list": of_own_list(lambda held: float(len(held + [1.0]))),
    "own list ==": of_own_list(lambda held: 2.0 if held == [1.0, 2.0] else 1.0),
    "own list, index": of_own_list(lambda held: float(held.count(9.0) + 1)),
    "list if decided": of_list(lambda held: 2.0 if held == ([1.0, 2.0] if held else 1) else 1.0, grow),
    "bool of a list": of_list(lambda held: 1.0 + bool(held[2:]), grow),
    "list from a generator": of_list(lambda held: sum(map(sum, (v for v in [held, [1.0]]))), grow),
}


@reads
def method_of_a_mapping() -> Program:
    held = OwnMapping(a=1.0)
    return (lambda x: held.get("k", 1.0) * x), lambda: held.held.update(k=5.0)


@reads
def sign_of_a_polynomial() -> Program:
    held = np.poly1d([1.0, 2.0])
    return (lambda x: (-held)(1.0) * x), lambda: held.coeffs.__setitem__(0, 5.0)


@reads
def _plus_a_counter() -> Program:
    held = collections.Counter(a=2, b=-1)
    return (lambda x: len(+held) * x), lambda: held.__setitem__("b", 1)


@reads
def _plus_an_object() -> Program:
    held = SimpleNamespace(k=2.0)

    class Sign:
        def __pos__(self) -> float:
            return float(held.k)

    sign = Sign()
    return (lambda x: +sign * x), lambda: setattr(held, "k", 3.0)


@reads
def power_of_a_polynomial() -> Program:
    held = np.poly1d([1.0, 2.0])
    return (lambda x: (held**2)(1.0) * x), lambda: held.coeffs.__setitem__(0, 5.0)


@reads
def list_within_a_list_made_inside() -> Program:
    held = [[1.0], [2.0]]

    def f(x: Any) -> Any:
        items: list[Any] = [0, 0]
        items[:] = held
        return sum(items[1]) * x

    return f, lambda: held[1].append(5.0)


@reads
def map_of_a_function_of_numpy() -> Program:
    held = [np.ones(2), np.ones(2)]
    return (lambda x: sum(map(np.sum, held)) * x), lambda: held[0].__setitem__(0, 5.0)


@reads
def name_missing_in_a_module() -> Program:
    module: Any = types.ModuleType("lacks_a_name")
    sys.modules["lacks_a_name"] = module

    def f(x: Any) -> Any:
        try:
            from lacks_a_name import k  # type: ignore[import-not-found]  # it is made at run time
        except ImportError:
            return x
        return k * x

    return f, bound(module, "k", 5.0)


# calls of code in C

NESTED: dict[str, Callable[[Any], float]] = {
    "max(*items)": lambda held: max(*held[0]),
    "map(sum)": lambda held: max(map(sum, held)),
    "map(len)": lambda held: float(sum(map(len, held))),
    "filter(None)": lambda held: sum(map(sum, filter(None, held))),
    "map(itemgetter)": lambda held: sum(map(operator.itemgetter(-1), held)),
    "chain": lambda held: sum(itertools.chain(*held)),
    "max(zip)": lambda held: max(zip(held, range(9), strict=False))[0][-1],
    "max(reversed)": lambda held: max(reversed(held))[-1],
    "sum of a list of map": lambda held: sum(list(map(sum, held))),
    "zip(*rows)": lambda held: sum(row[0] for row in zip(*held, strict=False)),
}


def of_nested(read: Callable[[Any], float]) -> Callable[[], Program]:
    def make() -> Program:
        held = [[1.0, 2.0], [3.0]]

        def change() -> None:
            held[0].append(90.0)
            held[0][0] = 40.0

        return (lambda x: read(held) * x), change

    return make


PROGRAMS |= {name: of_nested(read) for name, read in NESTED.items()}


@reads
def dict_of_pairs() -> Program:
    pairs: list[list[Any]] = [["a", 1.0]]
    return (lambda x: dict(pairs)["a"] * x), lambda: pairs[0].__setitem__(1, 9.0)


@reads
def map_of_a_getter() -> Program:
    o = SimpleNamespace(k=2.0)
    held, get = [o], operator.attrgetter("k")
    return (lambda x: sum(map(get, held)) * x), bound(o, "k", 5.0)


@reads
def entry_of_globals() -> Program:
    p = program("def f(x):\n    return globals()['K'] * x")
    return p["f"], lambda: p.update(K=5.0)


@reads
def global_sought() -> Program:
    p = program("def f(x):\n    return 2.0 * x if 'GAIN' in globals() else x")
    return p["f"], lambda: p.update(GAIN=5.0)


SIZED: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "bytearray": (lambda: bytearray(b"a"), lambda held: held.append(1)),
    "array": (lambda: array.array("d", [1.0]), lambda held: held.append(1.0)),
    "UserList": (lambda: collections.UserList([1.0]), lambda held: held.append(1.0)),
    "UserDict": (lambda: collections.UserDict(a=1.0), lambda held: held.update(b=1.0)),
    "ChainMap": (lambda: collections.ChainMap({"a": 1.0}), lambda held: held.update(b=1.0)),
}
ASKED: dict[str, Callable[[Any], float]] = {
    "len": lambda held: float(len(held)),
    "list": lambda held: float(len(list(held))),
    "tuple": lambda held: float(len(tuple(held))),
    "repr": lambda held: float(len(repr(held))),
    "f-string": lambda held: float(len(f"{held}")),
}


def of_sized(make: Callable[[], Any], change: Callable[[Any], object], ask: Callable[[Any], float]) -> Any:
    def made() -> Program:
        held = make()
        return (lambda x: ask(held) * x), (lambda: change(held))

    return made


PROGRAMS |= {f"{ask} of {name}": of_sized(*SIZED[name], ASKED[ask]) for name in SIZED for ask in ASKED}


@reads
def length_of_a_view() -> Program:
    d = {"a": 1.0}
    keys = d.keys()
    return (lambda x: len(keys) * x), lambda: d.update(b=1.0)


@reads
def truth_of_a_user_list() -> Program:
    held: collections.UserList[float] = collections.UserList()
    return (lambda x: 2.0 * x if held else x), lambda: held.append(1.0)


# arrays of other classes than NumPy's own


def masked_by(change: Callable[[Any], object], read: Callable[[Any], Any]) -> Callable[[], Program]:
    def make() -> Program:
        held = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
        return (lambda x: float(read(held)) * x), (lambda: change(held))

    return make


PROGRAMS |= {
    "sum of a masked array": masked_by(lambda held: held.__setitem__(0, 9.0), lambda held: held.sum()),
    "mask of a masked array": masked_by(lambda held: held.__setitem__(0, np.ma.masked), lambda held: held.sum()),
    "count of a masked array": masked_by(lambda held: held.__setitem__(0, np.ma.masked), lambda held: held.count()),
}


@reads
def element_of_a_subclass() -> Program:
    class Own(np.ndarray):
        pass

    held = np.ones(3).view(Own)
    return (lambda x: held[0] * x), lambda: held.__setitem__(0, 9.0)


# which object it is


@reads
def class_assigned() -> Program:
    class One:
        pass

    class Other:
        pass

    o: Any = One()
    return (lambda x: 2.0 * x if isinstance(o, Other) else x), bound(o, "__class__", Other)


def test_an_object_in_a_list_of_arguments() -> None:
    class Held:
        pass

    held = Held()
    f = rg.jit(lambda items, x: 2.0 * x if held in items else x)
    assert float(f([Held(), Held()], 1.0)) == 1.0
    assert float(f([Held(), held], 1.0)) == 2.0
    assert float(f([Held(), Held()], 1.0)) == 1.0


def test_an_argument_that_lacks_an_attribute() -> None:
    class Held:
        def __init__(self, **held: float) -> None:
            vars(self).update(held)

    def scaled(o: Any, x: Any) -> Any:
        try:
            return o.k * x
        except AttributeError:
            return x

    f = rg.jit(scaled)
    assert [float(f(o, 2.0)) for o in (Held(), Held(k=3.0), Held(), Held(k=4.0))] == [2.0, 6.0, 2.0, 8.0]


def test_spread_lists_of_arguments() -> None:
    f = rg.jit(lambda o, x: max(*o.items) * x)
    assert [float(f(SimpleItems(items), 2.0)) for items in ([1.0, 2.0], [1.0, 3.0], [4.0, 2.0])] == [4.0, 6.0, 8.0]


class SimpleItems:
    def __init__(self, items: list[float]) -> None:
        self.items = items


# what the function writes

WRITTEN: dict[str, Callable[[Any], Any]] = {}


def writes(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    WRITTEN[f.__name__] = f
    return f


@writes
def added(held: Any) -> Any:
    held.items += [1.0]
    return len(held.items)


@writes
def added_to_an_alias(held: Any) -> Any:
    items = held.items
    items += [1.0]
    return sum(held.items)


@writes
def repeated(held: Any) -> Any:
    items = held.items
    items *= 2
    return len(held.items)


@writes
def deleted(held: Any) -> Any:
    del held.items[0]
    return held.items[0]


@writes
def inserted(held: Any) -> Any:
    held.items[:0] = [1.0]
    return len(held.items)


@writes
def added_to_a_deque(held: Any) -> Any:
    held.queue += [1.0]
    return len(held.queue)


@writes
def united(held: Any) -> Any:
    held.numbers ^= {1}
    return len(held.numbers)


@writes
def entry_of_globals_raised(held: Any) -> Any:
    globals()["COUNT"] += 1
    return COUNT


@writes
def long_list_grown(held: Any) -> Any:
    held.long.append(1.0)
    return sum(held.long)


@writes
def added_to_a_user_list(held: Any) -> Any:
    held.own += [1.0]
    return len(held.own)


@writes
def kept_for_later(held: Any) -> Any:
    try:
        return held.kept
    except AttributeError:
        held.kept = 5.0
        return 1.0


COUNT = 0


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("transform", [rg.jit, rg.grad])
def test_writes_are_made_at_each_call(name: str, transform: Any) -> None:
    global COUNT
    outcomes = []
    for wrap in (lambda f: f, transform):
        COUNT = 0
        held = SimpleNamespace(
            items=[float(k) for k in range(1, 9)],
            queue=collections.deque([1.0]),
            numbers={2},
            long=[1.0] * 100,
            own=collections.UserList([1.0]),
        )
        f = wrap(lambda x: WRITTEN[name](held) * x)
        outcomes.append([float(f(1.0)) for _ in range(4)])
    assert outcomes[0] == outcomes[1]


# random numbers of the module's own generator

DRAWS = {
    "uniform": (0.0, 1.0),
    "gauss": (0.0, 1.0),
    "normalvariate": (0.0, 1.0),
    "expovariate": (1.0,),
    "randint": (1, 10**9),
    "randrange": (10**9,),
    "choice": (range(10**9),),
    "betavariate": (2.0, 3.0),
    "triangular": (0.0, 1.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_of_the_random_module(name: str) -> None:
    draws = [
        lambda: getattr(random, name)(*DRAWS[name]),
        program(f"import random\ndef d(): return random.{name}(*A)", A=DRAWS[name])["d"],
    ]
    for draw in draws:
        f = rg.jit(lambda x: draw() * x)
        random.seed(1)
        expected = [draw() for _ in range(3)]
        random.seed(1)
        assert [float(f(1.0)) for _ in range(3)] == expected


# NotImplemented is a value


class Measure:
    refused = NotImplemented

    def __init__(self, k: float) -> None:
        self.k = k

    def __eq__(self, other: object) -> Any:
        return self.k == other.k if isinstance(other, Measure) else NotImplemented

    def __add__(self, other: object) -> Any:
        return Measure(self.k + other.k) if isinstance(other, Measure) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal ones are not one


def test_not_implemented_is_a_value() -> None:
    refused, table, measure = NotImplemented, {"refused": NotImplemented}, Measure(1.0)
    f = rg.jit(lambda x: 2.0 * x if measure == 1 else x)
    assert float(f(1.0)) == 1.0
    places = (lambda: refused, lambda: table["refused"], lambda: Measure.refused, lambda: measure.refused)
    for place in places:
        f = rg.jit(lambda x: 2.0 * x if place() is NotImplemented else x)
        assert [float(f(1.0)), float(f(1.0))] == [2.0, 2.0]
    with pytest.raises(TypeError, match="unsupported operand"):
        rg.jit(lambda x: (measure + 1).k * x)(1.0)


def test_a_module_that_answers_for_every_name() -> None:
    module: Any = types.ModuleType("answers")
    module.__getattr__ = lambda name: 7.0
    assert float(rg.jit(lambda x: module.k * x)(2.0)) == 14.0


# nothing is compiled again that need not be


def test_arrays_of_joined_lists_are_read_by_reference() -> None:
    layers, last = [np.ones(2), np.ones(2)], np.ones(2)
    f = rg.jit(lambda x: sum(np.sum(w * x) for w in layers + [last]))
    for k in (1.0, 2.0, 3.0):
        layers[0][:] = k
        assert float(f(1.0)) == 2.0 * k + 4.0
    assert f.cache_info().misses == 1


def test_operators_of_numbers_read_nothing() -> None:
    names = {f"k{k}": float(k) for k in range(3)}
    p = program("def f(x):\n    return (k1 + k2 * 2.0) * x if k1 < k2 and k1 != 4.0 else x", **names)
    f = rg.jit(p["f"])
    assert float(f(2.0)) == 10.0
    p["k0"] = 5.0
    assert float(f(2.0)) == 10.0
    assert f.cache_info().misses == 1


def test_no_variable_shows_what_was_read() -> None:
    seen: list[set[str]] = []

    def f(d: Any, x: Any) -> Any:
        try:
            k = d["a"] + d["b"]
        except KeyError:
            k = 1.0
        seen.append({*locals()})
        return k * x

    rg.jit(f)({"a": 1.0}, 2.0)
    assert seen == [{"d", "x", "k", "seen"}]


# what runs code of the user's within an operation


class Layers:
    def __init__(self) -> None:
        self.held = [np.ones(2), np.ones(2)]

    def __iter__(self) -> Any:
        return iter(self.held)


SPREAD: dict[str, Callable[[Layers], Any]] = {
    "an object": lambda o: np.sum(np.multiply(*o)),
    "a generator": lambda o: np.sum(np.multiply(*(w * 2.0 for w in o.held))),
    "a map": lambda o: np.sum(np.add(*map(lambda k: o.held[k], range(2)))),
}


@pytest.mark.parametrize("name", SPREAD)
def test_arguments_that_code_of_the_user_gives(name: str) -> None:
    o = Layers()
    f = rg.jit(lambda x: SPREAD[name](o) * x)
    for k in (1.0, 2.0, 3.0):
        o.held[0][:] = k
        assert float(f(1.0)) == SPREAD[name](o)
    assert f.cache_info().misses == 1


def test_pythons_own_error_for_what_is_no_iterable() -> None:
    def plain(x: Any) -> Any:
        return max(*5) * x  # type: ignore[misc]  # the error is tested

    with pytest.raises(TypeError) as expected:
        plain(1.0)
    with pytest.raises(TypeError) as found:
        rg.jit(plain)(1.0)
    assert str(found.value).startswith(str(expected.value))


def test_objects_die_when_they_do_in_plain_python() -> None:
    class Mortal:
        pass

    def f(d: Any, x: Any) -> Any:
        o = Mortal()
        seen = weakref.ref(o)
        with contextlib.suppress(KeyError):
            d["k"]
        del o
        died.append(seen() is None)
        return x

    died: list[bool] = []
    rg.jit(f)({"a": 1.0}, 2.0)
    assert died == [True]


@pytest.mark.parametrize("kind", [set, dict])
def test_to_seek_in_a_container_made_inside_takes_no_time_for_each_element(kind: Any) -> None:
    looked = []

    class Counting(tuple):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            looked.append(1)
            return tuple.__eq__(self, other)

        __hash__ = tuple.__hash__

    def f(x: Any) -> Any:
        known = kind([(Counting((k,)), k) for k in range(200)])
        del looked[:]
        return 2.0 * x if (0, 0, 0) in known else x

    assert float(rg.jit(f)(3.0)) == 3.0
    assert not looked


# what is compiled once

ONCE: dict[str, Callable[[list[Any], Any], Any]] = {
    "next": lambda held, x: np.sum(next(iter(held)) * x),
    "next of zip": lambda held, x: np.sum(next(zip(held, held, strict=True))[0] * x),
    "a slice": lambda held, x: sum(np.sum(w * x) for w in held[1:]),
    "slices joined": lambda held, x: sum(np.sum(w * x) for w in [held[0]] + held[1:]),
    "zip of slices": lambda held, x: sum(np.sum(v * w * x) for v, w in zip(held, held[1:] + held[:1], strict=True)),
}


@pytest.mark.parametrize("name", ONCE)
def test_arrays_are_bound_anew_without_a_compilation(name: str) -> None:
    held = [np.ones(2), np.ones(2), np.ones(2)]
    f = rg.jit(lambda x: ONCE[name](held, x))
    for k in (1.0, 2.0, 3.0):
        held[0][:] = k
        assert float(f(1.0)) == ONCE[name](held, 1.0)
        held[1] = np.full(2, k)
        assert float(f(1.0)) == ONCE[name](held, 1.0)
    assert f.cache_info().misses == 1


def test_sparse_matrices_are_read_by_reference() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    a = sparse.csr_array(np.eye(3))
    f = rg.jit(lambda x: np.sum(a @ x))
    for k in (1.0, 2.0, 4.0):
        a.data[:] = k
        assert float(f(np.ones(3))) == 3.0 * k
    assert f.cache_info().misses == 1


def test_an_entry_that_a_class_of_the_user_lacks() -> None:
    table: Any = Table()
    table.rows["w"] = np.ones(2)

    def loss(x: Any) -> Any:
        try:
            return np.sum(table["w"] * x) + table["bias"]
        except KeyError:
            return np.sum(table["w"] * x)

    f = rg.jit(loss)
    for k in (1.0, 2.0):
        table.rows["w"][:] = k
        assert float(f(1.0)) == 2.0 * k
    assert f.cache_info().misses == 1
    table.rows["bias"] = np.array(5.0)
    assert float(f(1.0)) == 9.0


def test_a_counter_that_lacks_an_entry() -> None:
    counter = collections.Counter(a=1)
    f = rg.jit(lambda x: counter["b"] * x)
    assert [float(f(2.0)), float(f(2.0))] == [0.0, 0.0]
    assert f.cache_info().misses == 1
    counter["b"] = 3
    assert float(f(2.0)) == 6.0


def test_added_in_place_by_a_class_of_the_user() -> None:
    class Sum:
        asked = 0

        def __init__(self) -> None:
            self.k = 1.0

        @property
        def data(self) -> float:
            Sum.asked += 1
            return self.k

        def __iadd__(self, other: float) -> Any:
            return self

    total = Sum()

    def f(x: Any) -> Any:
        held = total
        held += 1.0
        return held.k * x

    assert float(rg.jit(f)(2.0)) == 2.0
    assert Sum.asked == 0


def test_super_in_a_metaclass() -> None:
    class Meta(type):
        def __call__(cls, *args: Any, **named: Any) -> Any:
            return super().__call__(*args, **named)

    class Held(metaclass=Meta):
        def __init__(self, k: float) -> None:
            self.k = k

    f = rg.jit(lambda x: Held(3.0).k * x)
    assert float(f(2.0)) == 6.0


class Above:
    """What ``super`` finds: an array of the class, and one that a property gives."""

    k = np.ones(2)

    @property
    def asked(self) -> Any:
        return self.k


class Below(Above):
    k = np.zeros(2)

    def own(self, x: Any) -> Any:
        return np.sum(np.abs(super().k) * x)

    def of_a_property(self, x: Any) -> Any:
        return np.sum(np.abs(super().asked) * x)


class OfItself(Below):
    @classmethod
    def of_the_class(cls, x: Any) -> Any:
        return np.sum(np.abs(super().k) * x)


ABOVE = super(Below, Below())
FOUND_BY_SUPER: dict[str, tuple[Callable[[Any], Any], type]] = {
    "in a method": (Below().own, Above),
    "by a property": (Below().of_a_property, Below),
    "in a class method": (OfItself.of_the_class, Below),
    "of two arguments": (lambda x: np.sum(np.abs(super(Below, Below()).k) * x), Above),
    "an attribute of super": (lambda x: np.sum(np.abs(getattr(ABOVE, "k")) * x), Above),  # noqa: B009 - as users do
}


@pytest.mark.parametrize("how", FOUND_BY_SUPER)
def test_an_array_that_super_finds_is_an_input(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, owner = FOUND_BY_SUPER[how]
    monkeypatch.setattr(owner, "k", np.array([2.0, 3.0]))
    jitted, x = rg.jit(f), np.array([1.0, 10.0])
    for first in (2.0, 5.0, 7.0):
        owner.k[0] = first  # type: ignore[attr-defined]
        assert float(jitted(x)) == first + 30.0


# lists of captured arrays as operands of NumPy's functions

WHOLE: dict[str, Callable[[list[Any], Any], Any]] = {
    "array": lambda held, x: np.sum(np.array(held)) * x[0],
    "asarray": lambda held, x: np.sum(np.asarray(held)) * x[0],
    "sum": lambda held, x: np.sum(held) * x[0],
    "mean": lambda held, x: np.sum(np.mean(held, axis=0) * x),
    "max": lambda held, x: np.max(held) * x[0],
    "dot": lambda held, x: np.sum(np.dot(held, x)),
    "matmul": lambda held, x: np.sum(held @ x),
    "array + list": lambda held, x: np.sum(np.ones(2) + held) * x[0],
    "tracer * list": lambda held, x: np.sum(x * held),
    "add": lambda held, x: np.sum(np.add(held, 1.0)) * x[0],
    "where": lambda held, x: np.sum(np.where(x > 0, held, 0.0) * x),
    "einsum": lambda held, x: np.einsum("ij->", held) * x[0],
    "norm": lambda held, x: np.linalg.norm(held) * x[0],
    "a slice": lambda held, x: np.sum(np.array(held[:1])) * x[0],
    "nested": lambda held, x: np.sum(np.array([held, held])) * x[0],
    "joined": lambda held, x: np.sum(np.array(held + held)) * x[0],
    "a tuple": lambda held, x: np.sum(np.array(tuple(held))) * x[0],
    "added in place": lambda held, x: np.sum(_added_in_place(held, x)),
    "written": lambda held, x: np.sum(_written(held) * x),
}


def _added_in_place(held: list[Any], x: Any) -> Any:
    total = np.zeros((2, 2)) * x
    total += held
    return total * x


def _written(held: list[Any]) -> Any:
    made = np.zeros((2, 2))
    made[:] = held
    return made


@pytest.mark.parametrize("name", WHOLE)
def test_lists_of_captured_arrays_are_read_by_reference(name: str) -> None:
    held, x = [np.ones(2), np.ones(2)], np.array([1.0, 2.0])
    f, slope = rg.jit(lambda x: WHOLE[name](held, x)), rg.grad(lambda x: WHOLE[name](held, x))
    for k in (1.0, 2.0, 3.0):
        held[0][:] = k
        np.testing.assert_allclose(f(x), WHOLE[name](held, x), rtol=1e-14)
        held[1] = np.full(2, 2.0 * k)
        np.testing.assert_allclose(f(x), WHOLE[name](held, x), rtol=1e-14)
        differences = [(WHOLE[name](held, x + h) - WHOLE[name](held, x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
        np.testing.assert_allclose(slope(x), differences, rtol=1e-6, atol=1e-8)
    assert f.cache_info().misses == slope.cache_info().misses == 1
