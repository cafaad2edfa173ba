"""Values: what tells static arguments, keys of dicts and elements of sets apart, also where Python calls them equal.

Code in C reads what its classes hold of an object, and leaves no read. So an object of the user's class that has a
class in C above it is known by this value, too; where nothing tells the value, by its identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from .arguments import is_watched
from .classes import BUFFERS, CONTAINERS, is_a
from .libraries import is_library

# The value that an object of a class holds unseen, in numbers and texts, whatever methods of the user's say.
READERS: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    str: str.__str__,
    bytes: bytes.__bytes__,
    float: float.__float__,
    complex: complex.__complex__,
    datetime: lambda x: datetime.__reduce_ex__(x, 4),  # with its fold
    date: date.__reduce__,
    time: lambda x: time.__reduce_ex__(x, 4),
    timedelta: timedelta.__reduce__,
    timezone: timezone.__getinitargs__,  # type: ignore[attr-defined]  # which type checkers do not know
    Decimal: Decimal.__reduce__,
    Fraction: lambda x: (x._numerator, x._denominator),
    np.generic: lambda x: (x.dtype, np.generic.tobytes(x)),
    BaseException: lambda x: x.args,
}
OF_PLACES = (*CONTAINERS, *BUFFERS, SimpleNamespace, type, ModuleType, Enum)  # read by elements and by attributes
SIMPLE = frozenset({int, bool, str, bytes, type(None)})  # of which equal ones of one type are alike
SIGNED = frozenset({float, complex})
OBJECT = object.__basicsize__


def reader_of(cls: type) -> Callable[[Any], Any] | None:
    """What gives the value that objects of a class hold unseen; None if they hold none, or nothing tells it."""
    return next((READERS[c] for c in cls.__mro__ if c in READERS), None)


def value_of(x: Any) -> Any:
    """The value that an object holds unseen."""
    read = reader_of(type(x))
    return None if read is None else read(x)


def hides(cls: type) -> bool:
    """Whether objects of a class of the user's hold what nothing tells: a class in C above it has room for it."""
    return not (issubclass(cls, OF_PLACES) or is_library(cls)) and any(map(_is_in_c, cls.__mro__[:-1]))


def _is_in_c(cls: type) -> bool:
    """Whether a class is written in C, and its objects hold more than their head; these make objects themselves."""
    new = vars(cls).get("__new__")
    own = isinstance(new, BuiltinFunctionType) and new.__self__ is cls
    return own and (cls.__basicsize__ > OBJECT or cls.__itemsize__ > 0)


def told(x: Any) -> tuple[Any, ...]:
    """What of a static argument is in the key of a call.

    Reads tell of the user's objects, so that their type is enough, with the value that they hold unseen.
    """
    if not is_watched(x):
        return exactly(x)
    read = None if is_a(x, BaseException) else reader_of(type(x))  # whose arguments may have no hash
    return (type(x),) if read is None else (type(x), read(x))


def exactly(x: Any) -> tuple[Any, ...]:
    """A type, a value, and what tells it from others that are equal: types and signs inside, or which object it is.

    >>> exactly((0.0, 1)) == exactly((-0.0, 1)), exactly((0.0, 1)) == exactly((0.0, True)), exactly("a") == exactly("a")
    (False, False, True)
    """
    cls = type(x)
    if cls in SIMPLE:
        return cls, x
    if cls is frozenset:
        return cls, x, tuple(map(exactly, x))  # equal ones may come in another order
    if cls is range or cls is slice:
        return cls, x, exactly((x.start, x.stop, x.step))
    if cls in SIGNED:
        return cls, repr(x)
    if is_a(x, np.dtype):
        return cls, x, x.char, x.isalignedstruct, repr(x.metadata)
    if is_a(x, tuple) and (cls is tuple or not vars_of(x)):
        return cls, x, tuple(map(exactly, x))
    if is_a(x, (type, Enum, ModuleType)):
        return cls, x, id(x)  # which may say that they equal others
    if is_library(cls):
        return cls, x, value_of(x)
    held = vars_of(x)
    unseen = reader_of(cls) is None and hides(cls)
    if unseen or is_a(x, OF_PLACES) or not all(map(_is_told, held.values())):
        return cls, x, id(x)
    return cls, x, value_of(x), tuple([(name, exactly(v)) for name, v in held.items()])


def _is_told(x: Any) -> bool:
    """Whether ``exactly`` tells an attribute by its value, and not by which object it is."""
    if type(x) in (tuple, frozenset):
        return all(map(_is_told, x))
    if is_dataclass(type(x)) and type(x).__dataclass_params__.frozen:
        return not hides(type(x)) and all(map(_is_told, vars_of(x).values()))
    return type(x) in SIMPLE | SIGNED or is_a(x, (Enum, np.dtype, np.ufunc))


def vars_of(x: Any) -> dict[str, Any]:
    """The attributes of an object, also those in slots."""
    state = object.__getstate__(x)
    parts = state if isinstance(state, tuple) else (state,)
    return {name: v for part in parts if part for name, v in part.items()}
