"""Exact: what tells one value from all others, also from those that Python calls equal.

The walk over a value runs neither ``__eq__`` nor ``__hash__`` of the user's, and needs no recursion: it writes what it
meets into one flat row of types, numbers and texts, and identities. Objects are told by what they hold if all of that
is told so; otherwise it matters which object it is.
"""

from __future__ import annotations

import copyreg
import marshal
import operator
import struct
from array import array
from cmath import isnan
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import chain, repeat
from types import BuiltinFunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..tree import Spec
from .arguments import is_foreign_array, is_watched
from .classes import attributes_of, is_a
from .libraries import is_library, package
from .values import OF_PLACES, READERS, SIGNED, SIMPLE, hides, is_plain, reader_of, vars_of

CONSTANT = (type, Enum, ModuleType, np.ufunc, BuiltinFunctionType)  # told by which they are, wherever they stand
BASIC = SIMPLE | {float}  # of which many are told at once
MANY = 16  # elements that are told at once where that is possible
OPEN = frozenset({list, dict, set})  # told by their contents, unless another object holds them
ENDS = (object(),)
OURS = __name__.partition(".")[0]


class Exact:
    """What tells a value. Two are equal if their rows are, and the structures in them."""

    __slots__ = ("_hash", "_kept", "_parts", "_row", "_slotted", "_specs", "_watched", "value")

    def __init__(self, value: Any) -> None:
        self.value, walk = value, _RowWriter(value)
        self._row, self._specs = tuple(walk.row), walk.specs
        self._kept = walk.kept  # what is told by its identity lives as long
        self._hash = hash((self._row, *self._specs))
        self._watched = walk.watched
        self._slotted = any(map(_has_slots, walk.watched or ()))
        self._parts = [*_parts(walk.watched or [], self._slotted)]

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Exact or self._hash != other._hash or self._row != other._row:
            return False
        try:
            return bool(self._specs == other._specs)
        except Exception:  # noqa: BLE001 - keys of the user's that cannot be compared
            return False

    @property
    def fixed(self) -> bool:
        """Whether the same object is told so at any time."""
        return self._watched == []

    @property
    def watched(self) -> bool:
        """Whether ``changed`` knows of all changes."""
        return self._watched is not None

    def changed(self) -> bool:
        """Whether the objects may be told in another way now, since they hold others."""
        assert self._watched is not None
        return any(map(operator.is_not, chain(_parts(self._watched, self._slotted), ENDS), chain(self._parts, ENDS)))


class _Holder(NamedTuple):
    """The outermost object that is told by what it holds, and how far the walk was when it came there."""

    x: Any
    todo: int
    row: int
    met: int


