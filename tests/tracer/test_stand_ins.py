"""What stands for a function inside a trace tells the same of itself as the function, and is equal to it."""

from __future__ import annotations

import copy
import math
import operator
import os
import pickle
import sys
from collections import UserList, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer.interception import INTERCEPTION
from retrograd.tracer.state import lent

ASKED = ("__module__", "__name__", "__qualname__", "__doc__", "__self__", "__text_signature__", "signature", "nin")
NAMES = [
    (math, "exp"),
    (math, "hypot"),
    (np, "exp"),
    (np, "zeros"),
    (np, "where"),
    (np, "linspace"),
    (np.linalg, "inv"),
]


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda f, name=name: getattr(f, name, "missing") for name in ASKED},
    "text": repr,
    "hash": hash,
    "registered": lambda f: getattr(sys.modules.get(f.__module__), f.__name__, "missing"),
    "pickled": lambda f: pickle.loads(pickle.dumps(f)),
    "copied": copy.deepcopy,
}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_it_answers_as_the_function_does(module: Any, name: str) -> None:
    function: Any = vars(module)[name]
    rg.jit(lambda x: x)(2.0)
    stands: Any = INTERCEPTION.meaning(function)
    assert stands is not function
    for question, asked in QUESTIONS.items():
        assert asked(stands) == asked(function), question
    assert stands == function
    assert function == stands
    assert stands != math.cos
    assert {function: 1}[stands] == {stands: 1}[function] == 1


def test_a_function_that_numba_compiles_at_its_first_call() -> None:
    numba = pytest.importorskip("numba")
    poly = numba.njit(lambda x: x**2 + 1)
    assert rg.grad(lambda x: x * poly(3.0))(2.0) == 10.0


class Layer:
    act = np.tanh
    base = math.exp


LAYER, TABLE = Layer(), {"sum": np.sum, "exp": math.exp}
IDENTITIES: dict[str, Callable[[], bool]] = {
    "an attribute": lambda: LAYER.act is np.tanh,
    "the other way round": lambda: np.tanh is LAYER.act,
    "another one": lambda: LAYER.act is np.sin,
    "not": lambda: LAYER.act is not np.tanh,
    "an entry": lambda: TABLE["sum"] is np.sum,
    "of math": lambda: TABLE["exp"] is math.exp,
    "of a class": lambda: Layer.base is math.exp,
    "a default": lambda act=np.tanh: act is np.tanh,
    "itself": lambda: np.linalg.inv is np.linalg.inv,
    "nothing": lambda: LAYER.act is None,
    "a chain": lambda: LAYER.act is np.tanh is Layer.act,
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_a_function_is_itself(name: str) -> None:
    asked = IDENTITIES[name]
    f = rg.value_and_grad(lambda x: (5.0 if asked() else 3.0) * x)
    expected = 5.0 if asked() else 3.0
    assert f(2.0) == (2.0 * expected, expected)


def test_another_function_in_its_place_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    f = rg.jit(lambda x: (5.0 if LAYER.act is np.tanh else 3.0) * x)
    assert f(1.0) == 5.0
    monkeypatch.setattr(LAYER, "act", np.sin, raising=False)
    assert f(1.0) == 3.0


IDENTITIES_BY_CALL: dict[str, Callable[[], bool]] = {
    "id": lambda: id(np.tanh) == id(LAYER.act),
    "ids as keys": lambda: id(np.sum) in dict.fromkeys(map(id, TABLE.values())),
    "spread": lambda: id(*(np.tanh,)) == id(LAYER.act),
    "operator": lambda: operator.is_(np.tanh, LAYER.act) and not operator.is_not(np.tanh, LAYER.act),
    "another one": lambda: id(LAYER.act) == id(np.sin),
    "kind": lambda: isinstance(np.tanh, np.ufunc) and type(np.tanh) is np.ufunc,
    "function": lambda: isinstance(np.zeros_like, type(np.sum)),
}


@pytest.mark.parametrize("name", IDENTITIES_BY_CALL)
def test_a_function_is_itself_where_a_function_asks(name: str) -> None:
    asked = IDENTITIES_BY_CALL[name]
    assert rg.grad(lambda x: (5.0 if asked() else 3.0) * x)(2.0) == (5.0 if asked() else 3.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: 1.0 * getattr(np.maximum, "accumulate", None)(x),
        lambda x: 1.0 * getattr(np.add, "reduce", None)(x),
        lambda x: x * getattr(np.add, "nin", 1),
        lambda x: x * len(getattr(math.exp, "__name__", "")),
        lambda x: x * len(getattr(np.sum, "__name__", "")),
        lambda x: x * len(getattr(np.zeros, "nothing", "abc")),
    ],
)
def test_getattr_of_a_function_of_numpy(ask: Callable[[Any], Any]) -> None:
    x = np.array([2.0, 1.0])
    np.testing.assert_array_equal(rg.jit(ask)(x), ask(x))


