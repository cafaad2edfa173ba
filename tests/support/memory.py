"""The memory that a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def measured(f: Callable[..., Any], *args: Any) -> int:
    """The most bytes that a call takes at once, compiled before; what a process allocates once, such as modules that
    load on first use, is in the first of two calls.
    """
    f(*args)
    return min(_peak(f, args), _peak(f, args))


def _peak(f: Callable[..., Any], args: tuple[Any, ...]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        f(*args)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
