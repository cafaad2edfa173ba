"""Batch rules: what a primitive does when some operands carry a leading axis of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
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


def shifted_axis(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    """Like ``elementwise``, and the non-negative ``axis`` (an int or a tuple) moves up by one."""
    axis = attrs.pop("axis")
    axis = tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1
    return elementwise(prim, size, args, flags, axis=axis, **attrs)


def looped(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    """Run one lane after the other, for primitives of one result whose NumPy function takes no leading axis."""
    inner = Builder()
    once = [x for x, flag in zip(args, flags, strict=True) if not flag]
    each = [x for x, flag in zip(args, flags, strict=True) if flag]
    fixed = iter([inner.input(x.aval) for x in once])
    steps = iter([inner.input(Aval(x.shape[1:], x.dtype, "array" if x.ndim > 1 else "scalar")) for x in each])
    body = inner.graph(prim.name, [prim(*(next(steps if flag else fixed) for flag in flags), **attrs)])
    shape = {"arrays": 1, "body": body, "carry": 0, "consts": len(once), "length": size, "reverse": False}
    return args[0].builder.emit(REGISTRY["scan"], [x.value for x in (*once, *each)], shape)[0]


def typed(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, aval: Aval, **attrs: Any) -> Any:
    """The result's aval gets the leading axis."""
    return elementwise(prim, size, args, flags, aval=Aval((size, *aval.shape), aval.dtype), **attrs)