class _RowWriter:
    """A walk over what a value holds, from outside to inside."""

    def __init__(self, x: Any) -> None:
        self.row: list[Any] = []
        self.kept: list[Any] = []
        self.specs: list[Any] = []
        self.watched: list[Any] | None = []  # objects of the user's that are told by their attributes
        self._todo = [x]
        self._outer: _Holder | None = None
        self._met: dict[int, tuple[int, Any]] = {}  # those that are told by what they hold
        self._go()

    def _go(self) -> None:
        todo, row = self._todo, self.row
        while todo:
            if self._outer is not None and len(todo) == self._outer.todo:
                self._outer = None
            x = todo.pop()
            cls = type(x)
            row.append(id(cls))
            if cls in SIMPLE:
                row.append(x)
            elif cls is float or cls is complex:
                row.append(number_text(x))
            elif cls is tuple or cls is frozenset:
                self._elements((*x,))
            else:
                self._kind(x, cls)

    def _elements(self, x: tuple[Any, ...]) -> None:
        """Elements in their order; those of one simple type at once."""
        kind = type(x[0]) if x else tuple
        if kind not in BASIC or not all(map(operator.is_, map(type, x), repeat(kind))):
            text = _as_text(x) if len(x) >= MANY else None
            self.row += (len(x), text)
            self._todo += reversed(x) if text is None else ()
        elif kind in SIMPLE:
            self.row += (len(x), id(kind), *x)
        else:
            self.row += (len(x), id(kind), array("d", x).tobytes())

    def _kind(self, x: Any, cls: type) -> None:
        self.kept.append(cls)
        if cls is Spec:
            self.specs.append(x)
        elif cls is range or cls is slice:
            self._todo.append((x.start, x.stop, x.step))
        elif is_a(x, np.dtype):
            self._dtype(x)
        elif is_a(x, tuple) and not attributes_of(x):
            self._elements((*tuple.__iter__(x),))
        elif is_a(x, CONSTANT):
            self._itself(x)
        elif cls in OPEN:
            self._open(x)
        elif _is_told_by_identity(cls):
            self._identity(x)
        elif package(cls) == OURS:
            self.row.append(x)  # it compares what tells it, as the template of a function value does
        elif is_library(cls):
            self._of_library(x, cls)
        else:
            self._of_user(x, cls)

    def _dtype(self, x: np.dtype[Any]) -> None:
        self.row += (x, x.char, x.isalignedstruct)
        notes = (*(x.metadata or {}).items(),)
        self._todo.append((notes, (*(x.fields or {}).items(),), x.subdtype))

    def _itself(self, x: Any) -> None:
        self.kept.append(x)
        self.row += ("is", id(x))

    def _identity(self, x: Any) -> None:
        """An object that is told by which it is; so is then the outermost one that holds it."""
        outer = self._outer
        if outer is None:
            self._itself(x)
            return
        del self._todo[outer.todo :], self.row[outer.row :]
        self._outer, self.watched = None, None  # for it may hold something else later
        while len(self._met) > outer.met:  # these are not told after all
            self._met.popitem()
        self._itself(outer.x)

    def _holds(self, x: Any, watched: bool) -> bool:
        """Begin with what an object holds, unless the walk has met it: which places hold one object is told, too."""
        met = self._met.get(id(x))
        if met is not None:
            self.row += ("again", met[0])
            return False
        if self._outer is None:
            self._outer = _Holder(x, len(self._todo), len(self.row), len(self._met))
        self._met[id(x)] = len(self._met), x
        if not watched:
            self.watched = None
        elif self.watched is not None:
            self.watched.append(x)
        return True

    def _open(self, x: Any) -> None:
        if self._outer is not None and type(self._outer.x) not in OPEN:
            self._identity(x)
        elif self._holds(x, False):
            self._todo.append((*(x.items() if type(x) is dict else x),))

    def _of_library(self, x: Any, cls: type) -> None:
        """Immutable ones by their value, others as they would be pickled."""
        read = READERS.get(np.generic if is_a(x, np.generic) and package(cls) == "numpy" else cls)
        if read is not None:
            self._todo.append(read(x))
        elif self._holds(x, False):
            try:
                reduce: Callable[[Any], Any] = copyreg.dispatch_table.get(cls, _reduced)
                made, *parts = reduce(x)
            except Exception:  # noqa: BLE001 - a library may refuse this in any way
                self._identity(x)
            else:
                self._itself(made)
                self._todo.append((*parts,))

    def _of_user(self, x: Any, cls: type) -> None:
        read = reader_of(cls)
        if (read is None and hides(cls)) or is_a(x, OF_PLACES):
            self._identity(x)
        elif self._holds(x, True):
            held = vars_of(x)
            self.row += (len(held), *held)
            self._todo += reversed(held.values())
            self._todo.append(None if read is None else read(x))


def told(x: Any) -> tuple[Any, ...]:
    """What of a static argument is in the key of a call.

    Reads tell of the user's objects, so that their type is enough, with the value that they hold unseen.
    """
    cls = type(x)
    if not is_watched(x):
        return exactly(x) if cls is slice or not is_unhashable(cls) else (cls, x)
    read = None if is_a(x, BaseException) else reader_of(cls)  # whose arguments may have no hash
    return (cls,) if read is None else (cls, *exactly(read(x)))


def is_unhashable(cls: type) -> bool:
    """Whether objects of a class have no hash."""
    hashed: Any = cls.__hash__
    return hashed is None


def exactly(x: Any) -> tuple[Any, ...]:
    """What tells a value from all others.

    >>> exactly((0.0, 1)) == exactly((-0.0, 1)), exactly((0.0, 1)) == exactly((0.0, True)), exactly("a") == exactly("a")
    (False, False, True)
    """
    cls = type(x)
    return (cls, x) if cls in SIMPLE else (cls, number_text(x)) if cls in SIGNED else (Exact(x),)


def number_text(x: complex) -> str | bytes:
    """What tells a number from all others: its text, or the bits of a nan, whose text has no sign."""
    return struct.pack("dd", x.real, x.imag) if isnan(x) else repr(x)


def _is_told_by_identity(cls: type) -> bool:
    """Whether two objects of a class are never equal, or arrays, whose contents change."""
    equal: Any = cls.__eq__
    return equal is object.__eq__ or issubclass(cls, np.ndarray) or is_foreign_array(cls)


def _has_slots(x: Any) -> bool:
    """Whether an object has other attributes than those in its dictionary."""
    return not type(x).__dictoffset__ or bool(vars(type(x)).get("__slotnames__"))  # which ``vars_of`` has set


def _as_text(x: tuple[Any, ...]) -> bytes | None:
    """Numbers and texts in tuples, at once; None if there is something else, or too many tuples in each other."""
    try:
        text = marshal.dumps(x, 0) if is_plain(x) else None  # later formats tell equal texts apart
    except ValueError:
        return None
    return None if text is None or b"nan" in text else text  # which has no sign there


def _reduced(x: Any) -> Any:
    return x.__reduce_ex__(4)


def _parts(objects: list[Any], slotted: bool) -> Iterator[Any]:
    """The names and the values of the attributes that objects have at present."""
    held = [vars_of(x) for x in objects] if slotted else [x.__dict__ for x in objects]
    return chain.from_iterable([part for own in held for part in (own, own.values(), ENDS)])
