"""The reads behind a call: arguments of code that is not rewritten are read completely."""

from __future__ import annotations

import contextvars
import os
import sys
import weakref
from collections.abc import Iterator
from datetime import date
from functools import _lru_cache_wrapper, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...where import user_frame
from ..array import Tracer
from ..interception import StandIn
from ..trace import CURRENT
from .attributes import asked_for, reads_unseen, static_member
from .caches import Key, asked, question_of
from .classes import BUILTIN, CONTAINERS, PLAIN, attributes_of, is_a
from .followed import MADE_BY
from .libraries import is_library, of_ours, package
from .operated import answers_unseen, elements, truth
from .reader import StateReader
from .reads import MISSING
from .whole import HIDDEN

# Functions that neither keep nor ask what their arguments hold.
NEUTRAL = frozenset({isinstance, issubclass, type, id, callable, super, print, bool, float, int, complex, abs, hasattr})
SHALLOW = frozenset({zip, map, enumerate, filter, reversed, iter, next, list, tuple, dict, set, frozenset})
# What the lazy ones among these give, and iterators of containers: their elements come later.
EMPTY: tuple[Any, ...] = ([], {}, {}.values(), {}.items())
ITERATORS = (*map(iter, EMPTY), *map(reversed, EMPTY), iter(()), iter(set()))
LAZY: tuple[type, ...] = (zip, map, enumerate, filter, reversed, *map(type, ITERATORS))
# Modules whose functions answer anew each time, or read files, but for these; and single functions of others.
UNREPEATABLE = {"time": {"sleep"}, "secrets": {"compare_digest"}, "_uuid": set(), "pathlib": set(), "glob": set()}
UNREPEATABLE_NAMES = {
    "uuid": {"uuid1", "uuid4"},
    "posix": {"urandom", "listdir", "scandir", "stat", "getcwd", "getpid", "times", "getloadavg", "open", "read"},
    "os": {"walk", "listdir", "urandom"},
    "numpy": {"load", "loadtxt", "genfromtxt", "fromfile"},
    "decimal": {"getcontext"},
    "_decimal": {"getcontext"},
}
# Callables of which a second call with numbers and traced values reads no more than the first.
AT_ONCE = frozenset({FunctionType, MethodType, np.ufunc, StandIn, type})
OF_CLASS = frozenset({isinstance, type})
OF_VALUE = frozenset({int, float, complex, abs})
WRITES = frozenset({"append", "appendleft", "add", "insert", "extend", "extendleft", "update", "sort", "reverse"})
CLOCKS = frozenset({"now", "today", "utcnow"})


def call(reader: StateReader, f: Any, args: Any, names: tuple[str, ...] = ()) -> bool:
    """Take note of what a call reads of the callable and of its arguments, of which the last have names.

    False if what it reads depends on numbers among the arguments.
    """
    reader.meet(f)
    _made(reader, f)
    if (question := question_of(f, args, names)) is not None and reader.sees(question[0]):
        _ask(reader, *question)
    if f is os.getenv:
        if args:
            _of_environment(reader, dict(zip(names, args[-len(names) :], strict=False)).get("key", args[0]))
    elif _hands_over(reader, f, args):
        shallow = _hashable(f) and f in SHALLOW and not (f in (map, filter) and args and not _runs_observed(args[0]))
        for x in args:
            if type(x) not in PLAIN and type(x) is not Tracer:
                _handed_over(reader, x, shallow)
                if f is dict and is_a(x, (list, tuple)):
                    reader.tree(x)  # its pairs
    return question is None and f is not os.getenv


def _of_environment(reader: StateReader, name: Any) -> None:
    """Take note of a variable of the environment."""
    held = os.environ._data  # type: ignore[attr-defined]  # what os.environ looks names up in
    key = os.environ.encodekey(name)
    reader.root(held)
    reader.note(held, "get", key, held.get(key, MISSING))


def which(reader: StateReader, f: Any) -> tuple[int, int]:
    """Which function is called, and of which object from outside it is the method, if of any."""
    if type(f) is not MethodType:
        return id(f), 0
    return id(f.__func__), id(f.__self__) if reader.sees(f.__self__) else 0


