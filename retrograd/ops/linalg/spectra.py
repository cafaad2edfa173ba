"""Eigenvalues and eigenvectors.

If two eigenvalues coincide, their vectors may be any basis and have no derivative: a derivative that needs one is nan.
Sums over the whole spectrum have gradients there, since those need the vectors alone.
"""

from __future__ import annotations

from typing import Any

from ...ir.builder import Symbol
from ...ir.graph import Node
from ...ir.types import Aval
from ..complex import abs_, imag
from ..diagonals import diagonal
from ..elementwise import to_dtype
from ..further_reductions import argmax
from ..reduce import sum_
from ..shape import reshape_to
from ..sort import take_along
from .forms import (
    across,
    adjoint,
    complex_dtype,
    conjugate,
    down,
    factorization,
    hermitian,
    inverse_gaps,
    real_aval,
    real_part,
    square,
)
from .solutions import solve


def _eigh_shape(x: Aval, vectors: bool, uplo: str) -> tuple[Aval, ...]:
    w = real_aval(x, square(x).shape[:-1])
    return (w, Aval(x.shape, x.dtype)) if vectors else (w,)


def _eigh_code(node: Node) -> str:
    uplo = "" if node.attrs["uplo"] == "L" else ", {uplo}"
    return f"np.linalg.eigh({{0}}{uplo})" if node.attrs["vectors"] else f"np.linalg.eigvalsh({{0}}{uplo})"


def _column_sums(x: Symbol) -> Any:
    return sum_(x, axis=(x.ndim - 2,), keepdims=False)


def _eigh_jvp(t: Symbol, outs: list[Symbol], x: Symbol, vectors: bool, uplo: str) -> list[Any]:
    """Giles, Collected matrix derivative results (2008), 3.1, for the triangle that is read."""
    w, v = outs if vectors else x.builder.emit(eigh, (x.value,), {"vectors": True, "uplo": uplo})
    image = hermitian(t if uplo == "L" else adjoint(t)) @ v
    if not vectors:
        return [real_part(_column_sums(conjugate(v) * image))]
    n = x.shape[-1]
    inner = adjoint(v) @ image
    gaps = to_dtype(inverse_gaps(across(w, n) - down(w, n)), x.dtype)
    return [real_part(diagonal(inner, offset=0)), v @ (gaps * inner)]


def _values_alone(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    if used == [True, False]:
        return {**node.attrs, "vectors": False}, [0], [0]
    return dict(node.attrs), [0], list(range(len(used)))


eigh = factorization("eigh", _eigh_shape, _eigh_code, _eigh_jvp, names="eigh eigvalsh", dce=_values_alone)


def _eig_shape(x: Aval, vectors: bool) -> tuple[Aval, ...]:
    dtype = complex_dtype(square(x).dtype)
    w = Aval(x.shape[:-1], dtype)
    return (w, Aval(x.shape, dtype)) if vectors else (w,)


def _eig_code(node: Node) -> str:
    """NumPy's results are real if all eigenvalues of a real matrix are; here they are always complex."""
    already = node.inputs[0].aval.dtype.kind == "c"
    cast = f".astype(np.{node.outputs[0].aval.dtype})"
    if node.attrs["vectors"]:
        return "np.linalg.eig({0})" if already else f"[part{cast} for part in np.linalg.eig({{0}})]"
    return f"np.linalg.eigvals({{0}}){'' if already else cast}"


def _eig_jvp(t: Symbol, outs: list[Symbol], x: Symbol, vectors: bool) -> list[Any]:
    """Giles (2008), 3.1, and then LAPACK's scale: columns of length 1 whose largest entry is real."""
    w, v = outs if vectors else x.builder.emit(eig, (x.value,), {"vectors": True})
    inner = solve(v, to_dtype(t, v.dtype) @ v)
    dw = diagonal(inner, offset=0)
    if not vectors:
        return [dw]
    n = x.shape[-1]
    dv = v @ (inverse_gaps(across(w, n) - down(w, n)) * inner)
    shrink = real_part(_column_sums(conjugate(v) * dv))
    place = reshape_to(argmax(abs_(v), axis=x.ndim - 2), (*w.shape[:-1], 1, n))
    turn = imag(reshape_to(take_along(dv, place, axis=x.ndim - 2), w.shape))
    turn = turn / real_part(reshape_to(take_along(v, place, axis=x.ndim - 2), w.shape))
    return [dw, dv - v * across(to_dtype(shrink, v.dtype) + to_dtype(turn, v.dtype) * 1j, n)]


eig = factorization("eig", _eig_shape, _eig_code, _eig_jvp, names="eig eigvals", dce=_values_alone)
