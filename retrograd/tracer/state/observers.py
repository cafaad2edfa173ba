"""Observers: the objects that receive the values read by rewritten code.

Outside of a trace, an observer returns the value unchanged. Inside a trace, it records values read from an object
from outside, treats them as outside, too, and replaces an array by a tracer.
"""

from __future__ import annotations

import functools
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from ..array import Tracer
from ..interception import INTERCEPTION, StandIn
from ..python_numbers import LOOK_ALIKES
from ..trace import CURRENT, READER
from .attribute_observers import attribute_called
from .attributes import inherited, over, result
from .called import AT_ONCE, call, which
from .classes import BUFFERS, CONTAINERS, PLAIN, is_a, is_stateless
from .code_rewriter import CodeRewriter
from .iterated import Spread, iterated, unpacked, yielded
from .libraries import is_library
from .observer import Observer, observer
from .operated import (
    answers_unseen,
    augmented,
    compared,
    equated,
    formatted,
    operated,
    ordered,
    signed,
    sliced,
    sought,
    truth,
)
from .raised import Missed, module_by_name
from .reader import StateReader
from .reads import MISSING
from .stand_ins import ASKINGS, STAND_INS, in_call
from .stores import StoredAttribute, StoredGlobal, contents, stored_cell, stored_item

FLAT = PLAIN | {Tracer}
BUILT = frozenset({list, tuple})  # whose use runs no code of the user's
MADE = BUILT | {Tracer}


class Item(Observer):
    """``x[key]``."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        value, obj, key = given
        reader = READER.get()
        if reader is None or (type(obj) is Tracer and type(key) is not list and not _asks(reader, key)):
            return value
        if type(key) in (int, str) and (id(obj), "get" if type(obj) is dict else "item", key) in reader.reads:
            return reader.seen(value)
        if type(obj) in BUILT and type(key) in (int, slice) and type(value) in MADE and not reader.sees(obj):
            return reader.standing(value)
        return Observer.__getitem__(self, given)

    def passive(self, given: Any) -> Any:
        return given[0]

    def active(self, reader: StateReader, given: Any) -> Any:
        value, obj, key = given
        if type(key) not in PLAIN:
            reader.whole(key)
            reader.identity(key)
        if not reader.sees(obj) or is_a(obj, Tracer):
            return reader.seen(value)
        if is_a(obj, dict):
            reader.note(obj, "get", key, value if dict.__contains__(obj, key) else MISSING)
        elif is_a(obj, CONTAINERS) and (type(key) in (int, bool) or is_a(obj, MappingProxyType)):
            reader.note(obj, "item", key, value)
        elif is_a(obj, CONTAINERS):
            reader.contents(obj)
            if type(key) is slice:  # a list of its own, with the same elements
                return reader.seen(value)
        elif is_a(obj, BUFFERS):
            reader.whole(obj)
        elif is_library(type(obj)):
            reader.note(obj, "item", key, value)
        elif answers_unseen(reader, obj):
            reader.whole(obj)
        return reader.adopt(value, obj, key if isinstance(key, str) and key.isidentifier() else None)


def _asks(reader: StateReader, key: Any) -> bool:
    """Whether an index of a traced value is a tuple from outside that holds objects with a state."""
    return type(key) is tuple and reader.sees(key) and not all(map(is_stateless, key))


SAME = frozenset({FunctionType, type, BuiltinFunctionType})  # which stand for themselves, besides modules


class Global(Observer):
    """A global, or a builtin, by name. What stands for some functions in traced code replaces them here."""

    __slots__ = ("called",)

    def __init__(self, name: str, called: bool) -> None:
        super().__init__(name)
        self.called = called

    def __getitem__(self, value: Any) -> Any:
        reader = READER.get()
        if reader is None or type(value) is Tracer or reader.busy or CURRENT.get() is None:
            return value
        names = sys._getframe(1).f_globals
        key = (reader.number, id(names), id(value))
        if key == self._last and (type(value) in SAME or is_a(value, ModuleType)):  # NumPy has a class of ours
            return STAND_INS.get(value, value) if self.called else value
        self._last = key
        return read_global(reader, names, self.name, value, self.called)


def read_global(reader: StateReader, names: dict[str, Any], name: str, value: Any, called: bool) -> Any:
    """Take note of a global that was read; what stands for its value."""
    if name in names and type(value) is not type(LOOK_ALIKES["float"]):
        reader.root(names)
        reader.note(names, "global", name, value)
        if is_a(value, (StandIn, ModuleType)):
            return value
        value = meaning(reader.adopt(value, names, name))
    if called and type(value) in (type, BuiltinFunctionType):
        return STAND_INS.get(value, value)
    return value


def meaning(x: Any) -> Any:
    """What a function of a library means in traced code, also within a partial call."""
    if type(x) is functools.partial:
        inner = meaning(x.func)
        return x if inner is x.func else functools.partial(inner, *x.args, **x.keywords)
    return INTERCEPTION.meaning(x)


class Name(Observer):
    """A name in the body of a class, of a module or of ``eval``."""

    __slots__ = ()

    def __getitem__(self, value: Any) -> Any:
        reader = READER.get()
        if reader is None or reader.busy or CURRENT.get() is None:
            return value
        frame = sys._getframe(1)
        if self.name in frame.f_locals and frame.f_locals is not frame.f_globals:
            return reader.seen(value)
        return read_global(reader, frame.f_globals, self.name, value, False)


class Cell(Observer):
    """A variable of an enclosing function."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        reader = READER.get()
        if reader is None:
            return given[1]
        if type(given[1]) is Tracer and reader.is_own(given[0]):
            return given[1]
        key = (reader.number, id(given[0]), id(given[1]))
        if key == self._last:
            return reader.seen(given[1])
        found = Observer.__getitem__(self, given)
        if found is given[1] and not reader.busy and not reader.is_own(given[0]) and CURRENT.get() is not None:
            self._last = key
        return found

    def passive(self, given: Any) -> Any:
        return given[1]

    def active(self, reader: StateReader, given: Any) -> Any:
        cell, value = given
        if reader.is_own(cell) or contents(cell) is not value:  # the namespace of a class may hold the name, too
            return result(reader, value)
        reader.note(cell, "cell", None, value)
        return meaning(reader.adopt(value, cell, self.name))


