"""Hypergeometric functions by their variable, exponential integrals, and elementary functions under SciPy's names."""

from __future__ import annotations

import math
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, push
from ..bessel import polynomial
from ..complex import abs_
from ..elementary import LN2, LN10, exp, log, sin
from ..elementwise import eq, gt, lt, square, to_dtype, where
from ..extrema import maximum
from ..logic import logical_and
from .declare import of_parameters, special


def _hypergeometric(name: str, parameters: int, rule: Any) -> Primitive:
    unknown = Unknown(f"a parameter of scipy.special.{name}")
    return special(name, *[unknown] * parameters, push(rule), shape=of_parameters)


def _hyp2f1_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, c: Symbol, x: Symbol) -> Any:
    """ab/c F(a + 1, b + 1; c + 1; x), DLMF 15.5.1."""
    return t * (to_dtype(a * b / c, x.dtype) * hyp2f1(a + 1, b + 1, c + 1, x))


def _hyp1f1_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, x: Symbol) -> Any:
    """a/b M(a + 1, b + 1, x), DLMF 13.3.15."""
    return t * (to_dtype(a / b, x.dtype) * hyp1f1(a + 1, b + 1, x))


def _hyp0f1_push(t: Symbol, out: Symbol, b: Symbol, x: Symbol) -> Any:
    """F(b + 1; x)/b, DLMF 16.3.1."""
    return t * (hyp0f1(b + 1, x) / to_dtype(b, x.dtype))


hyp2f1: Primitive = _hypergeometric("hyp2f1", 3, _hyp2f1_push)
hyp1f1: Primitive = _hypergeometric("hyp1f1", 2, _hyp1f1_push)
hyp0f1: Primitive = _hypergeometric("hyp0f1", 1, _hyp0f1_push)


def _expn_push(t: Symbol, out: Symbol, n: Symbol, x: Symbol) -> Any:
    """-Eₙ₋₁(x), DLMF 8.19.13; for n = 0, where SciPy has none before it, by the recurrence 8.19.12."""
    order = to_dtype(n, x.dtype)
    first = lt(order, 1)
    before = expn(maximum(order - 1, 0), x)
    return -(t * where(first, (exp(-x) + out) / where(first, x, 1), before))


exp1 = special("exp1", push(lambda t, out, x: -(t * (exp(-x) / x))))
expi = special("expi", push(lambda t, out, x: t * (exp(x) / x)))
expn: Primitive = special("expn", Unknown("the order of scipy.special.expn"), push(_expn_push), shape=of_parameters)

NEAR = 0.5  # |x| below which the closed form cancels, and this series of the derivative of (eˣ - 1)/x is exact
TERMS = tuple(k / math.factorial(k + 1) for k in range(16, 0, -1))


def _exprel_slope(x: Symbol, out: Any) -> Any:
    """The derivative of out = (eˣ - 1)/x, in three forms: each is taken where it does not cancel."""
    near = lt(abs_(x), NEAR)
    right, left = where(lt(x, NEAR), NEAR, x), where(gt(x, -NEAR), -NEAR, x)
    small = where(gt(x, 0), 0, out)  # where it is unused it might be infinite, and give nan in derivatives
    far = where(gt(x, 0), out * (1 - 1 / right) + 1 / right, (exp(left) - small) / left)
    return where(near, polynomial(where(near, x, 0), coefficients=TERMS), far)


exprel: Primitive = special("exprel", push(lambda t, out, x: t * _exprel_slope(x, out)))


CLOSE = 0.75  # |p log x| below which one more term of the same series takes the place of the closed form


def _boxcox_power_push(t: Symbol, out: Symbol, x: Symbol, power: Symbol) -> Any:
    """(xᵖ (log x - 1/p) + 1/p)/p, and log² x exprel'(p log x) near p log x = 0; at x = 0 it is 1/p²."""
    edge = logical_and(eq(x, 0), gt(power, 0))
    inside = where(edge, 1, x)
    logarithm = log(inside)
    grown = logarithm * power
    near = logical_and(lt(abs_(grown), CLOSE), eq(edge, False))
    inverse = 1 / where(near, 1, power)
    far = (where(edge, 0, inside**power * (logarithm - inverse)) + inverse) * inverse
    series = polynomial(where(near, grown, 0), coefficients=(17 / math.factorial(18), *TERMS))
    return t * where(near, square(logarithm) * series, far)


boxcox = special("boxcox", push(lambda t, out, x, p: t * x ** (p - 1)), push(_boxcox_power_push))

exp2 = special("special_exp2", push(lambda t, out, x: t * (out * LN2)), ufunc="exp2")
exp10 = special("exp10", push(lambda t, out, x: t * (out * LN10)))
expm1 = special("special_expm1", push(lambda t, out, x: t * exp(x)), ufunc="expm1")
log1p_ = special("special_log1p", push(lambda t, out, x: t / (x + 1)), ufunc="log1p")
cbrt = special("special_cbrt", push(lambda t, out, x: t / (square(out) * 3)), ufunc="cbrt")
cosm1 = special("cosm1", push(lambda t, out, x: -(t * sin(x))))
