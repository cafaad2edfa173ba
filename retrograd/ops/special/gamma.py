"""Gamma and beta functions, complete and incomplete."""

from __future__ import annotations

import math
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, Unknown, primitive, push
from ..batching import elementwise
from ..elementwise import function, lt, square, where
from ..extrema import maximum, minimum
from ..functions import cos, exp, log, log1p, sin
from .declare import real_only, special
from .entropy import xlog1py, xlogy

# Hurwitz' zeta function Σ (q + k)⁻ˢ, DLMF 25.11.17; SciPy's ufunc has a private name, its public function has two
zeta: Primitive = primitive(
    "zeta", function, "scipy.special.zeta({0}, {1})", loose=(0, 1), batch=elementwise,
    diff=(
        Unknown("the exponent of scipy.special.zeta"),
        push(lambda t, out, s, q: -(t * (s * zeta(s + 1, q)))),
    ),
)  # fmt: skip


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
    right = maximum(x, 0.5)
    mirrored = 1 - minimum(x, 0.5)
    angle = minimum(x, 0.5) * math.pi
    left = gamma(mirrored) * (cos(angle) - digamma(mirrored) * sin(angle) * (1 / math.pi))
    return t * where(lt(x, 0.5), left, -(digamma(right) * rgamma(right)))


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


def _gamma_density(a: Symbol, x: Symbol) -> Any:
    """The logarithm of xᵃ⁻¹ e⁻ˣ/Γ(a), DLMF 8.8.13."""
    return xlogy(a - 1, x) - x - gammaln(a)


def _beta_density(a: Symbol, b: Symbol, x: Symbol) -> Any:
    """The logarithm of xᵃ⁻¹ (1 - x)ᵇ⁻¹/B(a, b), DLMF 8.17.1."""
    return xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b)


def _student_density(df: Symbol, t: Symbol) -> Any:
    """The logarithm of (1 + t²/ν)^(-(ν + 1)/2)/(√ν B(½, ν/2))."""
    return (df + 1) * -0.5 * log1p(square(t) / df) - log(df) * 0.5 - betaln(df * 0.5, 0.5)


def _incomplete_gamma(name: str, rule: Any) -> Primitive:
    return special(name, Unknown(f"the first argument of scipy.special.{name}"), push(rule))


def _incomplete_beta(name: str, rule: Any) -> Primitive:
    unknown = Unknown(f"the first two arguments of scipy.special.{name}")
    return special(name, unknown, unknown, push(rule))


gammainc = _incomplete_gamma("gammainc", lambda t, out, a, x: t * exp(_gamma_density(a, x)))
gammaincc = _incomplete_gamma("gammaincc", lambda t, out, a, x: -(t * exp(_gamma_density(a, x))))
gammaincinv = _incomplete_gamma("gammaincinv", lambda t, out, a, y: t * exp(-_gamma_density(a, out)))
gammainccinv = _incomplete_gamma("gammainccinv", lambda t, out, a, y: -(t * exp(-_gamma_density(a, out))))
betainc = _incomplete_beta("betainc", lambda t, out, a, b, x: t * exp(_beta_density(a, b, x)))
betaincc = _incomplete_beta("betaincc", lambda t, out, a, b, x: -(t * exp(_beta_density(a, b, x))))
betaincinv = _incomplete_beta("betaincinv", lambda t, out, a, b, y: t * exp(-_beta_density(a, b, out)))
betainccinv = _incomplete_beta("betainccinv", lambda t, out, a, b, y: -(t * exp(-_beta_density(a, b, out))))
stdtr = special(
    "stdtr", Unknown("the degrees of freedom of scipy.special.stdtr"),
    push(lambda t, out, df, x: t * exp(_student_density(df, x))),
)  # fmt: skip