def _ask(reader: StateReader, cache: Any, key: Key) -> None:
    """Call a function that remembers its results, as the user's code is about to, and take note of the result."""
    reader.root(cache)
    for x in key[0]:  # among these is the object of which it is a method
        reader.identity(x)
    if any(type(x) is Tracer for x in key[0]):  # no call before this recording can have been the same
        return
    trace: Any = CURRENT.get()
    made = len(trace.made)
    reader.busy = False  # the user's function may run, and is observed
    try:
        value = asked(cache, key)
    finally:
        reader.busy = True
    if len(trace.made) > made:  # it has run: what it keeps are arrays for the next recording, values of this one
        value = MISSING
    reader.note(cache, "asked", key, value)
    reader.adopt(value, cache)


def _hands_over(reader: StateReader, f: Any, args: Any) -> bool:
    """Take note of what a call reads of the callable; whether the arguments go to code that is not followed."""
    if _is_unrepeatable(f):
        reader.unchecked(f)
    if is_a(f, weakref.ref):
        if reader.sees(f):
            reader.target(f)
    elif f is object.__getattribute__ and args:
        _question(reader, getattr, args)
    elif f is object.__setattr__:
        reader.lent.call(f, args)
    elif is_a(f, BUILTIN):
        reader.lent.call(f, args)
        return _call_of_builtin(reader, f, args)
    elif type(f) is MethodType and _is_library_method(f) and (f.__self__ is HIDDEN or reader.sees(f.__self__)):
        reader.lent.call(f, args)
        reader.whole(f.__self__)
    elif _is_followed(f):
        if _takes_trees(f):
            for x in args:
                leaves = reader.tree(x)
                for leaf in leaves if _asks(f) else ():
                    if answers_unseen(reader, leaf):
                        reader.whole(leaf)
        return False
    elif reader.sees(f) and not is_a(f, (FunctionType, MethodType, type)):
        reader.whole(f)  # an object that code of a library, or in C, answers for
    return True


def _made(reader: StateReader, f: Any) -> None:
    """Take note of what makes an object, if a callable is a class, or a partial call of one."""
    while is_a(f, partial):
        f = f.func
    if is_a(f, type):
        reader.look_up(f, MADE_BY)


def _handed_over(reader: StateReader, x: Any, shallow: bool) -> None:
    """Take note of an argument that code which is not followed gets."""
    if callable(x):
        reader.meet(x)
        _made(reader, x)
        if (question := question_of(x, ())) is not None:  # of which the arguments are not seen
            reader.unchecked(question[0])
        reader.identity(x)
        if is_a(x, BUILTIN):
            reader.whole(x.__self__)
        elif not shallow and not is_a(x, (FunctionType, MethodType)):
            reader.whole(x)  # a class, or an object that can be called
    elif is_a(x, Iterator) and reader.sees(x):
        reader.note(x, "never", None, None)
    elif not shallow and is_a(x, LAZY):
        _taken_from(reader, x)
    elif not shallow:
        reader.whole(x)
        reader.identity(x)
    else:
        elements(reader, x)


def _taken_from(reader: StateReader, iterator: Any) -> None:
    """Take note of what code that is not followed takes from an iterator made inside: all that it goes over."""
    _, parts, *_ = iterator.__reduce__()
    if is_a(iterator, (map, filter)) and _runs_observed(parts[0]):
        return
    for x in parts:
        if is_a(x, LAZY):
            _taken_from(reader, x)
        else:
            reader.whole(x)


def _is_library_method(f: MethodType) -> bool:
    """Whether a method of an object of a library, or one that a class of the user's inherits from it."""
    inherited = isinstance(f.__func__, FunctionType) and is_library(f.__func__)
    return is_library(type(f.__self__)) or (inherited and not of_ours(f.__func__))


def _runs_observed(f: Any) -> bool:
    """Whether the elements that a function gets are seen where they are used: NumPy's functions get plain arrays."""
    return callable(f) and type(f) not in (StandIn, np.ufunc) and _is_followed(f)


