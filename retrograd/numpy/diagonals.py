"""Diagonals and triangles: diag, diagonal, trace, fill_diagonal, tril, triu."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import diagonals as ops
from ..ops import triangles
from ..tracer.array import apply
from ..tracer.operands import lifted
from ..tracer.table import implements
from .shapes import broadcast_to, moveaxis, ravel


def diagonal_view(x: Any, offset: int, i: int, j: int) -> Any:
    """The diagonal of axes ``i`` and ``j`` as the last axis: a view, read-only as in NumPy."""
    x, offset = (moveaxis(x, (i, j), (-2, -1)), offset) if i < j else (moveaxis(x, (j, i), (-2, -1)), -offset)
    return apply(ops.diagonal, [x], offset=offset.__index__())


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    (x,) = lifted(a)
    np.diagonal(x.shadow, offset, axis1, axis2)  # NumPy's own error
    return diagonal_view(x, offset, axis1 % x.ndim, axis2 % x.ndim)


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    (x,) = lifted(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    return apply(ops.diag, [x], offset=k.__index__())


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    return diag(ravel(v), k)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    found = diagonal(a, offset, axis1, axis2)
    return np.sum(found, axis=-1, dtype=dtype, out=out)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Any:
    return _triangle(triangles.tril, m, k)


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Any:
    return _triangle(triangles.triu, m, k)


def _triangle(prim: Any, m: Any, k: int) -> Any:
    (x,) = lifted(m)
    if not x.ndim:
        raise TypeError("a triangle is taken of a vector or a matrix, not of a number")
    if x.ndim == 1:  # NumPy makes a matrix of equal rows
        x = broadcast_to(x, (x.size, x.size))
    return apply(prim, [x], k=k.__index__())
