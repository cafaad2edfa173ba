"""The reads behind the read of an attribute."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...where import OURS
from ..array import Tracer
from .checks import VALUES
from .classes import BUILTIN, PLAIN, SLOTS, attributes_of, is_a
from .finished import Finished
from .libraries import is_library, of_ours
from .reader import StateReader
from .reads import MISSING, same

MADE_OF_IT = (FunctionType, MethodType, functools.partial, *BUILTIN)  # by which an object answers later


def result(reader: StateReader, x: Any) -> Any:
    """What stands for a value; the functions that its use may run are followed."""
    found = reader.seen(x)
    if found is x and type(x) not in PLAIN and not is_a(x, (np.ndarray, Tracer, Finished)):
        reader.meet(x)
    return found


def attribute(reader: StateReader, obj: Any, name: str, value: Any) -> Any:
    """Take note of an attribute that was read; what stands for its value."""
    if type(obj) in PLAIN or is_a(obj, (Tracer, Finished)):
        return value
    if is_a(obj, super):
        proxy: Any = obj
        over(reader, (proxy.__thisclass__, proxy.__self__), name)
        return inherited(reader, (proxy.__thisclass__, proxy.__self__), name, value)
    if is_a(obj, ModuleType):
        return _of_module(reader, obj, name, value)
    if not reader.sees(obj):
        return _of_inside(reader, obj, name, value)
    found = static_member(type(obj), name)
    if is_a(obj, type):
        _of_class(reader, obj, name, value, found)
    elif _is_library_property(found):
        value = _of_library(reader, obj, name, value)
    else:
        _of_instance(reader, obj, name, value, found)
    return reader.adopt(value, obj, name)


def _is_library_property(found: Any) -> bool:
    """Whether a member of a class is a property of a library, whose code is not observed."""
    return is_a(found, property) and is_library(found.fget) and not of_ours(found.fget)


def _of_library(reader: StateReader, obj: Any, name: str, value: Any) -> Any:
    """Take note of what a property of a library gives: it is asked again at each check. The first answer, if it stands.

    An object may be made anew for each answer. Another answer, after a change of what it is made of, has no place that
    can be asked again, so that all of ``obj`` counts as read; and so do functions and objects without attributes.
    """
    own = [*(attributes_of(obj) or {}).values()]
    known, held = reader.answers.setdefault((id(obj), name), (value, own))
    if known is not value:
        unchanged = len(own) == len(held) and all(map(operator.is_, own, held))
        stands = same(known, value) if type(value) in PLAIN else unchanged
        if not stands:
            reader.whole(obj)
        return known if stands else value
    contents = attributes_of(value)
    if _is_data(value):
        reader.note(obj, "property", name, value)
    elif type(contents) is dict and not is_a(value, MADE_OF_IT):
        reader.note(obj, "property", name, value)
        reader.note(reader.adopt(value, obj, name), "property", "__dict__", contents)
    else:
        reader.whole(obj)
    return value


def _is_data(value: Any) -> bool:
    """Whether a check can compare a value that is made anew, or takes it as an input."""
    return is_a(value, (*VALUES, np.ndarray, Finished)) or type(value) is tuple


def _of_module(reader: StateReader, module: ModuleType, name: str, value: Any) -> Any:
    """Of a library's modules only data that may change is state, such as ``os.environ``."""
    names, package = vars(module), module.__name__.partition(".")[0]
    if name == "__dict__":
        reader.root(names)
        return value
    if is_library(module):
        if package in OURS or callable(value) or is_a(value, (ModuleType, np.dtype)):
            return value
    elif name not in names:
        for asked in (name, "__getattr__"):
            global_variable(reader, names, asked)
        reader.meet(names.get("__getattr__"))
        return reader.seen(value)
    global_variable(reader, names, name)
    return reader.adopt(value, names, name)


def global_variable(reader: StateReader, names: dict[str, Any], name: str) -> None:
    """Take note of what a module has under a name, if anything."""
    reader.root(names)
    reader.note(names, "global", name, names.get(name, MISSING))


def _of_inside(reader: StateReader, obj: Any, name: str, value: Any) -> Any:
    """The state of the class of an object that was made inside."""
    cls = type(obj)
    found = static_member(cls, name) if reader.sees(cls) else MISSING
    if found is not MISSING and not is_a(found, SLOTS) and name not in (attributes_of(obj) or ()):
        if is_a(found, property):
            reader.note(cls, "attr", name, found)
        elif type(value) is MethodType:
            kind = "attr" if is_a(found, FunctionType) else "method"
            reader.note(cls, kind, name, value.__func__)
        elif hasattr(found, "__get__"):
            _defined(reader, cls.__mro__, name)
        else:
            reader.note(cls, "attr", name, found)
            return reader.adopt(value, cls, name)
    return result(reader, value)


