"""Operators leave ``x * other`` to the class of ``other`` if NumPy does.

A number asks the other operand last, so that the user's classes with ``__rmul__`` answer. An array leaves it only
to classes that say ``__array_ufunc__ = None``, or have a higher ``__array_priority__``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ..tracer.array import NUMBERS, Tracer
from ..tracer.repeats.recordable import REFLECTED

ANSWERING = frozenset({Tracer, np.ndarray, float, int, bool, complex, np.float64, list, tuple})


def defers(self: Tracer, other: Any, name: str) -> bool:
    """Whether the class of ``other`` answers an operator in place of a traced value."""
    cls = type(other)
    if isinstance(other, (np.ndarray, Tracer, *NUMBERS)) or not hasattr(cls, f"__r{name}__"):
        return False
    if hasattr(cls, "__array_ufunc__"):
        return cls.__array_ufunc__ is None
    if not isinstance(self.shadow, np.ndarray):
        return not hasattr(cls, "__array__")
    return bool(getattr(cls, "__array_priority__", 0.0) > 0)


def _deferring(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def call(self: Any, other: Any, *modulus: Any) -> Any:
        if type(other) not in ANSWERING and defers(self, other, name):
            return NotImplemented
        return run(self, other, *modulus)

    return call


def install_deference() -> None:
    """Let the operators of Tracer ask first, once it has them."""
    for name in REFLECTED:
        setattr(Tracer, f"__{name}__", _deferring(name, getattr(Tracer, f"__{name}__")))
