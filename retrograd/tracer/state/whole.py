"""Whole: what counts as read of an object that code which is not followed gets: all that it holds, and its classes."""

from __future__ import annotations

import contextvars
import marshal
import random
import weakref
from abc import abstractmethod
from collections.abc import Iterator
from types import FunctionType, MappingProxyType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..array import Tracer
from ..containers import is_container, parts_of
from ..generators import check_ordered
from ..trace import STATEFUL, stateful
from .classes import BUFFERS, BUILTIN, CONTAINERS, PLAIN, SLOTS, VIEWS, attributes_of, is_a
from .code_rewriter import CodeRewriter
from .finished import Finished
from .followed import ASKED, WRAPPERS, Followed
from .libraries import is_library, package
from .reads import MISSING, members, types

# Packages whose objects are taken as they are: loggers, locks, what describes types, what is compiled; and ours.
OPAQUE = frozenset(
    {"logging", "threading", "_thread", "typing", "abc", "inspect", "warnings", "retrograd", "optree", "numba"}
)
HIDDEN = random.random.__self__  # type: ignore[attr-defined]  # from which ``random.random()`` and its kind draw
TOLD = frozenset({bool, int, float, complex, str, type(None)})  # types that marshal tells from all others
NUMBERS = frozenset(np.dtype(code).type for code in f"?{np.typecodes['AllInteger']}{np.typecodes['AllFloat']}")
MANY = 64  # elements from which a container of numbers is compared at once
MOST = 4000  # places in an object that is handed over whole
CODE = (FunctionType, *WRAPPERS, *SLOTS)  # members of a class that hold no state


