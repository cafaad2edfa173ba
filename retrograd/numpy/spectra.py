"""Eigenvalues, singular values, and functions that NumPy computes from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.types import Aval
from ..ops.elementwise import cast
from ..ops.linalg import factorizations, spectra
from ..tracer.array import apply, shadow_of
from ..tracer.operands import apply_all, lifted
from ..tracer.table import implements
from ..tracer.trace import unsupported
from .matrices import adjoint, checked, inv
from .norms import norm


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    like, (a,) = checked(np.linalg.eigh, a, UPLO=UPLO)
    return type(like)(*apply_all(spectra.eigh, [a], vectors=True, uplo=UPLO.upper()))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    _, (a,) = checked(np.linalg.eigvalsh, a, UPLO=UPLO)
    return apply_all(spectra.eigh, [a], vectors=False, uplo=UPLO.upper())[0]


ALWAYS_COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"  # as NumPy's are from 2.5 on


def _real_where_numpy_is(a: Any, w: Any, *vectors: Any) -> list[Any]:
    """Make the results real if the matrix and all its eigenvalues are real, as NumPy before 2.5 does."""
    if ALWAYS_COMPLEX:
        return [w, *vectors]
    if a.dtype.kind != "c" and not w.const and not w.home.concrete:
        what = "eig of a real matrix in a loop or a branch, where data decide whether its results are real,"
        raise unsupported(what, "make the matrix complex: a.astype(complex)")
    if a.dtype.kind == "c" or np.any(np.imag(w) != 0):
        return [w, *vectors]
    return [np.real(x) for x in (w, *vectors)]


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    like, (a,) = checked(np.linalg.eig, a)
    return type(like)(*_real_where_numpy_is(a, *apply_all(spectra.eig, [a], vectors=True)))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    _, (a,) = checked(np.linalg.eigvals, a)
    return _real_where_numpy_is(a, *apply_all(spectra.eig, [a], vectors=False))[0]


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    options = {"full_matrices": full_matrices, "compute_uv": compute_uv, "hermitian": hermitian}
    like, (a,) = checked(np.linalg.svd, a, **options)
    if not compute_uv:
        if hermitian:
            return np.sort(np.abs(eigvalsh(a)))[..., ::-1]
        return apply_all(factorizations.svd, [a], full=False, vectors=False)[0]
    if not hermitian:
        full = bool(full_matrices) and a.shape[-2] != a.shape[-1]
        return type(like)(*apply_all(factorizations.svd, [a], full=full, vectors=True))
    w, v = eigh(a)
    order = np.argsort(np.abs(w))[..., ::-1]
    sign = np.take_along_axis(np.copysign(1.0, w), order, axis=-1)
    s = np.take_along_axis(np.abs(w), order, axis=-1)
    u = np.take_along_axis(v, order[..., None, :], axis=-1)
    return type(like)(u, s, adjoint(u * sign[..., None, :]))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    return svd(x, compute_uv=False)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if np.ndim(shadow_of(A)) < 2:
        return apply(cast, [np.any(np.not_equal(A, 0))], aval=Aval((), np.dtype(np.int64), "python"))
    (a,) = lifted(A)
    s = svd(a, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        cut = np.expand_dims(tol, -1)
    else:
        rtol = max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else np.expand_dims(rtol, -1)
        cut = (np.max(s, axis=-1, keepdims=True) if s.shape[-1] else np.sum(s, axis=-1, keepdims=True)) * rtol
    return np.count_nonzero(s > cut, axis=-1)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    checked(np.linalg.cond, x, p=p)
    (x,) = lifted(x)
    if p is None or p in {2, -2}:
        s = svd(x, compute_uv=False)
        ends = (s[..., -1], s[..., 0])
        r = ends[0] / ends[1] if p == -2 else ends[1] / ends[0]
    else:
        r = norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))
    known = np.logical_not(np.any(np.isnan(x), axis=(-2, -1)))
    return np.where(np.logical_and(np.isnan(r), known), np.inf, r)[()]
