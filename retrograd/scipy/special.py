"""Functions of ``scipy.special`` that are not ufuncs, for traced arguments; ufuncs need a substitute for lists alone.

>>> import numpy as np, retrograd as rg
>>> from retrograd.scipy.special import logsumexp
>>> rg.grad(logsumexp)(np.array([1000.0, 1000.0]))
array([0.5, 0.5])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numpy.creation import asarray
from ..numpy.lists import of_lists
from ..numpy.reductions import as_dtype, axes_over
from ..ops.special.elliptic import lambertw as lambertw_primitive
from ..ops.special.gamma import zeta as zeta_primitive
from ..tracer.array import apply, shadow_of, tracers_in
from ..tracer.interception import substitutes
from ..tracer.operands import astype, axes_of, lifted, record
from ..tracer.trace import owner, unsupported
from ..tracer.ufuncs import as_operand
from .dispatch import Lazy, array, double, guarded, inexact, known, rest_of, stands_for, stopped, where

__getattr__ = rest_of("scipy.special")

SPECIAL = Lazy("scipy.special")
substitutes("scipy.special")(of_lists)


def _peak(a: Any, axis: Any) -> Any:
    """The largest finite real part, kept along the axes and constant in derivatives; 0 if there is none."""
    a = np.real(a)
    nothing: Any = {"initial": -np.inf} if 0 in np.shape(shadow_of(a)) else {}
    peak = stopped(np.max(a, axis=axis, keepdims=True, **nothing))
    return np.where(np.isfinite(peak), peak, 0)


@stands_for("scipy.special.logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log Σ b eᵃ, shifted by the largest a so that nothing overflows."""
    if b is None and return_sign:
        b = 1.0
    if b is None:
        a = inexact(a)
    else:
        dtype = np.result_type(*(shadow_of(as_operand(x)) for x in (a, b)))
        dtype = dtype if dtype.kind in "fc" else np.dtype(float)
        a, b = np.broadcast_arrays(*(as_dtype(x, dtype) for x in (a, b)))
    a = a if np.ndim(shadow_of(a)) else np.reshape(a, (1,))
    axis = axes_of(a, axis)
    peak = _peak(a if b is None else np.where(b != 0, a, -np.inf), axis)
    weights = np.exp(a - peak if b is None else _limited(a - peak, b))
    total = np.sum(weights if b is None else b * weights, axis=axis, keepdims=True)
    size = np.abs(total) if return_sign else total
    some = size != 0
    out = np.where(some, np.log(np.where(some, size, 1)) + peak, -np.inf)
    sign = np.sign(total) if a.size else np.sign(out)  # SciPy's of nothing is that of minus infinity
    out, sign = (x if keepdims else np.squeeze(x, axis=axis)[()] for x in (out, sign))
    return (out, sign) if return_sign else out


def _limited(a: Any, b: Any) -> Any:
    """Exponents whose exponentials are finite where they count nothing: 0 times infinity would be nan."""
    dtype = shadow_of(a).dtype
    if dtype.kind == "c":
        return np.where(b != 0, a, -np.inf)
    return np.where(b != 0, a, np.minimum(a, np.log(np.finfo(dtype).max) / 2))


@stands_for("scipy.special.softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials over their sum."""
    x = as_operand(x)
    axis = axes_over(x, axis)
    weights = np.exp(x - stopped(np.max(x, axis=axis, keepdims=True)))
    return weights / np.sum(weights, axis=axis, keepdims=True)


@stands_for("scipy.special.log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of softmax, which holds where softmax itself is 0."""
    x = as_operand(x)
    axis = axes_over(x, axis)
    shifted = x - _peak(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@stands_for("scipy.special.softplus")
def softplus(x: Any, **kwargs: Any) -> Any:
    """log(1 + eˣ)."""
    return np.logaddexp(0, x, **kwargs)


@stands_for("scipy.special.multigammaln")
def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function of dimension ``d``, DLMF 35.3.4; nan outside its domain."""
    if not known(d):
        raise unsupported("scipy.special.multigammaln in a traced dimension", "pass the dimension as a Python int")
    if not np.isscalar(shadow_of(d)) or shadow_of(d) != math.floor(shadow_of(d)):
        raise ValueError("d should be a positive integer (dimension)")
    a, d = inexact(a), int(shadow_of(d))
    logarithms = sum((SPECIAL.gammaln(a - 0.5 * j) for j in range(1, d)), SPECIAL.gammaln(a))
    return guarded(a > 0.5 * (d - 1), logarithms + 0.25 * d * (d - 1) * np.log(np.pi), math.nan)


@stands_for("scipy.special.zeta")
def zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    """Hurwitz' zeta function of the exponent ``x``."""
    if q is None or out is not None:
        raise unsupported("scipy.special.zeta without q, or with out=", "pass q=1 for Riemann's function")
    x, q = as_operand(x), as_operand(q)
    shadow = SPECIAL.zeta(shadow_of(x), shadow_of(q))
    owner(tracers_in([x, q]))
    return record(zeta_primitive, [x, q], [shadow.dtype] * 2, shadow)


@stands_for("scipy.special.polygamma")
def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of digamma: (-1)ⁿ⁺¹ n! ζ(n + 1, x), DLMF 25.11.12."""
    if not known(n):
        raise unsupported("scipy.special.polygamma of a traced order", "pass the order as a plain int")
    order, x = np.asarray(shadow_of(as_operand(n))), inexact(x)
    if not order.any():
        return asarray(SPECIAL.digamma(x) + np.zeros(order.shape))
    higher = (-1.0) ** (order + 1) * SPECIAL.gamma(order + 1.0) * zeta(order + 1.0, x)
    return asarray(higher if order.all() else where(order == 0, SPECIAL.digamma(x), higher))


@stands_for("scipy.special.lambertw")
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """The branch ``k`` of the inverse of w eʷ, as complex numbers."""
    if not known(k) or np.ndim(shadow_of(k)):
        raise unsupported("scipy.special.lambertw of a traced branch, or of several", "pass the branch as a plain int")
    (z,) = lifted(z)
    return apply(lambertw_primitive, [astype(z, np.complex128)], branch=int(shadow_of(k)))


@stands_for("scipy.special.comb")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Binomial coefficients of any numbers; 0 if there is nothing to choose."""
    if exact:
        raise unsupported("scipy.special.comb with exact=True", "leave exact= out")
    N, k = array(N), array(k)  # so that the dtypes of plain numbers count
    if repetition:
        N = N + k - 1
    return guarded((k <= N) & (N >= 0) & (k >= 0), SPECIAL.binom(N, k), 0.0)


@stands_for("scipy.special.factorial")
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    """Γ(n + 1) of any number; 0 below 0."""
    if exact or extend != "zero":
        raise unsupported("scipy.special.factorial with exact= or extend=", "use scipy.special.gamma(n + 1)")
    n = double(n)
    return guarded(n >= 0, SPECIAL.gamma(n + 1), 0.0)
