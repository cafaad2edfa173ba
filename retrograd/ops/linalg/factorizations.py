"""Cholesky, QR and singular value decompositions."""

from __future__ import annotations

from typing import Any

from ...errors import NonDifferentiableError
from ...ir.builder import Symbol
from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive, push
from ...ir.types import Aval
from ..axes import swap
from ..batching import elementwise
from ..complex import imag
from ..diagonals import diagonal
from ..elementwise import to_dtype
from ..reduce import sum_
from .forms import (
    across,
    adjoint,
    conjugate,
    down,
    factorization,
    half,
    hermitian,
    inverse_gaps,
    matrices,
    real_aval,
    real_part,
    skew,
    square,
)
from .solutions import solve


def _cholesky_push(t: Symbol, out: Symbol) -> Any:
    """Murray, Differentiation of the Cholesky decomposition (arXiv 1602.07527), eq. 8."""
    inner = solve(out, adjoint(solve(out, hermitian(t))))
    return out @ half(inner)


# reads the lower triangle, without the imaginary part of the diagonal
cholesky: Primitive = primitive(
    "cholesky",
    square,
    "np.linalg.cholesky({0})",
    batch=elementwise,
    diff=(push(lambda t, out, x: _cholesky_push(t, out) if x.size else None),),
)


def _qr_shape(x: Aval, mode: str) -> tuple[Aval, ...]:
    m, n = matrices(x)
    if mode not in ("reduced", "r", "complete") or m < n:
        raise ValueError(f"{x} has no QR decomposition in the mode {mode!r} here")
    k = m if mode == "complete" else n
    q, r = Aval((*x.shape[:-1], k), x.dtype), Aval((*x.shape[:-2], k, n), x.dtype)
    return (r,) if mode == "r" else (q, r)


def _qr_code(node: Node) -> str:
    return "np.linalg.qr({0})" if node.attrs["mode"] == "reduced" else "np.linalg.qr({0}, {mode})"


def _qr_jvp(t: Symbol, outs: list[Symbol], x: Symbol, mode: str) -> list[Any]:
    """Walter and Lehmann (Algebraic differentiation of matrix factorizations, 2010): the diagonal of R stays real."""
    if mode == "complete" and x.shape[-2] > x.shape[-1]:
        raise NonDifferentiableError(
            "the columns of Q beyond those of the matrix may be any basis, which has no derivative",
            where=x.builder.where,
            remedy='use np.linalg.qr with mode="reduced"',
        )
    q, r = outs if mode != "r" else x.builder.emit(qr, (x.value,), {"mode": "reduced"})
    moved = swap(solve(swap(r), swap(t)))
    inner = adjoint(q) @ moved
    turn = skew(inner)
    dr = (inner - turn) @ r
    return [dr] if mode == "r" else [moved + q @ (turn - inner), dr]


def _qr_dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    if node.attrs["mode"] == "reduced" and used == [False, True]:
        return {"mode": "r"}, [0], [1]
    return dict(node.attrs), [0], list(range(len(used)))


# of matrices with at least as many rows as columns; others are composed
qr = factorization("qr", _qr_shape, _qr_code, _qr_jvp, names="qr", dce=_qr_dce)


def _svd_shape(x: Aval, full: bool, vectors: bool) -> tuple[Aval, ...]:
    m, n = matrices(x)
    k = min(m, n)
    s = real_aval(x, (*x.shape[:-2], k))
    if not vectors:
        return (s,)
    u, v = ((*x.shape[:-1], m if full else k), (*x.shape[:-2], n if full else k, n))
    return Aval(u, x.dtype), s, Aval(v, x.dtype)


def _svd_code(node: Node) -> str:
    m, n = node.inputs[0].aval.shape[-2:]
    if not node.attrs["vectors"]:
        return "np.linalg.svd({0}, compute_uv=False)"
    return "np.linalg.svd({0})" if node.attrs["full"] or m == n else "np.linalg.svd({0}, full_matrices=False)"


def _svd_jvp(t: Symbol, outs: list[Symbol], x: Symbol, full: bool, vectors: bool) -> list[Any]:
    """Townsend, Differentiating the SVD (2016); for complex numbers Wan and Zhang (arXiv 1909.02659), phases in U."""
    m, n = x.shape[-2:]
    if vectors and full and m != n:
        raise NonDifferentiableError(
            "the singular vectors beyond the singular values may be any basis, which has no derivative",
            where=x.builder.where,
            remedy="use np.linalg.svd with full_matrices=False",
        )
    u, s, vh = outs if vectors else x.builder.emit(svd, (x.value,), {"full": False, "vectors": True})
    v, image = adjoint(vh), t @ adjoint(vh)
    if not vectors:
        return [real_part(sum_(conjugate(u) * image, axis=(x.ndim - 2,), keepdims=False))]
    k = s.shape[-1]
    inner = adjoint(u) @ image
    wide, tall = across(s, k), down(s, k)
    gaps = to_dtype(inverse_gaps((wide - tall) * (wide + tall)), x.dtype)
    right, left = inner * to_dtype(wide, x.dtype), inner * to_dtype(tall, x.dtype)
    du, dv = u @ (gaps * (right + adjoint(right))), v @ (gaps * (left + adjoint(left)))
    if x.dtype.kind == "c":
        du = du + u * (to_dtype(across(imag(diagonal(inner, offset=0)) / s, m), x.dtype) * 1j)
    if m > k:
        du = du + (image - u @ inner) / to_dtype(across(s, m), x.dtype)
    if n > k:
        dv = dv + (adjoint(t) @ u - v @ adjoint(inner)) / to_dtype(across(s, n), x.dtype)
    return [du, real_part(diagonal(inner, offset=0)), adjoint(dv)]


def _svd_dce(node: Node, used: list[bool]) -> tuple[dict[str, Any], list[int], list[int]]:
    if used == [False, True, False]:
        return {**node.attrs, "full": False, "vectors": False}, [0], [1]
    return dict(node.attrs), [0], list(range(len(used)))


svd = factorization("svd", _svd_shape, _svd_code, _svd_jvp, names="svd", dce=_svd_dce)
