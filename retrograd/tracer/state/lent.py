"""Lent: stand-ins that the user's code has stored. The functions take their places when the recording ends.

While it lasts, only places are noted. At the end each is looked through once, with what it holds. That runs no code of
the user's but hashes of keys.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from functools import partial
from types import CellType, SimpleNamespace
from typing import Any

import numpy as np

from ..array import Tracer
from ..interception import StandIn
from .classes import AROUND, PLAIN, SLOTS, attributes_of, is_a

FREE = PLAIN | {Tracer, np.ndarray}  # what holds no stand-in
WHOLE = object()  # the key of all that a container holds
ONE = {"append", "appendleft", "add", "insert"}  # what stores the argument itself, and not what it yields
STORING = {"append", "appendleft", "add", "insert", "extend", "extendleft", "update", "setdefault"}
STORING |= {"__init__", "__setitem__", "__iadd__", "__ior__"}
Place = tuple[Any, Any]  # an object, and the key of what it holds there: a name, a slot, or ``WHOLE``


class Lent:
    """The places where a recording, with those inside of it, has stored what may hold stand-ins."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, Any], Place] = {}

    def attribute(self, x: Any, name: str, value: Any) -> None:
        """Take note of ``x.name = value``; a property's setter is code that stores elsewhere."""
        if not _may_hold(value):
            return
        member = next((vars(c)[name] for c in type(x).__mro__ if name in vars(c)), None)
        own = attributes_of(x)
        if is_a(x, type):
            self._add(x, name)
        elif type(member) in SLOTS:
            self._add(x, member)
        elif type(own) is dict:
            self._add(own, name)

    def entry(self, x: Any, key: Any, value: Any) -> None:
        """Take note of ``x[key] = value``."""
        if is_a(x, dict) and type(key) in PLAIN:
            if _may_hold(value):
                self._add(x, key)
        elif _may_hold(value):
            self.into(x, value)

    def into(self, x: Any, *values: Any) -> None:
        """Take note that a container may get values, or what they hold."""
        if is_a(x, KINDS) and not FREE.issuperset(map(type, values)):
            self._add(x, WHOLE)

    def content(self, cell: CellType, value: Any) -> None:
        """Take note of what a variable that several functions share gets."""
        if _may_hold(value):
            self._add(cell, CONTENTS)

    def call(self, f: Any, args: Any) -> None:
        """Take note of what a function in C may store: ``setattr``, or a method of a container."""
        if f is setattr or f is object.__setattr__:
            if len(args) == 3 and is_a(args[1], str):
                self.attribute(*args)
        elif f.__name__ in STORING and (f.__name__ not in ONE or any(map(_may_hold, args))):
            self.into(f.__self__, *args)
        elif f.__name__ == "__setattr__" and len(args) == 2:
            self.attribute(f.__self__, *args)

    def _add(self, x: Any, key: Any) -> None:
        self._places[id(x), key] = x, key

    def give_back(self) -> None:
        """Put the functions into the places of their stand-ins."""
        found = _Functions()
        for x, key in self._places.values():
            if key is WHOLE:
                found.of(x)
            else:
                _replace(x, key, found.of)
        found.in_holders()
        self._places.clear()


class _Functions:
    """The functions for stand-ins. Containers stay, and get what belongs into them; tuples are made anew, each once."""

    def __init__(self) -> None:
        self._holders: list[Any] = []
        self._met: dict[int, Any] = {}
        self._tuples: dict[int, tuple[Any, Any]] = {}  # and what takes their places

    def of(self, x: Any) -> Any:
        """What belongs into the place of a value."""
        if type(x) is StandIn:
            return x.original
        if is_a(x, tuple):
            return x if FREE.issuperset(map(type, tuple.__iter__(x))) else self._tuple(x)
        if is_a(x, KINDS) and id(x) not in self._met:
            self._met[id(x)] = x
            self._holders.append(x)
        return x

    def in_holders(self) -> None:
        """Replace the stand-ins in the containers that were met, and in those inside."""
        while self._holders:
            x = self._holders.pop()
            next(replace for kind, replace in HOLDERS.items() if is_a(x, kind))(x, self.of)

    def _tuple(self, x: Any) -> Any:
        todo = [] if id(x) in self._tuples else [x]
        while todo:
            parts = (*tuple.__iter__(todo[-1]),)
            inner = [part for part in parts if is_a(part, tuple) and id(part) not in self._tuples]
            if inner:
                todo += inner
                continue
            old = todo.pop()
            new = (*map(self._part, parts),)
            same = all(map(operator.is_, parts, new))
            self._tuples[id(old)] = old, old if same or attributes_of(old) else tuple.__new__(type(old), new)
        return self._tuples[id(x)][1]

    def _part(self, x: Any) -> Any:
        return self._tuples[id(x)][1] if is_a(x, tuple) else self.of(x)


def _may_hold(x: Any) -> bool:
    """Whether a value is a stand-in, or a container that may have one.

    The places of others are not noted: that would keep what is there until the recording ends.
    """
    return type(x) not in FREE and (type(x) is StandIn or is_a(x, (tuple, *KINDS)))


def _replace(x: Any, key: Any, of: Callable[[Any], Any]) -> None:
    """Put what belongs there into one place."""
    old = _held(x, key)
    new = of(old)
    if new is old:
        return
    if type(key) in SLOTS:
        key.__set__(x, new)
    elif is_a(x, type):
        type.__setattr__(x, key, new)
    else:
        dict.__setitem__(x, key, new)


def _held(x: Any, key: Any) -> Any:
    if type(key) not in SLOTS:
        return vars(x).get(key) if is_a(x, type) else dict.get(x, key)
    try:
        return key.__get__(x)
    except (AttributeError, ValueError):  # it is empty
        return None


def _in_dict(x: Any, of: Callable[[Any], Any]) -> None:
    if not FREE.issuperset(map(type, dict.values(x))):
        for key in [key for key, value in dict.items(x) if type(value) not in FREE]:
            _replace(x, key, of)


def _in_row(kind: Any, x: Any, of: Callable[[Any], Any]) -> None:
    if not FREE.issuperset(map(type, kind.__iter__(x))):
        for k, old in enumerate([*kind.__iter__(x)]):
            if (new := of(old)) is not old:
                kind.__setitem__(x, k, new)


def _in_set(x: Any, of: Callable[[Any], Any]) -> None:
    for old in [*set.__iter__(x)]:
        if (new := of(old)) is not old:
            set.remove(x, old)
            set.add(x, new)


def _in_partial(x: Any, of: Callable[[Any], Any]) -> None:
    state = partial.__reduce__(x)[2]
    if (new := of(state)) is not state:
        partial.__setstate__(x, new)  # type: ignore[attr-defined]  # which type checkers do not know


CONTENTS: Any = vars(CellType)["cell_contents"]  # the slot of a variable
HOLDERS: dict[type, Callable[[Any, Callable[[Any], Any]], None]] = {
    dict: _in_dict,
    list: partial(_in_row, list),
    deque: partial(_in_row, deque),
    set: _in_set,
    partial: _in_partial,
    SimpleNamespace: lambda x, of: _in_dict(vars(x), of),
    **dict.fromkeys(AROUND, lambda x, of: of(vars(x).get("data"))),
}
KINDS = (*HOLDERS,)
