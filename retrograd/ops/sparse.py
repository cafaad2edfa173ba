"""Products of a constant sparse matrix with dense vectors and matrices, and solutions of its equations, by SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive, Unknown, primitive, pull
from ..ir.types import Aval
from .batching import Flags
from .lane_loops import looped
from .shape import permute, reshape_to

# compressed rows or compressed columns: the rows of a matrix are the columns of its transpose, in the same arrays
PRODUCT = """
def sparse_product(data, indices, starts, x, shape, by_rows):
    if by_rows:
        return scipy.sparse.csr_array((data, indices, starts), shape=shape) @ x
    return scipy.sparse.csc_array((data, indices, starts), shape=shape) @ x
"""


SOLVE = """
def sparse_solve(data, indices, starts, b, shape, by_rows):
    parts = (np.ascontiguousarray(data), np.ascontiguousarray(indices), np.ascontiguousarray(starts))
    matrix = (scipy.sparse.csr_array if by_rows else scipy.sparse.csc_array)(parts, shape=shape)
    found = scipy.sparse.linalg.spsolve(matrix if matrix.has_canonical_format else matrix.copy(), b)
    return found.reshape(b.shape)  # SciPy takes a single column for a vector
"""


def _shape(data: Aval, indices: Aval, starts: Aval, x: Aval, shape: tuple[int, int], by_rows: bool) -> Aval:
    fits = data.ndim == indices.ndim == starts.ndim == 1 and data.shape == indices.shape
    if not fits or starts.size != shape[not by_rows] + 1 or x.ndim not in (1, 2) or x.shape[0] != shape[1]:
        raise ValueError(f"{data}, {indices}, {starts} do not make a matrix of shape {shape} to multiply {x} with")
    if data.dtype != x.dtype:
        raise ValueError(f"dtypes of {data} and {x} differ")
    return Aval((shape[0], *x.shape[1:]), x.dtype)


def _pull_x(ct: Symbol, data: Any, indices: Any, starts: Any, x: Any, shape: tuple[int, int], by_rows: bool) -> Any:
    return sparse_product(data, indices, starts, ct, shape=shape[::-1], by_rows=not by_rows)


def _batch(
    prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, shape: tuple[int, int], by_rows: bool
) -> Any:
    """Lanes of the dense operand become columns."""
    if any(flags[:3]):
        return looped(prim, size, args, flags, shape=shape, by_rows=by_rows)
    *matrix, x = args
    columns = permute(x, axes=(1, 0, 2) if x.ndim == 3 else (1, 0))
    n, *rest = columns.shape
    flat = reshape_to(columns, (n, math.prod(rest))) if x.ndim == 3 else columns
    out = prim(*matrix, flat, shape=shape, by_rows=by_rows)
    out = reshape_to(out, (shape[0], *rest)) if x.ndim == 3 else out
    return permute(out, axes=(1, 0, 2) if x.ndim == 3 else (1, 0))


sparse_product: Primitive = primitive(
    "sparse_product",
    _shape,
    "sparse_product({0}, {1}, {2}, {3}, {shape}, {by_rows})",
    helper=PRODUCT,
    batch=_batch,
    diff=(Unknown("the entries of a sparse matrix"), None, None, pull(_pull_x)),
)


def _solve_shape(data: Aval, indices: Aval, starts: Aval, b: Aval, shape: tuple[int, int], by_rows: bool) -> Aval:
    if shape[0] != shape[1] or b.dtype.char not in "dD":
        raise ValueError(f"a sparse matrix of shape {shape} and {b} do not form linear equations in double precision")
    return _shape(data, indices, starts, b, shape, by_rows)


def _solve_pull(ct: Symbol, data: Any, indices: Any, starts: Any, b: Any, shape: tuple[int, int], by_rows: bool) -> Any:
    return sparse_solve(data, indices, starts, ct, shape=shape, by_rows=not by_rows)


sparse_solve: Primitive = primitive(
    "sparse_solve",
    _solve_shape,
    "sparse_solve({0}, {1}, {2}, {3}, {shape}, {by_rows})",
    helper=SOLVE,
    batch=_batch,
    diff=(Unknown("the entries of a sparse matrix"), None, None, pull(_solve_pull)),
)
