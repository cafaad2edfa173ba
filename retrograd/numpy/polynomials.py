"""Convolutions and polynomials: convolve, correlate, polyval, polyadd, polysub, polymul, vander."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import convolution
from ..tracer.array import apply
from ..tracer.creation import fresh
from ..tracer.operands import astype, lifted
from ..tracer.table import implements
from .contraction import common
from .shapes import atleast_1d


def _convolved(x: Any, v: Any, mode: str, swapped: bool) -> Any:
    """``x`` is at least as long as ``v``; if they were ``swapped``, mode "same" cuts another middle out of "full"."""
    if mode not in {"full", "same", "valid"}:
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    if mode == "valid":
        return apply(convolution.convolve, [x, v], mode="valid")
    out = apply(convolution.convolve, [x, v], mode="full")
    if mode == "full":
        return out
    cut = v.size - 1
    first = cut - cut // 2 if swapped else cut // 2
    return out[first : first + x.size]


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = common(*atleast_1d(*lifted(a, v)))
    if a.ndim > 1 or v.ndim > 1 or not a.size or not v.size:
        np.convolve(a.shadow, v.shadow)  # NumPy's own error
    return _convolved(v, a, mode, False) if v.size > a.size else _convolved(a, v, mode, False)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = common(*lifted(a, v))
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        np.correlate(a.shadow, v.shadow)  # NumPy's own error
    v = np.conjugate(v[::-1]) if v.dtype.kind == "c" else v[::-1]
    return _convolved(v, a, mode, True) if v.size > a.size else _convolved(a, v, mode, False)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    p, x = lifted(p, x)
    y = np.zeros_like(x)
    for k in range(len(p)):
        y = y * x + p[k]  # NumPy's, from the first: at infinite x it is nan
    return y


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    return np.add(*_same_length(a1, a2))


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    return np.subtract(*_same_length(a1, a2))


def _same_length(a1: Any, a2: Any) -> list[Any]:
    """Put zeros in front of the shorter list of coefficients."""
    found = atleast_1d(*lifted(a1, a2))
    n = max(map(len, found))
    return [np.concatenate([fresh(np.zeros(n - len(x), x.dtype)), x]) if len(x) < n else x for x in found]


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    return convolve(*map(_without_leading_zeros, atleast_1d(*lifted(a1, a2))))


def _without_leading_zeros(p: Any) -> Any:
    """The coefficients as ``np.poly1d`` keeps them; their number depends on data."""
    while len(p) > 1 and p[0] == 0:
        p = p[1:]
    return p if len(p) else np.zeros_like(p, shape=(1,))


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    (x,) = lifted(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = x.size if N is None else N
    x = astype(x, np.promote_types(x.dtype, int))
    powers = [np.ones_like(x)]
    for _ in range(n - 1):
        powers.append(powers[-1] * x if len(powers) > 1 else x)
    if not n:
        return np.zeros_like(x, shape=(x.size, 0))
    return np.stack(powers[:n] if increasing else powers[:n][::-1], axis=1)
