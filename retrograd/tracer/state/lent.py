"""Lent: stand-ins that the user's code has stored outside. The functions take their places when the recording ends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from ..interception import StandIn
from .reader import StateReader
from .reads import Read

BUILT = frozenset({list, tuple, dict})
DEEPEST = 3  # containers in each other


def lend(reader: StateReader, place: Any, kind: str, key: Any, value: Any) -> None:
    """Take note that a value is stored outside, in the place of which such a read tells."""
    if holds(value):
        reader.lend(partial(_give_back, Read(place, kind, key, value), value))


def lend_by_call(reader: StateReader, f: Any, args: Any) -> None:
    """The same of what a function in C stores: ``setattr``, or a method of a list or dict."""
    if f is setattr and len(args) == 3:
        lend(reader, args[0], "attr", args[1], args[2])
    elif type(f.__self__) in (list, dict) and reader.sees(f.__self__) and any(map(holds, args)):
        reader.lend(partial(functions_in, f.__self__))


def holds(x: Any, depth: int = DEEPEST) -> bool:
    """Whether a value is a stand-in, or a container of Python's that holds one."""
    if type(x) not in BUILT:
        return type(x) is StandIn
    parts = x.values() if type(x) is dict else x
    kinds = {*map(type, parts)}
    inside = depth > 0 and not BUILT.isdisjoint(kinds)
    return StandIn in kinds or (inside and any(holds(part, depth - 1) for part in parts))


def functions_in(x: Any, depth: int = DEEPEST) -> Any:
    """A value with the functions in the places of their stand-ins; lists and dicts are changed."""
    if type(x) is StandIn:
        return x.original
    if not holds(x, depth):
        return x
    parts = [functions_in(part, depth - 1) for part in (x.values() if type(x) is dict else x)]
    if type(x) is tuple:
        return (*parts,)
    if type(x) is dict:
        x.update([*zip(x, parts, strict=True)])
    else:
        x[:] = parts
    return x


def _give_back(read: Read, value: Any) -> None:
    found = functions_in(value)
    if found is not value and read.now is value:
        PUT[read.kind](read.place, read.key, found)


def _set(x: Any, name: str, value: Any) -> None:
    setting = type if isinstance(x, type) else object
    setting.__setattr__(x, name, value)


PUT: dict[str, Callable[[Any, Any, Any], None]] = {  # how to store what such a read gives
    "attr": _set,
    **dict.fromkeys(("item", "get", "global"), operator.setitem),
    "cell": lambda x, _, value: setattr(x, "cell_contents", value),
}
