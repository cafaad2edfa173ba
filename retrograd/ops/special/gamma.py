"""Gamma and beta functions."""

from __future__ import annotations

import math
from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, primitive, push
from ...ir.types import Aval
from ..batching import elementwise
from ..elementary import cos, sin
from ..elementwise import function, lt, where
from .declare import real_only, special

# Hurwitz' zeta function Σ (q + k)⁻ˢ, DLMF 25.11.17; SciPy's ufunc has a private name, its public function has two
zeta: Primitive = primitive(
    "zeta",
    function,
    "scipy.special.zeta({0}, {1})",
    loose=(0, 1),
    batch=elementwise,
    diff=(
        Unknown("the exponent of scipy.special.zeta"),
        push(lambda t, out, s, q: -(t * (s * zeta(s + 1, q)))),
    ),
)


def _digamma_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """ψ'(x) = ζ(2, x), DLMF 25.11.12."""
    real_only(x, "digamma")
    return t * zeta(2, x)


digamma = special("digamma", push(_digamma_push))
gamma: Primitive = special("gamma", push(lambda t, out, x: t * (out * digamma(x))))  # DLMF 5.2.2
gammaln: Primitive = special("gammaln", push(lambda t, out, x: t * digamma(x)))
loggamma = special("loggamma", push(lambda t, out, x: t * digamma(x)))
gammasgn = special("gammasgn", None)


def _rgamma_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    """-ψ(x)/Γ(x); left of ½ the derivative of Γ(1 - x) sin(πx)/π, DLMF 5.5.3, which holds at the poles of Γ too."""
    if x.dtype.kind == "c":
        return -(t * (out * digamma(x)))
    below = lt(x, 0.5)
    right, left = where(below, 0.5, x), where(below, x, 0.5)
    mirrored, angle = 1 - left, left * math.pi
    slope = gamma(mirrored) * (cos(angle) - digamma(mirrored) * sin(angle) * (1 / math.pi))
    return t * where(below, slope, -(digamma(right) * rgamma(right)))


rgamma: Primitive = special("rgamma", push(_rgamma_push))

# The sum of (q + k)⁻ˢ - (q + d + k)⁻ˢ, which is ζ(s, q) - ζ(s, q + d), and ψ(q + d) - ψ(q) for s = 1. If d is small
# beside q these differences cancel, but not those of the terms of Euler and Maclaurin's formula, DLMF 25.11.5.
ZETA_DROP = """
def zeta_drop(q, d, s):
    close = np.less(np.abs(d), 0.25 * q) | np.greater_equal(q, 10) & np.greater(d, 0)
    if s == 1:
        found = scipy.special.digamma(q + d) - scipy.special.digamma(q)
    else:
        found = scipy.special.zeta(s, q) - scipy.special.zeta(s, q + d)
    if not close.any():
        return np.asarray(found, np.asarray(q).dtype)[()]
    found = np.array(found, np.float64)
    q, d = np.broadcast_arrays(q, d)
    dtype, q, d = q.dtype, q[close].astype(np.float64), d[close].astype(np.float64)
    total = np.zeros(q.shape)
    while (early := q < 10).any():
        part = q ** -float(s) * -np.expm1(-s * np.log1p(d / q))
        total, q = np.where(early, total + part, total), np.where(early, q + 1, q)
    w = np.log1p(d / q)
    total += w if s == 1 else q ** (1.0 - s) / (1.0 - s) * np.expm1((1 - s) * w)
    total -= 0.5 * q ** -float(s) * np.expm1(-s * w)
    twice, gone, power, rising = -np.expm1(-2 * w), -np.expm1(-(s + 1) * w), q ** -(s + 1.0), float(s)
    for over in (12, -720, 30240, -1209600, 47900160, -1307674368000 / 691, 74724249600, -10670622842880000 / 3617):
        total += rising / over * (power * gone)
        gone, power, s = gone + (1 - gone) * twice, power / (q * q), s + 2
        rising *= (s - 1) * s
    found[close] = total
    return found.astype(dtype)[()]
"""


def _drop_shape(q: Aval, d: Aval, s: int) -> Aval:
    return function(q, d)


def _drop_push(t: Symbol, out: Symbol, q: Symbol, d: Symbol, s: int) -> Any:
    return -(t * (zeta_drop(q, d, s=s + 1) * float(s)))


zeta_drop: Primitive = primitive(
    "zeta_drop",
    _drop_shape,
    "zeta_drop({0}, {1}, {s})",
    helper=ZETA_DROP,
    batch=elementwise,
    diff=(push(_drop_push), push(lambda t, out, q, d, s: t * (zeta(s + 1.0, q + d) * float(s)))),
)

DIGAMMA_RISE = f"""
def digamma_rise(q, d):
    if np.isscalar(q) and np.isscalar(d) and not (-0.25 * q < d < 0.25 * q or (q >= 10 and d > 0)):
        return scipy.special.digamma(q + d) - scipy.special.digamma(q)
{indent(ZETA_DROP, "    ")}
    return zeta_drop(q, d, 1)
"""
# ψ(q + d) - ψ(q)
digamma_rise: Primitive = primitive(
    "digamma_rise",
    function,
    "digamma_rise({0}, {1})",
    helper=DIGAMMA_RISE,
    batch=elementwise,
    diff=(
        push(lambda t, out, q, d: -(t * zeta_drop(q, d, s=2))),
        push(lambda t, out, q, d: t * zeta(2, q + d)),
    ),
)

beta = special(
    "beta",
    push(lambda t, out, a, b: -(t * (out * digamma_rise(a, b)))),
    push(lambda t, out, a, b: -(t * (out * digamma_rise(b, a)))),
)
betaln = special(
    "betaln",
    push(lambda t, out, a, b: -(t * digamma_rise(a, b))),
    push(lambda t, out, a, b: -(t * digamma_rise(b, a))),
)
