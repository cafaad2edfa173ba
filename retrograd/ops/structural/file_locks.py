"""file_locks: locks on files and folders, which end with the process that took them, whatever it has forked."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

AVAILABLE = find_spec("fcntl") is not None
_held: set[int] = set()  # descriptors that hold locks, or are about to


def locked(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> int:
    """Open a path and lock it; the descriptor. BlockingIOError if another process holds the lock."""
    descriptor = os.open(path, flags, 0o644)
    _held.add(descriptor)
    try:
        fcntl = import_module("fcntl")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        unlocked(descriptor)
        raise
    return descriptor


def unlocked(descriptor: int) -> None:
    """Give up a lock."""
    _held.discard(descriptor)  # first: once it is closed, another file may get its number
    os.close(descriptor)


def _in_child() -> None:
    """Close a child's copies of descriptors: they would hold the locks of its parent beyond the parent's end."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
