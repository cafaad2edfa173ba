"""Arrays that code written by hand keeps between calls, so that no call pays for fresh pages."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def kept(name: str, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """The array of this name, shape and dtype; it holds what the last call left in it."""
    return np.empty(shape, dtype)
