"""Sharing: functions made from the same parts share their compilations.

A new ``rg.grad(f)`` has the caches of the first one, which stay with ``f``. ``rg.grad(lambda x: …)`` in a loop,
partials and methods of equal instances are new functions each time, with the same code. Their compilations are
kept as long as the code lives, ``rg.config.cache_size`` signatures of all functions together, and used if their
check passes. At most 64 MiB of captured arrays are kept, those of the last functions.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..tracer.around import renewed
from ..tracer.state.libraries import is_library
from .cache import SHARING
from .paths import Paths
from .settings import config

NAME = "__retrograd__"  # in the dictionary of a function: what is kept with it
SMALL = 1 << 12  # bytes of captured arrays that do not count
MOST = 64 << 20  # bytes of captured arrays that are kept with code
Versions = list[Paths]
_by_code: dict[Hashable, tuple[weakref.ref[CodeType], Versions]] = {}
_heavy: list[tuple[weakref.ref[Paths], Versions]] = []  # the paths that count, and where they are kept


class _CodeLock:
    """Under its lock one thread at a time changes what is kept with code. Code that is gone leaves without it."""

    def __init__(self) -> None:
        renewed(self)

    def renew_locks(self) -> None:
        self.lock = threading.RLock()


_turns = _CodeLock()


class Kept:
    """What is kept with one function; copies and pickles have nothing."""

    def __init__(self, function: FunctionType | None = None) -> None:
        self.function = function
        self.caches: dict[Any, dict[str, Any]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, ()


def caches_of(function: Callable[..., Any], transform: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The caches of a function under a transform: for a Python function those that are kept with it."""
    origin, made_of = _origin(function)
    if not isinstance(origin, FunctionType):
        return make()
    try:
        hash(made_of := (transform, *made_of))
    except TypeError:  # options that are dicts or lists
        return make()
    kept = origin.__dict__.get(NAME)
    if not isinstance(kept, Kept) or kept.function is not origin:  # a wrapper takes over what another function has
        kept = origin.__dict__[NAME] = Kept(origin)
    return kept.caches.get(made_of) or kept.caches.setdefault(made_of, make())


def versions_of(function: Callable[..., Any], key: Hashable) -> Versions | None:
    """The versions that functions of the same code share for a key; None for what is not a Python function."""
    origin, made_of = _origin(function)
    if isinstance(origin, MethodType):
        made_of, origin = (*made_of, type(origin.__self__)), origin.__func__
    if type(origin) is partial:
        made_of, origin = (*made_of, partial, len(origin.args), *origin.keywords), origin.func
    if not isinstance(origin, FunctionType) or is_library(origin) or not config.cache_size:
        return None
    full = (id(origin.__code__), id(origin.__globals__), *made_of, key)
    try:
        hash(full)
    except TypeError:  # options that are dicts or lists
        return None
    with _turns.lock:
        found = _by_code.pop(full, None)
        if found is None or found[0]() is not origin.__code__:
            found = (weakref.ref(origin.__code__, lambda _: _by_code.pop(full, None)), [])
        _by_code[full] = found  # the last that was asked for
        trim(_by_code, config.cache_size)
    return found[1]


def trim(table: dict[Any, Any], most: int) -> None:
    """Remove the oldest entries beyond so many. Other threads may do so meanwhile, and code may go, with its entry."""
    if len(table) > most:
        keys = [*table]  # at once
        for oldest in keys[: max(0, len(keys) - most)]:
            table.pop(oldest, None)


def keep(paths: Paths, versions: Versions, put: Callable[[Versions, Paths], None]) -> None:
    """Put paths among the versions of a code, unless they are too large; the oldest large ones go for them."""
    if paths.size > MOST:
        return
    with _turns.lock:
        if paths.size > SMALL:
            present = [(found, kept) for held, kept in _heavy if (found := held()) is not None and found in kept]
            while present and sum(found.size for found, _ in present) > MOST - paths.size:
                oldest, kept = present.pop(0)
                with suppress(ValueError):  # another thread was quicker
                    kept.remove(oldest)
            _heavy[:] = [(weakref.ref(found), kept) for found, kept in (*present, (paths, versions))]
        put(versions, paths)


def _origin(function: Any) -> tuple[Any, tuple[Any, ...]]:
    """The user's function behind compiled ones, and their transforms."""
    made_of: tuple[Any, ...] = ()
    while hasattr(function, "_transform"):
        made_of, function = (*made_of, function._transform), function.__wrapped__
    return None if isinstance(function, FunctionType) and is_library(function) else function, made_of


class Shared:
    """How compiled functions share what was made for them."""

    caches_of = staticmethod(caches_of)
    versions_of = staticmethod(versions_of)
    keep = staticmethod(keep)


SHARING.append(Shared())
