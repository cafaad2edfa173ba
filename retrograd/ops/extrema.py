"""Elementwise maximum, minimum, clip, heaviside and logaddexp; ties share the derivative equally."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, push
from ..ir.types import Aval
from .batching import elementwise
from .bits import bitwise_or
from .elementary import exp, exp2
from .elementwise import binary, eq, function, gt, literal_value, to_dtype, where
from .masks import putmask


def share(chosen: Symbol, tied: Symbol, dtype: Any) -> Any:
    """Weights: 1 where chosen, 0.5 where tied, else 0. Ties are rare, so writing them is cheaper than a choice."""
    weights = to_dtype(chosen, dtype)
    if not chosen.shape:
        return where(tied, 0.5, weights)
    return putmask(weights, tied, chosen.builder.constant(0.5, Aval((), dtype, "scalar")))


def _taken(t: Symbol, taken: Symbol, out: Symbol, x: Symbol, y: Symbol) -> Any:
    return t * share(eq(taken, out), eq(x, y), x.dtype)  # also where the other is nan


maximum: Primitive = binary(
    "maximum",
    "np.maximum",
    push(lambda t, out, x, y: t * share(gt(x, y), eq(x, y), x.dtype)),
    push(lambda t, out, x, y: t * share(gt(y, x), eq(x, y), x.dtype)),  # with the same mask of ties
)
minimum: Primitive = binary(
    "minimum",
    "np.minimum",
    push(lambda t, out, x, y: t * share(gt(y, x), eq(x, y), x.dtype)),
    push(lambda t, out, x, y: t * share(gt(x, y), eq(x, y), x.dtype)),
)
fmax = binary(
    "fmax",
    "np.fmax",
    push(lambda t, out, x, y: _taken(t, x, out, x, y)),
    push(lambda t, out, x, y: _taken(t, y, out, x, y)),
)
fmin = binary(
    "fmin",
    "np.fmin",
    push(lambda t, out, x, y: _taken(t, x, out, x, y)),
    push(lambda t, out, x, y: _taken(t, y, out, x, y)),
)


def _above(x: Symbol, out: Symbol, other: Symbol) -> Any:
    """``x - out``, which is never positive; -inf where both are -inf, so that such terms have weight 0."""
    numbers = (literal_value(x), literal_value(other))
    if any(isinstance(n, float) and n > -np.inf for n in numbers):  # so is the result, or nan
        return x - out
    return x - maximum(out, float(np.finfo(out.dtype).min))


logaddexp = binary(
    "logaddexp",
    "np.logaddexp",
    push(lambda t, out, x, y: t * exp(_above(x, out, y))),
    push(lambda t, out, x, y: t * exp(_above(y, out, x))),
)
logaddexp2 = binary(
    "logaddexp2",
    "np.logaddexp2",
    push(lambda t, out, x, y: t * exp2(_above(x, out, y))),
    push(lambda t, out, x, y: t * exp2(_above(y, out, x))),
)
heaviside = binary(
    "heaviside",
    "np.heaviside",
    None,
    push(lambda t, out, x, y: t * to_dtype(eq(x, 0), x.dtype)),
)


def _clip_shape(x: Aval, low: Any, high: Any) -> Aval:
    return function(x)


def _clip_push(t: Symbol, out: Symbol, x: Symbol, low: Any, high: Any) -> Any:
    return t * share(eq(x, out), bitwise_or(eq(x, low), eq(x, high)), x.dtype)


# between two numbers; arrays as bounds go through maximum and minimum
clip: Primitive = primitive(
    "clip",
    _clip_shape,
    "np.clip({0}, {low}, {high})",
    takes_out=True,
    order="K",
    batch=elementwise,
    cheap=True,
    diff=(push(_clip_push),),
)
