"""The memory layout of example arrays. Reshapes, orders A and K, and the last bits of sums depend on it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..ir.builder import Symbol
from ..ir.primitive import TRANSFORMS
from ..ir.types import in_order
from ..ops.shape import copy, inverse, permute

Array = np.ndarray[Any, Any]


@TRANSFORMS.register("laid_alike")
def laid_alike(x: Array) -> Array:
    """A copy whose axes have the order and the direction of those of ``x``, with gaps where they have gaps."""
    if in_order(x):
        return np.array(x, order="C")
    axes = sorted((k for k, n in enumerate(x.shape) if n > 1 and x.strides[k]), key=lambda k: -abs(x.strides[k]))
    gaps = [False]  # between the elements of an axis of ``axes``, and those of the next one
    for k, inner in pairwise(axes):
        gaps.append(abs(x.strides[k]) != abs(x.strides[inner]) * x.shape[inner])
    gap = bool(axes) and abs(x.strides[axes[-1]]) != x.itemsize
    lengths = [x.shape[k] + extra for k, extra in zip(axes, gaps, strict=False)]
    shown: list[Any] = [slice(x.shape[k]) if x.strides[k] > 0 else slice(x.shape[k] - 1, None, -1) for k in axes]
    made: Array = np.empty((*lengths, 1 + gap), x.dtype)[(*shown, ..., 0)]
    made = made.transpose([axes.index(k) for k in sorted(axes)])
    made = np.expand_dims(made, tuple(k for k in range(x.ndim) if k not in axes))
    made[...] = x[tuple(slice(n) for n in made.shape)]
    return made if made.shape == x.shape else np.broadcast_to(made, x.shape)


@TRANSFORMS.register("relaid")
def relaid(x: Symbol, made: Any, source: Any) -> Symbol:
    """The value of ``source`` in an array that lies in memory as ``made`` does; itself if ``source`` does so, too."""
    if not np.ndim(made):
        return x
    axes = walked(made)
    if axes == walked(source) and source.transpose(axes).flags.c_contiguous:
        return x
    found: Symbol = permute(copy(permute(x, axes=axes)), axes=inverse(axes))
    return found


def walked(x: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """The axes in the order in which NumPy's iterator walks over an array, the outermost first.

    It sorts the steps by insertion, beginning with the last axis; a step of zero goes with any other.
    """
    steps = [0 if n == 1 else abs(step) for n, step in zip(x.shape, x.strides, strict=True)]
    axes: list[int] = []
    for axis in reversed(range(x.ndim)):
        at = len(axes)
        for k in reversed(range(len(axes))):
            if steps[axis] and steps[axes[k]]:
                if steps[axes[k]] <= steps[axis]:
                    break
                at = k
        axes.insert(at, axis)
    return tuple(reversed(axes))
