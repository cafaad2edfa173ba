"""A batch rule for what takes no leading axis: a loop over the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.primitive import REGISTRY, Primitive
from ..ir.types import Aval
from .batching import Flags


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