class Result(Observer):
    """A value that comes from code which may not be observed, or a parameter."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        kind = type(given)
        if kind is Tracer or kind in PLAIN or (reader := READER.get()) is None:
            return given
        return reader.standing(given) if kind in BUILT else Observer.__getitem__(self, given)

    def active(self, reader: StateReader, given: Any) -> Any:
        return result(reader, given)


class Parameter(Result):
    """The value of a parameter, which may be a default; a function of a library may mean another one there."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        return meaning(result(reader, given))


class Passed(Observer):
    """A callable and its arguments, of which the last have names: code that is not followed reads them whole.

    It gives back what is called.
    """

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names

    def __getitem__(self, given: Any) -> Any:
        reader = READER.get()
        if reader is None:
            return given[0]
        f = given[0]
        if f is len:
            if not reader.sees(given[-1]):
                return f
            key = (reader.number, id(len), id(given[-1]))
            if key == self._last:
                return f
            if not reader.busy and CURRENT.get() is not None:
                self._last = key
        elif type(f) in AT_ONCE and which(reader, f) in reader.called and _reads_no_more(f, given[1:]):
            return f
        elif (instead := in_call(f, given[1:], self.names)) is not f:
            return instead
        return Observer.__getitem__(self, given)

    def passive(self, given: Any) -> Any:
        return given[0]

    def active(self, reader: StateReader, given: Any) -> Any:
        f = given[0]
        if call(reader, f, given[1:], self.names) and type(f) in AT_ONCE and f not in ASKINGS:
            reader.called[which(reader, f)] = f.__func__ if type(f) is MethodType else f  # no traced object is kept
        return f


def _reads_no_more(f: Any, args: Any) -> bool:
    """Whether a second call reads no more than the first: its code is observed, or it gets numbers alone."""
    return (type(f) is FunctionType and observed.is_observed(f.__code__)) or FLAT.issuperset(map(type, args))


