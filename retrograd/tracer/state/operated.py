"""The observers of operators: what these ask of containers and of objects of libraries is read."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ...where import OURS
from ..array import Tracer
from ..trace import READER
from .classes import BUILTIN, CONTAINERS, PLAIN, is_a
from .finished import Finished
from .followed import TEXTS
from .libraries import is_library, package
from .observer import Observer, observer
from .reader import StateReader
from .stand_ins import itself
from .whole import MANY

ORDER = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
OPERATORS = ({*dir(int), *dir(list)} - {*dir(object)}) | {*ORDER, "__complex__"}  # names of methods
NUMBERS = PLAIN | {Tracer}  # of these, operators read nothing
ALONE = (np.ndarray, np.generic, type, FunctionType, ModuleType, *BUILTIN)  # have no state that operators ask for


class OfNumbers(Observer):
    """An observer of two operands that mostly are numbers or traced values."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        a, b = given
        if type(a) in NUMBERS and type(b) in NUMBERS:
            return given
        return given if READER.get() is None else Observer.__getitem__(self, given)


class Operated(OfNumbers):
    """The operands of ``+``, ``*``, ``|``, ``%`` and their kind: what a container holds goes into the result."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        a, b = given
        if is_a(a, (str, bytes)):  # a format
            formatted.active(reader, b)
            return given
        traced = Tracer in (type(a), type(b))  # which answers for objects of NumPy and SciPy
        for x in given:
            if is_a(x, CONTAINERS) or not (traced and package(type(x)) in OURS):
                elements(reader, x)
        return given


class Augmented(OfNumbers):
    """The operands of ``+=`` and its kind: the first one is changed, if it can be."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        x, other = given
        operated.active(reader, (None, other))
        if is_a(x, (str, bytes, tuple, frozenset)):
            operated.active(reader, given)
        else:
            reader.changed(x)
            reader.lent.into(x, other)
        return given


class Ordered(OfNumbers):
    """The operands of ``<`` and its kind: the elements of containers are compared, too."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        for x in given:
            _read_deeply(reader, x)
        return given


@observer
def compared(reader: StateReader, given: Any) -> Any:
    """The operands of ``is``: which objects they are matters. A function of NumPy's is itself, not its stand-in."""
    a, b = map(itself, given)
    if type(a) not in PLAIN and type(b) not in PLAIN:
        reader.identity(a)
        reader.identity(b)
    return a, b


class Equated(OfNumbers):
    """The operands of ``==`` and ``!=``: of some objects it may matter which ones they are."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        a, b = given
        if type(a) not in PLAIN and type(b) not in PLAIN:
            for x in given:
                _read_deeply(reader, x, reader.identity)
        return given


@observer
def sought(reader: StateReader, given: Any) -> Any:
    """``key in container``."""
    key, x = given
    if type(key) not in PLAIN:
        reader.whole(key)
        reader.identity(key)
    if not is_a(x, CONTAINERS):
        if answers_unseen(reader, x):
            reader.whole(x)
    elif reader.sees(x) and is_a(x, (dict, set, frozenset)) and _is_plain(key):
        reader.note(x, "in", key, key in x)
    else:
        found = reader.contents(x) if reader.sees(x) else x
        if type(key) not in NUMBERS and not is_a(x, (dict, set, frozenset)):
            for element in filter(reader.sees, found):
                _read_deeply(reader, element, reader.identity)
    return given


@observer
def sliced(reader: StateReader, x: Any) -> Any:
    """A container of which a slice is made."""
    if is_a(x, CONTAINERS):
        reader.contents(x)
    else:
        reader.whole(x)
    return x


class Signed(Observer):
    """A value that gets a sign."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        return given if type(given) in NUMBERS or READER.get() is None else Observer.__getitem__(self, given)

    def active(self, reader: StateReader, given: Any) -> Any:
        _read_deeply(reader, given)
        return given


class Formatted(Signed):
    """A value that becomes text, as do those inside of it."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        _read_deeply(reader, given, lambda x: reader.look_up(type(x), TEXTS))
        return given


@observer
def truth(reader: StateReader, x: Any) -> Any:
    """A value whose truth is asked."""
    if reader.sees(x) and is_a(x, CONTAINERS):
        reader.note(x, "truth", None, bool(x))
    elif answers_unseen(reader, x):
        reader.whole(x)
    return x


def _read_deeply(reader: StateReader, x: Any, also: Callable[[Any], None] = lambda x: None) -> None:
    """Take note of what containers hold, and those inside; objects of the user's answer by code that is observed.

    Of many elements of containers that were made inside, only those are looked into that are from outside themselves.
    """
    todo, seen, inside = [x], set[int](), 0
    while todo:
        x = todo.pop()
        if type(x) in NUMBERS or id(x) in seen:
            continue
        seen.add(id(x))
        also(x)
        if is_a(x, CONTAINERS):
            inside += 0 if reader.sees(x) else len(x)
            found = reader.contents(x)
            todo += found if inside < MANY else filter(reader.sees, found)
        elif is_a(x, (np.ndarray, Finished)) or answers_unseen(reader, x):
            reader.whole(x)


def elements(reader: StateReader, x: Any) -> None:
    """Take note of what a container holds; all of an object of a library."""
    if is_a(x, CONTAINERS):
        reader.contents(x)
    elif answers_unseen(reader, x):
        reader.whole(x)


def _is_plain(key: Any) -> bool:
    """Whether a key is a number, a text, or a tuple of these."""
    return type(key) in PLAIN or (type(key) is tuple and PLAIN.issuperset(map(type, key)))


def answers_unseen(reader: StateReader, x: Any) -> bool:
    """Whether an object is from outside, and answers by code of a library, maybe by inherited methods."""
    if type(x) in NUMBERS or not reader.sees(x):
        return False
    if is_a(x, ALONE):
        return is_a(x, np.ndarray) and x.dtype == object
    return is_library(type(x)) or any(package(c) == "collections" or _operates(c) for c in type(x).__mro__)


def _operates(cls: type) -> bool:
    """Whether a class of a library has operators that are not in C, of which the values are known."""
    return any(isinstance(vars(cls).get(name), FunctionType) for name in OPERATORS) and is_library(cls)


operated, augmented, ordered, equated = Operated(), Augmented(), Ordered(), Equated()
signed, formatted = Signed(), Formatted()
