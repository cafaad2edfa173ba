"""Building blocks for the rules of linear algebra: adjoints, triangles, scaled columns; shape rules of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node
from ...ir.primitive import JvpMode, Primitive, Rule, primitive
from ...ir.types import Aval
from ..axes import swap
from ..batching import Flags, elementwise
from ..complex import conj, real, real_dtype
from ..diagonals import set_diagonal
from ..shape import broadcast_to, reshape_to
from ..triangles import tril

PRECISIONS = "fdFD"  # the dtypes of LAPACK


def matrices(x: Aval) -> tuple[int, int]:
    """Rows and columns; ValueError unless it is a stack of matrices that LAPACK takes."""
    if x.ndim < 2 or x.dtype.char not in PRECISIONS or x.steps is not None:
        raise ValueError(f"{x} is not a stack of matrices in single or double precision")
    return x.shape[-2], x.shape[-1]


def square(x: Aval) -> Aval:
    """The shape rule of matrix functions: a stack of square matrices in and out."""
    rows, columns = matrices(x)
    if rows != columns:
        raise ValueError(f"{x} is not a stack of square matrices")
    return Aval(x.shape, x.dtype)


def number(x: Aval) -> Aval:
    """The shape rule of a determinant: one number for each square matrix."""
    shape = square(x).shape[:-2]
    return Aval(shape, x.dtype, "array" if shape else "scalar")


def real_part(x: Symbol) -> Symbol:
    """The real part; for a real value, the value itself."""
    part: Symbol = real(x) if x.dtype.kind == "c" else x
    return part


def conjugate(x: Symbol) -> Symbol:
    """The conjugate; for a real value, the value itself."""
    conjugated: Symbol = conj(x) if x.dtype.kind == "c" else x
    return conjugated


def adjoint(x: Symbol) -> Symbol:
    """The conjugate transpose of each matrix."""
    return conjugate(swap(x))


def half(x: Symbol) -> Symbol:
    """The lower triangle, with half of the diagonal."""
    triangle: Symbol = (tril(x, k=0) + tril(x, k=-1)) * 0.5
    return triangle


def hermitian(x: Symbol) -> Symbol:
    """The Hermitian matrix with the lower triangle of ``x``."""
    low = half(x)
    whole: Symbol = low + adjoint(low)
    return whole


def skew(x: Symbol) -> Symbol:
    """The skew-Hermitian matrix with the strict lower triangle and the imaginary diagonal of ``x``."""
    low = half(x)
    whole: Symbol = low - adjoint(low)
    return whole


def across(v: Symbol, rows: int) -> Symbol:
    """A vector (or a stack of them) as each of the rows of a matrix."""
    return broadcast_to(reshape_to(v, (*v.shape[:-1], 1, v.shape[-1])), (*v.shape[:-1], rows, v.shape[-1]))


def down(v: Symbol, columns: int) -> Symbol:
    """A vector (or a stack of them) as each of the columns of a matrix."""
    return broadcast_to(reshape_to(v, (*v.shape, 1)), (*v.shape, columns))


def inverse_gaps(gaps: Symbol) -> Symbol:
    """1 over the gaps between eigenvalues, 0 on the diagonal; infinite if two eigenvalues coincide."""
    ends = gaps.builder.constant(math.inf, Aval(gaps.shape[:-1], gaps.dtype))
    inverse: Symbol = gaps.builder.constant(1, gaps.aval) / set_diagonal(gaps, ends, 0)
    return inverse


def real_aval(x: Aval, shape: tuple[int, ...]) -> Aval:
    """The array of real numbers in the precision of ``x``."""
    return Aval(shape, real_dtype(x.dtype))


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype of the same precision."""
    return np.result_type(dtype, np.complex64)


def _stacked(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **attrs: Any) -> Any:
    outs = elementwise(prim, size, args, flags, **attrs)
    return outs, [True] * len(outs)


def factorization(
    name: str, shape: Rule, code: str | Callable[[Node], str], jvp: Callable[..., list[Any]], **fields: Any
) -> Primitive:
    """A function of one stack of matrices with several results, in new memory.

    ``jvp(t, outs, x, **attrs)`` gives the tangents of all results.
    """

    def rule(b: Builder, node: Node, args: list[Symbol], tans: list[Any], mode: JvpMode) -> Any:
        outs = b.copy_node(node, [x.value for x in args])
        if not args[0].size:
            return outs, [None] * len(outs)
        return outs, jvp(tans[0], outs, args[0], **node.attrs)

    def fresh(node: Node) -> range:
        return range(len(node.outputs))

    return primitive(name, shape, code, jvp=rule, batch=_stacked, fresh=fresh, multi=True, **fields)
