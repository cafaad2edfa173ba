"""Student's distribution: its density, its distribution function and its quantiles.

Where the degrees of freedom are many, the derivatives by them are differences of nearly equal parts. Asymptotic series
take over there, and Gauss' quadrature of the derivative of the density, whose parts have one sign.
"""

from __future__ import annotations

import math
from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, primitive, push
from ..batching import elementwise
from ..bessel import polynomial
from ..complex import abs_, sign
from ..elementary import exp, log
from ..elementwise import function, ge, gt, lt, square, where
from ..extrema import minimum
from ..shape import before_broadcast
from .declare import special
from .densities import ARTANH
from .entropy import at_most_largest
from .gamma import betaln, zeta
from .incomplete_beta import betainc_slope

FREE = 20.0  # degrees of freedom from which on these terms are exact to rounding
# log(Γ((ν + 1)/2)/(Γ(ν/2) √(ν/2))) in odd powers of 1/ν, from DLMF 5.11.8
TERMS = (-1 / 4, 1 / 24, -1 / 20, 17 / 112, -31 / 36, 691 / 88, -5461 / 52, 929569 / 480)
SLOPES = tuple(-c * (2 * k + 1) for k, c in enumerate(TERMS))
BENDS = tuple(-c * (2 * k + 2) for k, c in enumerate(SLOPES))

LOG_STUDENT_DENSITY = f"""
def log_student_density(df, t):
    if np.isscalar(df) and 0 < df < {FREE}:
        constant = float(-0.5 * np.log(df) - scipy.special.betaln(0.5 * df, 0.5))
        return constant - (df + 1) * 0.5 * np.log1p(t * t / df)
    many = np.greater_equal(df, {FREE})
    few = np.where(many, 1, df) if many.any() else df
    found = 0.0 if many.all() else -0.5 * np.log(few) - scipy.special.betaln(0.5 * few, 0.5)
    if many.any():
        r = np.divide(1, np.where(many, df, {FREE}), dtype=np.float64)
        u = r * r
        rest = (((({TERMS[7]} * u + {TERMS[6]}) * u + {TERMS[5]}) * u + {TERMS[4]}) * u + {TERMS[3]}) * u + {TERMS[2]}
        rest = ((rest * u + {TERMS[1]}) * u + {TERMS[0]}) * r
        found = np.where(many, rest - {0.5 * math.log(2 * math.pi)}, found)
    if many.any() and (endless := np.isinf(df)).any():  # normal distributions
        v = np.where(endless, 1, df)
        power = np.where(endless, t * t * -0.5, (v + 1) * -0.5 * np.log1p(np.divide(t * t, v)))
    else:
        power = (df + 1) * -0.5 * np.log1p(np.divide(t * t, df))
    return np.asarray(power + found, np.asarray(t).dtype)[()]
"""

# log(1 + u) - u/(1 + u), whose parts may cancel where the degrees of freedom are many
LOG_EXCESS = f"""
def log_excess(df, u):
    if (np.isscalar(df) and df <= 100) or not np.greater(df, 100).any():
        return np.log1p(u) - u / (1 + u)
    near = np.greater(u, -0.1) & np.less(u, 0.2)
    if not near.any():
        return np.log1p(u) - u / (1 + u)
    found = 0.0 if near.all() else np.log1p(u) - u / (1 + u)
    u = u if near.all() else np.where(near, u, 0)
    v = u / (2 + u)
    w = v * v
    odd = {ARTANH}
    series = 2 * (w / (1 + v) + v * odd)
    return np.asarray(series if near.all() else np.where(near, series, found))[()]
"""
log_excess: Primitive = primitive(
    "log_excess",
    function,
    "log_excess({0}, {1})",
    helper=LOG_EXCESS,
    loose=(0,),
    batch=elementwise,
    diff=(None, push(lambda t, out, df, u: t * (u / (1 + u) / (1 + u)))),
)


def _weight_push(t: Symbol, out: Symbol, df: Symbol, squared: Symbol) -> Any:
    whole = df + squared
    return t * ((squared - 1) / whole / whole)


