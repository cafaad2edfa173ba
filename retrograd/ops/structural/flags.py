"""Choose among parallel lists by flags, and put chosen items back into their positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.types import Aval


def picked(items: Iterable[Any], flags: Sequence[bool]) -> list[Any]:
    """The items whose flag is set."""
    return [item for item, flag in zip(items, flags, strict=True) if flag]


def spread(items: Iterable[Any], flags: Sequence[bool]) -> list[Any]:
    """The items at the positions of set flags, None elsewhere."""
    rest = iter(items)
    return [next(rest) if flag else None for flag in flags]


def instantiated(b: Builder, x: Symbol | None, aval: Aval) -> Symbol:
    """A tangent or cotangent with exactly this aval; None becomes zeros."""
    return b.zeros(aval) if x is None else b.coerce(x, aval)
