"""``functools.partial`` made anew: what was compiled for one of them serves others where what was read is the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Array = np.ndarray[Any, Any]
P = np.arange(1.0, 4.0)


def of_object(m: Any, p: Array) -> Any:
    return np.sum(m.a * p**2) * m.k


def of_list(given: list[Any], p: Array) -> Any:
    return np.sum(p**2) * given[0] + given[1]["c"] * np.sum(p * given[2])


def of_function(f: Callable[[Array], Array], p: Array) -> Any:
    return np.sum(f(p))


def by_name(p: Array, *, f: Any = None, kind: str = "a") -> Any:
    return np.sum(f(p)) * (2 if kind == "a" else 3)


def closed(c: float) -> Callable[[float, Array], Any]:
    def inner(k: float, p: Array) -> Any:
        return np.sum(p**2) * c * k

    return inner


MAKERS: dict[str, Callable[[float, float, Array], Any]] = {
    "an object": lambda k, c, a: partial(of_object, SimpleNamespace(a=a, k=k)),
    "a list": lambda k, c, a: partial(of_list, [k, {"c": c}, a]),
    "a lambda": lambda k, c, a: partial(of_function, lambda p: p**2 * c),
    "another lambda": lambda k, c, a: partial(of_function, lambda p, c=c: p * c),
    "a ufunc": lambda k, c, a: partial(of_function, np.sin if k == 1 else np.exp),
    "keywords": lambda k, c, a: partial(by_name, f=np.sin if k == 1 else np.exp, kind="a" if c == 1 else "b"),
    "a closure": lambda k, c, a: partial(closed(c), k),
    "a partial": lambda k, c, a: partial(partial(of_object), SimpleNamespace(a=a, k=k)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_gradients_are_those_of_the_partial_at_hand(name: str) -> None:
    for k, c in [*itertools.product([1.0, 2.0, 3], [0.5, 1, 2.5])] * 2:
        f = MAKERS[name](k, c, P + c)
        ends = [f(P + h * np.cos(P)) - f(P - h * np.cos(P)) for h in (1e-4, 2e-4)]
        expected = (8 * ends[0] - ends[1]) / 12e-4
        np.testing.assert_allclose(np.sum(rg.grad(f)(P) * np.cos(P)), expected, rtol=1e-8, err_msg=f"{k}, {c}")


def test_what_is_changed_in_place_is_seen() -> None:
    a, given = P.copy(), SimpleNamespace(k=1.0)
    given.a = a
    for f in (partial(of_object, given), partial(of_object, given)):
        for _ in range(3):
            np.testing.assert_allclose(rg.grad(f)(P), 2 * given.k * a * P)
            a += 1.0
            given.k *= 2.0