def _of_class(reader: StateReader, cls: type, name: str, value: Any, found: Any) -> None:
    if name in ("__dict__", "__mro__", "__bases__"):
        return
    if type(value) is MethodType:
        reader.note(cls, "method", name, value.__func__)
    elif is_a(found, property):
        reader.keep(type(cls))
        reader.note(type(cls), "attr", name, found)
    else:
        reader.note(cls, "attr", name, value)


def _of_instance(reader: StateReader, obj: Any, name: str, value: Any, found: Any) -> None:
    own = attributes_of(obj)
    if is_a(value, BUILTIN) and value.__self__ is obj:
        return  # a method of a container, whose call reads
    entry = isinstance(own, dict) and dict.__contains__(own, name)
    if name in ("__dict__", "__class__") or (entry and not hasattr(type(found), "__set__")):
        reader.note(obj, "attr", name, value)
    elif type(value) is MethodType:
        if not is_library(value.__func__):
            reader.note(obj, "method", name, value.__func__)
    elif is_a(found, SLOTS):
        if getattr(obj, name, MISSING) is value:
            reader.note(obj, "attr", name, value)
        else:  # made at each question
            reader.whole(obj)
    elif is_a(found, property) or (hasattr(type(found), "__set__") and not is_library(type(found))):
        reader.keep(type(obj))  # what its function reads is noted there
        reader.note(type(obj), "attr", name, found)
        if is_a(found, property) and reads_unseen(found.fget):
            reader.whole(obj)
    elif found is MISSING:  # by __getattr__, as long as neither the object nor its class has such an attribute
        reader.keep(type(obj))
        reader.note(type(obj), "has", name, False)
        if isinstance(own, dict):
            reader.note(obj, "attr", "__dict__", own)
            reader.adopt(own, obj)
            reader.note(own, "get", name, MISSING)
        if reads_unseen(static_member(type(obj), "__getattr__")):
            reader.whole(obj)
    elif not is_a(found, functools.cached_property):
        reader.note(obj, "attr", name, value)


def reads_unseen(f: Any) -> bool:
    """Whether a function that answers for an object is in C, or of ``collections``: nobody sees what it reads of it."""
    if is_a(f, FunctionType):
        return bool(f.__module__ == "collections")
    return is_library(type(f)) and not of_ours(type(f))


def asked_for(reader: StateReader, obj: Any, name: str) -> None:
    """Take note of what ``getattr(obj, name)`` reads, which the user's code is about to call."""
    if reader.sees(obj) and _is_library_property(static_member(type(obj), name)):
        reader.whole(obj)
    elif not is_a(obj, (type, ModuleType)) and _runs_code(obj, name):  # once, in that call
        attribute(reader, obj, name, None)
    elif (value := getattr(obj, name, MISSING)) is MISSING:
        lacks(reader, obj, name)
    else:
        attribute(reader, obj, name, value)


def _runs_code(obj: Any, name: str) -> bool:
    """Whether a property, a descriptor or ``__getattr__`` answers for an attribute of an object."""
    found = static_member(type(obj), name)
    if found is MISSING:
        answers = static_member(type(obj), "__getattr__") is not MISSING
        return answers and name not in (attributes_of(obj) or ())
    return hasattr(type(found), "__set__") and not is_a(found, SLOTS)


def lacks(reader: StateReader, obj: Any, name: str) -> None:
    """Take note that an object, or its class, has no such attribute."""
    if is_a(obj, ModuleType):
        global_variable(reader, vars(obj), name)
    elif type(obj) not in PLAIN and not is_a(obj, (Tracer, Finished)):
        if reader.sees(obj):
            reader.note(obj, "has", name, False)
        elif reader.sees(type(obj)) and not hasattr(type(obj), name):
            reader.note(type(obj), "has", name, False)


def over(reader: StateReader, given: Any, name: str) -> None:
    """Take note of what ``super(cls, obj).name`` reads: an attribute of one of the classes above."""
    if _is_library_property(_defined(reader, _above(*given), name)):  # which cannot be asked again
        reader.whole(given[1])


def inherited(reader: StateReader, given: Any, name: str, value: Any) -> Any:
    """What stands for the value of ``super(cls, obj).name``: an array belongs to the class that has it."""
    owner = next((c for c in _above(*given) if name in vars(c) and not is_library(c)), type(given[1]))
    return reader.adopt(value, owner, name)


def _above(cls: type, obj: Any) -> tuple[type, ...]:
    mro = (obj if is_a(obj, type) and issubclass(obj, cls) else type(obj)).__mro__
    return mro[mro.index(cls) + 1 :]


def _defined(reader: StateReader, classes: Iterable[type], name: str) -> Any:
    """Take note of which class is the first to have a name, and of what it has there; this member."""
    for c in classes:
        if not is_library(c):
            reader.keep(c)
            reader.note(c, "static", name, vars(c).get(name, MISSING))
        if name in vars(c):
            return vars(c)[name]
    return MISSING


def static_member(cls: type, name: str) -> Any:
    """What a class or one of those above it has under a name, without asking it; ``MISSING`` if nothing."""
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), MISSING)
