"""The observers of iterations: what is iterated, unpacked or spread over arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..trace import CURRENT, READER
from .classes import CONTAINERS, VIEWS
from .libraries import is_library
from .observer import Observer, observer
from .reader import StateReader


class Iterated(Observer):
    """The operand of an iteration."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        reader = READER.get()
        return given if reader is None or not reader.sees(given) else Observer.__getitem__(self, given)

    def active(self, reader: StateReader, given: Any) -> Any:
        if reader.sees(given):
            if isinstance(given, dict):
                reader.note(given, "keys", None, [*given])
            elif isinstance(given, CONTAINERS):
                reader.contents(given)
            elif isinstance(given, Iterator) and is_library(type(given)):
                reader.note(given, "never", None, None)
            elif is_library(type(given)):
                reader.whole(given)
        return given


iterated = Iterated()


@observer
def unpacked(reader: StateReader, x: Any) -> Any:
    """The operand of ``a, b = x``."""
    if reader.sees(x) and isinstance(x, (list, tuple)):
        return [reader.seen(e) for e in reader.contents(x)]
    if type(x) in VIEWS:
        return [reader.seen(e) for e in x]
    return reader.seen(iterated.active(reader, x))


class Spread(Observer):
    """The arguments of ``f(*args, **kw)``, one operand after the other."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        if READER.get() is None or CURRENT.get() is None:
            return given
        return Observer.__getitem__(self, given)

    def passive(self, given: Any) -> Any:
        return given if isinstance(given, (tuple, dict)) else tuple(given)

    def active(self, reader: StateReader, given: Any) -> Any:
        if isinstance(given, dict):
            reader.contents(given)
            return {k: reader.seen(v) for k, v in given.items()}
        iterated.active(reader, given)
        return reader.seen(self.passive(given))
