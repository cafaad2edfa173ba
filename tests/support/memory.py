"""The memory that a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import retrograd as rg


def measured(f: Callable[..., Any], *args: Any) -> int:
    """The most bytes that a call takes at once, compiled before: the least of some calls, since threads of other tests,
    such as a client's of a cluster, allocate beside a call, and a process allocates some things once.
    """
    f(*args)
    with nothing_kept():
        return min(_peak(f, args) for _ in range(6))


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Memory that a thread would keep for its next call is given back, and so counts in each call."""
    limit, rg.config.workspace = rg.config.workspace, 0
    try:
        yield
    finally:
        rg.config.workspace = limit


@contextmanager
def one_thread() -> Iterator[None]:
    """Calls compute on one thread: a prediction counts blocks of all threads, which only long work uses."""
    number, rg.config.threads = rg.config.threads, 1
    try:
        yield
    finally:
        rg.config.threads = number


def _peak(f: Callable[..., Any], args: tuple[Any, ...]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        f(*args)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
