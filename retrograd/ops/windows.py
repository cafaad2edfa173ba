"""Windows that slide along one axis, which are views that overlap, and their sum back into place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, primitive, pull
from ..ir.types import Aval
from .batching import Flags

OVERLAP_ADD = """
def overlap_add(x, axis):
    width = x.shape[-1]
    count = x.shape[axis]
    shape = list(x.shape[:-1])
    shape[axis] = count + width - 1
    out = np.zeros(shape, x.dtype)
    inner = np.moveaxis(out, axis, -1)
    parts = np.moveaxis(x, axis, -2)
    for k in range(width):
        inner[..., k : k + count] += parts[..., k]
    return out
"""


def _windows_shape(x: Aval, width: int, axis: int) -> Aval:
    """The windows take the place of the axis; their contents are a last axis."""
    if not 0 <= axis < x.ndim or not 0 <= width <= x.shape[axis]:
        raise ValueError(f"{x} has no windows of {width} along the axis {axis}")
    return Aval((*x.shape[:axis], x.shape[axis] - width + 1, *x.shape[axis + 1 :], width), x.dtype)


def _moved(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, axis: int, **attrs: Any) -> Any:
    return prim(args[0], axis=axis + 1, **attrs)


windows: Primitive = primitive(
    "windows",
    _windows_shape,
    "np.lib.stride_tricks.sliding_window_view({0}, {width}, {axis})",
    alias=0,
    cheap=True,
    batch=_moved,
    diff=(pull(lambda ct, x, width, axis: overlap_add(ct, axis=axis)),),
)


def _sum_shape(x: Aval, axis: int) -> Aval:
    if x.ndim < 2 or not 0 <= axis < x.ndim - 1 or not x.shape[axis]:
        raise ValueError(f"{x} does not hold windows along the axis {axis}")
    return Aval((*x.shape[:axis], x.shape[axis] + x.shape[-1] - 1, *x.shape[axis + 1 : -1]), x.dtype)


overlap_add: Primitive = primitive(
    "overlap_add",
    _sum_shape,
    "overlap_add({0}, {axis})",
    helper=OVERLAP_ADD,
    batch=_moved,
    diff=(pull(lambda ct, x, axis: windows(ct, width=x.shape[-1], axis=axis)),),
)
