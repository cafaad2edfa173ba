"""Owned: results of an interpreted call share memory with no argument and no other result, as those of code do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def owned(results: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """Results, and what a derivative keeps for later, with copies in place of views and of what another one is."""
    seen = {id(x) for x in operands}
    return [_own(x, seen) for x in results]


def _own(x: Any, seen: set[int]) -> Any:
    if isinstance(x, list):  # what the steps of a loop kept
        return [_own(each, seen) for each in x]
    if isinstance(x, np.ndarray) and (x.base is not None or id(x) in seen):
        return x.copy(order="K")
    seen.add(id(x))
    return x
