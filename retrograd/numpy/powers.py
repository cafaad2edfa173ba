"""``x ** n``, which NumPy computes in several ways."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..ir.graph import Node, Value
from ..ir.primitive import REGISTRY
from ..tracer.array import Tracer, shadow_of
from ..tracer.mutation import read
from ..tracer.refusals import MODULO
from ..tracer.table import METHODS
from ..tracer.trace import unsupported
from ..tracer.ufuncs import Ufunc, as_operand, assign, elementwise

SHORTCUTS: dict[float, Ufunc] = {2: np.square, 1: np.positive, 0.5: np.sqrt, -1: np.reciprocal}
DEEPEST = 8  # operations that are looked through
PROBE = [*(3.0 * np.sin(np.arange(100.0))), -0.0]  # numbers that tell a shortcut from np.power; these do, too:
EXTREME = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]


def _raise_to(x: Any, n: Any) -> Any:
    """``x ** n`` as NumPy computes it: arrays take shortcuts for some exponents, and numbers have their own power."""
    x, n = as_operand(x), as_operand(n)
    base, power = shadow_of(x), shadow_of(n)
    if isinstance(base, np.ndarray) and type(n) in (int, float) and n in SHORTCUTS:
        shortcut = _shortcut(base.dtype, type(n).__name__, n)
        if shortcut is not None:
            return shortcut(x)
    if type(base) is type(power) is int and isinstance(n, Tracer) and n.home.concrete:
        bool(np.less(n, 0))  # the power is a float then
    elif type(base) in (int, float) and isinstance(power, (int, float)):
        _ask_for_roots_of_negatives(x, n)
    return elementwise(REGISTRY["power" if _by_ufunc(base, power) else "pow"], np.power, [x, n], operator.pow)


def _ask_for_roots_of_negatives(x: Any, n: Any) -> None:
    """Python's power is complex if the base is negative and the exponent no integer, which is asked at each call."""
    if any(isinstance(v, Tracer) and not v.home.concrete for v in (x, n)):
        return
    whole = not isinstance(n, Tracer) and n % 1 == 0
    positive = _is_not_negative(x.home.builder.made, read(x).value) if isinstance(x, Tracer) else x >= 0
    if not whole and not positive:
        below = np.less(x, 0)
        if np.logical_and(below, np.greater(n - np.floor(n), 0)) if isinstance(n, Tracer) else below:
            bool(np.greater(x, -np.inf))  # of minus infinity, the power is real


def _is_not_negative(made: Mapping[Value, Node], value: Value, depth: int = DEEPEST) -> bool:
    """Whether a number is surely not below zero, as a sum of squares; it may be nan."""
    node = made.get(value)
    if node is None or not depth:
        return False
    name, operands = node.prim.name, node.inputs
    if name == "const":
        return not node.attrs["value"] < 0
    if name == "pow" and (power := made.get(operands[1])) is not None and power.prim.name == "const":
        return power.attrs["value"] % 2 == 0 or _is_not_negative(made, operands[0], depth - 1)
    if name in ("square", "abs", "exp", "sqrt") or (name == "mul" and operands[0] is operands[1]):
        return True
    return name in ("add", "mul", "div", "maximum", "cast") and all(
        _is_not_negative(made, x, depth - 1) for x in operands
    )


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
    try:
        probe = _probe(dtype)
        with np.errstate(all="ignore"):
            raised, short = probe**n, SHORTCUTS[n](probe)
    except (TypeError, ValueError):  # bools and integers lack some of the operations
        return None
    return SHORTCUTS[n] if raised.dtype == short.dtype and raised.tobytes() == short.tobytes() else None


def _probe(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Numbers of a dtype; complex ones have each extreme real part with each extreme imaginary part."""
    parts = np.array([*PROBE, *EXTREME] if dtype.kind in "fc" else PROBE)
    if dtype.kind != "c":
        return parts.astype(dtype)
    extreme = np.array(EXTREME)
    probe = np.empty(len(parts) + len(extreme) ** 2, dtype)
    probe.real = np.concatenate([parts, np.repeat(extreme, len(extreme))])
    probe.imag = np.concatenate([parts[::-1], np.tile(extreme, len(extreme))])
    return probe


def _power(self: Any, n: Any, modulus: Any = None) -> Any:
    """``pow(x, n, modulus)``; with a modulus, Python's own on ints, which are asked for here."""
    if modulus is None:
        return _raise_to(self, n)
    if not self.const and type(self.shadow) is int and not self.home.concrete:
        raise unsupported("pow() of three arguments in a function that is compiled for all values", MODULO)
    pow(*map(shadow_of, (self, n, modulus)))  # Python's own error for other numbers
    return pow(*map(operator.index, (self, n, modulus)))


def _pow_in_place(self: Any, n: Any) -> Any:
    raised = _raise_to(self, n)
    return assign(self, raised) if isinstance(self.shadow, np.ndarray) else raised


METHODS.update({"__pow__": _power, "__rpow__": lambda self, other: _raise_to(other, self), "__ipow__": _pow_in_place})
