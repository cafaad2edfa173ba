"""Classes that name a module of Python's and are the user's: ``exec`` or a function of Python's has made them."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as rg
from retrograd.tracer.state.libraries import is_library

MEMBERS = """
K = 2.0
def gain(self): return self.k * K
def missing(self, name):
    if name.startswith("_"): raise AttributeError(name)
    return self.k * K
def call(self, x): return self.k * K * x
def times(self, x): return self.k * K * x
def number(self): return float(self.k * K)
def equal(self, other): return self.k * K == other
members = {
    "k": 1.0, "gain": property(gain), "__getattr__": missing, "__call__": call, "__mul__": times,
    "__float__": number, "__eq__": equal, "method": gain,
}
"""


def executed(space: dict[str, Any]) -> type:
    """A class whose module has no name."""
    exec("class P: pass\nfor name in members: setattr(P, name, members[name])", space)
    made: type = space["P"]
    return made


MAKES: dict[str, Callable[[dict[str, Any]], type]] = {
    "exec": executed,
    "type": lambda space: eval("type('P', (), members)", space),
    "new_class": lambda space: types.new_class("P", (), {}, lambda names: names.update(space["members"])),
    "make_dataclass": lambda space: dataclasses.make_dataclass("P", [], namespace=space["members"], eq=False),
}
USES: dict[str, Callable[[Any, Any], Any]] = {
    "attribute": lambda p, x: p.k * x,
    "property": lambda p, x: p.gain * x,
    "no attribute": lambda p, x: p.other * x,
    "call": lambda p, x: p(x),
    "operator": lambda p, x: p * x,
    "float": lambda p, x: float(p) * x,
    "comparison": lambda p, x: x if p == 2.0 else 3.0 * x,
    "method": lambda p, x: p.method() * x,
}


@pytest.mark.whole
@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_what_their_members_read_is_seen(make: Callable[[Any], type], use: Callable[[Any, Any], Any]) -> None:
    space: dict[str, Any] = {}
    exec(MEMBERS, space)
    p: Any = make(space)()
    value, slope = rg.jit(lambda x: use(p, x)), rg.grad(lambda x: use(p, x))
    changes = (lambda: None, lambda: space.__setitem__("K", 5.0), lambda: setattr(p, "k", 3.0))
    for change in changes:
        change()
        assert float(value(1.0)) == float(slope(1.0)) == float(use(p, 1.0))


@pytest.mark.parametrize("cls", [int, dict, ValueError, types.SimpleNamespace, types.DynamicClassAttribute, len, print])
def test_pythons_own_are_no_such_classes(cls: Any) -> None:
    assert is_library(cls)
    assert is_library(getattr(__builtins__, "ExceptionGroup", int))
