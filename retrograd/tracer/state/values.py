"""Values: what objects hold unseen, and what may never change.

Code in C reads what its classes hold of an object, and leaves no read. So an object of the user's class that has a
class in C above it is known by this value, too; where nothing tells the value, by its identity.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import chain
from types import BuiltinFunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from .classes import BUFFERS, CONTAINERS
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
PLAIN_KINDS = SIMPLE | SIGNED | {tuple}
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


def vars_of(x: Any) -> dict[str, Any]:
    """The attributes of an object, also those in slots."""
    state = object.__getstate__(x)
    parts = state if isinstance(state, tuple) else (state,)
    return {name: v for part in parts if part for name, v in part.items()}


def is_plain(x: Any) -> bool:
    """Whether a value is a number, a text, ``None``, or a tuple that holds nothing else."""
    level = [x]
    while PLAIN_KINDS.issuperset(map(type, level)):
        if not level:
            return True
        level = [*chain.from_iterable([e for e in level if type(e) is tuple])]
    return False