@observer
def own_cell(reader: StateReader, cell: Any) -> Any:
    """A cell of a frame that is recorded: what is bound there is no state from outside."""
    reader.own(cell)
    return cell


class Imported(Observer):
    """``import name``."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        module_by_name(reader, self.name)
        return reader.adopt(given, sys.modules)


class Over(Observer):
    """``super().name``: the class and the object."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        over(reader, given, self.name)
        return given


class Inherited(Observer):
    """``super().name``: super, the class, the object and the value."""

    __slots__ = ()

    def passive(self, given: Any) -> Any:
        return given[-1]

    def active(self, reader: StateReader, given: Any) -> Any:
        _, cls, obj, value = given
        return inherited(reader, (cls, obj), self.name, value)


class CalledSpread(Observer):
    """The callable, the arguments and the keywords of ``f(*args, **kw)``; it gives back what is called."""

    __slots__ = ()

    def passive(self, given: Any) -> Any:
        return given[0]

    def active(self, reader: StateReader, given: Any) -> Any:
        f, args, *rest = given
        if type(args) is not tuple:  # nothing that can be spread: the call raises Python's error
            return f
        keywords = rest[0] if rest else {}
        given, names = (*args, *keywords.values()), tuple(keywords)
        instead = in_call(f, given, names)
        if instead is f:
            call(reader, f, given, names)
        return instead


@observer
def written(reader: StateReader, x: Any) -> Any:
    """A container of which a part is replaced or deleted."""
    reader.changed(x)
    return x


@observer
def whole(reader: StateReader, x: Any) -> Any:
    """What a pattern looks into, or ``**`` spreads."""
    reader.whole(x)
    return x


@observer
def pattern(reader: StateReader, x: Any) -> Any:
    """The class of a pattern, which names the attributes of ``case Point(x, y)``."""
    if is_a(x, type):
        reader.look_up(x, ("__match_args__",))
    return x


def evaluated(source: Any, /, globals: Any = None, locals: Any = None) -> Any:
    """``eval``, whose code is observed, too."""
    frame = sys._getframe(1)
    code = compile(source.strip(), "<string>", "eval") if isinstance(source, str) else source
    names, local = _namespaces(frame, globals, locals)
    return eval(observed(code) if isinstance(code, CodeType) else code, names, local)  # noqa: S307 - the user's own


def executed(source: Any, /, globals: Any = None, locals: Any = None) -> None:
    """``exec``, whose code is observed, too."""
    frame = sys._getframe(1)
    code = compile(source, "<string>", "exec") if isinstance(source, str) else source
    names, local = _namespaces(frame, globals, locals)
    exec(observed(code) if isinstance(code, CodeType) else code, names, local)  # noqa: S102 - the user's own


def _namespaces(frame: Any, names: Any, local: Any) -> tuple[Any, Any]:
    if names is None and local is None:
        own = frame.f_locals
        return frame.f_globals, own if type(own) is dict else dict(
            own
        )  # from 3.13 on, a view into the function's variables
    if names is None:
        return frame.f_globals, local
    return names, names if local is None else local


STAND_INS |= {eval: evaluated, exec: executed}


class _AllObservers:
    """All observers, for rewritten code."""

    attribute = staticmethod(attribute_called)
    globe = Global
    name = Name
    over, inherited = Over, Inherited
    cell = Cell
    stored_attribute = StoredAttribute
    stored_global = StoredGlobal
    item = Item()
    result = Result()
    passed = Passed
    own_cell, stored_cell, stored_item = own_cell, stored_cell, stored_item
    spread, parameter = Spread(), Parameter()
    called = CalledSpread()
    iterated, unpacked, yielded, whole = iterated, unpacked, yielded, whole
    compared, equated, ordered, operated, augmented = compared, equated, ordered, operated, augmented
    sought, truth, formatted, signed, sliced = sought, truth, formatted, signed, sliced
    pattern, written, caught = pattern, written, Missed()
    imported = Imported


observed = CodeRewriter(_AllObservers())
