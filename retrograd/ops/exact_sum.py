"""The sum of a vector, rounded once: ``math.fsum``."""

from __future__ import annotations

import numpy as np

from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .lane_loops import looped
from .shape import broadcast_to

REAL = np.dtype(float)

# Doubles are whole multiples of 2**-1074, so Python's ints add them exactly, and their division rounds once.
EXACT_SUM = """
def exact_sum(x):
    if not np.all(np.isfinite(x)):
        return np.add.reduce(x)
    total, unit = 0, 1
    for number in x.tolist():
        above, below = number.as_integer_ratio()
        if below > unit:
            total, unit = total * (below // unit), below
        total += above * (unit // below)
    return np.float64(total / unit)
"""


def _shape(x: Aval) -> Aval:
    if x.ndim != 1 or x.dtype != REAL:
        raise ValueError(f"{x} is not a vector of doubles")
    return Aval((), REAL, "scalar")


exact_sum: Primitive = primitive(
    "exact_sum",
    _shape,
    "exact_sum({0})",
    helper=EXACT_SUM,
    batch=looped,
    diff=(pull(lambda ct, x: broadcast_to(ct, x.shape)),),
)