# (ν + 1)/(ν + t²): the derivative of the quotient, by ν, would lose digits where ν is large
student_weight: Primitive = primitive(
    "student_weight",
    function,
    "np.divide({0} + 1, {0} + {1})",
    batch=elementwise,
    cheap=True,
    diff=(
        push(_weight_push),
        push(lambda t, out, df, squared: -(t * (out / (df + squared)))),
    ),
)


STUDENT_RATE = f"""
def student_rate(df):
    if np.isscalar(df) and 0 < df < {FREE}:
        return (scipy.special.digamma(0.5 * df + 0.5) - scipy.special.digamma(0.5 * df) - 1 / df) * 0.5
    many = np.greater_equal(df, {FREE})
    found = 0.0
    if not (many.any() and many.all()):
        few = np.where(many, 1, df) if many.any() else df
        found = scipy.special.digamma(0.5 * few + 0.5) - scipy.special.digamma(0.5 * few)
        found = (found - np.divide(1, few)) * 0.5
    if not many.any():
        return found
    u = np.square(np.divide(1, df if many.all() else np.where(many, df, {FREE})))
    rest = (((({SLOPES[7]} * u + {SLOPES[6]}) * u + {SLOPES[5]}) * u + {SLOPES[4]}) * u + {SLOPES[3]}) * u + {SLOPES[2]}
    rest = ((rest * u + {SLOPES[1]}) * u + {SLOPES[0]}) * u
    return rest if many.all() else np.where(many, rest, found)
"""


def _rate_push(t: Symbol, out: Symbol, df: Symbol) -> Any:
    few, half = lt(df, FREE), df * 0.5
    many = where(few, FREE, df)
    u = square(1 / many)
    direct = (zeta(2, half + 0.5) - zeta(2, half)) * 0.25 + square(1 / df) * 0.5
    return t * where(few, direct, polynomial(u, coefficients=BENDS[::-1]) * u / many)


# the derivative, by ν, of the logarithm of Γ((ν + 1)/2)/(Γ(ν/2) √ν)
student_rate: Primitive = primitive(
    "student_rate", function, "student_rate({0})", helper=STUDENT_RATE, batch=elementwise, diff=(push(_rate_push),)
)


def _freedom_slope(df: Symbol, x: Symbol) -> Any:
    """The derivative of the logarithm of the density by ν."""
    u = square(x) / df
    return before_broadcast(student_rate, df) - log_excess(df, u) * 0.5 + u / (1 + u) / (df * 2)


# the logarithm of (1 + t²/ν)^(-(ν + 1)/2)/(√ν B(½, ν/2))
log_student_density: Primitive = primitive(
    "log_student_density",
    function,
    "log_student_density({0}, {1})",
    helper=LOG_STUDENT_DENSITY,
    loose=(0, 1),
    batch=elementwise,
    diff=(
        push(lambda t, out, df, x: t * _freedom_slope(df, x)),
        push(lambda t, out, df, x: -(t * (x * student_weight(before_broadcast(at_most_largest, df), square(x))))),
    ),
)


MANY = 30.0  # degrees of freedom from which on quadrature is exact to rounding

# The derivative of the distribution function by ν is the integral of the density times the derivative of its logarithm:
# from 0 on by Legendre's points; in the tails by Laguerre's, since the density falls like an exponential function of
# its own logarithm. It is 0 where ν is smaller.
STUDENT_SLOPE = f"""
def student_slope(df, t):
{indent(LOG_EXCESS.strip(), "    ")}

    wide_v, wide_x = np.broadcast_arrays(np.asarray(df, np.float64), np.asarray(t, np.float64))
    many = (wide_v >= {MANY}) & np.isfinite(wide_v)
    found = np.zeros(many.shape)
    if not many.any():
        return np.asarray(found, np.asarray(t).dtype)[()]
    v, x = wide_v[many][:, None], np.abs(wide_x[many])[:, None]
    power = np.square(1 / v)
    constant = np.polynomial.polynomial.polyval(power, {TERMS}) / v - {0.5 * math.log(2 * math.pi)}
    falling = np.polynomial.polynomial.polyval(power, {SLOPES}) * power

    def density(s):
        return np.exp(constant - 0.5 * (v + 1) * np.log1p(s * s / v))

    def slope(s):
        u = s * s / v
        return falling - 0.5 * log_excess(v, u) + u / (1 + u) / (2 * v)

    points, weights = np.polynomial.legendre.leggauss(24)
    near = np.minimum(x, 2.5)
    inner = 0.5 * near * (points + 1)
    centre = 0.5 * near[..., 0] * np.sum(weights * density(inner) * slope(inner), axis=-1)
    points, weights = np.polynomial.laguerre.laggauss(32)
    far = np.clip(x, 2.5, 1e100)
    squared = far * far + (v + far * far) * np.expm1(2 * points / (v + 1))
    outer = np.sqrt(squared)
    tail = -density(far)[..., 0] * np.sum(weights * slope(outer) * (v + squared) / ((v + 1) * outer), axis=-1)
    found[many] = np.sign(wide_x[many]) * np.where(x[..., 0] < 2.5, centre, tail)
    return np.asarray(found, np.asarray(t).dtype)[()]
"""


