"""Declarations of functions of ``scipy.special``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import NonDifferentiableError
from ...ir.builder import Symbol
from ...ir.primitive import Derivative, Primitive, primitive
from ...ir.types import Aval
from ..batching import elementwise
from ..complex import real_dtype
from ..elementwise import function, result, same_shape


def special(name: str, *diff: Derivative, ufunc: str = "", **fields: Any) -> Primitive:
    """A ufunc of SciPy, of the primitive's name or of another; one derivative for each operand."""
    path = f"scipy.special.{ufunc or name}"
    operands = ", ".join(f"{{{i}}}" for i in range(len(diff)))
    shape = fields.pop("shape", function)
    return primitive(name, shape, f"{path}({operands})", ufunc=path, diff=diff, batch=elementwise, **fields)


def of_parameters(*avals: Aval) -> Aval:
    """The shape rule for parameters before a variable: the parameters are real, or orders that are integers."""
    *parameters, x = avals
    shape = same_shape(*avals)
    for p in parameters:
        if p.dtype not in (real_dtype(x.dtype), np.dtype(np.int64)):
            raise ValueError(f"{p} is not a parameter of a function of {x}")
    out = result(shape, x.dtype, (x,) if shape else avals)
    return out if shape else Aval((), x.dtype, "scalar")


def real_only(x: Symbol, name: str) -> None:
    """NonDifferentiableError for complex operands of a function whose derivative is known only on the reals."""
    if x.dtype.kind == "c":
        raise NonDifferentiableError(
            f"the derivative of scipy.special.{name} at complex numbers is not known",
            where=x.builder.where,
            remedy="pass real numbers, or wrap the result in rg.stop_gradient",
        )
