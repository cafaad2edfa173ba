"""Convolutions of ``scipy.signal`` for traced arguments; its filters and spectra are imported here.

>>> import numpy as np, retrograd as rg
>>> from retrograd.scipy.signal import convolve
>>> rg.grad(lambda x: np.sum(convolve(x, np.array([1.0, 2.0]), mode="valid")))(np.ones(3))
array([2., 3., 1.])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.convolution_nd import convolve_nd
from ..tracer.array import apply
from ..tracer.operands import lifted, shadow_dtype
from ..tracer.trace import unsupported
from . import filters, frequencies, smoothing
from .dispatch import Function, cast, inexact, rest_of, stands_for

BESIDE: dict[str, Function] = {f.__name__: f for f in (*filters.FOUND, *smoothing.FOUND, *frequencies.FOUND)}
__getattr__ = rest_of("scipy.signal", BESIDE)


def operands(x: Any, v: Any) -> list[Any]:
    """Two operands as arrays of one dtype, of numbers."""
    x, v = lifted(*(u if shadow_dtype(u).kind in "iufc" else inexact(u) for u in (x, v)))
    dtype = np.result_type(x.dtype, v.dtype)
    return cast([x, v], dtype)


def _convolved(x: Any, v: Any, mode: str, method: str) -> Any:
    x, v = operands(x, v)
    if x.ndim != v.ndim:
        raise ValueError("volume and kernel should have the same dimensionality")
    if not x.ndim:
        return x * v
    if mode not in ("full", "same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    if mode == "valid":
        if any(m > n for n, m in zip(x.shape, v.shape, strict=True)):
            x, v = v, x
        if any(m > n for n, m in zip(x.shape, v.shape, strict=True)):
            raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
        return apply(convolve_nd, [x, v], mode=mode, method=method)
    full = apply(convolve_nd, [x, v], mode="full", method=method)
    if mode == "full":
        return full
    starts = [(m - 1) // 2 for m in v.shape]
    return full[tuple(slice(k, k + n) for k, n in zip(starts, x.shape, strict=True))]


@stands_for("scipy.signal.convolve")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    if method not in ("auto", "direct", "fft"):
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    return _convolved(in1, in2, mode, method)


@stands_for("scipy.signal.correlate")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    return _convolved(in1, np.conj(np.flip(in2)), mode, method)


@stands_for("scipy.signal.fftconvolve")
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    if axes is not None:
        raise unsupported("scipy.signal.fftconvolve with axes=", "convolve along all axes, or loop over the others")
    return _convolved(inexact(in1), inexact(in2), mode, "fft")