def test_identities_are_the_same_by_a_call_and_by_map() -> None:
    act = np.tanh

    def f(x: Any) -> Any:
        same = [*map(id, [x])] == [id(x)] and operator.is_(x, x) and id(np.tanh) == id(act)
        return x * same

    np.testing.assert_array_equal(rg.jit(f)(np.ones(2)), np.ones(2))


@dataclass
class Slots:
    """What a traced function of a test stores into."""

    __slots__ = ("act",)
    act: Any


@dataclass(frozen=True)
class Frozen:
    """An object whose class sets the attributes unseen."""

    act: Any


class Pair(NamedTuple):
    """A tuple of a class of its own."""

    act: Any
    rate: float


MODULE: Any = ModuleType("module")
ROW, SET, USER_LIST = deque[Any](), set[Any](), UserList[Any]()
MODEL, SLOTS, HELD, LISTED = SimpleNamespace(), Slots(None), dict[str, Any](), list[Any]([None])
GLOBAL: Any = None


def stored_global() -> None:
    global GLOBAL  # noqa: PLW0603 - what the test is about
    GLOBAL = np.zeros_like


def stored_attribute() -> None:
    MODEL.act = np.zeros_like


def stored_slot() -> None:
    SLOTS.act = np.zeros_like


def stored_entry() -> None:
    HELD["act"] = np.zeros_like


def stored_element() -> None:
    LISTED[0] = np.zeros_like


def stored_in_a_list() -> None:
    MODEL.act = [(1.0, np.zeros_like)]


def stored_in_a_dict() -> None:
    MODEL.act = {"a": 1.0, "act": {"b": np.zeros_like}}


def stored_in_a_module() -> None:
    MODULE.act = np.zeros_like


def stored_by_a_slice() -> None:
    LISTED[:0] = [np.zeros_like]


def stored_by_a_slice_of_a_generator() -> None:
    LISTED[:0] = (f for f in [np.zeros_like])


def stored_in_what_is_stored() -> None:
    inner: list[Any] = []
    MODEL.act = inner
    inner.append(np.zeros_like)


def stored_by_addition() -> None:
    row = MODEL.act = []
    row += [np.zeros_like]


def stored_in_objects() -> None:
    MODEL.act = [Frozen(np.zeros_like), Pair(np.zeros_like, 1.0), partial(np.zeros_like, dtype=float)]


STORED: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "a global": (stored_global, lambda: GLOBAL),
    "an attribute": (stored_attribute, lambda: MODEL.act),
    "an attribute by setattr": (lambda: setattr(MODEL, "act", np.zeros_like), lambda: MODEL.act),
    "a slot": (stored_slot, lambda: SLOTS.act),
    "an entry": (stored_entry, lambda: HELD["act"]),
    "an entry by update": (lambda: HELD.update(act=np.zeros_like), lambda: HELD["act"]),
    "an entry by setdefault": (lambda: HELD.setdefault("first", np.zeros_like), lambda: HELD["first"]),
    "an element": (stored_element, lambda: LISTED[0]),
    "an element by append": (lambda: LISTED.append(np.zeros_like), lambda: LISTED[-1]),
    "in a module": (stored_in_a_module, lambda: MODULE.act),
    "elements by a generator": (lambda: LISTED.extend(f for f in (np.zeros_like,)), lambda: LISTED[-1]),
    "entries by zip": (lambda: HELD.update(zip(["k"], [np.zeros_like], strict=True)), lambda: HELD["k"]),
    "an element of a deque": (lambda: ROW.append(np.zeros_like), lambda: ROW[-1]),
    "an element of a set": (lambda: SET.add(np.zeros_like), lambda: next(iter(SET))),
    "an element of a UserList": (lambda: USER_LIST.append(np.zeros_like), lambda: USER_LIST[-1]),
    "by a slice": (stored_by_a_slice, lambda: LISTED[0]),
    "by a slice, from a generator": (stored_by_a_slice_of_a_generator, lambda: LISTED[0]),
    "by +=": (stored_by_addition, lambda: MODEL.act[0]),
    "in a list that was stored before": (stored_in_what_is_stored, lambda: MODEL.act[0]),
    "in an object": (stored_in_objects, lambda: MODEL.act[0].act),
    "in a named tuple": (stored_in_objects, lambda: MODEL.act[1].act),
    "in a partial call": (stored_in_objects, lambda: MODEL.act[2].func),
    "in a tuple in a list": (stored_in_a_list, lambda: MODEL.act[0][1]),
    "in a dict in a dict": (stored_in_a_dict, lambda: MODEL.act["act"]["b"]),
}


