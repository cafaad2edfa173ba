"""Discrete Fourier transforms over a tuple of axes; operands already have the lengths of the transform.

The matrix of a transform is symmetric, so a complex transform is its own transpose. A transform between real numbers
and half a spectrum halves the last axis of the tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import shifted_axis
from .complex import conj, real_dtype
from .elementwise import to_dtype
from .index import getitem, setitem

OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _checked(x: Aval, axis: tuple[int, ...]) -> None:
    if not axis or any(not 0 <= a < x.ndim for a in axis) or x.dtype.char not in "fdFD":
        raise ValueError(f"{x} has no transform over the axes {axis}")
    if any(not x.shape[a] for a in axis):
        raise ValueError(f"{x} is empty along an axis of its transform")


def _spectrum(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(dtype, np.complex64)


def _code(name: str, node: Node, sizes: str = "") -> str:
    """NumPy's function of one axis, or its function of several axes."""
    axis, norm = node.attrs["axis"], node.attrs["norm"]
    if len(axis) == 1:
        place = "" if axis[0] == node.inputs[0].aval.ndim - 1 else f", axis={axis[0]}"
    else:
        name, place = name + "n", f", axes={axis}"
    return f"np.fft.{name}({{0}}{sizes}{place}{'' if norm == 'backward' else ', norm={norm}'})"


def _fft_shape(x: Aval, axis: tuple[int, ...], inverse: bool, norm: str) -> Aval:
    _checked(x, axis)
    return Aval(x.shape, _spectrum(x.dtype))


def _fft_code(node: Node) -> str:
    return _code("ifft" if node.attrs["inverse"] else "fft", node)


fft: Primitive = primitive(
    "fft",
    _fft_shape,
    _fft_code,
    names="fft ifft fftn ifftn",
    batch=shifted_axis,
    scratch=lambda x, **_: 2 * x.nbytes if x.dtype.kind == "f" else 0,
    diff=(pull(lambda ct, x, **attrs: to_dtype(fft(ct, **attrs), x.dtype)),),
)


def _replaced(shape: tuple[int, ...], axis: int, n: int) -> tuple[int, ...]:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _rfft_shape(x: Aval, axis: tuple[int, ...], norm: str) -> Aval:
    _checked(x, axis)
    if x.dtype.kind != "f":
        raise ValueError(f"{x} is not real")
    return Aval(_replaced(x.shape, axis[-1], x.shape[axis[-1]] // 2 + 1), _spectrum(x.dtype))


def _weighted(x: Symbol, axis: int, n: int, weight: float) -> Any:
    """Half a spectrum of n numbers times ``weight``, except where a frequency is its own mirror image."""
    weighted = x * weight
    for k in (0, n // 2) if n % 2 == 0 else (0,):
        index = (*(slice(None),) * axis, slice(k, k + 1))
        weighted = setitem(weighted, getitem(x, index=index), index=index)
    return weighted


def _rfft_pull(ct: Symbol, x: Any, axis: tuple[int, ...], norm: str) -> Any:
    n = x.shape[axis[-1]]
    return irfft(_weighted(conj(ct), axis[-1], n, 0.5), axis=axis, n=n, norm=OPPOSITE[norm])


rfft: Primitive = primitive(
    "rfft",
    _rfft_shape,
    lambda node: _code("rfft", node),
    names="fft rfft rfftn",
    batch=shifted_axis,
    diff=(pull(_rfft_pull),),
)


def _irfft_shape(x: Aval, axis: tuple[int, ...], n: int, norm: str) -> Aval:
    _checked(x, axis)
    if x.dtype.kind != "c" or n < 1 or x.shape[axis[-1]] != n // 2 + 1:
        raise ValueError(f"{x} is not half a spectrum of {n} real numbers")
    return Aval(_replaced(x.shape, axis[-1], n), real_dtype(x.dtype))


def _irfft_code(node: Node) -> str:
    axis, n = node.attrs["axis"], node.attrs["n"]
    if len(axis) == 1:
        return _code("irfft", node, f", {n}")
    shape = node.out.aval.shape
    return _code("irfft", node, f", {tuple(shape[a] for a in axis)}")


def _irfft_pull(ct: Symbol, x: Any, axis: tuple[int, ...], n: int, norm: str) -> Any:
    return _weighted(conj(rfft(ct, axis=axis, norm=OPPOSITE[norm])), axis[-1], n, 2.0)


irfft: Primitive = primitive(
    "irfft", _irfft_shape, _irfft_code, names="fft irfft irfftn", batch=shifted_axis, diff=(pull(_irfft_pull),)
)
