"""Objects whose class cannot be asked: dead weak proxies, and proxies whose ``__class__`` raises or pretends."""

from __future__ import annotations

import copy
import functools
import itertools
import operator
import types
import unittest.mock
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg


class Owner:
    def __call__(self) -> None: ...


class Unbound:
    """A proxy outside of its context, as web frameworks have them."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("outside of the context")

    @property
    def __dict__(self) -> Any:
        raise RuntimeError("outside of the context")


def dead(callback: bool = False) -> Any:
    class Plain: ...

    return weakref.proxy(Owner() if callback else Plain())


def pretending(cls: type) -> Any:
    return type("Pretending", (), {"__class__": property(lambda self: cls)})()


PROXIES: dict[str, Callable[[], Any]] = {
    "dead": dead,
    "dead callable": lambda: dead(True),
    "unbound": Unbound,
    **{
        f"as {cls.__name__}": functools.partial(pretending, cls)
        for cls in (dict, float, np.float64, str, list, tuple, type, np.ndarray, types.FunctionType)
    },
}


class Plan:
    def __init__(self, owner: Any) -> None:
        self.k, self.owner = 3.0, owner

    def times(self, x: Any) -> Any:
        return x * self.k


class Slotted:
    __slots__ = ("k", "owner")

    def __init__(self, owner: Any) -> None:
        self.k, self.owner = 3.0, owner


def raised(x: Any, proxy: Any) -> Any:
    def fail() -> None:
        raise ValueError(proxy)

    try:
        fail()
    except ValueError:
        return x


def failed(x: Any, proxy: Any) -> Any:
    held = [proxy]
    try:
        return x + int("three")
    except ValueError:
        return x if held else 0.0 * x


def objects(proxy: Any) -> Any:
    array = np.array([2.0, None], dtype=object)
    array[1] = proxy
    return array


USES: dict[str, Callable[[Any, Any], Callable[[Any], Any]]] = {
    "copied": lambda p, plan: lambda x: x * copy.copy(plan).k,
    "copied with slots": lambda p, plan: lambda x: x * copy.copy(Slotted(p)).k,
    "attribute": lambda p, plan: lambda x: (plan.owner, x * plan.k)[1],
    "library": lambda p, plan: lambda x: x * operator.attrgetter("k")(plan),
    "element": lambda p, plan: lambda x, held=[2.0, p]: (held[1], x * held[0])[1],
    "default": lambda p, plan: lambda x, b=p: x,
    "closure": lambda p, plan: lambda x: x if p is not None else 2.0 * x,
    "method": lambda p, plan: plan.times,
    "partial": lambda p, plan: functools.partial(lambda b, x: x, p),
    "iterated": lambda p, plan: lambda x, held=(2.0, p): x * len(list(itertools.chain(held, [p]))),
    "stored": lambda p, plan: lambda x: [setattr(plan, "other", p), x][1],
    "in a body": lambda p, plan: lambda x: rg.fori_loop(2, lambda i, c: plan.times(c), x),
    "raised": lambda p, plan: lambda x: raised(x, p),
    "in a frame that fails": lambda p, plan: lambda x: failed(x, p),
    "array of objects": lambda p, plan: functools.partial(lambda a, x: x * len(list(a)), objects(p)),
}


@pytest.mark.whole
@pytest.mark.parametrize("proxy", PROXIES)
@pytest.mark.parametrize("use", USES)
def test_a_function_that_meets_a_proxy_is_traced(use: str, proxy: str) -> None:
    target = PROXIES[proxy]()
    function = USES[use](target, Plan(target))
    expected = function(2.0)
    compiled = rg.jit(function)
    assert compiled(2.0) == expected
    assert compiled(2.0) == expected
    assert rg.grad(function)(2.0) == expected / 2.0


@pytest.mark.parametrize("proxy", [name for name in PROXIES if name.startswith("as ")])
def test_a_proxy_may_be_an_argument_and_a_result(proxy: str) -> None:
    target = PROXIES[proxy]()
    target.k = 3.0
    takes, gives = rg.jit(lambda x, p: x * p.k), rg.jit(lambda x: (x, target))
    for k in (3.0, 4.0):
        target.k = k
        assert takes(2.0, target) == 2.0 * k
        assert gives(2.0)[1] is target


@pytest.mark.parametrize("cls", [list, tuple, dict, np.ndarray, float])
def test_a_mock_may_be_an_argument(cls: type) -> None:
    pretends = unittest.mock.Mock(spec=cls)
    pretends.k = 3.0
    assert rg.jit(lambda x, p: x * p.k)(2.0, pretends) == 6.0
