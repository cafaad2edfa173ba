"""Replacements of some builtins and functions of NumPy in traced code: they answer as they would in plain code.

A traced value has the attributes that its array, or its number, has. A stand-in for a function is that function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..array import Tracer
from ..foreign import adviser
from ..interception import StandIn
from ..python_numbers import LOOK_ALIKES
from ..trace import READER
from .attributes import global_variable, lacks
from .classes import is_a
from .finished import Finished


def type_of(x: Any, *rest: Any, **options: Any) -> Any:
    """``type``: of a traced value, what NumPy would answer."""
    return type(plain(x), *rest, **options)


def has_attribute(x: Any, name: str) -> bool:
    """``hasattr``: of a traced value, what NumPy would answer."""
    if is_a(x, (Tracer, Finished)):
        return hasattr(x.shadow, name)
    found = hasattr(x, name)
    reader = READER.get()
    if reader is not None and reader.sees(x):
        reader.note(x, "has", name, found)
    elif reader is not None and is_a(x, ModuleType):
        global_variable(reader, vars(x), name)
    elif reader is not None and not found:
        lacks(reader, x, name)
    return found


def plain(x: Any) -> Any:
    """What a plain program has in the place of an object."""
    return x.shadow if type(x) in TRACED else x.original if type(x) is StandIn else x


def get_attribute(x: Any, name: str, *default: Any) -> Any:
    """``getattr``: of a traced value what NumPy has under a name, and nothing else."""
    if type(x) is StandIn:  # it has methods for traced values, as ``np.add.reduce``
        return getattr(x, name, *default)
    if type(name) is not str or hasattr(type(x), name) > hasattr(x.shadow, name):
        return getattr(x.shadow, name, *default)
    if hasattr(type(x), name) < hasattr(x.shadow, name):
        raise adviser().refusal(f"the attribute {name} of a traced value is read", NO_ATTRIBUTE)
    return getattr(x, name, *default)


def set_attribute(x: Any, name: str, value: Any) -> None:
    """``setattr`` of a traced value, or of a function of NumPy's."""
    found = plain(x)
    setattr(x if type(x) is not StandIn and hasattr(found, name) else found, name, value)


def itself(x: Any) -> Any:
    """The function that a stand-in stands for; anything else is what it is, a traced value, too."""
    return x.original if type(x) is StandIn else x


def asked_plainly(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that looks at the kinds of its arguments, of plain ones."""
    return lambda *args, **options: f(*map(plain, args), **{k: plain(x) for k, x in options.items()})


def to_bytearray(x: Any, *rest: Any) -> bytearray:
    """``bytearray`` of a traced value."""
    return bytearray(bytes(x), *rest)


TRACED = frozenset({Tracer, Finished})
OF_INTEREST = TRACED | {StandIn}
NO_ATTRIBUTE = "use the NumPy function of the same purpose, or return the value"
STAND_INS: dict[Any, Any] = {
    type: type_of,
    hasattr: has_attribute,
    float: LOOK_ALIKES["float"],
    complex: LOOK_ALIKES["complex"],
}

PLAINLY = (dir, np.dtype, np.issubdtype, np.promote_types, np.finfo, np.iinfo)
# What is called in place of these, where an argument is traced or a stand-in.
IN_CALLS: dict[Any, Callable[..., Any]] = {f: asked_plainly(f) for f in PLAINLY} | {
    id: lambda x: id(itself(x)),  # of a traced value the one that code which is not observed sees: ``map(id, values)``
    operator.is_: lambda x, y: itself(x) is itself(y),
    operator.is_not: lambda x, y: itself(x) is not itself(y),
    type: type_of,
    hasattr: has_attribute,
    getattr: get_attribute,
    setattr: set_attribute,
    bytearray: to_bytearray,
}
KINDS = frozenset(map(type, IN_CALLS))


def in_call(f: Any, args: Any) -> Any:
    """What is called with these arguments in place of a function."""
    if type(f) in KINDS and not OF_INTEREST.isdisjoint(map(type, args)):
        return IN_CALLS.get(plain(f), f)
    return f
