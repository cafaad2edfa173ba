"""unbroadcast and unbroadcast_f: cotangents of arguments that NumPy broadcast, for rules that users write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.array import shadow_of


def unbroadcast(x: Any, target: Any, broadcast_idx: int = 0) -> Any:
    """``x`` summed over the dimensions that ``target`` does not have, or has with length one; real for a real target.

    >>> import numpy as np
    >>> unbroadcast(np.ones((3, 2)), np.zeros((1, 2)))
    array([[3., 3.]])
    """
    plain = np.asarray(shadow_of(target))
    while np.ndim(shadow_of(x)) > plain.ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(plain.shape):
        if size == 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(shadow_of(x)) and plain.dtype.kind != "c" else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A pullback ``g -> cotangent`` whose results have the shape of ``target``."""
    return lambda g: unbroadcast(f(g), target)
