"""outside: code that runs in the middle of a trace without being part of it, such as a signal handler.

A trace belongs to the frames above the one that records. Python may run other code there as well: handlers of signals,
``__del__``, finalizers, callbacks of the collector, and what ``logging`` calls. Such code gets what it would get
outside of the trace: plain arrays, and results of compiled functions. It is told by the frame that Python calls.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enums of all, which takes 20 times as long
import gc
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from .trace import CURRENT, Trace

CALLERS = frozenset({weakref.__file__, str(Path(os.__file__).parent / "logging" / "__init__.py")})
SIGNALS = sorted(_signal.valid_signals())


def trace_here(depth: int = 1) -> Trace | None:
    """The trace that the caller's code belongs to; None if there is none, or if it interrupts one."""
    trace = CURRENT.get()
    if trace is None:
        return None
    called = {id(code) for code in _codes(_callbacks())}
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if id(frame) == trace.frame:
            return trace
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename in CALLERS or id(code) in called:
            return None
        frame = frame.f_back
    return None


def _callbacks() -> Iterator[Any]:
    """What Python may call at any time in this thread."""
    yield from gc.callbacks
    if threading.current_thread() is threading.main_thread():
        yield from filter(callable, map(_signal.getsignal, SIGNALS))


def _codes(functions: Iterable[Any]) -> Iterator[CodeType]:
    for function in functions:
        inner = function
        while isinstance(inner, partial):
            inner = inner.func
        if not isinstance(inner, FunctionType | MethodType):
            inner = vars(type(inner)).get("__call__")
        code = getattr(inner, "__code__", None)
        if code is not None:
            yield code


class Plainly:
    """A block that runs plainly although a trace is recording."""

    def __enter__(self) -> None:
        self._before = CURRENT.get()
        CURRENT.set(None)

    def __exit__(self, *_: object) -> None:
        CURRENT.set(self._before)
