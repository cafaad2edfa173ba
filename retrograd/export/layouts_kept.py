"""Arrays in files, with the order and the gaps of their memory: sums over another layout end in other last bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.types import in_order
from .standalone import laid, span_of

MOST_SPAN = 1 << 26  # bytes of memory between the first and the last element, beyond 16 times the data


def kept_strides(x: Any) -> tuple[int, ...] | None:
    """The strides to write beside an array; None for an array in C order, or one with very large gaps."""
    if not isinstance(x, np.ndarray) or x.size == 0 or (in_order(x) and x.flags.c_contiguous):
        return None
    return x.strides if fits(x.shape, x.dtype, x.strides) else None


def fits(shape: Sequence[int], dtype: np.dtype[Any], strides: Sequence[int]) -> bool:
    """Whether memory with these strides is not much larger than the data."""
    if len(shape) != len(strides):
        return False
    before, after = span_of(shape, strides)
    return before + after + dtype.itemsize <= max(MOST_SPAN, 16 * dtype.itemsize * int(np.prod(shape)))


def laid_again(x: np.ndarray[Any, Any], strides: Sequence[int] | None) -> np.ndarray[Any, Any]:
    """The array with these strides."""
    return x if strides is None else laid(x, tuple(strides))
