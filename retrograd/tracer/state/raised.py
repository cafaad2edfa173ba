"""What was read and was not there: the observer of exceptions that the user's code catches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..refusals import complaint
from .attributes import global_variable, lacks
from .libraries import runs_library
from .observer import Observer
from .operated import elements
from .reader import StateReader
from .reads import KEY, MISSING, OF

LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec"})  # by which the user may have the variables of a frame


class Missed(Observer):
    """An exception that a handler gets: an attribute, an entry or a global that was missing then may be there later."""

    __slots__ = ()

    def active(self, reader: StateReader, given: Any) -> Any:
        complaint(given)
        if isinstance(given, AttributeError) and given.name is not None:
            lacks(reader, given.obj, given.name)
        elif isinstance(given, ImportError) and given.name:
            module_by_name(reader, given.name)
            if given.name in sys.modules:  # it lacks what was imported from it
                reader.unchecked(sys.modules)
        frames = [*_frames(given)]
        if isinstance(given, NameError) and given.name is not None and frames:
            _name(reader, frames[-1], given.name)
        for frame in frames:
            if OF in frame.f_code.co_varnames:
                _item(reader, frame)
            elif runs_library(frame) and frame.f_code.co_argcount:
                _answerer(reader, frame.f_locals.get(frame.f_code.co_varnames[0]))
        return given


def module_by_name(reader: StateReader, name: str) -> None:
    """Take note of which module an import finds, if any."""
    reader.root(sys.modules)
    reader.note(sys.modules, "get", name, sys.modules.get(name, MISSING))


def _frames(exception: BaseException) -> Iterator[FrameType]:
    """The frames between the handler and where the exception was raised."""
    at = exception.__traceback__
    while at is not None:
        yield at.tb_frame
        at = at.tb_next


def _name(reader: StateReader, frame: FrameType, name: str) -> None:
    """Take note of a global that is missing; the variable of an enclosing function cannot be asked again."""
    code = frame.f_code
    if name in code.co_freevars:
        reader.unchecked(code)
    elif name not in (*code.co_varnames, *code.co_cellvars):
        global_variable(reader, frame.f_globals, name)


def _answerer(reader: StateReader, x: Any) -> None:
    """Take note of the object of which code of a library answered with the exception, as a property may."""
    if reader.sees(x):
        reader.whole(x)


def _item(reader: StateReader, frame: FrameType) -> None:
    """Take note of the subscript that a frame was about to evaluate."""
    held = frame.f_locals
    x, key = held.get(OF), held.get(KEY)
    if sys.version_info < (3, 13) and LOCALS.isdisjoint(frame.f_code.co_names):
        held.clear()  # a copy of the variables, which the frame would keep
    if not reader.sees(x):
        return
    if isinstance(x, dict):
        reader.note(x, "get", key, dict.get(x, key, MISSING))
    else:
        elements(reader, x)
