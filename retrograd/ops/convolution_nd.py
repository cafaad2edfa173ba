"""Convolution of two arrays of several axes, by SciPy."""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .index import getitem
from .lane_loops import looped


def _shape(x: Aval, v: Aval, mode: str, method: str) -> Aval:
    """In mode "valid" ``v`` is not longer than ``x`` along any axis."""
    if not x.ndim or x.ndim != v.ndim or not x.size or not v.size or x.dtype != v.dtype or x.dtype.kind not in "iufc":
        raise ValueError(f"{x} and {v} are not arrays to convolve")
    sizes = list(zip(x.shape, v.shape, strict=True))
    if mode == "full":
        return Aval(tuple(n + m - 1 for n, m in sizes), x.dtype)
    if mode != "valid" or any(m > n for n, m in sizes):
        raise ValueError(f"{x} and {v} are not convolved in mode {mode!r}")
    return Aval(tuple(n - m + 1 for n, m in sizes), x.dtype)


def _mirrored(x: Symbol) -> Symbol:
    mirrored: Symbol = getitem(x, index=(slice(None, None, -1),) * x.ndim)
    return mirrored


def _pull_x(ct: Symbol, x: Any, v: Symbol, mode: str, method: str) -> Any:
    return convolve_nd(ct, _mirrored(v), mode="valid" if mode == "full" else "full", method=method)


def _pull_v(ct: Symbol, x: Symbol, v: Any, mode: str, method: str) -> Any:
    if mode == "full":
        return convolve_nd(ct, _mirrored(x), mode="valid", method=method)
    return _mirrored(convolve_nd(x, _mirrored(ct), mode="valid", method=method))


convolve_nd: Primitive = primitive(
    "convolve_nd",
    _shape,
    "scipy.signal.convolve({0}, {1}, {mode}, {method})",
    batch=looped,
    diff=(pull(_pull_x), pull(_pull_v)),
)
