"""Arrays that a trace makes: of plain numbers, and of lists that hold traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..where import user_site
from .array import Tracer, enter, wrap
from .trace import CURRENT, READER, Trace, traceable

NESTED: list[Any] = []  # the last gives the elements of a sequence, nested ones as lists; of anything else nothing


def active_trace() -> Trace:
    """The trace that creation calls belong to."""
    trace = CURRENT.get()
    assert trace is not None
    trace.count()
    return trace


def fresh(value: Any) -> Any:
    """A traced array whose contents are plain numbers so far; one of strings, dates or objects stays as it is."""
    if isinstance(value, tuple):  # np.linspace(..., retstep=True)
        return tuple(map(fresh, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "SUMmO":
        return value
    traceable(value)
    where, hint = user_site(2)
    made = wrap(active_trace(), None, value, where)
    made.storage.hint = hint
    return made


def holds_tracers(obj: Any, const: bool = True) -> bool:
    """Whether nested sequences hold tracers or captured arrays; with ``const=False``, plain numbers do not count."""
    if isinstance(obj, np.ndarray) and (reader := READER.get()) is not None:
        obj = reader.seen(obj)
    if isinstance(obj, Tracer):
        return const or not obj.const
    return any(type(x) not in (float, int) and holds_tracers(x, const) for x in NESTED[-1](obj))


def joined(obj: Any) -> Any:
    """Join nested sequences that hold tracers or captured arrays into one array; everything else stays."""
    return np.stack([entered(x) for x in parts]).copy() if holds_tracers(parts := NESTED[-1](obj)) else obj


def entered(a: Any) -> Any:
    """A traced array of a plain array, which is held by reference, or of a number or nested lists."""
    a = joined(a)
    if isinstance(a, Tracer):
        return a
    return enter(active_trace(), a) if isinstance(a, np.ndarray) else fresh(np.asarray(a))
