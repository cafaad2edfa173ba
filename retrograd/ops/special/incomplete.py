"""Incomplete gamma functions.

The derivative of the incomplete gamma function by its first argument has no closed form. The series DLMF 8.7.1 left of
max(a, 1), and the continued fraction of Legendre, DLMF 8.9.2, right of it are differentiated term by term; on either
side all parts have one sign, so that nothing cancels.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, primitive, push
from ..batching import elementwise
from ..elementary import exp, log
from ..elementwise import function
from .declare import special
from .densities import LOG_POISSON, log_gamma_density
from .gamma import digamma

STEPS = 20_000  # nan where as many do not suffice, which takes a first argument beyond ten millions

SLOPE = f"""
def gammainc_slope_by_series(a, x):
    r, term, slope, total, slopes = a, np.ones(a.shape), np.zeros(a.shape), np.ones(a.shape), np.zeros(a.shape)
    for step in range({STEPS}):
        r = r + 1
        slope = (slope - term / r) * (x / r)
        term = term * (x / r)
        total = total + term
        slopes = slopes + slope
        if np.all(np.abs(slope) <= 1e-17 * np.abs(slopes)):
            break
    unfinished = np.abs(slope) > 1e-14 * np.abs(slopes)
    return np.where(unfinished, np.nan, slopes + (np.log(x) - scipy.special.digamma(a + 1)) * total)


def gammainc_slope_by_fraction(a, x):
    y, z = 1 - a, x - a + 2
    p2, q2, p1, q1 = np.ones(a.shape), x, x + 1, z * x
    dp2, dq2, dp1, dq1 = np.zeros(a.shape), np.zeros(a.shape), np.zeros(a.shape), -x
    ratio, slope = p1 / q1, -p1 * dq1 / (q1 * q1)
    done = np.zeros(a.shape, bool)  # each element stops by itself, whatever the others need
    for step in range(1, {STEPS}):
        y, z = y + 1, z + 2
        p = p1 * z - p2 * (y * step)
        q = q1 * z - q2 * (y * step)
        dp = dp1 * z - p1 - dp2 * (y * step) + p2 * step
        dq = dq1 * z - q1 - dq2 * (y * step) + q2 * step
        better, steeper = p / q, (dp - p / q * dq) / q
        change = np.where(done, 0.0, np.abs(better / ratio - 1) + np.abs(steeper / slope - 1))
        ratio, slope = np.where(done, ratio, better), np.where(done, slope, steeper)
        done = change <= 1e-15
        if np.all(done):
            break
        size = np.where(np.abs(p) > 1e100, 1e-100, 1.0)
        p2, q2, dp2, dq2 = p1 * size, q1 * size, dp1 * size, dq1 * size
        p1, q1, dp1, dq1 = p * size, q * size, dp * size, dq * size
    return np.where(done, -a * (slope + (np.log(x) - scipy.special.digamma(a)) * ratio), np.nan)


def gammainc_slope(a, x):
{indent(LOG_POISSON.strip(), "    ")}

    wide_a, wide_x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    found = np.where((wide_a > 0) & (wide_x >= 0), 0.0, np.nan)
    left = (wide_a > 0) & (wide_x > 0) & ((wide_x <= 1) | (wide_x <= wide_a))
    gone = (wide_x > 1e6) & (wide_x > 2 * wide_a)  # where the function is 1 to the last bit
    right = (wide_a > 0) & (wide_x > 1) & (wide_x > wide_a) & ~gone
    found[left] = gammainc_slope_by_series(wide_a[left], wide_x[left])
    found[right] = gammainc_slope_by_fraction(wide_a[right], wide_x[right])
    inside = left | right
    found[inside] *= np.exp(log_poisson(wide_a[inside], wide_a[inside] + 1, wide_x[inside]))
    return np.asarray(found, np.asarray(x).dtype)[()]
"""


def _slope_push(t: Symbol, out: Symbol, a: Symbol, x: Symbol) -> Any:
    """The density times log x - ψ(a): the derivatives by both arguments commute."""
    return t * (exp(log_gamma_density(a, x)) * (log(x) - digamma(a)))


gammainc_slope: Primitive = primitive(
    "gammainc_slope",
    function,
    "gammainc_slope({0}, {1})",
    helper=SLOPE,
    batch=elementwise,
    diff=(Unknown("the first argument of scipy.special.gammainc, twice"), push(_slope_push)),
)

gammainc = special(
    "gammainc",
    push(lambda t, out, a, x: t * gammainc_slope(a, x)),
    push(lambda t, out, a, x: t * exp(log_gamma_density(a, x))),
)
gammaincc = special(
    "gammaincc",
    push(lambda t, out, a, x: -(t * gammainc_slope(a, x))),
    push(lambda t, out, a, x: -(t * exp(log_gamma_density(a, x)))),
)
# the inverses: where P(a, x) = y stays the same, dx is -(∂P/∂a)/(∂P/∂x) da
gammaincinv = special(
    "gammaincinv",
    push(lambda t, out, a, y: -(t * (gammainc_slope(a, out) * exp(-log_gamma_density(a, out))))),
    push(lambda t, out, a, y: t * exp(-log_gamma_density(a, out))),
)
gammainccinv = special(
    "gammainccinv",
    push(lambda t, out, a, y: -(t * (gammainc_slope(a, out) * exp(-log_gamma_density(a, out))))),
    push(lambda t, out, a, y: -(t * exp(-log_gamma_density(a, out)))),
)
