"""Factors and spectra of ``scipy.linalg`` for traced matrices, if NumPy's have the same signs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.python_numbers import number
from ..tracer.trace import unsupported
from .dispatch import Lazy, array, stands_for

LINALG = Lazy("scipy.linalg")


@stands_for("scipy.linalg.svd")
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    if lapack_driver != "gesdd":
        raise unsupported("scipy.linalg.svd with lapack_driver=", "leave lapack_driver= out")
    if not compute_uv:
        return np.linalg.svd(array(a), compute_uv=False)
    return tuple(np.linalg.svd(array(a), full_matrices))


@stands_for("scipy.linalg.svdvals")
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.svd(array(a), compute_uv=False)


@stands_for("scipy.linalg.qr")
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    if pivoting or mode not in ("full", "economic", "r"):
        raise unsupported("scipy.linalg.qr with pivoting, or with mode='raw'", "choose mode='economic'")
    if mode == "r":
        r: Any = np.linalg.qr(array(a), "r")
        below = np.zeros_like(r, shape=(*r.shape[:-2], np.shape(shadow_of(a))[-2] - r.shape[-2], r.shape[-1]))
        whole = np.concatenate([r, below], axis=-2)
        return (whole,) if whole.ndim == 2 else whole  # as SciPy gives it
    return tuple(np.linalg.qr(array(a), "complete" if mode == "full" else "reduced"))


@stands_for("scipy.linalg.eigvalsh")
def eigvalsh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    **options: Any,
) -> Any:
    if b is not None or options:
        raise unsupported("scipy.linalg.eigvalsh with two matrices or further options", "use np.linalg.eigvalsh")
    return np.linalg.eigvalsh(array(a), "L" if lower else "U")


@stands_for("scipy.linalg.eigh")
def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **options: Any) -> Any:
    """Eigenvalues alone: SciPy's eigenvectors have other signs than NumPy's."""
    if not eigvals_only:
        raise unsupported(
            "scipy.linalg.eigh of a traced matrix", "use np.linalg.eigh, whose vectors may differ in sign"
        )
    return eigvalsh(a, b, lower=lower, **options)


@stands_for("scipy.linalg.norm")
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    found = np.linalg.norm(array(a), ord, axis, keepdims)
    plain = type(LINALG.norm(shadow_of(a), ord, axis, keepdims, check_finite)) is float  # by LAPACK
    return number(found) if plain else found


@stands_for("scipy.linalg.pinv")
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    if atol is not None or return_rank:
        raise unsupported("scipy.linalg.pinv with atol= or return_rank=", "pass rtol=, or use np.linalg.matrix_rank")
    a = array(a)
    rtol = max(a.shape) * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    if not math.isfinite(float(shadow_of(rtol))):
        raise ValueError("atol and rtol values must be positive.")
    return np.linalg.pinv(a, rtol=rtol)
