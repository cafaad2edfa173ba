"""Comparisons of integers with Python ints beyond their dtype, such as ``u != -1`` of unsigned ``u``, as in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.primitive import REGISTRY
from ..tracer.array import Tracer
from ..tracer.operators import COMPARISONS
from ..tracer.ufuncs import COMPOSED, Ufunc, as_operand, elementwise


def _side(number: Any, x: Any) -> int:
    """1 for a Python int above the dtype of integers ``x``, -1 for one below it, else 0."""
    if type(number) is not int or not isinstance(x, Tracer) or x.dtype.kind not in "iu":
        return 0
    bounds = np.iinfo(x.dtype)
    return 1 if number > bounds.max else -1 if number < bounds.min else 0


def _compared(name: str, ufunc: Ufunc) -> Callable[..., Any]:
    """The ufunc of that name; a number beyond the dtype of the other operand compares alike with all elements."""
    prim, compare = REGISTRY[name], getattr(operator, name)

    def call(a: Any, b: Any, **options: Any) -> Any:
        a, b = as_operand(a), as_operand(b)
        if side := _side(b, a):
            return (np.equal if compare(0, side) else np.not_equal)(a, a)
        if side := _side(a, b):
            return (np.equal if compare(side, 0) else np.not_equal)(b, b)
        run = (lambda *operands: ufunc(*operands, **options)) if options else ufunc
        return elementwise(prim, ufunc, [a, b], run, **options)

    return call


def _of_operator(name: str, usual: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    compare = getattr(operator, name)

    def call(self: Any, other: Any) -> Any:
        if side := _side(other, self):
            return (operator.eq if compare(0, side) else operator.ne)(self, self)
        return usual(self, other)

    return call


for _name, _ufunc in COMPARISONS.items():
    COMPOSED[_ufunc] = _compared(_name, _ufunc)


def install_bounds() -> None:
    """Wrap the operators of Tracer, once it has them."""
    for name in COMPARISONS:
        method = f"__{name}__"
        setattr(Tracer, method, _of_operator(name, getattr(Tracer, method)))
