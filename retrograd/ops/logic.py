"""And, or, not on each element."""

from __future__ import annotations

from ..ir.types import Aval
from .elementwise import BOOL, binary, predicate, unary


def truth(*avals: Aval) -> Aval:
    """The shape rule of ``np.logical_and``: a Python number gives a NumPy scalar."""
    aval = predicate(*avals)
    return Aval((), BOOL, "scalar") if aval.kind == "python" else aval


logical_and = binary("logical_and", "np.logical_and", shape=truth)
logical_or = binary("logical_or", "np.logical_or", shape=truth)
logical_xor = binary("logical_xor", "np.logical_xor", shape=truth)
logical_not = unary("logical_not", "np.logical_not", shape=truth)
