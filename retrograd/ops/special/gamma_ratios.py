"""Binomial coefficients and Pochhammer's symbol, by arguments of any sign.

Both are 0 at the poles of the gamma functions that they are divided by, where the digamma function of their slopes has
poles, too. Left of one half 1/Γ(x) is Γ(1 - x) sin(πx)/π, DLMF 5.5.3, and its derivative has no pole. What the sine
adds to it is computed only if there are such arguments.
"""

from __future__ import annotations

import math
from textwrap import indent
from typing import Any

from ...ir.builder import Symbol
from ...ir.primitive import Primitive, primitive, push
from ...ir.types import Aval
from ..batching import elementwise
from ..bits import bitwise_and, bitwise_or
from ..elementwise import function, lt, where
from .declare import special
from .gamma import DIGAMMA_RISE, ZETA_DROP, digamma, digamma_rise, zeta


def _mirrors(x: Symbol, d: Symbol) -> Any:
    """Whether 1/Γ(x) is mirrored where d is added to x: left of ½, but not where d is small, which leaves no zero."""
    return bitwise_and(lt(x, 0.5), bitwise_or(lt(x, d * 4), lt(x, d * -4)))


def _masked(*avals: Aval, **attrs: Any) -> Aval:
    """The shape rule of functions whose last operand tells where arguments are mirrored."""
    return function(*avals[:-1])


MIRRORED_DROP = f"""
def mirrored_drop(q, d, left, s):
{indent(ZETA_DROP.strip(), "    ")}

    if not np.any(left):
        return zeta_drop(q, d, s)
    found = (-1) ** (s - 1) * scipy.special.zeta(s, 1 - q) - scipy.special.zeta(s, q + d)
    return np.where(left, found, zeta_drop(np.where(left, 1, q), np.where(left, 1, d), s))[()]
"""

# ζ(s, q) - ζ(s, q + d), and (-1)ˢ⁻¹ ζ(s, 1 - q) - ζ(s, q + d) on the left
mirrored_drop: Primitive = primitive(
    "mirrored_drop",
    _masked,
    "mirrored_drop({0}, {1}, {2}, {s})",
    helper=MIRRORED_DROP,
    batch=elementwise,
    diff=(
        push(lambda t, out, q, d, left, s: -(t * (mirrored_drop(q, d, left, s=s + 1) * float(s)))),
        push(lambda t, out, q, d, left, s: t * (zeta(s + 1.0, q + d) * float(s))),
        None,
    ),
)

MIRRORED_RISE = f"""
def mirrored_rise(q, d, left):
    if np.isscalar(left) and not (left or -0.25 * q < d < 0.25 * q or (q >= 10 and d > 0)):
        return scipy.special.digamma(q + d) - scipy.special.digamma(q)
{indent(DIGAMMA_RISE.strip(), "    ")}

    if not np.any(left):
        return digamma_rise(q, d)
    found = scipy.special.digamma(q + d) - scipy.special.digamma(1 - q)
    return np.where(left, found, digamma_rise(np.where(left, 1, q), np.where(left, 1, d)))[()]
"""
# ψ(q + d) - ψ(q), and ψ(q + d) - ψ(1 - q) on the left
mirrored_rise: Primitive = primitive(
    "mirrored_rise",
    _masked,
    "mirrored_rise({0}, {1}, {2})",
    helper=MIRRORED_RISE,
    batch=elementwise,
    diff=(
        push(lambda t, out, q, d, left: -(t * mirrored_drop(q, d, left, s=2))),
        push(lambda t, out, q, d, left: t * zeta(2, q + d)),
        None,
    ),
)

# a function of a and 1 - x, times cos(πw), on the left
LEFT = """
def on_the_left(function, a, x, w, left):
    if np.isscalar(left) and not left:
        return x - x
    left, found = np.asarray(left, bool), np.zeros(np.shape(left), np.asarray(x).dtype)
    if left.any():
        a, x, w = (np.broadcast_to(v, left.shape)[left].astype(np.float64) for v in (a, x, w))
        found[left] = function(a, 1 - x) * np.cos(np.pi * (w - 2 * np.rint(w / 2)))
    return found[()]
"""
# where gamma functions overflow or vanish, Γ(a) is mirrored, too
GAMMA_LEFT = f"""
def gamma_left(a, x, w, left):
{indent(LEFT.strip(), "    ")}

    def product(a, y):
        far = (a < 0.5) & (np.minimum(a, 1 - y) < -30)
        ratio = scipy.special.poch(1 - a, a + y - 1) * np.pi
        size = np.divide(ratio, np.sin(np.pi * (a - 2 * np.rint(a / 2))), where=far, out=scipy.special.gamma(a))
        size *= np.where(far, 1.0, scipy.special.gamma(y))
        return size

    return on_the_left(product, a, x, w, left)
"""


def _turn(prim: Primitive, t: Symbol, a: Symbol, x: Symbol, w: Symbol, left: Symbol) -> Any:
    return t * (prim(a, x, w + 0.5, left) * math.pi)


def _rise(a: Symbol, x: Symbol, left: Symbol) -> Any:
    """ψ(a - x + 1) - ψ(a) on the left."""
    return digamma_rise(where(left, a, 1), where(left, 1 - x, 1))


