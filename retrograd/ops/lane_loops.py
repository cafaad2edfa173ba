"""A batch rule for operations without a leading axis: a loop over the batch elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.primitive import REGISTRY, Primitive
from ..ir.types import Aval
from .batching import Flags


def looped(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    """Run one lane after the other, for primitives whose NumPy function takes no leading axis."""
    inner = Builder()
    once = [x for x, flag in zip(args, flags, strict=True) if not flag]
    each = [x for x, flag in zip(args, flags, strict=True) if flag]
    fixed = iter([inner.input(x.aval) for x in once])
    steps = iter([inner.input(Aval(x.shape[1:], x.dtype, "array" if x.ndim > 1 else "scalar")) for x in each])
    own = [next(steps if flag else fixed) for flag in flags]
    body = inner.graph(prim.name, inner.emit(prim, [x.value for x in own], attrs))
    n = len(body.outputs)
    shape = {"arrays": n, "body": body, "carry": 0, "consts": len(once), "length": size, "reverse": False}
    outs = args[0].builder.emit(REGISTRY["scan"], [x.value for x in (*once, *each)], shape)
    return (outs, [True] * n) if prim.multi else outs[0]
