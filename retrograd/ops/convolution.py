"""Convolution of two vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull
from ..ir.texts import Arg
from ..ir.types import Aval
from .batching import Flags, lanes
from .gather import INT, gather
from .index import getitem, setitem
from .shape import broadcast_to, iota, reshape_to

BACKWARDS = (slice(None, None, -1),)


def _convolve_shape(x: Aval, v: Aval, mode: str) -> Aval:
    """In mode "valid" ``v`` is not longer than ``x``."""
    if x.ndim != 1 or v.ndim != 1 or not x.size or not v.size or x.dtype != v.dtype:
        raise ValueError(f"{x} and {v} are not vectors to convolve")
    if mode == "full":
        return Aval((x.size + v.size - 1,), x.dtype)
    if mode != "valid" or v.size > x.size:
        raise ValueError(f"{x} and {v} are not convolved in mode {mode!r}")
    return Aval((x.size - v.size + 1,), x.dtype)


def _pull_x(ct: Symbol, x: Any, v: Symbol, mode: str) -> Any:
    return convolve(ct, getitem(v, index=BACKWARDS), mode="valid" if mode == "full" else "full")


def _pull_v(ct: Symbol, x: Symbol, v: Any, mode: str) -> Any:
    if mode == "full":
        return convolve(ct, getitem(x, index=BACKWARDS), mode="valid")
    return getitem(convolve(x, getitem(ct, index=BACKWARDS), mode="valid"), index=BACKWARDS)


def _windows(x: Symbol, count: int, width: int) -> Symbol:
    """All windows of ``width`` neighbours along the last axis."""
    b = x.builder
    first, step = (b.emit(iota, (), {"aval": Aval((n,), INT)})[0] for n in (count, width))
    shape = (count, width)
    at = broadcast_to(reshape_to(first, (count, 1)), shape) + broadcast_to(reshape_to(step, (1, width)), shape)
    read: Symbol = gather(x, at, index=(*(slice(None),) * (x.ndim - 1), Arg(1)))
    return read


def _convolve_batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, mode: str) -> Any:
    """Each lane is a product: the matrix of all windows of ``x``, times ``v`` backwards."""
    x, v = (lanes(size, a, f) for a, f in zip(args, flags, strict=True))
    n, m = x.shape[1], v.shape[1]
    if mode == "full":
        wide = x.builder.zeros(Aval((size, n + 2 * m - 2), x.dtype))
        x, n = setitem(wide, x, index=(slice(None), slice(m - 1, m - 1 + n))), n + 2 * m - 2
    product = _windows(x, n - m + 1, m) @ reshape_to(getitem(v, index=(slice(None), *BACKWARDS)), (size, m, 1))
    return reshape_to(product, (size, n - m + 1))


convolve: Primitive = primitive(
    "convolve",
    _convolve_shape,
    "np.convolve({0}, {1}, {mode})",
    batch=_convolve_batch,
    diff=(pull(_pull_x), pull(_pull_v)),
)
