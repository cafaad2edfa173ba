"""Batch rules: what a primitive does when some operands have a leading batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import REGISTRY, Primitive
from ..ir.types import Aval

Flags = Sequence[bool]


def lanes(size: int, x: Symbol, flag: bool) -> Symbol:
    """``x`` with a leading axis of lanes; it is broadcast if it has none."""
    if flag:
        return x
    broadcast: Symbol = REGISTRY["broadcast"](x, aval=Aval((size, *x.shape), x.dtype))
    return broadcast


def elementwise(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    """Every operand gets the leading axis; attributes stay."""
    return prim(*(lanes(size, x, flag) for x, flag in zip(args, flags, strict=True)), **attrs)


def by_elements(prim: Primitive) -> bool:
    """Whether a primitive computes each element from those at its place."""
    rule: Any = prim.batch
    return rule is elementwise


def shifted_axis(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    """Like ``elementwise``, and the non-negative ``axis`` (an int or a tuple) moves up by one."""
    axis = attrs.pop("axis")
    axis = tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1
    return elementwise(prim, size, args, flags, axis=axis, **attrs)
