"""Functions that give a number for a number, also where ``out=`` is an array: NumPy calls the number's own method."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracer.array import Tracer, shadow_of
from ..tracer.table import FUNCTIONS, METHODS

OF_NUMBERS = (
    *(np.sum, np.prod, np.max, np.amax, np.min, np.amin, np.any, np.all, np.mean, np.var, np.std),
    *(np.argmax, np.argmin, np.take, np.round, np.around, np.clip),
)


def _as_number(handler: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(handler)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        found = handler(a, *args, **options)
        if isinstance(shadow_of(a), np.generic) and isinstance(found, Tracer) and found.ndim == 0:
            return found[()]
        return found

    return call


def install_number_results() -> None:
    """Wrap these functions, and the methods that do not call them by the table."""
    for function in OF_NUMBERS:
        FUNCTIONS[function] = _as_number(FUNCTIONS[function])
    for name in ("round", "clip"):
        METHODS[name] = _as_number(METHODS[name])
