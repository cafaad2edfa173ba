"""Norms of vectors and matrices, of all orders. The gradient of a norm at zero is zero, a subgradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ops import further_reductions as ops
from ..ops.linalg import factorizations
from ..tracer.array import apply, shadow_of
from ..tracer.operands import apply_all, axes_of, lifted
from ..tracer.table import implements
from .reductions import as_dtype, magnitude
from .shapes import moveaxis, ravel, reshape


def _rooted(total: Any) -> Any:
    """The square root; its derivative at 0 is 0."""
    return apply(ops.root, [total])


def _largest(x: Any, axis: int) -> Any:
    """The maximum, or 0 for an empty axis."""
    return np.max(x, axis=axis) if x.shape[axis] else np.sum(x, axis=axis)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    np.linalg.norm(shadow_of(x), ord, axis, keepdims)  # NumPy's own error
    ord = float(ord) if isinstance(ord, np.generic) else ord  # it does not widen
    (x,) = lifted(x)
    if x.dtype.kind not in "fc":
        x = as_dtype(x, np.dtype(float))
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        flat = ravel(x)
        parts = [np.real(flat), np.imag(flat)] if x.dtype.kind == "c" else [flat]
        found, axes = _rooted(sum(np.dot(part, part) for part in parts)), tuple(range(x.ndim))
    else:
        axes = axes_of(x, axis)
        found = _vector_norm(x, ord, axes[0]) if len(axes) == 1 else _matrix_norm(moveaxis(x, axes, (-2, -1)), ord)
    return reshape(found, tuple(1 if k in axes else n for k, n in enumerate(x.shape))) if keepdims else found


def _vector_norm(x: Any, order: Any, axis: int) -> Any:
    if order == np.inf:
        return _largest(np.abs(x), axis)
    if order == -np.inf:
        return np.min(np.abs(x), axis=axis)
    if order == 0:
        return np.sum(as_dtype(np.not_equal(x, 0), np.real(x.shadow).dtype), axis=axis)
    if order == 1:
        return np.sum(np.abs(x), axis=axis)
    if order is None or order == 2:
        return _rooted(np.sum(magnitude(x), axis=axis))
    total = np.sum(np.abs(x) ** order, axis=axis)
    flat = np.equal(total, 0)
    return np.where(flat, total if order > 0 else np.inf, np.where(flat, 1, total) ** (1 / order))[()]


def _matrix_norm(x: Any, order: Any) -> Any:
    """The norm of the last two axes."""
    if order in (None, "fro", "f"):
        return _rooted(np.sum(magnitude(x), axis=(-2, -1)))
    if order in (2, -2, "nuc"):
        (s,) = apply_all(factorizations.svd, [x], full=False, vectors=False)
        return np.sum(s, axis=-1) if order == "nuc" else _largest(s, -1) if order == 2 else np.min(s, axis=-1)
    sums = np.sum(np.abs(x), axis=-2 if abs(order) == 1 else -1)
    return _largest(sums, -1) if order > 0 else np.min(sums, axis=-1)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    np.linalg.vector_norm(shadow_of(x), axis=axis, keepdims=keepdims, ord=ord)  # NumPy's own error
    (x,) = lifted(x)
    axes = axes_of(x, axis)
    rest = [n for k, n in enumerate(x.shape) if k not in axes]
    joined = reshape(moveaxis(x, axes, range(len(axes))), (math.prod(x.shape[k] for k in axes), *rest))
    found = norm(joined, ord, 0)
    return reshape(found, tuple(1 if k in axes else n for k, n in enumerate(x.shape))) if keepdims else found
