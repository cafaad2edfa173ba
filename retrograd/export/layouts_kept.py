"""Arrays in files, with the order and the gaps of their memory: sums over another layout end in other last bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from .standalone import span_of

MOST_SPAN = 1 << 26  # bytes of memory between the first and the last element, beyond 16 times the data


def kept_strides(x: Any) -> tuple[int, ...] | None:
    """The strides to write beside an array; None for an array in C order without gaps."""
    return None if not isinstance(x, np.ndarray) or x.flags.c_contiguous else x.strides


def check_gaps(x: Any, what: str) -> None:
    """UnsupportedError for an array with gaps so large that no file should keep them."""
    if isinstance(x, np.ndarray) and not x.flags.c_contiguous and not fits(x.shape, x.dtype, x.strides):
        raise UnsupportedError(
            f"the memory of an array of shape {x.shape} has very large gaps, so the function cannot be {what}",
            remedy="pass or capture a copy without gaps: x.copy()",
        )


def fits(shape: Sequence[int], dtype: np.dtype[Any], strides: Sequence[int]) -> bool:
    """Whether memory with these strides is not much larger than the data."""
    if len(shape) != len(strides):
        return False
    before, after = span_of(shape, strides)
    return before + after + dtype.itemsize <= max(MOST_SPAN, 16 * dtype.itemsize * int(np.prod(shape)))
