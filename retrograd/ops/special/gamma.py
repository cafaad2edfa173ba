"""Gamma and beta functions."""

from __future__ import annotations

import math
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, primitive, push
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

beta = special(
    "beta",
    push(lambda t, out, a, b: t * (out * (digamma(a) - digamma(a + b)))),
    push(lambda t, out, a, b: t * (out * (digamma(b) - digamma(a + b)))),
)
betaln = special(
    "betaln",
    push(lambda t, out, a, b: t * (digamma(a) - digamma(a + b))),
    push(lambda t, out, a, b: t * (digamma(b) - digamma(a + b))),
)
poch = special(
    "poch",
    push(lambda t, out, z, m: t * (out * (digamma(z + m) - digamma(z)))),
    push(lambda t, out, z, m: t * (out * digamma(z + m))),
)
binom = special(
    "binom",
    push(lambda t, out, n, k: t * (out * (digamma(n + 1) - digamma(n - k + 1)))),
    push(lambda t, out, n, k: t * (out * (digamma(n - k + 1) - digamma(k + 1)))),
)
