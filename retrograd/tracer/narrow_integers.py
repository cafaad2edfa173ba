"""Comparisons of narrow integers with traced ones of Python's, which their dtype may not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..ir.primitive import TRANSFORMS, Primitive
from ..ir.types import Aval
from .array import Tracer

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
WIDEST = np.dtype(np.int64)


@TRANSFORMS.register("comparable")
def comparable(prim: Primitive, operands: Sequence[Any], targets: tuple[Aval, ...]) -> tuple[Aval, ...]:
    """What the operands of an elementwise operation become: 64 bits hold all integers that are compared."""
    if prim.name not in COMPARISONS or not any(type(x) is Tracer and type(x.shadow) is int for x in operands):
        return targets
    return tuple([replace(a, dtype=WIDEST) if a.dtype.kind in "iu" and a.dtype.itemsize < 8 else a for a in targets])
