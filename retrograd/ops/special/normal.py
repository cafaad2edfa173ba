"""Error functions, the normal distribution and the logistic function.

Derivatives follow DLMF 7.10. Where a textbook formula subtracts two large numbers that nearly agree, asymptotic series
(DLMF 7.12.1) take over, so that tails are right to rounding.
"""

from __future__ import annotations

import math
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ..batching import elementwise
from ..bessel import polynomial
from ..complex import abs_
from ..elementary import exp
from ..elementwise import function, gt, lt, square, where
from ..extrema import maximum
from .declare import special

TERMS = {k: float(math.prod(range(1, 2 * k, 2))) for k in range(12, 0, -1)}  # (2k - 1)!!
TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _cut(x: Symbol) -> float:
    """The point from which on the series is exact to rounding."""
    return 12.0 if x.dtype.itemsize == 8 else 5.0


def _series(x: Symbol, sign: int) -> Any:
    """The sum of signᵏ (2k - 1)!!/(2x²)ᵏ over k ≥ 1, for large x."""
    u = 0.5 / square(x)
    return polynomial(u, coefficients=tuple(c * sign**k for k, c in TERMS.items())) * u


def _erfcx_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """2x erfcx(x) - 2/√π."""
    near = x * 2 * out - TWO_OVER_ROOT_PI
    if x.dtype.kind == "c":
        return t * near
    far = _series(maximum(x, _cut(x)), -1) * TWO_OVER_ROOT_PI
    return t * where(gt(x, _cut(x)), far, near)


def _dawsn_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """1 - 2x dawsn(x), DLMF 7.10.2."""
    near = 1 - x * 2 * out
    if x.dtype.kind == "c":
        return t * near
    size = abs_(x)
    return t * where(gt(size, _cut(x)), -_series(maximum(size, _cut(x)), 1), near)


def _bell(x: Symbol, sign: float, factor: float) -> Any:
    """factor exp(sign x²)."""
    return exp(square(x) * sign) * factor


erf = special("erf", push(lambda t, out, x: t * _bell(x, -1.0, TWO_OVER_ROOT_PI)))
erfc = special("erfc", push(lambda t, out, x: t * _bell(x, -1.0, -TWO_OVER_ROOT_PI)))
erfi = special("erfi", push(lambda t, out, x: t * _bell(x, 1.0, TWO_OVER_ROOT_PI)))
erfcx = special("erfcx", push(_erfcx_push))
dawsn = special("dawsn", push(_dawsn_push))
erfinv = special("erfinv", push(lambda t, out, x: t * _bell(out, 1.0, 1 / TWO_OVER_ROOT_PI)))
erfcinv = special("erfcinv", push(lambda t, out, x: t * _bell(out, 1.0, -1 / TWO_OVER_ROOT_PI)))


def _ratio_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """-r (x + r); x + r is small for negative x."""
    excess = x + out
    if x.dtype.kind != "c":
        cut = _cut(x)
        far = -(out * _series(maximum(x * -ROOT_HALF, cut), -1))
        excess = where(lt(x, -cut / ROOT_HALF), far, excess)
    return t * -(out * excess)


# φ(x)/Φ(x) of the normal distribution: finite and exact in both tails, unlike the quotient itself
normal_ratio: Primitive = primitive(
    "normal_ratio",
    function,
    f"{math.sqrt(2 / math.pi)} / scipy.special.erfcx({{0}} * {-ROOT_HALF})",
    batch=elementwise,
    diff=(push(_ratio_push),),
)

ndtr = special("ndtr", push(lambda t, out, x: t * _bell(x, -0.5, 1 / ROOT_TWO_PI)))
log_ndtr = special("log_ndtr", push(lambda t, out, x: t * normal_ratio(x)))
ndtri = special("ndtri", push(lambda t, out, x: t * _bell(out, 0.5, ROOT_TWO_PI)))
ndtri_exp = special("ndtri_exp", push(lambda t, out, x: t / normal_ratio(out)))

expit: Primitive = special("expit", push(lambda t, out, x: t * (out * expit(-x))))  # out (1 - out) is 0 from x = 37 on
logit = special("logit", push(lambda t, out, x: t / x + t / (1 - x)))
log_expit = special("log_expit", push(lambda t, out, x: t * expit(-x)))
