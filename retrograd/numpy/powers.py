"""``x ** n``, which NumPy computes in several ways."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from ..ir.primitive import REGISTRY
from ..tracer.array import Tracer, shadow_of
from ..tracer.table import METHODS
from ..tracer.ufuncs import Ufunc, assign, elementwise

SHORTCUTS: dict[float, Ufunc] = {2: np.square, 1: np.positive, 0.5: np.sqrt, -1: np.reciprocal}
PROBE = [*(3.0 * np.sin(np.arange(100.0))), -0.0]  # numbers that tell a shortcut from np.power; -inf and nan do, too


def _raise_to(x: Any, n: Any) -> Any:
    """``x ** n`` as NumPy computes it: arrays take shortcuts for some exponents, and numbers have their own power."""
    base = shadow_of(x)
    if isinstance(base, np.ndarray) and type(n) in (int, float) and n in SHORTCUTS:
        shortcut = _shortcut(base.dtype, type(n).__name__, n)
        if shortcut is not None:
            return shortcut(x)
    if (
        type(base) in (int, float)
        and isinstance(shadow_of(n), (int, float))
        and isinstance(base ** shadow_of(n), complex)
    ):
        _ask_for_roots_of_negatives(x, n)
    return elementwise(REGISTRY["power" if _by_ufunc(base, shadow_of(n)) else "pow"], np.power, [x, n], operator.pow)


def _ask_for_roots_of_negatives(x: Any, n: Any) -> None:
    """Python's power of two floats is complex where this holds, and is asked at each call."""
    if all(not isinstance(v, Tracer) or v.home.concrete for v in (x, n)):
        bool(np.logical_and(x < 0, n != np.floor(n)))


def _by_ufunc(base: Any, n: Any) -> bool:
    """Whether NumPy raises by the ufunc: arrays, and numbers of which neither has the dtype of the result."""
    if isinstance(base, np.ndarray) or isinstance(n, np.ndarray):
        return True
    if type(base) is complex and isinstance(n, float):  # Python raises by itself, also to NumPy's doubles
        return False
    kinds = [x.dtype for x in (base, n) if isinstance(x, np.generic)]
    return bool(kinds) and np.result_type(base, n) not in kinds


@lru_cache(maxsize=256)
def _shortcut(dtype: np.dtype[Any], kind: str, n: Any) -> Ufunc | None:
    """The ufunc that ``x ** n`` stands for; NumPy is asked, since the exponents that have one depend on its version."""
    probe = np.array([*PROBE, -np.inf, np.nan] if dtype.kind in "fc" else PROBE)
    try:
        with np.errstate(all="ignore"):
            probe = (probe + 1j * probe[::-1] if dtype.kind == "c" else probe).astype(dtype)
            raised, short = probe**n, SHORTCUTS[n](probe)
    except (TypeError, ValueError):  # bools and integers lack some of the operations
        return None
    return SHORTCUTS[n] if raised.dtype == short.dtype and raised.tobytes() == short.tobytes() else None


def _pow_in_place(self: Any, n: Any) -> Any:
    raised = _raise_to(self, n)
    return assign(self, raised) if isinstance(self.shadow, np.ndarray) else raised


METHODS.update(
    {
        "__pow__": _raise_to,
        "__rpow__": lambda self, other: _raise_to(other, self),
        "__ipow__": _pow_in_place,
    }
)
