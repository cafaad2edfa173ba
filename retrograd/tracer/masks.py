"""The elements that a traced mask names: their number depends on data, so a guard holds it fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ControlFlowError
from ..ir.types import Aval
from ..ops.masks import flatnonzero
from ..where import user_site
from .array import Tracer, apply
from .mutation import read


def places(mask: Tracer) -> Tracer:
    """The positions of the true elements in the flattened mask: int64, as many as in the example.

    Raises ControlFlowError in the body of a loop, which is compiled for all values.
    """
    where = user_site()[0]
    if not mask.home.concrete:
        raise ControlFlowError(
            "the number of elements that a traced mask names depends on data, while the function is compiled for "
            "all values",
            where=where,
            remedy="choose with np.where(mask, x, 0), or write x[mask] = value",
        )
    flat = apply(flatnonzero, [mask], aval=Aval((int(np.count_nonzero(mask.shadow)),), np.dtype(np.int64)))
    flat.home.decide(read(flat), "size", len(flat.shadow), where)
    return flat


def nonzero(mask: Tracer) -> tuple[Any, ...]:
    """``np.nonzero`` of a traced mask: the positions of the true elements along each axis."""
    flat: Any = places(mask)
    found = []
    for n in reversed(mask.shape[1:]):
        found.append(flat % n)
        flat = flat // n
    return (flat, *reversed(found))
