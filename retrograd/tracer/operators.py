"""Python's operators on tracers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..ir.primitive import REGISTRY
from .array import Tracer, shadow_of
from .ufuncs import COMPOSED, Ufunc, assign, call_ufunc, elementwise

ARITHMETIC: dict[str, tuple[str, Ufunc]] = {
    "add": ("add", np.add),
    "sub": ("sub", np.subtract),
    "mul": ("mul", np.multiply),
    "truediv": ("div", np.divide),
    "floordiv": ("floor_divide", np.floor_divide),
    "mod": ("remainder", np.remainder),
    "and": ("bitwise_and", np.bitwise_and),
    "or": ("bitwise_or", np.bitwise_or),
    "xor": ("bitwise_xor", np.bitwise_xor),
    "lshift": ("left_shift", np.left_shift),
    "rshift": ("right_shift", np.right_shift),
}
COMPARISONS: dict[str, Ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
UNARY: dict[str, tuple[str, Ufunc]] = {
    "neg": ("neg", np.negative),
    "abs": ("abs", np.abs),
    "invert": ("invert", np.invert),
}


SHORTCUTS: dict[float, Ufunc] = {2: np.square, 1: np.positive, 0.5: np.sqrt, -1: np.reciprocal}
PROBE = [*(3.0 * np.sin(np.arange(100.0))), -0.0]  # numbers that tell a shortcut from np.power; -inf and nan do, too


def _raise_to(x: Any, n: Any) -> Any:
    """``x ** n`` as NumPy computes it: arrays take shortcuts for some exponents, and numbers have their own power."""
    base = shadow_of(x)
    if isinstance(base, np.ndarray) and type(n) in (int, float) and n in SHORTCUTS:
        shortcut = _shortcut(base.dtype, type(n).__name__, n)
        if shortcut is not None:
            return shortcut(x)
    prim = REGISTRY["power" if isinstance(base, np.ndarray) or isinstance(shadow_of(n), np.ndarray) else "pow"]
    return elementwise(prim, np.power, [x, n], operator.pow)


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


def _in_place(ufunc: Ufunc, forward: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``x += y`` writes into an array, and makes a new number."""

    def call(self: Any, other: Any) -> Any:
        if not isinstance(self.shadow, np.ndarray):
            return forward(self, other)
        return call_ufunc(ufunc, [self, other], (self,), True, {})

    return call


def _or_repeated(multiply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Multiply; a list or a string is repeated instead, by a number that must be known."""

    def call(self: Any, other: Any) -> Any:
        if isinstance(other, (list, tuple, str, bytes)) and not isinstance(self.shadow, np.ndarray):
            return other * self.__index__()
        return multiply(self, other)

    return call


def _binary(name: str, ufunc: Ufunc, run: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    prim = REGISTRY[name]

    def forward(self: Any, other: Any) -> Any:
        return elementwise(prim, ufunc, [self, other], run)

    def reflected(self: Any, other: Any) -> Any:
        return elementwise(prim, ufunc, [other, self], run)

    return forward, reflected


def _unary(name: str, ufunc: Ufunc, run: Callable[..., Any]) -> Callable[[Any], Any]:
    prim = REGISTRY[name]
    return lambda self: elementwise(prim, ufunc, [self], run)


def _pow_in_place(self: Any, n: Any) -> Any:
    raised = _raise_to(self, n)
    return assign(self, raised) if isinstance(self.shadow, np.ndarray) else raised


def _matmul(self: Any, other: Any) -> Any:
    """``x @ y``; a sparse matrix is not an operand of a ufunc, and answers by its reflected product."""
    if not hasattr(type(other), "__array_ufunc__") and getattr(type(other), "__array_priority__", 0) > 0:
        return NotImplemented
    return call_ufunc(np.matmul, [self, other], None, True, {})


def install_operators(cls: type[Tracer]) -> None:
    """Give Tracer its operators, reflected ones and in-place ones."""
    methods: dict[str, Callable[..., Any]] = {
        "pow": _raise_to,
        "rpow": lambda self, other: _raise_to(other, self),
        "ipow": _pow_in_place,
        "pos": lambda self: self if isinstance(self.shadow, (int, float, complex)) else COMPOSED[np.positive](self),
        "divmod": lambda self, other: (self // other, self % other),
        "rdivmod": lambda self, other: (other // self, other % self),
        "matmul": _matmul,
        "rmatmul": lambda self, other: call_ufunc(np.matmul, [other, self], None, True, {}),
        "imatmul": lambda self, other: call_ufunc(np.matmul, [self, other], (self,), True, {}),
    }
    for name, (prim_name, ufunc) in ARITHMETIC.items():
        forward, reflected = _binary(prim_name, ufunc, getattr(operator, f"__{name}__"))
        methods |= {name: forward, f"r{name}": reflected, f"i{name}": _in_place(ufunc, forward)}
    for name, ufunc in COMPARISONS.items():
        methods[name] = _binary(name, ufunc, getattr(operator, name))[0]
    for name, (prim_name, ufunc) in UNARY.items():
        methods[name] = _unary(prim_name, ufunc, getattr(operator, f"__{name}__"))
    methods["mul"], methods["rmul"] = _or_repeated(methods["mul"]), _or_repeated(methods["rmul"])
    for name, method in methods.items():
        setattr(cls, f"__{name}__", method)
