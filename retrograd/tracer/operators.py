"""Python's operators on tracers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.primitive import REGISTRY
from ..ops.elementwise import square
from .array import Tracer, shadow_of
from .ufuncs import Ufunc, assign, call_ufunc, elementwise, positive

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
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal
}  # fmt: skip
UNARY: dict[str, tuple[str, Ufunc]] = {
    "neg": ("neg", np.negative), "abs": ("abs", np.abs), "invert": ("invert", np.invert)
}  # fmt: skip


def _raise_to(x: Any, n: Any) -> Any:
    """``x ** n`` as ndarray does it: plain numbers 2, 1, 0.5, -1 have faster and better-rounded forms."""
    base, plain = shadow_of(x), isinstance(n, (int, float)) and not isinstance(n, np.generic)
    if isinstance(base, np.ndarray) and base.ndim and base.dtype.kind == "b" and type(n) is int and n == 2:
        return elementwise(REGISTRY["square"], np.square, [x], np.square)
    if isinstance(base, np.ndarray) and base.ndim and base.dtype.kind in "fc" and plain:
        if n == 2:
            return elementwise(square, np.square, [x], np.square)
        if n == 1:
            return positive(x)
        if n == 0.5:
            return elementwise(REGISTRY["sqrt"], np.sqrt, [x], np.sqrt)
        if n == -1:
            return elementwise(REGISTRY["div"], np.divide, [1.0, x], np.divide)
    return elementwise(REGISTRY["power"], np.power, [x, n], operator.pow)


def _in_place(ufunc: Ufunc, forward: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``x += y`` writes into an array, and makes a new number."""

    def call(self: Any, other: Any) -> Any:
        if not isinstance(self.shadow, np.ndarray):
            return forward(self, other)
        return call_ufunc(ufunc, [self, other], (self,), True, {})

    return call


def _or_repeated(multiply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A list or a string times an integer is repeated, as often as must be known."""

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


def install_operators(cls: type[Tracer]) -> None:
    """Give Tracer its operators, reflected ones and in-place ones."""
    methods: dict[str, Callable[..., Any]] = {
        "pow": _raise_to,
        "rpow": lambda self, other: _raise_to(other, self),
        "ipow": _pow_in_place,
        "pos": lambda self: self if isinstance(self.shadow, (int, float, complex)) else positive(self),
        "divmod": lambda self, other: (self // other, self % other),
        "rdivmod": lambda self, other: (other // self, other % self),
        "matmul": lambda self, other: call_ufunc(np.matmul, [self, other], None, True, {}),
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
