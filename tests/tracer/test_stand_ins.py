"""What stands for a function inside a trace tells the same of itself as the function, and is equal to it."""

from __future__ import annotations

import copy
import math
import operator
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

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
    function, found = vars(module)[name], []

    def traced(x: Any) -> Any:
        found.append(getattr(module, name))
        return x

    rg.jit(traced)(2.0)
    (stands,) = found
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