class Whole(Followed):
    """A reader that takes note of all that an object holds."""

    def __init__(self, rewritten: CodeRewriter) -> None:
        super().__init__(rewritten)
        self._covered: dict[int, Any] = {}  # containers whose contents are known as a whole
        self._arrays: dict[int, tuple[Any, str | None]] = {}
        self._watches = [(kind.classes, kind.watch()) for kind in STATEFUL]

    @abstractmethod
    def sees(self, x: Any) -> bool:
        """Whether an object is outside."""

    @abstractmethod
    def seen(self, x: Any) -> Any:
        """What stands for a value in traced code."""

    @abstractmethod
    def rely_on(self, array: np.ndarray[Any, Any]) -> None:
        """Take note that the contents of an array were read."""

    def whole(self, x: Any) -> None:
        """Everything in an object counts as read: code that is not followed gets it."""
        todo, seen = [x], set()
        while todo:
            x = todo.pop()
            if type(x) in PLAIN or id(x) in seen or is_a(x, (Tracer, FunctionType)):
                continue
            seen.add(id(x))
            if len(seen) > MOST:
                self.note(x, "never", None, None)
                return
            if (kind := stateful(x)) is not None:
                next(watch for classes, watch in self._watches if classes is kind.classes).add(x)
            elif is_a(x, (np.ndarray, Finished)):
                if id(x) in self._arrays and type(x) is np.ndarray:
                    self.rely_on(x)
                elif is_a(x, np.ndarray) and x.dtype == object and self.sees(x):
                    todo += self._elements(x)
            elif is_a(x, VIEWS) and self.sees(x):
                mapping = x.mapping
                self.adopt(mapping, x)
                todo.append(mapping)
            elif is_a(x, CONTAINERS) and package(type(x)) != "scipy":
                todo += self.contents(x)
            elif is_a(x, (MethodType, *BUILTIN)):
                todo.append(x.__self__)
            elif is_a(x, contextvars.ContextVar):
                self.note(x, "context", None, x.get(MISSING))
            elif is_a(x, BUFFERS):
                self.note(x, "buffer", None, bytes(x))
            elif is_a(x, (type, ModuleType)):
                todo += self._members(x)
            elif is_a(x, weakref.ref):
                todo.append(self.target(x))
            elif is_a(x, (Iterator, random.Random)):
                if x is HIDDEN:
                    self.root(x)
                if is_a(x, random.Random) and self.sees(x):
                    check_ordered()
                self.note(x, "never", None, None)
            else:
                todo += self._state(x)

    def tree(self, x: Any) -> list[Any]:
        """The containers of an argument of one of our functions count as read, with what they hold; its leaves."""
        todo, leaves = [x], []
        while todo:
            x = todo.pop()
            if is_a(x, CONTAINERS):
                todo += self.contents(x)
            elif self.sees(x) and is_container(type(x)):
                todo += self._state(x)
            else:
                leaves.append(x)
        return leaves

    def leaves(self, tree: Any, leaves: list[Any]) -> list[Any]:
        """The containers from outside in a result count as read; what stands for its ``leaves``."""
        todo = [tree]
        while todo:
            x = todo.pop()
            parts = parts_of(x)
            if parts and self.sees(x):
                parts = self.contents(x) if is_a(x, CONTAINERS) else self._state(x)
            todo += parts
        return [self.seen(x) for x in leaves]

    def target(self, x: weakref.ref[Any]) -> Any:
        """Take note of what a weak reference points at, if anything; the object."""
        found = x()
        self.note(x, "target", None, found)
        self.adopt(found, x)
        return found

    def contents(self, x: Any) -> list[Any]:
        """Take note of what a container holds; its elements."""
        if not self.sees(x) or id(x) in self._covered:
            return list(x.values() if is_a(x, dict) else x)
        if len(x) >= MANY and type(x) in (list, tuple, dict) and self._cover(x):
            return []
        if is_a(x, (dict, MappingProxyType)):
            self.note(x, "keys", None, [*x])
            kind, items = ("get", dict.items(x)) if is_a(x, dict) else ("item", x.items())
            found = list(items)
            for k, v in found:
                self.note(x, kind, k, v)
                self.adopt(v, x)
            return [v for _, v in found]
        if is_a(x, (set, frozenset)):
            if type(x) is not frozenset:  # another one may stand in the place of one of the user's
                self.note(x, "set", None, [*x])
        else:
            self.note(x, "len", None, len(x))
            for k, v in enumerate(x):
                self.note(x, "item", k, v)
        for v in x:
            self.adopt(v, x)
        return [*x]

    def _cover(self, x: Any) -> bool:
        """Take note of all numbers and texts in a large container at once; False if it holds anything else."""
        todo, found, kinds = [x], dict[int, Any](), set[type]()
        while todo:
            inner = todo.pop()
            if type(inner) not in (list, tuple, dict):
                kinds.add(type(inner))
            elif id(inner) not in found:
                found[id(inner)] = inner
                todo += (*inner, *inner.values()) if type(inner) is dict else inner
        if not kinds <= TOLD | NUMBERS:
            return False
        try:
            data = marshal.dumps(x, 2)  # tells signs apart
        except ValueError:  # too deep
            return False
        self.note(x, "data", None, data)
        if kinds & NUMBERS:  # of which it tells the bytes alone
            self.note(x, "types", None, types(x))
        self._covered |= found
        return True

    def _state(self, x: Any) -> list[Any]:
        """Take note of an object's attributes; their values."""
        t = type(x)
        if t is slice:  # whose bounds never change
            return [x.start, x.stop, x.step]
        if package(t) in OPAQUE and is_library(t):
            return []
        found = []
        own = attributes_of(x)
        if type(own) is dict:
            self.adopt(own, x)
            found += self.contents(own)
        for k in _slots(t):
            v = getattr(x, k, MISSING)
            if v is not MISSING:
                self.note(x, "attr", k, v)
                self.adopt(v, x)
                found.append(v)
        self._follow_methods(t)
        return [*found, *self._members(t)]

    def _members(self, x: Any) -> list[Any]:
        """Take note of what the user's classes and modules define, but for most special names; the values."""
        found = []
        for place in x.__mro__ if is_a(x, type) else (x,):
            if is_library(place):
                continue
            self.root(place)
            self.note(place, "members", None, members(place))
            asked = [name for name in ASKED if name in vars(place)] if isinstance(place, type) else []
            for name in asked:
                self.note(place, "static", name, vars(place)[name])
            for name in members(place):
                value = vars(place)[name]
                self.note(place, "static", name, value)
                if not is_a(value, CODE):
                    self.adopt(value, place)
                    found.append(value)
        return found

    def _elements(self, x: np.ndarray[Any, Any]) -> list[Any]:
        """Take note of what an array of objects holds."""
        found: list[Any] = x.ravel().tolist()
        self.note(x, "elements", None, found)
        for v in found:
            self.adopt(v, x)
        return found


def _slots(t: type) -> list[str]:
    return [
        k
        for c in t.__mro__
        if "__slots__" in vars(c)  # not a class in C
        for k, v in vars(c).items()
        if is_a(v, MemberDescriptorType)
    ]
