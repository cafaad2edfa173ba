"""Observed stores: a traced value that is stored outside could be read by later calls."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..array import Tracer
from ..trace import READER
from .classes import PLAIN, attributes_of, is_a
from .iterated import iterated
from .observer import Observer, observer
from .reader import StateReader
from .reads import MISSING, Read

WHERE_MISSING = frozenset({"__getattr__", "__get__", "__missing__"})


class StoredAttribute(Observer):
    """``x.name = value``."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        value, obj = given
        if type(obj) is Tracer and not hasattr(obj.shadow, self.name):
            setattr(obj.shadow, self.name, value)  # NumPy's error: a traced value has no attributes of its own
        own = attributes_of(obj)
        reader.lent.attribute(obj, self.name, value)
        if reader.sees(obj):
            if not _fills(value):
                reader.assigned(obj, "attr", self.name)
            if _leaves(value) and type(own) is dict:
                read = Read(obj, "attr", self.name, own.get(self.name, MISSING), value.where)
                reader.stored(read, value, functools.partial(_put_back, own, self.name, read.value))
        return given


class StoredGlobal(Observer):
    """``global name; name = value``."""

    __slots__ = ()

    def __getitem__(self, value: Any) -> Any:
        reader = READER.get()
        if reader is not None and type(value) is not Tracer:
            reader.lent.entry(sys._getframe(1).f_globals, self.name, value)
        elif reader is not None:
            names = sys._getframe(1).f_globals
            reader.root(names)
            reader.assigned(names, "global", self.name)
            if _leaves(value):
                read = Read(names, "global", self.name, names.get(self.name, MISSING), value.where)
                reader.stored(read, value, functools.partial(_put_back, names, self.name, read.value))
        return value


@observer
def stored_cell(reader: StateReader, given: Any) -> Any:
    """``nonlocal name; name = value``."""
    value, cell = given
    reader.lent.content(cell, value)
    if not reader.is_own(cell):
        reader.assigned(cell, "cell", None)
        if _leaves(value):
            old = contents(cell)
            reader.stored(Read(cell, "cell", None, old, value.where), value, functools.partial(_fill, cell, old))
    return given


@observer
def stored_item(reader: StateReader, given: Any) -> Any:
    """``x[key] = value``."""
    value, x, key = given
    if type(key) is slice:
        reader.lent.into(x, value)  # what it yields
        reader.changed(x)
        iterated.active(reader, value)
        return given
    reader.lent.entry(x, key, value)
    if reader.sees(x) and is_a(x, (dict, list)) and type(key) in PLAIN:
        kind = "get" if is_a(x, dict) else "item"
        if not _fills(value):
            reader.assigned(x, kind, key)
        if _leaves(value):
            old = x.get(key, MISSING) if is_a(x, dict) else x[key]
            reader.stored(Read(x, kind, key, old, value.where), value, functools.partial(_put_back, x, key, old))
    return given


def _fills(value: Any) -> bool:
    """Whether a constant array is stored by code that Python runs only as long as it is not there."""
    frame = sys._getframe(1) if type(value) is Tracer and value.const else None
    while frame is not None and frame.f_code.co_name not in WHERE_MISSING:
        frame = frame.f_back
    return frame is not None


def _leaves(value: Any) -> bool:
    """Whether a value is known only when the compiled function runs."""
    return type(value) is Tracer and not value.const


def _put_back(x: Any, key: Any, old: Any) -> None:
    if old is MISSING:
        del x[key]
    else:
        x[key] = old


def contents(cell: Any) -> Any:
    """The contents of a cell; ``MISSING`` if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return MISSING


def _fill(cell: Any, old: Any) -> None:
    if old is MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = old
