"""A cache in which each version of a key is made once, even if several threads ask for it together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from ..tracer.around import renewed

T = TypeVar("T")


@dataclass(frozen=True)
class CacheInfo:
    """How often a signature was found, how often it was compiled, and how many are kept."""

    hits: int
    misses: int
    size: int


class Cache(Generic[T]):
    """By key, the versions that were made for it, the last first; ``lock`` lets one thread make one at a time."""

    def __init__(self) -> None:
        self.entries: dict[Hashable, list[T]] = {}
        self.hits = self.misses = 0
        self.served = np.zeros(1, np.int64)  # hits that C counts
        self.once = 0  # recordings in a row that held for one call
        renewed(self)

    def renew_locks(self) -> None:
        """Make the lock on entries and locks, and those of keys, each of which lives while a thread makes a version."""
        self._lock = threading.RLock()
        self._locks: WeakValueDictionary[Hashable, threading.RLock] = WeakValueDictionary()

    def versions(self, key: Hashable) -> list[T]:
        """The versions of a key; the list stays the same, and changes in place."""
        with self._lock:
            found = self.entries[key] = self.entries.pop(key, [])  # the last that was asked for
        return found

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The version of a key that has one, made now if the key is new. An exception leaves the key new."""
        versions = self.versions(key)
        if not versions:
            with self.lock(key):
                if not versions:
                    versions.append(make())
                    self.misses += 1
                    return versions[0]
        self.hits += 1
        return versions[0]

    def lock(self, key: Hashable) -> threading.RLock:
        """The lock under which versions of a key are made, which lives while somebody holds it."""
        with self._lock:
            return self._locks.setdefault(key, threading.RLock())

    def trim(self, most: int) -> None:
        """Let the keys that were asked for longest ago go, until at most so many versions are kept."""
        with self._lock:
            while sum(map(len, self.entries.values())) > most and len(self.entries) > 1:
                self.entries.pop(next(iter(self.entries))).clear()

    def clear(self) -> None:
        """Forget all versions; the counts go on."""
        with self._lock:
            for versions in self.entries.values():
                versions.clear()
            self.entries.clear()

    def info(self) -> CacheInfo:
        """The counts so far."""
        return CacheInfo(self.hits + int(self.served[0]), self.misses, sum(map(len, self.entries.values())))


class Alone:
    """Nothing is shared between compiled functions."""

    def caches_of(self, function: Any, transform: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The caches of a function under a transform."""
        return make()

    def versions_of(self, function: Any, key: Hashable) -> list[Any] | None:
        """The versions for a key that functions of the same code share."""
        return None


SHARING: list[Any] = [Alone()]  # the last that was registered says what is shared
