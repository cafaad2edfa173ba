"""Incomplete beta functions, and the distribution of Student.

The derivatives by the first two arguments have no closed form: the continued fraction DLMF 8.17.22 is differentiated
term by term (Boik and Robison-Cox, Derivatives of the incomplete beta function, 1998), where it converges fast.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, primitive, push
from ...ir.types import Aval
from ..batching import elementwise
from ..elementary import exp, log, log1p
from ..elementwise import function
from .declare import special
from .densities import LOG_BINOMIAL, log_beta_density
from .gamma import digamma_rise

STEPS = 20_000  # nan where as many do not suffice, which takes parameters beyond ten millions

# numerators p and denominators q of the convergents, and their derivatives by a and b
SLOPE = f"""
def betainc_slopes(a, b, x):
{indent(LOG_BINOMIAL.strip(), "    ")}

    ones, none = np.ones(a.shape), np.zeros(a.shape)
    p, pa, pb, q, qa, qb = ones, none, none, ones, none, none
    p0, pa0, pb0, q0, qa0, qb0 = none, none, none, ones, none, none
    ratio, slope_a, slope_b = ones, none, none
    done = np.zeros(a.shape, bool)  # each element stops by itself, whatever the others need
    for step in range({STEPS}):
        if step % 2 == 0:
            k = step // 2
            d = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1))
            da = d * (1 / (a + k) + 1 / (a + b + k) - 1 / (a + 2 * k) - 1 / (a + 2 * k + 1))
            db = d / (a + b + k)
        else:
            k = step // 2 + 1
            db = k * x / ((a + 2 * k - 1) * (a + 2 * k))
            d = db * (b - k)
            da = -d * (1 / (a + 2 * k - 1) + 1 / (a + 2 * k))
        new_p, new_pa, new_pb = p + d * p0, pa + d * pa0 + da * p0, pb + d * pb0 + db * p0
        new_q, new_qa, new_qb = q + d * q0, qa + d * qa0 + da * q0, qb + d * qb0 + db * q0
        size = 1 / new_q
        better = new_p * size
        steep_a, steep_b = (new_pa - better * new_qa) * size, (new_pb - better * new_qb) * size
        moved = np.abs(steep_a - slope_a) + np.abs(steep_b - slope_b)
        change = np.abs(better - ratio) / np.abs(better) + moved / (np.abs(steep_a) + np.abs(steep_b) + 1e-300)
        ratio = np.where(done, ratio, better)
        slope_a, slope_b = np.where(done, slope_a, steep_a), np.where(done, slope_b, steep_b)
        done = done | ((change <= 2e-15) & (step > 1))
        if np.all(done):
            break
        p0, pa0, pb0, q0, qa0, qb0 = p * size, pa * size, pb * size, q * size, qa * size, qb * size
        p, pa, pb, q, qa, qb = new_p * size, new_pa * size, new_pb * size, ones, new_qa * size, new_qb * size
    scale = np.exp(log_binomial(a, b, a + 1, b + 1, x)) * b / ((a + b) * (a + b + 1))
    both = scipy.special.digamma(a + b)
    by_a = scale * (slope_a + (np.log(x) - 1 / a - scipy.special.digamma(a) + both) * ratio)
    by_b = scale * (slope_b + (np.log1p(-x) - scipy.special.digamma(b) + both) * ratio)
    return np.where(done, by_a, np.nan), np.where(done, by_b, np.nan)


def betainc_slope(a, b, x, first):
    wide_a, wide_b, wide_x = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, x)))
    fine = (wide_a > 0) & (wide_b > 0)
    found = np.where(fine & (wide_x >= 0) & (wide_x <= 1), 0.0, np.nan)
    inner = fine & (wide_x > 0) & (wide_x < 1)
    a1, b1, x1 = wide_a[inner], wide_b[inner], wide_x[inner]
    turned = x1 > (a1 + 1) / (a1 + b1 + 2)
    by_a, by_b = betainc_slopes(np.where(turned, b1, a1), np.where(turned, a1, b1), np.where(turned, 1 - x1, x1))
    if first:
        found[inner] = np.where(turned, -by_b, by_a)
    else:
        found[inner] = np.where(turned, -by_a, by_b)
    return np.asarray(found, np.asarray(x).dtype)[()]
"""


def _slope_shape(a: Aval, b: Aval, x: Aval, first: bool) -> Aval:
    return function(a, b, x)


def _slope_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, x: Symbol, first: bool) -> Any:
    """The density times the derivative of its logarithm: the derivatives by two arguments commute."""
    by = log(x) + digamma_rise(a, b) if first else log1p(-x) + digamma_rise(b, a)
    return t * (exp(log_beta_density(a, b, x)) * by)


_TWICE = Unknown("the first two arguments of scipy.special.betainc, twice")
betainc_slope: Primitive = primitive(
    "betainc_slope",
    _slope_shape,
    "betainc_slope({0}, {1}, {2}, {first})",
    helper=SLOPE,
    loose=(0, 1, 2),
    batch=elementwise,
    diff=(_TWICE, _TWICE, push(_slope_push)),
)


def _direct(name: str, factor: float) -> Primitive:
    """The function, or its complement."""
    return special(
        name,
        push(lambda t, out, a, b, x: t * (betainc_slope(a, b, x, first=True) * factor)),
        push(lambda t, out, a, b, x: t * (betainc_slope(a, b, x, first=False) * factor)),
        push(lambda t, out, a, b, x: t * (exp(log_beta_density(a, b, x)) * factor)),
    )


def _inverse(name: str, factor: float) -> Primitive:
    """If I(a, b, x) = y stays the same, dx is -(∂I/∂a)/(∂I/∂x) da; this holds for the complement, too."""

    def by_parameter(t: Symbol, out: Symbol, a: Symbol, b: Symbol, first: bool) -> Any:
        return -(t * (betainc_slope(a, b, out, first=first) * exp(-log_beta_density(a, b, out))))

    return special(
        name,
        push(lambda t, out, a, b, y: by_parameter(t, out, a, b, True)),
        push(lambda t, out, a, b, y: by_parameter(t, out, a, b, False)),
        push(lambda t, out, a, b, y: t * (exp(-log_beta_density(a, b, out)) * factor)),
    )


betainc, betaincc = _direct("betainc", 1.0), _direct("betaincc", -1.0)
betaincinv, betainccinv = _inverse("betaincinv", 1.0), _inverse("betainccinv", -1.0)
