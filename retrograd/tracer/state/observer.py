"""Observer: the object that receives the values read by rewritten code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..trace import CURRENT, READER
from .reader import StateReader


class Observer:
    """Shown a value, it gives back what takes its place. It remembers the last one, as loops read the same again."""

    __slots__ = ("_last", "name")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._last: tuple[int, ...] = ()

    def __getitem__(self, given: Any) -> Any:
        reader = READER.get()
        if reader is None or reader.busy or CURRENT.get() is None:
            return self.passive(given)
        reader.busy = True  # the user's code may run now, such as a __getattribute__
        try:
            return self.active(reader, given)
        finally:
            reader.busy = False

    def passive(self, given: Any) -> Any:
        """What takes the place of what is shown, outside of a recording."""
        return given

    def active(self, reader: StateReader, given: Any) -> Any:
        """The same inside one."""
        raise NotImplementedError


def observer(active: Callable[[StateReader, Any], Any]) -> Observer:
    """An observer of one function; a single object serves all instructions."""
    members = {"__slots__": (), "__doc__": active.__doc__, "active": lambda self, reader, given: active(reader, given)}
    made: Observer = type(active.__name__, (Observer,), members)()
    return made
