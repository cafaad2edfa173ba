"""Warnings of NumPy and of the user's functions on workers: heard there, and given by the client at the user's line."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple, TextIO

from ..compiler.executable import EXECUTABLES
from ..where import Where, is_foreign

MOST = 100  # different warnings in one result


class Heard(NamedTuple):
    """A warning, and the line of the user's program that it is about."""

    file: str
    line: int
    text: str
    category: type[Warning]


Registry = dict[str | tuple[str, type[Warning], int], int]
_here: ContextVar[set[Heard] | None] = ContextVar("retrograd_heard", default=None)
_registries: dict[str, Registry] = {}


class _Ears:
    """All warnings of the process come here while threads listen; Python's filters are in force again at the end."""

    def __init__(self) -> None:
        self._lock, self._count = threading.Lock(), 0
        self._before: Any = None
        self._show: Any = None

    def open(self) -> None:
        with self._lock:
            if not self._count:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                warnings.simplefilter("always")  # the client's filters decide
                self._show, warnings.showwarning = warnings.showwarning, self._hear
            self._count += 1

    def close(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                self._before.__exit__(None, None, None)

    def _hear(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        heard = _here.get()
        if heard is None:  # a thread that does not work for us
            self._show(message, category, filename, lineno, file, line)
        elif len(heard) < MOST:
            place = _users(filename, lineno)
            if place is not None or category is not RuntimeWarning:
                heard.add(Heard(*(place or (filename, lineno)), str(message), category))


_ears = _Ears()


@contextmanager
def listening(heard: set[Heard]) -> Iterator[None]:
    """Put all warnings of the block into a set, once for each text and line."""
    token = _here.set(heard)
    _ears.open()
    try:
        yield
    finally:
        _ears.close()
        _here.reset(token)


def _users(filename: str, lineno: int) -> Where | None:
    """The user's line behind the line that warns, which may be NumPy's, or one of generated code.

    None if it is ours, and no line of the user's led to it: what the examples of a recording do, calls do, too.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != (filename, lineno):
        frame = frame.f_back
    module = "" if frame is None else frame.f_globals.get("__name__", "")
    ours = module.startswith("retrograd.") and filename not in EXECUTABLES
    while frame is not None:
        compiled = EXECUTABLES.get(frame.f_code.co_filename)
        found = None if compiled is None else compiled.module.lines.get(frame.f_lineno)
        if found is not None:
            return found
        if not is_foreign(frame):
            return Where(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None if ours else Where(filename, lineno)


def give(heard: Iterable[Heard]) -> None:
    """Warn of what workers have heard, under the filters of this process: by default, once for each text and line."""
    for found in sorted(heard, key=lambda x: x[:3]):
        warnings.warn_explicit(found.text, found.category, found.file, found.line, registry=_registry(found.file))


def _registry(file: str) -> Registry:
    """Where Python notes what a file has warned of: in its module, if there is one here."""
    for module in sys.modules.copy().values():
        if getattr(module, "__dict__", {}).get("__file__") == file:
            found: Registry = vars(module).setdefault("__warningregistry__", {})
            return found
    return _registries.setdefault(file, {})