@pytest.mark.parametrize("how", STORED)
def test_a_function_that_is_stored_outside_is_itself(how: str) -> None:
    store, found = STORED[how]
    rg.jit(lambda x: (store(), x + found()(x))[1])(2.0)
    assert type(found()) is type(np.zeros_like)
    assert found() is np.zeros_like


def test_a_function_in_a_variable_outside_is_itself() -> None:
    act: Any = None

    def f(x: Any) -> Any:
        nonlocal act
        act = np.zeros
        made = act(2)
        made[0] = x
        return made

    np.testing.assert_array_equal(rg.jit(f)(2.0), [2.0, 0.0])
    assert act is np.zeros


def test_a_function_that_is_stored_is_itself_after_an_error() -> None:
    def f(x: Any) -> Any:
        stored_attribute()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        rg.jit(f)(2.0)
    assert MODEL.act is np.zeros_like


def test_layers_that_refer_to_each_other_are_stored() -> None:
    def f(x: Any) -> Any:
        first: dict[str, Any] = {"act": np.exp}
        second = {"act": np.tanh, "previous": first}
        first["next"] = second
        MODEL.act = first
        return np.sum(second["act"](first["act"](x)))

    x = np.ones(2)
    assert rg.jit(f)(x) == np.sum(np.tanh(np.exp(x)))
    assert MODEL.act["act"] is np.exp
    assert MODEL.act["next"]["act"] is np.tanh


def test_layers_in_a_long_chain_are_stored() -> None:
    def f(x: Any) -> Any:
        layers: Any = (np.exp,)
        for _ in range(3000):
            layers = [layers, (layers,)]
        MODEL.act = layers
        return x

    rg.jit(f)(2.0)
    layers = MODEL.act
    for _ in range(3000):
        assert layers[0] is layers[1][0]
        layers = layers[0]
    assert layers[0] is np.exp


class Once(dict[str, Any]):
    """A table that takes each name once."""

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self:
            raise KeyError(key)
        super().__setitem__(key, value)


class Counted:
    """An object that counts how often a property is read."""

    count = 0

    @property
    def act(self) -> Any:
        self.count += 1
        return self._act

    @act.setter
    def act(self, value: Any) -> None:
        self._act = value


def test_storing_runs_the_methods_of_the_user_once() -> None:
    table, counted = Once(), Counted()

    def f(x: Any) -> Any:
        table["act"] = counted.act = np.zeros_like
        return x

    rg.jit(f)(2.0)
    assert table["act"] is np.zeros_like
    assert counted.count == 0
    assert counted.act is np.zeros_like


def test_one_tuple_in_two_places_stays_one() -> None:
    def f(x: Any) -> Any:
        MODEL.act = MODEL.other = (np.zeros_like, 2)
        return x

    rg.jit(f)(2.0)
    assert MODEL.act is MODEL.other
    assert MODEL.act[0] is np.zeros_like


def test_a_container_is_looked_through_once_however_often_it_gets_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    own = lent.HOLDERS[list]
    row: list[Any] = []

    def look(x: Any, of: Callable[[Any], Any]) -> None:
        looked.append(x)
        own(x, of)

    monkeypatch.setitem(lent.HOLDERS, list, look)

    def f(x: Any) -> Any:
        for _ in range(20):
            row.append(np.zeros_like)
            MODEL.act = row
        return x

    rg.jit(f)(2.0)
    assert [*map(id, looked)] == [id(row)]
    assert all(act is np.zeros_like for act in row)


@pytest.mark.parametrize("f", [id, map, filter, HELD.get, os.getenv, object.__getattribute__])
def test_a_call_without_arguments_raises_pythons_error(f: Any) -> None:
    with pytest.raises(TypeError) as expected:
        f()
    with pytest.raises(TypeError) as found:
        rg.jit(lambda x: (f(), x))(2.0)
    assert str(found.value).startswith(str(expected.value))


def test_getenv_takes_its_name_in_any_place(monkeypatch: pytest.MonkeyPatch) -> None:
    f = rg.jit(lambda x: x * float(os.getenv(default="2", key="RETROGRAD_OF_A_TEST")))
    assert f(3.0) == 6.0
    monkeypatch.setenv("RETROGRAD_OF_A_TEST", "5")
    assert f(3.0) == 15.0
