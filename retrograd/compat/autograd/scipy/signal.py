"""scipy.signal, with autograd's ``convolve`` in place of SciPy's: over some axes, with products summed over others."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ....errors import OptionError, ShapeError
from ....tracer.array import shadow_of

Axes = Sequence[Sequence[int]]


def convolve(A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full") -> Any:
    """The convolution over ``axes`` of both arrays, summed over ``dot_axes``; all others are multiplied.

    The result has the other axes of ``A``, those of ``B``, and those of the convolution. By default all axes are
    convolved. ``mode`` is "full", "valid", for which one array must be the larger one along all axes, or "same".
    Raises OptionError, ShapeError.

    >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]), mode="valid")
    array([3., 5.])
    """
    if mode not in ("full", "valid", "same"):
        raise OptionError(f"mode={mode!r}", remedy="choose from 'full', 'valid' and 'same'")
    shapes = np.shape(shadow_of(A)), np.shape(shadow_of(B))
    if axes is None:
        axes = [range(len(shapes[0]))] * 2
    a, b = _ordered(A, shapes[0], axes[0], dot_axes[0]), _ordered(B, shapes[1], axes[1], dot_axes[1])
    if len(axes[0]) != len(axes[1]) or len(dot_axes[0]) != len(dot_axes[1]):
        raise ShapeError("axes and dot_axes name different numbers of axes", remedy="name as many axes of A as of B")
    n = len(axes[0])
    sizes = _sizes(a, n), _sizes(b, n)
    turned = mode == "valid" and any(p < q for p, q in zip(*sizes, strict=True))
    if turned and any(p > q for p, q in zip(*sizes, strict=True)):
        raise ShapeError(
            f"neither of {sizes[0]} and {sizes[1]} is the larger one along every axis", remedy="choose 'full'"
        )
    if turned or (mode == "full" and np.prod(sizes[0]) < np.prod(sizes[1])):
        found = _slid(b, a, n, len(dot_axes[0]), mode)
        own, other = len(shapes[1]) - n - len(dot_axes[1]), len(shapes[0]) - n - len(dot_axes[0])
        back = [*range(own, own + other), *range(own), *range(own + other, own + other + n)]
        return np.transpose(found, back)
    return _slid(a, b, n, len(dot_axes[0]), mode)


def _ordered(x: Any, shape: tuple[int, ...], conv: Sequence[int], dot: Sequence[int]) -> Any:
    """The array with its axes in the order: others, summed ones, convolved ones."""
    conv, dot = ([k % len(shape) for k in given] for given in (conv, dot))
    rest = [k for k in range(len(shape)) if k not in conv and k not in dot]
    if sorted([*rest, *dot, *conv]) != list(range(len(shape))):
        raise ShapeError("an axis is named twice", remedy="name each axis once, in axes or in dot_axes")
    return np.transpose(x, [*rest, *dot, *conv])


def _sizes(x: Any, n: int) -> tuple[int, ...]:
    shape: tuple[int, ...] = np.shape(shadow_of(x))
    return shape[len(shape) - n :]


def _slid(a: Any, b: Any, n: int, dots: int, mode: str) -> Any:
    """Windows of ``a`` as large as ``b``, times ``b`` from its end: other axes of a, of b, and those of the windows."""
    widths, first = _sizes(b, n), np.ndim(shadow_of(a)) - n
    if mode != "valid":
        around = [(w - 1 - (w - 1) // 2, (w - 1) // 2) if mode == "same" else (w - 1, w - 1) for w in widths]
        a = np.pad(a, [(0, 0)] * first + around)
    windows = sliding_window_view(a, widths, axis=tuple(range(first, first + n)))
    flipped = b[(..., *(slice(None, None, -1) for _ in widths))]
    own, other = first - dots, np.ndim(shadow_of(b)) - n - dots
    summed = [*range(own, own + dots), *range(own + dots + n, own + dots + 2 * n)], [*range(other, other + dots + n)]
    found = np.tensordot(windows, flipped, summed)
    return np.moveaxis(found, range(own, own + n), range(own + other, own + other + n))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """What else scipy.signal has."""
        return getattr(import_module("scipy.signal"), name)
