"""around: changes that last while someone needs them, and end however a call ends; and locks that a fork renews.

A trace changes what does not belong to it: names of NumPy, context variables, the collector's setting. An interrupt
(Ctrl-C) may come at any instruction, also in the middle of the code that restores them. So each change is listed,
restoring may be repeated, and ``whole`` repeats it. A fork copies one thread alone: what the others held goes.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, Protocol, TypeVar
from weakref import ref

P = ParamSpec("P")
T = TypeVar("T")


class Locked(Protocol):
    """An object with locks that the thread which has one may take again, as a signal handler does."""

    def renew_locks(self) -> None:
        """Make them, which nobody holds."""


class _Living(Generic[T]):
    """Objects, while they live. No callback runs at their end, which might swallow an interrupt."""

    def __init__(self) -> None:
        self._known: dict[int, ref[T]] = {}
        self._many = 256

    def add(self, x: T) -> None:
        self._known[id(x)] = ref(x)
        if len(self._known) > self._many:
            for key, known in list(self._known.items()):
                if known() is None:
                    found = self._known.pop(key, known)
                    if found is not known:  # another thread has added an object of the same id
                        self._known[key] = found
            self._many = 2 * len(self._known) + 256

    def __iter__(self) -> Iterator[T]:
        return (x for known in list(self._known.values()) if (x := known()) is not None)


_locked: _Living[Locked] = _Living()
_arounds: _Living[Around] = _Living()
_variables: list[ContextVar[Any]] = []


def renewed(owner: Locked) -> None:
    """Make the locks of an object, and make them anew in a forked child, where nobody would release these."""
    owner.renew_locks()
    _locked.add(owner)


def kept(*variables: ContextVar[Any]) -> None:
    """Register context variables that have after each recording the values from before, however it ends."""
    _variables.extend(variables)


class _Taken(threading.local):
    """What a thread has taken and not released: each thing with the token of its taking."""

    def __init__(self) -> None:
        self.items: list[tuple[Around, object]] = []


_taken = _Taken()


class Around:
    """A context that is set up by the first to enter it and undone by the last to leave it, across threads.

    ``set_up`` and ``undo`` go on where an interrupt has stopped them when they are called again.
    """

    def __init__(self) -> None:
        self._holders: dict[object, int] = {}  # the thread of each token
        self._stands = self._stands_whole = False
        renewed(self)
        _arounds.add(self)

    def renew_locks(self) -> None:
        self._lock = threading.RLock()

    def set_up(self) -> None:
        """Make the change."""
        raise NotImplementedError

    def undo(self) -> None:
        """Undo it, or what there is of it."""
        raise NotImplementedError

    def __enter__(self) -> None:
        token = object()
        try:
            with self._lock:
                _taken.items.append((self, token))
                self._holders[token] = threading.get_ident()
                if not self._stands_whole:
                    self._stands = True
                    self.set_up()
                    self._stands_whole = True
        except BaseException:
            self._release(token)
            raise

    def __exit__(self, *_: object) -> None:
        self._release(next((token for around, token in reversed(_taken.items) if around is self), None))

    def _release(self, token: object) -> None:
        with self._lock:
            self._holders.pop(token, None)
            self._settle()
            _taken.items[:] = [item for item in _taken.items if item[1] is not token]

    def _settle(self) -> None:
        if self._stands and not self._holders:
            self._stands_whole = False
            self.undo()
            self._stands = False

    def keep_to(self, thread: int) -> None:
        """Release what other threads than this one hold."""
        self._holders = {token: holder for token, holder in self._holders.items() if holder == thread}
        self._settle()


def whole(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function: what was taken in a call goes with it, and ``kept`` variables have the values from before.

    It ends twice, in case that an interrupt stops the first time.
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        height, before = len(_taken.items), [(variable, variable.get()) for variable in _variables]
        try:
            try:
                return function(*args, **options)
            finally:
                _end(height, before)
        finally:
            _end(height, before)

    return call


def _end(height: int, before: list[tuple[ContextVar[Any], Any]]) -> None:
    for variable, value in before:
        if variable.get() is not value:
            variable.set(value)
    while len(_taken.items) > height:
        around, token = _taken.items[-1]
        around._release(token)


def _in_child() -> None:
    for owner in _locked:
        owner.renew_locks()
    for around in _arounds:
        around.keep_to(threading.get_ident())
    for name, module in sys.modules.copy().items():
        if name.partition(".")[0] == __name__.partition(".")[0]:
            _renew_properties(module)


def _renew_properties(module: Any) -> None:
    """Renew the locks of cached properties, which Python 3.11 has and later ones have not."""
    for cls in vars(module).values():
        for member in vars(cls).values() if isinstance(cls, type) else ():
            if isinstance(member, functools.cached_property) and hasattr(member, "lock"):
                member.lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # where there is fork
    os.register_at_fork(after_in_child=_in_child)
