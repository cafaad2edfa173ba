"""Reads and writes of traced memory: NumPy's view semantics on values that never change.

A tracer that owns its memory names a storage; a view has a parent and the primitive that made it. Reading a
view whose storage was written since applies its primitive again; writing climbs to the storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import CapturedWriteError, ReadOnlyError
from ..ir.builder import Symbol
from ..ir.primitive import Primitive
from .trace import CURRENT, Storage, Trace, unsupported


class Traced(Protocol):
    """What reads and writes go by: a tracer's trace and example, its storage, and the view that it is."""

    home: Trace
    shadow: Any
    storage: Storage
    op: tuple[Primitive, Sequence[Symbol], dict[str, Any]] | None
    symbol: Symbol | None
    version: int

    @property
    def parent(self) -> Traced | None:
        """The array of which it is a view."""


def read(t: Traced) -> Symbol:
    """The present value of a tracer, in its own trace."""
    storage = t.storage
    if t.parent is None:
        return storage.symbol if storage.symbol is not None else _lifted(t)
    if t.version != storage.version or t.symbol is None:
        if storage.symbol is None:
            return _lifted(t)
        prim, rest, attrs = _op_of(t)
        t.symbol, t.version = prim(read(t.parent), *rest, **attrs), storage.version
    return t.symbol


def _op_of(t: Traced) -> tuple[Primitive, Sequence[Symbol], dict[str, Any]]:
    if t.op is None:
        raise unsupported(
            "writing traced values into an array that has a view made by another NumPy function",
            "make the view by indexing, reshape or transpose, or copy it",
        )
    return t.op


def _lifted(t: Traced) -> Symbol:
    if isinstance(t.shadow, np.ndarray):
        return t.home.lift(t.shadow, t.storage if t.parent is None else None)
    return t.home.constant(t.shadow)


def write(t: Traced, symbol: Symbol) -> None:
    """Replace the contents of a tracer."""
    t.storage.version += 1
    t.symbol, t.version = symbol, t.storage.version
    while t.parent is not None:
        symbol = _climb(t, symbol)
        t = t.parent
        t.symbol, t.version = symbol, t.storage.version
    t.storage.symbol = symbol
    if symbol.value.hint is None:
        symbol.value.hint = t.storage.hint


def _climb(t: Traced, symbol: Symbol) -> Symbol:
    """The parent's contents after the view ``t`` received ``symbol``."""
    assert t.parent is not None
    prim, rest, attrs = _op_of(t)
    if prim.through is None:
        raise unsupported(f"writing through a view made by {prim.name}", "write into the array itself")
    parent = t.parent
    return prim.through(symbol, parent.shadow.shape, lambda: _before_write(parent), *rest, **attrs)


def _before_write(t: Traced) -> Symbol:
    """The parent's value before the write in progress, which ``storage.version`` already counts."""
    t.storage.version -= 1
    try:
        return read(t)
    finally:
        t.storage.version += 1


def check_writable(t: Traced, trace: Trace) -> None:
    """Raise a named error for a write that NumPy would refuse or that would leave the trace."""
    if not t.shadow.flags.writeable:
        if not any(c.symbol is t.storage.symbol for c in t.home.captures.values()):
            raise ReadOnlyError("the array is read-only", remedy="write into a copy: x = x.copy()")
        raise CapturedWriteError(
            "the traced function writes into an array that it captures, which would change the array outside",
            remedy="create the array inside the traced function, or write into a copy: x = x.copy()",
        )
    current = CURRENT.get()
    trace = trace if current is None else current
    if t.home is not trace:
        raise CapturedWriteError(
            f"{trace} writes into an array of {t.home}",
            remedy="return the value, or create the array inside the function that writes into it",
        )


def make_traced(t: Traced) -> None:
    """Record the contents of memory that held plain numbers so far, before a traced value is written into it."""
    root: Any = t
    while root.parent is not None:
        root = root.parent
    if root.storage.symbol is None:
        root.storage.symbol = _lifted(root)
