"""Polynomials by their roots and by least squares; derivatives, integrals and quotients of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.creation import joined
from ..tracer.operands import lifted
from ..tracer.table import implements
from .reductions import array_of, as_dtype
from .shapes import atleast_1d
from .spectra import real_if_all_are


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else as_dtype(x, np.dtype(float))


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    x, y, w = (joined(v) for v in (x, y, w))
    np.polyfit(*(shadow_of(v) for v in (x, y, deg, rcond, full, w, cov)))  # NumPy's own error
    x, y, *weights = (_floating(v) for v in lifted(x, y, *([] if w is None else [w])))
    order = int(deg) + 1
    cut = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    left, right = np.vander(x, order), y
    if weights:
        left = left * weights[0][:, None]
        right = right * (weights[0][:, None] if y.ndim == 2 else weights[0])
    scale = np.sqrt(np.sum(left * left, axis=0))
    left = left / scale
    found, missed, rank, s = np.linalg.lstsq(left, right, cut)
    found = np.transpose(np.transpose(found) / scale)
    if full:
        return found, missed, rank, s, cut
    if not cov:
        return found
    base = np.linalg.inv(np.dot(np.transpose(left), left)) / np.outer(scale, scale)
    factor = 1 if isinstance(cov, str) and cov == "unscaled" else missed / (len(x) - order)
    return found, (base if y.ndim == 1 else base[:, :, None]) * factor


@implements(np.polyder)
def polyder(p: Any, m: Any = 1) -> Any:
    if int(m) < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    (p,) = lifted(p)
    for degree in range(len(p) - 1, len(p) - 1 - int(m), -1):
        p = p[:-1] * np.arange(degree, 0, -1)
    return p


@implements(np.polyint)
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p = array_of(p, k)
    k = [0.0] * m if k is None else atleast_1d(array_of(k, p))
    if len(k) == 1 and m > 1:
        k = [k[0]] * m
    if len(k) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        p = np.append(p / np.arange(len(p), 0, -1), k[i])
    return p


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> Any:
    u, v = (_floating(atleast_1d(x)) for x in lifted(u, v))
    dtype = np.result_type(u.dtype, v.dtype)
    u, v = as_dtype(u, dtype), as_dtype(v, dtype)
    m, n = len(u) - 1, len(v) - 1
    scale, quotient = 1.0 / v[0], []
    for k in range(m - n + 1):
        factor = scale * u[k]
        quotient.append(factor)
        u = np.concatenate([u[:k], u[k : k + n + 1] - factor * v, u[k + n + 1 :]])
    while np.allclose(u[0], 0, rtol=1e-14) and len(u) > 1:
        u = u[1:]
    return np.stack(quotient) if quotient else np.zeros_like(u, shape=(1,)), u


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    like = np.poly(shadow_of(seq_of_zeros))  # NumPy's own error
    roots = atleast_1d(*lifted(seq_of_zeros))
    if roots.ndim == 2:
        roots = np.linalg.eigvals(roots)
    if not len(roots):
        return like
    roots = as_dtype(roots, np.dtype(np.mintypecode(roots.dtype.char)))
    product = np.ones_like(roots, shape=(1,))
    for k in range(len(roots)):
        product = np.convolve(product, np.stack([np.ones_like(roots[k]), -roots[k]]))
    if roots.dtype.kind == "c" and np.all(np.sort(roots) == np.sort(np.conj(roots))):
        return np.copy(np.real(product))
    return product


@implements(np.roots)
def roots_(p: Any) -> Any:
    p = atleast_1d(*lifted(p))
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    p, zeros = _floating(p), 0
    while len(p) and p[0] == 0:
        p = p[1:]
    if not len(p):
        return np.zeros_like(p, dtype=float)
    while p[-1] == 0:
        p, zeros = p[:-1], zeros + 1
    if len(p) < 2:
        return np.zeros_like(p, shape=(zeros,), dtype=float)
    below = np.eye(len(p) - 1, k=-1, dtype=p.dtype)[1:]
    companion = np.concatenate([np.reshape(-p[1:] / p[0], (1, -1)), below])
    (found,) = real_if_all_are(companion, np.linalg.eigvals(companion))
    return np.concatenate([found, np.zeros(zeros, found.dtype)]) if zeros else found