def _mirrored_side(a: Symbol, x: Symbol, left: Symbol) -> Any:
    """ψ(a - x + 1) - ψ(1 - x) on the left."""
    return digamma_rise(where(left, 1 - x, 1), where(left, a, 1))


# B(a, 1 - x) cos(πw) on the left, and 0 elsewhere
beta_left: Primitive = primitive(
    "beta_left",
    _masked,
    "on_the_left(scipy.special.beta, {0}, {1}, {2}, {3})",
    helper=LEFT,
    batch=elementwise,
    diff=(
        push(lambda t, out, a, x, w, left: -(t * (out * _rise(a, x, left)))),
        push(lambda t, out, a, x, w, left: t * (out * _mirrored_side(a, x, left))),
        push(lambda t, out, a, x, w, left: _turn(beta_left, t, a, x, w, left)),
        None,
    ),
)
# Γ(a) Γ(1 - x) cos(πw) on the left, and 0 elsewhere
gamma_left: Primitive = primitive(
    "gamma_left",
    _masked,
    "gamma_left({0}, {1}, {2}, {3})",
    helper=GAMMA_LEFT,
    batch=elementwise,
    diff=(
        push(lambda t, out, a, x, w, left: t * (out * digamma(where(left, a, 1)))),
        push(lambda t, out, a, x, w, left: -(t * (out * digamma(where(left, 1 - x, 1))))),
        push(lambda t, out, a, x, w, left: _turn(gamma_left, t, a, x, w, left)),
        None,
    ),
)

BINOM_FALL = f"""
def binom_fall(f, n, k):
    rest, order = n - k + 1, k + 1
    if rest >= 0.5 and order >= 0.5 if np.isscalar(rest) else (np.minimum(rest, order) >= 0.5).all():
        fall = scipy.special.digamma(rest)
        fall -= scipy.special.digamma(order)
        fall *= f
        return fall
{indent(LEFT.rstrip(), "    ")}

    low, lower = np.less(rest, 0.5), np.less(order, 0.5)
    beta = scipy.special.beta
    sines = on_the_left(beta, n + 1, order, order, lower) - on_the_left(beta, n + 1, rest, rest, low)
    rest, order = np.where(low, 1 - rest, rest), np.where(lower, 1 - order, order)
    return f * (scipy.special.digamma(rest) - scipy.special.digamma(order)) + sines
"""


def _mirrored(x: Symbol) -> Any:
    return where(lt(x, 0.5), 1 - x, x)


def _lean(a: Symbol, x: Symbol) -> Any:
    """The derivative of -B(a, 1 - x) cos(πx), where x is mirrored, by a."""
    left = lt(x, 0.5)
    return beta_left(a, x, x, left) * _rise(a, x, left)


def _bend(f: Symbol, a: Symbol, x: Symbol) -> Any:
    """The derivative by x of f ψ(x), where x is mirrored of f ψ(1 - x) - B(a, 1 - x) cos(πx)."""
    left = lt(x, 0.5)
    slope = f * zeta(2, _mirrored(x))
    sine = beta_left(a, x, x, left) * _mirrored_side(a, x, left) + beta_left(a, x, x + 0.5, left) * math.pi
    return where(left, -slope, slope) - sine


def _fall_value_push(t: Symbol, out: Symbol, f: Symbol, n: Symbol, k: Symbol) -> Any:
    return t * (digamma(_mirrored(n - k + 1)) - digamma(_mirrored(k + 1)))


def _fall_size_push(t: Symbol, out: Symbol, f: Symbol, n: Symbol, k: Symbol) -> Any:
    a, rest, order = n + 1, n - k + 1, k + 1
    return t * (_bend(f, a, rest) + _lean(a, rest) - _lean(a, order))


def _fall_order_push(t: Symbol, out: Symbol, f: Symbol, n: Symbol, k: Symbol) -> Any:
    a = n + 1
    return -(t * (_bend(f, a, n - k + 1) + _bend(f, a, k + 1)))


# f (ψ(n - k + 1) - ψ(k + 1)), and what the sines add: the derivative of the coefficient f by k
binom_fall: Primitive = primitive(
    "binom_fall",
    function,
    "binom_fall({0}, {1}, {2})",
    helper=BINOM_FALL,
    batch=elementwise,
    diff=(push(_fall_value_push), push(_fall_size_push), push(_fall_order_push)),
)


def _poch_push(t: Symbol, out: Symbol, z: Symbol, m: Symbol) -> Any:
    left = _mirrors(z, m)
    return t * (out * mirrored_rise(z, m, left) + gamma_left(z + m, z, z, left))


def _binom_push(t: Symbol, out: Symbol, n: Symbol, k: Symbol) -> Any:
    rest = n - k + 1
    left = _mirrors(rest, k)
    return t * (out * mirrored_rise(rest, k, left) + beta_left(n + 1, rest, rest, left))


# Γ(z + m)/Γ(z), and Γ(n + 1)/(Γ(n - k + 1) Γ(k + 1))
poch = special("poch", push(_poch_push), push(lambda t, out, z, m: t * (out * digamma(z + m))))
binom = special("binom", push(_binom_push), push(lambda t, out, n, k: t * binom_fall(out, n, k)))