def _student_slope_push(t: Symbol, out: Symbol, df: Symbol, x: Symbol) -> Any:
    """The density times the derivative of its logarithm: the derivatives by both arguments commute."""
    return t * (exp(log_student_density(df, x)) * _freedom_slope(df, x))


student_slope: Primitive = primitive(
    "student_slope",
    function,
    "student_slope({0}, {1})",
    helper=STUDENT_SLOPE,
    loose=(0, 1),
    batch=elementwise,
    diff=(Unknown("the degrees of freedom of scipy.special.stdtr, twice"), push(_student_slope_push)),
)


def freedom_slope(df: Symbol, x: Symbol) -> Any:
    """The derivative of the distribution function by ν."""
    many = ge(df, MANY)
    return where(many, student_slope(df, x), _slope_by_beta(where(many, MANY, df), x))


FAR = 1e10  # a variable from which on a tail is (ν/t²)^(ν/2)/(ν B(ν/2, ½)) to rounding; its square may overflow


def _tail_rate(df: Symbol, size: Symbol) -> Any:
    """The derivative by ν of the logarithm of the tail beyond a large number."""
    return student_rate(df) + (1 + log(df) - 1 / df) * 0.5 - log(size)


def _slope_by_beta(df: Symbol, x: Symbol) -> Any:
    """From the incomplete beta function at ν/(ν + t²) in the tails, at t²/(ν + t²) near 0, where either is exact."""
    size, half = abs_(x), df * 0.5
    far = gt(size, FAR)
    inner, outer = where(far, FAR, size), where(far, size, FAR)
    squared = square(inner)
    whole = df + squared
    near = lt(squared, df)
    tail, centre = where(near, 0.5, df / whole), where(near, squared / whole, 0.5)
    one_half = half * 0 + 0.5
    log_beta = betaln(half, one_half)
    moved = exp((half - 1) * log(df / whole) - log_beta) * inner / (whole * whole**0.5)
    by_tail = betainc_slope(half, one_half, tail, first=True) * 0.5 + moved
    by_centre = betainc_slope(one_half, half, centre, first=False) * 0.5 - moved
    last = exp(half * log(df) - df * log(outer) - log_beta) / df * _tail_rate(df, outer)
    return sign(x) * where(far, -last, where(near, by_centre, -by_tail) * 0.5)


def _quantile_freedom_push(t: Symbol, out: Symbol, df: Symbol, p: Symbol) -> Any:
    """Where T(x, ν) = p stays the same; far out the density is ν/|x| times the tail, which cancels."""
    size = abs_(out)
    far = gt(size, FAR)
    x = where(far, FAR, out)
    direct = -(t * (freedom_slope(df, x) * exp(-log_student_density(df, x))))
    few = where(far, df, 1)
    return where(far, t * (out / few * _tail_rate(few, where(far, size, 1))), direct)


def _quantile_push(t: Symbol, out: Symbol, df: Symbol, p: Symbol) -> Any:
    size = abs_(out)
    far = gt(size, FAR)
    tail = where(far, minimum(p, 1 - p), 1)
    return t * where(far, size / df / tail, exp(-log_student_density(df, where(far, FAR, out))))


stdtr = special(
    "stdtr",
    push(lambda t, out, df, x: t * freedom_slope(df, x)),
    push(lambda t, out, df, x: t * exp(log_student_density(df, x))),
)
stdtrit = special("stdtrit", push(_quantile_freedom_push), push(_quantile_push))
