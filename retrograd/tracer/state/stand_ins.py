"""Replacements of some builtins and functions of NumPy in traced code: they answer as they would in plain code.

A traced value has the attributes that its array, or its number, has. A stand-in for a function is that function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..array import Tracer
from ..foreign import adviser
from ..interception import UFUNC_METHODS, StandIn
from ..python_numbers import LOOK_ALIKES
from ..trace import READER
from .attributes import global_variable, lacks
from .classes import is_a
from .finished import Finished


def plain(x: Any) -> Any:
    """What a plain program has in the place of an object."""
    return x.shadow if type(x) in TRACED else x.original if type(x) is StandIn else x


def itself(x: Any) -> Any:
    """The function that a stand-in stands for; anything else is what it is, a traced value, too."""
    return x.original if type(x) is StandIn else x


def type_of(*args: Any, **options: Any) -> Any:
    """``type``: of a traced value, what NumPy would answer."""
    return type(*map(plain, args), **options)


def has_attribute(*args: Any, **options: Any) -> bool:
    """``hasattr``: of a traced value, what NumPy would answer."""
    found = hasattr(*map(plain, args), **options)
    x, name = args
    reader = READER.get()
    if reader is None or type(x) in OF_INTEREST:
        return found
    if reader.sees(x):
        reader.note(x, "has", name, found)
    elif is_a(x, ModuleType):
        global_variable(reader, vars(x), name)
    elif not found:
        lacks(reader, x, name)
    return found


def get_attribute(x: Any, name: str, *default: Any) -> Any:
    """``getattr``: of a traced value what NumPy has under a name, and nothing else."""
    if type(x) is StandIn:  # of ``np.add`` the methods for traced values, such as ``reduce``
        return getattr(x if name in UFUNC_METHODS else x.original, name, *default)
    if hasattr(type(x), name) > hasattr(x.shadow, name):
        return getattr(x.shadow, name, *default)
    if hasattr(type(x), name) < hasattr(x.shadow, name):
        raise adviser().refusal(f"the attribute {name} of a traced value is read", NO_ATTRIBUTE)
    return getattr(x, name, *default)


def set_attribute(x: Any, name: str, value: Any) -> None:
    """``setattr`` of a traced value, or of a function of NumPy's."""
    found = plain(x)
    setattr(x if type(x) is not StandIn and hasattr(found, name) else found, name, value)


class Asking(NamedTuple):
    """A function that asks what some of its arguments are, and what is called in its place for traced ones."""

    instead: Callable[..., Any]
    asked: tuple[str, ...]  # the parameters that are asked, the first ones; the others mean what they always do


def on(found: Callable[[Any], Any], f: Callable[..., Any], *asked: str) -> Asking:
    """The function itself, with what is found in the place of the arguments that it asks."""
    count = len(asked)

    def instead(*args: Any, **options: Any) -> Any:
        options |= {name: found(options[name]) for name in asked if name in options}
        return f(*map(found, args[:count]), *args[count:], **options)

    return Asking(instead, asked)


def by(rightly: Callable[..., Any], f: Callable[..., Any], counts: tuple[int, ...]) -> Asking:
    """Another function, of an object and a name. It gets right calls alone: ``f`` itself raises its error at others."""
    asked = "object", "name"
    wrongly = on(plain, f, *asked).instead

    def instead(*args: Any, **options: Any) -> Any:
        right = len(args) in counts and not options and is_a(args[1], str)
        return (rightly if right else wrongly)(*args, **options)

    return Asking(instead, asked)


TRACED = frozenset({Tracer, Finished})
OF_INTEREST = TRACED | {StandIn}
NO_ATTRIBUTE = "use the NumPy function of the same purpose, or return the value"
ASKINGS: dict[Any, Asking] = {
    type: Asking(type_of, ("object",)),
    dir: on(plain, dir, "object"),
    vars: on(plain, vars, "object"),
    np.dtype: on(plain, np.dtype, "dtype"),
    np.issubdtype: on(plain, np.issubdtype, "arg1", "arg2"),
    np.promote_types: on(plain, np.promote_types, "type1", "type2"),
    np.finfo: on(plain, np.finfo, "dtype"),
    np.iinfo: on(plain, np.iinfo, "type"),
    id: on(itself, id, "object"),  # of a traced value the one that code which is not observed sees: ``map(id, values)``
    operator.is_: on(itself, operator.is_, "a", "b"),
    operator.is_not: on(itself, operator.is_not, "a", "b"),
    hasattr: Asking(has_attribute, ("object", "name")),
    getattr: by(get_attribute, getattr, (2, 3)),
    setattr: by(set_attribute, setattr, (3,)),
    delattr: on(plain, delattr, "object", "name"),
    bytearray: on(bytes, bytearray, "source"),
}
KINDS = frozenset(map(type, ASKINGS))
STAND_INS: dict[Any, Any] = {
    type: type_of,
    hasattr: has_attribute,
    float: LOOK_ALIKES["float"],
    complex: LOOK_ALIKES["complex"],
}


def in_call(f: Any, args: Any, names: tuple[str, ...] = ()) -> Any:
    """What is called in place of a function with these arguments, of which the last have names.

    It is another one only if the function asks what a traced value, or a stand-in, is.
    """
    if type(f) in KINDS and not OF_INTEREST.isdisjoint(map(type, args)) and (asking := ASKINGS.get(f)) is not None:
        first = len(args) - len(names)
        asked = {*map(type, args[: min(first, len(asking.asked))])}
        asked |= {type(x) for name, x in zip(names, args[first:], strict=True) if name in asking.asked}
        return f if OF_INTEREST.isdisjoint(asked) else asking.instead
    return f
