"""The observers of iterations: what is iterated, unpacked or spread over arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..trace import CURRENT, READER
from .classes import CONTAINERS, VIEWS, is_a
from .libraries import is_library
from .observer import Observer, observer
from .operated import answers_unseen
from .reader import StateReader


class Iterated(Observer):
    """The operand of an iteration."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        reader = READER.get()
        return given if reader is None or not reader.sees(given) else Observer.__getitem__(self, given)

    def active(self, reader: StateReader, given: Any) -> Any:
        if reader.sees(given):
            if is_a(given, dict):
                reader.note(given, "keys", None, [*given])
            elif is_a(given, CONTAINERS):
                reader.contents(given)
            elif is_a(given, Iterator) and is_library(type(given)):
                reader.note(given, "never", None, None)
            elif answers_unseen(reader, given):
                reader.whole(given)
            elif not hasattr(type(given), "__iter__"):  # its end is an IndexError that nobody sees
                reader.note(given, "never", None, None)
        return given


iterated = Iterated()


@observer
def unpacked(reader: StateReader, x: Any) -> Any:
    """The operand of ``a, b = x``."""
    if reader.sees(x) and is_a(x, (list, tuple)):
        return [reader.seen(e) for e in reader.contents(x)]
    if type(x) in VIEWS:
        return [reader.seen(e) for e in x]
    return reader.seen(iterated.active(reader, x))


@observer
def yielded(reader: StateReader, x: Any) -> Any:
    """What a generator gives: code that is not followed may take it."""
    if is_a(x, CONTAINERS):
        reader.tree(x)
    return x


class Spread(Observer):
    """The arguments of ``f(*args, **kw)``, one operand after the other."""

    __slots__ = ()

    def __getitem__(self, given: Any) -> Any:
        if READER.get() is None or CURRENT.get() is None:
            return given
        if not is_a(given, (tuple, dict)):
            if not is_a(given, Iterable) and not hasattr(type(given), "__getitem__"):
                return given  # the call itself raises Python's error
            given = tuple(iterated[given])  # the user's code may run, and is observed
        return Observer.__getitem__(self, given)

    def active(self, reader: StateReader, given: Any) -> Any:
        if is_a(given, CONTAINERS):
            reader.contents(given)
        if is_a(given, dict):
            return {k: reader.seen(v) for k, v in given.items()}
        return reader.seen(given)
