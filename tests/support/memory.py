"""The memory that a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import retrograd as rg


def measured(f: Callable[..., Any], *args: Any) -> int:
    """The most bytes that a call takes at once, compiled before: the least of some calls, since threads of other tests,
    such as a client's of a cluster, allocate beside a call, and a process allocates some things once.
    """
    f(*args)
    with nothing_kept():
        return min(_peak(f, args) for _ in range(6))


def nothing_kept() -> AbstractContextManager[None]:
    """Memory that a thread would keep for its next call is given back, and so counts in each call."""
    return _setting("workspace", 0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Calls compute on one thread: a prediction counts blocks of all threads, which only long work uses."""
    with _setting("threads", 1):
        yield


@contextmanager
def _setting(name: str, value: int) -> Iterator[None]:
    """A setting of the whole process, for a while."""
    before = getattr(rg.config, name)
    setattr(rg.config, name, value)
    try:
        yield
    finally:
        setattr(rg.config, name, before)


def _peak(f: Callable[..., Any], args: tuple[Any, ...]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        f(*args)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