def _call_of_builtin(reader: StateReader, f: Any, args: Any) -> bool:
    """Take note of a call of a function in C; whether the arguments count as read, whole."""
    owner, name = f.__self__, f.__name__
    if f is id and args:
        reader.identity(args[0])
    if f in NEUTRAL:
        if f is bool:
            truth.active(reader, *args)
        elif f in OF_VALUE and args and answers_unseen(reader, args[0]):
            reader.whole(args[0])
        elif f in OF_CLASS and args and reader.sees(args[0]) and not is_library(type(args[0])):
            reader.note(args[0], "attr", "__class__", type(args[0]))
        return False
    if f is globals and (frame := user_frame(sys._getframe())) is not None:
        reader.root(frame.f_globals)
    if f is len or f is vars or f is getattr:
        if args:
            _question(reader, f, args)
        return False
    if name == "cache_clear" and is_a(owner, _lru_cache_wrapper) and reader.sees(owner):
        reader.unchecked(owner)  # what it remembers now is not what the function has read
    if owner is None or is_a(owner, ModuleType):
        return True
    if is_a(owner, type):
        if issubclass(owner, date) and name in CLOCKS:
            reader.unchecked(f)
    elif is_a(owner, contextvars.ContextVar):
        reader.root(owner)
        reader.note(owner, "context", None, owner.get(MISSING))
        if type(value := owner.get(None)) not in PLAIN:
            reader.adopt(value, owner)
    elif name == "__getattribute__":
        _question(reader, getattr, (owner, *args))
    elif not is_a(owner, CONTAINERS):
        reader.whole(owner)
    elif reader.sees(owner):
        if name in WRITES:
            reader.changed(owner)
            return name not in ("append", "add", "insert", "appendleft")
        if name == "get" and is_a(owner, dict) and args and type(args[0]) in PLAIN:
            value = owner.get(args[0], MISSING)
            reader.note(owner, "get", args[0], value)
            reader.adopt(value, owner)
        else:
            reader.contents(owner)
    return True


def _is_unrepeatable(f: Any) -> bool:
    """Whether a function of a library answers anew at each call: a clock, a source of noise, a reader of files."""
    function = f.__func__ if is_a(f, MethodType) else f
    if not is_a(function, (FunctionType, BuiltinFunctionType)):
        return False
    module, name = getattr(function, "__module__", None) or "", function.__name__
    if function in (open, input):
        return True
    if not is_library(function):  # a module of the user's may have such a name
        return False
    if module in UNREPEATABLE:
        return name not in UNREPEATABLE[module]
    return name in UNREPEATABLE_NAMES.get(module, ())


def _question(reader: StateReader, f: Any, args: Any) -> None:
    """``getattr`` of an object, and ``len`` and ``vars`` of one from outside, read one thing of it."""
    obj = args[0]
    if f is getattr:
        if len(args) > 1 and is_a(args[1], str):
            asked_for(reader, obj, str.__str__(args[1]))
    elif is_a(obj, ModuleType):
        reader.root(vars(obj))
    elif not reader.sees(obj):
        return
    elif f is len:
        if is_a(obj, CONTAINERS):
            reader.note(obj, "len", None, len(obj))
        elif answers_unseen(reader, obj):
            reader.whole(obj)
    else:
        own = attributes_of(obj)
        reader.note(obj, "attr", "__dict__", own)
        reader.adopt(own, obj)


def _is_followed(f: Any) -> bool:
    """Whether what a call runs is observed, or ours."""
    if type(f) is MethodType:
        return not is_library(f.__func__) or type(f.__self__) is Tracer or of_ours(type(f.__self__))
    if is_a(f, FunctionType) and f.__globals__.get("__name__", "").partition(".")[0] == "retrograd":
        return True
    if is_a(f, (FunctionType, type)):
        return not is_library(f) or (_hashable(f) and f in NEUTRAL)
    return of_ours(type(f)) or not (is_library(type(f)) or reads_unseen(static_member(type(f), "__call__")))


def _asks(f: Any) -> bool:
    """Whether it stands for a function of NumPy: ``np.sum(matrix)`` asks the object of another library."""
    return type(f) is StandIn and package(f.original) == "numpy"


def _takes_trees(f: Any) -> bool:
    """Whether it is a function of ours, or a compiled one, which takes its arguments apart."""
    return of_ours(type(f)) or (is_a(f, FunctionType) and is_library(f))


def _hashable(f: Any) -> bool:
    return getattr(type(f), "__hash__", None) is not None and is_a(f, (type, FunctionType, *BUILTIN))
