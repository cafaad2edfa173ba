"""What a traced mask names: its number is known only at run time, so the graph holds for masks that name as many."""

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
    """The places of true elements in a mask laid out flat: int64, as many as there are now.

    Raises ControlFlowError in the body of a loop, which is compiled for all values.
    """
    where = user_site()[0]
    if not mask.home.concrete:
        raise ControlFlowError(
            "how many elements a traced mask names depends on data, in a function that is compiled for all values",
            where=where,
            remedy="choose with np.where(mask, x, 0), or write x[mask] = value",
        )
    flat = apply(flatnonzero, [mask], aval=Aval((int(np.count_nonzero(mask.shadow)),), np.dtype(np.int64)))
    flat.home.decide(read(flat), "size", len(flat.shadow), where)
    return flat


def nonzero(mask: Tracer) -> tuple[Any, ...]:
    """``np.nonzero`` of a traced mask: the places of true elements along each axis."""
    flat: Any = places(mask)
    found = []
    for n in reversed(mask.shape[1:]):
        found.append(flat % n)
        flat = flat // n
    return (flat, *reversed(found))
