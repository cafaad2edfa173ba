"""Logarithms of densities: of the gamma, the beta and Student's distribution.

Sums of products and log-gamma functions lose as many digits as their parts are larger than the result. Where parameters
are large, what is left of Stirling's formula, and deviances n log(n/y) + y - n in their place are small themselves
(Loader, Fast and accurate computation of binomial probabilities, 2000).
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ..batching import elementwise
from ..elementary import log, log1p
from ..elementwise import function
from ..shape import before_broadcast
from .entropy import at_most_largest, off_double_zero, relative_gap
from .gamma import digamma, digamma_rise

LARGE = 10  # a count from which on 8 terms of Stirling's series are exact to rounding, DLMF 5.11.1

# artanh(v)/v - 1 in w = v², exact to rounding for v up to 0.1
ARTANH = "(((((((w / 17 + 1 / 15) * w + 1 / 13) * w + 1 / 11) * w + 1 / 9) * w + 1 / 7) * w + 1 / 5) * w + 1 / 3) * w"

LOG_POISSON = f"""
def log_poisson(n, z, y):  # n log y - y - log Γ(z) for z = n + 1
    if np.isscalar(n) and n < {LARGE}:
        return scipy.special.xlogy(n, y) - y - scipy.special.gammaln(z)
    large = np.greater_equal(n, {LARGE})
    if large.any():
        large = large & np.greater(y, 1e-30) & np.less(y, 1e30) & np.isfinite(n)
    if not large.any():
        return scipy.special.xlogy(n, y) - y - scipy.special.gammaln(z)
    found = 0.0 if large.all() else scipy.special.xlogy(n, y) - y - scipy.special.gammaln(z)
    dtype = np.asarray(y).dtype
    n, y = (np.where(large, np.asarray(v, np.float64), {LARGE}) for v in (n, y))
    apart = (y - n) / (y + n)
    near = np.abs(apart) < 0.1
    v = np.where(near, apart, 0.0)
    w = v * v
    odd = {ARTANH}
    deviance = (y - n) * v - 2 * n * v * odd
    if not near.all():
        deviance = np.where(near, deviance, n * np.log(n / y) + y - n)
    u = 1 / (n * n)
    rest = ((((u / 156 - 691 / 360360) * u + 1 / 1188) * u - 1 / 1680) * u + 1 / 1260) * u - 1 / 360
    rest = (1 / 12 + u * rest) / n
    return np.where(large, -deviance - rest - 0.5 * np.log(2 * np.pi * n), found).astype(dtype)[()]
"""

LOG_GAMMA_DENSITY = f"""
def log_gamma_density(a, x):
{indent(LOG_POISSON.strip(), "    ")}

    return log_poisson(a - 1, a, x)
"""


def _gamma_shape_push(t: Symbol, out: Symbol, a: Symbol, x: Symbol) -> Any:
    return t * (log(x) - before_broadcast(digamma, a))


def _gamma_push(t: Symbol, out: Symbol, a: Symbol, x: Symbol) -> Any:
    n = before_broadcast(lambda a: a - 1, a)
    return -(t * relative_gap(n, at_most_largest(off_double_zero(n, x))))


# the logarithm of xᵃ⁻¹ e⁻ˣ/Γ(a), DLMF 8.8.13
log_gamma_density: Primitive = primitive(
    "log_gamma_density",
    function,
    "log_gamma_density({0}, {1})",
    helper=LOG_GAMMA_DENSITY,
    loose=(0, 1),
    batch=elementwise,
    diff=(push(_gamma_shape_push), push(_gamma_push)),
)

# the binomial distribution of p out of p + q is made of three of Poisson's
LOG_BINOMIAL = f"""
def log_binomial(p, q, a, b, x):  # p log x + q log(1 - x) - log B(a, b) for a = p + 1 and b = q + 1
    if np.isscalar(p) and np.isscalar(q) and a + b < {2 * LARGE}:
        return scipy.special.xlogy(p, x) + scipy.special.xlog1py(q, -x) - scipy.special.betaln(a, b)
{indent(LOG_POISSON.strip(), "    ")}

    large = np.greater_equal(a + b, {2 * LARGE})
    if large.any():
        large = large & np.greater(a, 0) & np.greater(b, 0) & np.greater(x, 0) & np.less(x, 1)
    if large.any() and large.all():
        found = 0.0
    else:
        found = scipy.special.xlogy(p, x) + scipy.special.xlog1py(q, -x) - scipy.special.betaln(a, b)
    if not large.any():
        return found
    dtype = np.asarray(x).dtype
    p, q, a, b, x = (np.asarray(v, np.float64) for v in (p, q, a, b, x))
    s, x = np.where(large, a + b, 1.0), np.where(large, x, 0.5)
    fine = log_poisson(p, a, s * x) + log_poisson(q, b, s * (1 - x)) - log_poisson(s - 1, s, s) + np.log(s)
    return np.where(large, fine, found).astype(dtype)[()]
"""

LOG_BETA_DENSITY = f"""
def log_beta_density(a, b, x):
{indent(LOG_BINOMIAL.strip(), "    ")}

    return log_binomial(a - 1, b - 1, a, b, x)
"""


def _beta_push(t: Symbol, out: Symbol, a: Symbol, b: Symbol, x: Symbol) -> Any:
    p, q, rest = a - 1, b - 1, 1 - x
    return t * (p / off_double_zero(p, x) - q / off_double_zero(q, rest))


# the logarithm of xᵃ⁻¹ (1 - x)ᵇ⁻¹/B(a, b), DLMF 8.17.1
log_beta_density: Primitive = primitive(
    "log_beta_density",
    function,
    "log_beta_density({0}, {1}, {2})",
    helper=LOG_BETA_DENSITY,
    loose=(0, 1, 2),
    batch=elementwise,
    diff=(
        push(lambda t, out, a, b, x: t * (log(x) + before_broadcast(digamma_rise, a, b))),
        push(lambda t, out, a, b, x: t * (log1p(-x) + before_broadcast(digamma_rise, b, a))),
        push(_beta_push),
    ),
)
