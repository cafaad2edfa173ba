"""Ufuncs that are compositions of others, and the numbers at which ufuncs of a part of the numbers are defined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..ir.primitive import REGISTRY
from ..ir.types import Aval
from ..ops.elementwise import cast
from ..tracer.array import apply, shadow_of
from ..tracer.operands import astype
from ..tracer.ufunc_options import INSIDE
from ..tracer.ufuncs import COMPOSED, copy, elementwise


def positive(x: Any, **options: Any) -> Any:
    """``np.positive(x)``: a copy, or a NumPy scalar."""
    dtype = np.positive(shadow_of(x), **options).dtype
    if dtype != x.dtype:
        return astype(x, dtype)
    return copy(x) if x.ndim else apply(cast, [x], aval=Aval((), dtype, "scalar"))


def _parts(ufunc: Any, first: str, second: str) -> Callable[..., Any]:
    """A ufunc with two results, each computed by its own primitive."""

    def call(x: Any, **options: Any) -> Any:
        run = partial(ufunc, **options)
        return tuple(
            elementwise(REGISTRY[name], ufunc, [x], lambda v, k=k: run(v)[k], **options)
            for k, name in enumerate((first, second))
        )

    return call


def _divmod(x: Any, y: Any, **options: Any) -> Any:
    return np.floor_divide(x, y, **options), np.remainder(x, y, **options)


COMPOSED |= {
    np.positive: positive,
    np.divmod: _divmod,
    np.modf: _parts(np.modf, "fraction", "trunc"),
    np.frexp: _parts(np.frexp, "mantissa", "exponent"),
}
INSIDE |= {np.arccosh: 2.0} | dict.fromkeys(
    [
        np.divide,
        np.floor_divide,
        np.remainder,
        np.fmod,
        np.divmod,
        np.reciprocal,
        np.power,
        np.float_power,
        np.sqrt,
        np.cbrt,
        np.log,
        np.log2,
        np.log10,
        np.log1p,
        np.arcsin,
        np.arccos,
        np.arctanh,
    ],
    0.5,
)
