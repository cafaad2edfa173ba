"""A cache in which each key is made once, even if several threads ask for it together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from ..tracer.around import renewed

T = TypeVar("T")


@dataclass(frozen=True)
class CacheInfo:
    """How often a signature was found, how often it was compiled, and how many are kept."""

    hits: int
    misses: int
    size: int


class Cache(Generic[T]):
    """Values by key; ``get`` makes a missing one under a lock of its own."""

    def __init__(self) -> None:
        self.entries: dict[Hashable, T] = {}
        self.hits = self.misses = 0
        renewed(self)

    def renew_locks(self) -> None:
        """Make the lock on the locks, and those of keys, each of which lives while a thread is in ``get``."""
        self._lock = threading.RLock()
        self._locks: WeakValueDictionary[Hashable, threading.RLock] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made now if the key is new. An exception leaves the key new."""
        found = self.entries.get(key)
        if found is not None:
            self.hits += 1
            return found
        with self._lock_of(key):
            found = self.entries.get(key)
            if found is not None:
                self.hits += 1
                return found
            found = self.entries[key] = make()
            self.misses += 1
        return found

    def _lock_of(self, key: Hashable) -> threading.RLock:
        with self._lock:
            return self._locks.setdefault(key, threading.RLock())

    def clear(self) -> None:
        """Forget all values; the counts go on."""
        self.entries.clear()

    def info(self) -> CacheInfo:
        """The counts so far."""
        return CacheInfo(self.hits, self.misses, len(self.entries))
