"""``scipy.ndimage.convolve`` and ``correlate`` for traced arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.convolution_nd import convolve_nd
from ..tracer.array import apply, shadow_of
from ..tracer.operands import astype
from ..tracer.trace import unsupported
from .dispatch import rest_of, stands_for
from .signal import operands

__getattr__ = rest_of("scipy.ndimage")

PADDING = {  # SciPy's names of modes, and NumPy's
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def _filtered(
    image: Any, weights: Any, output: Any, mode: Any, cval: Any, origin: Any, axes: Any, mirrored: bool
) -> Any:
    """Correlation with weights, whose centre is moved by ``origin``; with ``mirrored`` weights it is a convolution."""
    if output is not None or axes is not None:
        raise unsupported("scipy.ndimage with output= or axes=", "leave them out, and assign the result")
    if not isinstance(mode, str) or mode not in PADDING:
        raise unsupported(f"scipy.ndimage with mode={mode!r}", f"choose one mode for all axes: {', '.join(PADDING)}")
    x, w = operands(image, weights)
    dtype = np.asarray(shadow_of(image)).dtype
    if dtype.kind not in "fc":
        raise unsupported("scipy.ndimage of an image of integers", "make it floating-point: image.astype(float)")
    if w.dtype.kind == "c":
        dtype = np.promote_types(dtype, np.complex64)
    x, w = (u if u.dtype.itemsize >= 8 else astype(u, np.float64) for u in (x, w))  # SciPy computes in doubles
    if x.ndim != w.ndim or not x.ndim or not w.size:
        raise RuntimeError("filter weights array has incorrect shape.")
    origins = [origin] * x.ndim if np.ndim(shadow_of(origin)) == 0 else list(origin)
    pads = []
    for n, o in zip(w.shape, origins, strict=True):
        left = n // 2 + o if not mirrored else n // 2 - o - (n % 2 == 0)
        if not 0 <= left < n:
            raise ValueError("invalid origin")
        pads.append((left, n - 1 - left))
    if not x.size:
        return astype(x, dtype)
    padding: Any = PADDING[mode]
    fill = {"constant_values": cval} if padding == "constant" else {}
    padded = np.pad(x, pads, padding, **fill)
    found = apply(convolve_nd, [padded, w if mirrored else np.conj(np.flip(w))], mode="valid", method="direct")
    return found if found.dtype == dtype else astype(found, dtype)


@stands_for("scipy.ndimage.convolve")
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    return _filtered(input, weights, output, mode, cval, origin, axes, mirrored=True)


@stands_for("scipy.ndimage.correlate")
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    return _filtered(input, weights, output, mode, cval, origin, axes, mirrored=False)
