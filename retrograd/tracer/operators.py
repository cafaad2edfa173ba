"""Python's operators on tracers; powers and products of matrices come with the functions of NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.primitive import REGISTRY
from .array import Tracer
from .ufuncs import COMPOSED, Ufunc, as_operand, assign, call_ufunc, elementwise

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


def _in_place(ufunc: Ufunc, run: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``x += y`` writes into an array, and makes a new number."""

    def call(self: Any, other: Any) -> Any:
        if not isinstance(self.shadow, np.ndarray):
            return run(self, other)
        return assign(self, call_ufunc(ufunc, [self, as_operand(other)]))

    return call


def reflecting(name: str, ufunc: Ufunc, run: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator of two operands, and the one that takes them in the other order."""
    prim = REGISTRY[name]

    def forward(self: Any, other: Any) -> Any:
        if getattr(type(other), "__array_ufunc__", prim) is None:  # such as a Polynomial, which takes over
            return NotImplemented
        return elementwise(prim, ufunc, [self, other], run)

    return forward, lambda self, other: elementwise(prim, ufunc, [other, self], run)


def _unary(name: str, ufunc: Ufunc, run: Callable[..., Any]) -> Callable[[Any], Any]:
    prim = REGISTRY[name]
    return lambda self: elementwise(prim, ufunc, [self], run)


def install_operators(cls: type[Tracer]) -> None:
    """Give Tracer its operators, reflected ones and in-place ones."""
    methods: dict[str, Callable[..., Any]] = {
        "pos": lambda self: self if isinstance(self.shadow, (int, float, complex)) else COMPOSED[np.positive](self),
    }
    for name, (prim_name, ufunc) in ARITHMETIC.items():
        forward, reflected = reflecting(prim_name, ufunc, run := getattr(operator, f"__{name}__"))
        methods |= {name: forward, f"r{name}": reflected, f"i{name}": _in_place(ufunc, run)}
    for name, ufunc in COMPARISONS.items():
        methods[name] = reflecting(name, ufunc, getattr(operator, name))[0]
    for name, (prim_name, ufunc) in UNARY.items():
        methods[name] = _unary(prim_name, ufunc, getattr(operator, f"__{name}__"))
    for name, method in methods.items():
        setattr(cls, f"__{name}__", method)
