"""Patterns of calls and of results, for servers in C: nested tuples that say what is expected where.

A node of a call's pattern is ``(kind, place, what, parts)``: of a leaf, its place among the traced leaves or among the
others. A node of the results' is a position, or ``(kind, keys, parts)``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from ..tracer.surroundings import SURROUNDINGS
from ..tracer.tree import children, flatten, is_known_dataclass
from .fixed import Fixed
from .signature import Call

LEAF, EQUAL, TYPED, SAME, DIGITS, SEQUENCE, DICT, FIELDS = range(8)  # of calls, as in the C text
TUPLE, LIST, ENTRIES = range(3)  # of results
VALUES = (int, bool, str, bytes)  # static arguments that are known by their value
DEEPEST = 50

Node = tuple[int, int, Any, tuple[Any, ...]]


class NoPattern(Exception):  # noqa: N818 - never leaves this package
    """A container or a leaf that C cannot tell."""


def pattern_of(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Node, Node]:
    """The patterns of the positional arguments and of the others. Raises NoPattern.

    The arguments are those that ``call`` was taken from, with ``Fixed`` around static numbers.
    """
    leaves, spec = flatten((args, kwargs))
    if spec != call.spec or len(leaves) != len(call.leaves) or any(map(operator.is_not, leaves, call.leaves)):
        raise NoPattern
    positional, keywords = children(spec)
    writer = _PatternWriter(call)
    return writer.node(args, positional, 0), writer.node(kwargs, keywords, 0)


class _PatternWriter:
    """Walks over arguments in the order of their structure."""

    def __init__(self, call: Call) -> None:
        self._call, self._at, self._statics = call, 0, 0
        self._traced = {leaf: k for k, leaf in enumerate(call.traced)}

    def node(self, x: Any, spec: Any, depth: int) -> Node:
        """The pattern of one argument, or of a part of it."""
        kind = type(x)
        if depth > DEEPEST:
            raise NoPattern
        if spec.is_leaf():
            return self._leaf(x)
        if x is None:
            return SAME, 0, None, ()
        if kind is Fixed:
            return self._fixed(x.value, depth)
        if kind is dict:
            found = {k: self.node(x[k], sub, depth + 1) for k, sub in zip(spec.entries(), children(spec), strict=True)}
            return DICT, 0, (*x,), tuple([found[key] for key in x])
        if kind in (list, tuple) or (isinstance(x, tuple) and hasattr(kind, "_fields")):
            parts = [self.node(each, sub, depth + 1) for each, sub in zip(x, children(spec), strict=True)]
            return SEQUENCE, kind is list, kind, tuple(parts)
        if is_known_dataclass(kind):
            names = tuple([f.name for f in fields(kind)])
            parts = [self.node(getattr(x, n), s, depth + 1) for n, s in zip(names, children(spec), strict=True)]
            return FIELDS, 0, (kind, names), tuple(parts)
        raise NoPattern

    def _leaf(self, x: Any) -> Node:
        at, self._at = self._at, self._at + 1
        if at in self._traced:
            return LEAF, self._traced[at], None, ()
        place, self._statics = self._statics, self._statics + 1
        if at in self._call.unread or SURROUNDINGS[-1].told(x) == (type(x),):
            return TYPED, place, type(x), ()
        if type(x) in VALUES:
            return EQUAL, place, x, ()
        raise NoPattern

    def _fixed(self, x: Any, depth: int) -> Node:
        if type(x) is float:
            return DIGITS, 0, x, ()
        if type(x) is tuple and depth <= DEEPEST:
            return SEQUENCE, False, tuple, tuple([self._fixed(part, depth + 1) for part in x])
        if x is None:
            return SAME, 0, None, ()
        if type(x) in VALUES:
            return EQUAL, -1, x, ()
        raise NoPattern


def order_of(assemble: Callable[[Sequence[Any]], Any], n: int) -> Any:
    """How results stand in tuples, lists and dicts. None if ``assemble`` does anything else with them."""
    marks = [object() for _ in range(n)]
    places = {id(mark): k for k, mark in enumerate(marks)}
    try:
        whole = assemble(marks)
    except Exception:  # noqa: BLE001 - containers of the user's, which may refuse marks
        return None
    try:
        return _order(whole, places)
    except NoPattern:
        return None


def _order(x: Any, places: dict[int, int]) -> Any:
    kind = type(x)
    if kind in (tuple, list):
        return TUPLE if kind is tuple else LIST, None, tuple([_order(part, places) for part in x])
    if kind is dict:
        return ENTRIES, (*x,), tuple([_order(part, places) for part in x.values()])
    if id(x) not in places:
        raise NoPattern
    return places[id(x)]
