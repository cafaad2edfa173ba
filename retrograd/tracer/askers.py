"""Askers: modules whose code asks traced values for plain numbers, and is not observed, such as installed libraries.

During a trace, look-alikes of ``float`` and ``complex`` are globals of such a module. It is found when it asks, and the
function is traced once more.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from ..where import user_frame
from .around import Around, kept, renewed
from .python_numbers import ASKED, LOOK_ALIKES, Namespace
from .record import RECORDERS
from .swallowed import forget_since, refusals

T = TypeVar("T")
P = ParamSpec("P")
MOST = 64  # modules to serve at most, since some code makes new ones without end


class Served(Around):
    """A module whose code asked for plain numbers; the look-alikes are in it while some trace needs them."""

    def __init__(self, names: Namespace) -> None:
        super().__init__()
        self._names = names

    def set_up(self) -> None:
        for name, look_alike in LOOK_ALIKES.items():
            self._names.setdefault(name, look_alike)

    def undo(self) -> None:
        for name, look_alike in LOOK_ALIKES.items():
            if self._names.get(name) is look_alike:
                del self._names[name]


class Askers:
    """The modules that are served now."""

    def __init__(self) -> None:
        self._served: WeakValueDictionary[int, Served] = WeakValueDictionary()
        renewed(self)

    def renew_locks(self) -> None:
        self._lock = threading.RLock()

    def served(self, asked: Mapping[int, Namespace]) -> ExitStack:
        """Keep look-alikes in these modules during the block."""
        with self._lock:
            found = [self._served.setdefault(key, Served(names)) for key, names in asked.items()]
        with ExitStack() as stack:
            for served in found:
                stack.enter_context(served)
            return stack.pop_all()


ASKERS = Askers()


_asked: ContextVar[dict[int, Namespace] | None] = ContextVar("retrograd_asked", default=None)
kept(_asked)
_known: dict[int, Namespace] = {}  # modules that asked in earlier traces, to be served at once


def following_numbers(trace: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that traces: it traces again when it finds another module that asks for plain numbers."""

    @functools.wraps(trace)
    def traced(*args: P.args, **options: P.kwargs) -> T:
        asked = dict(_known)
        token = _asked.set(asked)
        try:
            while True:
                served, before = dict(asked), refusals()
                with ASKERS.served(served):
                    try:
                        made = trace(*args, **options)
                    except Exception:
                        if len(asked) == len(served):
                            raise
                        forget_since(before)
                    else:
                        if len(asked) == len(served):
                            return made
        finally:
            _asked.reset(token)

    return traced


def _ask(name: str) -> bool:
    """Note the module whose code asks for a plain number; False if it was served already, or does not ask."""
    frame, asked = user_frame(sys._getframe(4)), _asked.get()
    if frame is None or asked is None or name not in frame.f_code.co_names:
        return False
    names = frame.f_globals
    if name in names or len(asked) >= MOST:
        return False
    asked[id(names)] = names
    module = sys.modules.get(names.get("__name__", ""))
    if module is not None and vars(module) is names:
        _known[id(names)] = names
    return True


ASKED.append(_ask)
RECORDERS.append(following_numbers)
