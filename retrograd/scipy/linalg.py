"""``scipy.linalg`` for traced matrices.

>>> import numpy as np, retrograd as rg
>>> from retrograd.scipy.linalg import expm
>>> float(rg.grad(lambda t: np.trace(expm(t * np.array([[0.0, 1.0], [-1.0, 0.0]]))))(np.pi / 2))
-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.primitive import Primitive
from ..ops import equations, matrix_functions
from ..tracer.array import apply
from ..tracer.operands import apply_all, astype, lifted
from ..tracer.trace import unsupported
from .decompositions import eigh, eigvalsh, norm, pinv, qr, svd, svdvals
from .dispatch import cast, inexact, rest_of, stands_for

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "logm",
    "lu_factor",
    "lu_solve",
    "norm",
    "pinv",
    "qr",
    "solve",
    "solve_banded",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "svdvals",
    "toeplitz",
]
__getattr__ = rest_of("scipy.linalg")
GENERAL = (None, "gen", "general")  # what SciPy calls matrices of no known form


def _equal(*operands: Any) -> list[Any]:
    """Operands as arrays of one dtype that LAPACK has."""
    found = lifted(*map(inexact, operands))
    dtype = np.result_type(*(x.dtype for x in found), np.float32)
    return cast(found, dtype)


def _doubled(a: Any) -> Any:
    """An array in double precision, real or complex."""
    return astype(a, np.result_type(a.dtype, np.float64))


def _no_stack(a: Any, ndim: int = 2) -> Any:
    """An array of so many axes at most; SciPy takes stacks from 1.17 on, and flattened some of them before."""
    if a.ndim > ndim:
        what = "matrices" if ndim == 2 else "vectors"
        raise unsupported(f"a function of scipy.linalg of a stack of {what}", "map it over the stack with rg.vmap")
    return a


def _square(a: Any) -> Any:
    _no_stack(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"expected a square matrix, not an array of shape {a.shape}")
    return a


def _adjoint(a: Any) -> Any:
    turned = np.transpose(a)
    return np.conj(turned) if turned.dtype.kind == "c" else turned


# --- equations


@stands_for("scipy.linalg.solve_triangular")
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    a, b = _equal(a, b)
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"trans is {trans!r}, but must be 0, 1, 2, 'N', 'T' or 'C'")
    turned = trans not in (0, "N")
    a, b = _square(a), _no_stack(b)
    a = _adjoint(a) if trans in (2, "C") else np.transpose(a) if turned else a
    return apply(equations.solve_triangular, [a, b], lower=bool(lower) != turned, unit=bool(unit_diagonal))


@stands_for("scipy.linalg.solve_banded")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    ab, b = map(_no_stack, _equal(ab, b))
    low, up = (int(n) for n in l_and_u)
    return apply(equations.solve_banded, [ab, b], low=low, up=up)


@stands_for("scipy.linalg.solve_sylvester")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    a, b, q = _equal(a, b, q)
    return apply(equations.solve_sylvester, [_square(a), _square(b), _no_stack(q)])


@stands_for("scipy.linalg.solve_continuous_lyapunov")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """A X + X Aᴴ = Q."""
    return solve_sylvester(a, np.conj(np.transpose(a)), q)


@stands_for("scipy.linalg.solve_discrete_lyapunov")
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """A X Aᴴ - X + Q = 0, as SciPy solves it: as linear equations up to 9 rows, for more by the bilinear transform."""
    a, q = _equal(a, q)
    n = _square(a).shape[0]
    if _no_stack(q).shape != (n, n):
        raise ValueError("Matrix a and q should have the same shape")
    method = ("direct" if n < 10 else "bilinear") if method is None else str(method).lower()
    if method not in ("direct", "bilinear"):
        raise ValueError(f"Unknown solver {method}")
    one, turned = np.eye(n), np.conj(np.transpose(a))
    if method == "direct":
        rows = np.eye(n * n) - np.kron(a, np.conj(a))
        return np.reshape(np.linalg.solve(rows, np.reshape(q, (-1,))), (n, n))
    back = np.linalg.inv(turned + one)
    return solve_continuous_lyapunov(
        np.conj(np.transpose((turned - one) @ back)), -2.0 * (np.linalg.inv(a + one) @ q @ back)
    )


@stands_for("scipy.linalg.solve")
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    if transposed or assume_a not in GENERAL:
        raise unsupported(
            "scipy.linalg.solve with assume_a= or transposed=", "use cho_solve(cho_factor(a), b), or leave them out"
        )
    return np.linalg.solve(*_equal(a, b))


# --- factorizations


@stands_for("scipy.linalg.cholesky")
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The factor of the triangle that ``lower`` names; the other triangle is not read."""
    a = _square(*_equal(a))
    return np.linalg.cholesky(a) if lower else _adjoint(np.linalg.cholesky(_adjoint(a)))


@stands_for("scipy.linalg.cho_factor")
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The factor; the other triangle has the entries of ``a``, as LAPACK leaves them there."""
    (a,) = _equal(a)
    kept = np.tri(a.shape[-1], dtype=bool)
    return np.where(kept if lower else kept.T, cholesky(a, lower), a), lower


@stands_for("scipy.linalg.cho_solve", pairs=True)
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    c, lower = c_and_lower
    first, second = ("N", "C") if lower else ("C", "N")
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


@stands_for("scipy.linalg.lu_factor")
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    (a,) = _equal(a)
    if _no_stack(a).ndim == 2 and a.shape[0] != a.shape[1]:
        raise unsupported("scipy.linalg.lu_factor of a matrix that is not square", "use np.linalg.qr")
    return tuple(apply_all(equations.lu_factor, [_square(a)]))


@stands_for("scipy.linalg.lu_solve", pairs=True)
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    lu, pivots = lu_and_piv
    lu, pivots, b = lifted(lu, pivots, inexact(b))
    lu, b = _no_stack(lu), _no_stack(b)
    order = apply(equations.pivot_order, [pivots])
    if trans == 0:
        return solve_triangular(lu, solve_triangular(lu, b[order], 0, lower=True, unit_diagonal=True))
    inner = solve_triangular(lu, solve_triangular(lu, b, trans), trans, lower=True, unit_diagonal=True)
    return inner[np.argsort(order)]


@stands_for("scipy.linalg.inv")
def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    if assume_a not in GENERAL:
        raise unsupported("scipy.linalg.inv with assume_a=", "fill in the other triangle, and leave assume_a= out")
    return np.linalg.inv(*_equal(a))


@stands_for("scipy.linalg.det")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    return np.linalg.det(_doubled(*_equal(a)))  # which SciPy gives in double precision


# --- functions of matrices


def _function(prim: Primitive, a: Any) -> Any:
    a = _square(*_equal(a))
    found = apply(prim, [a])
    if np.isnan(found.shadow).any() and np.isfinite(a.shadow).all():
        if np.linalg.matrix_rank(a.shadow) < len(a):
            raise unsupported(
                f"scipy.linalg.{prim.name} of a singular matrix that has none", "add a small multiple of the identity"
            )
        raise unsupported(
            f"scipy.linalg.{prim.name} of a real matrix that has no real one", "make it complex: a.astype(complex)"
        )
    return found


@stands_for("scipy.linalg.expm")
def expm(A: Any) -> Any:
    (a,) = _equal(A)
    if a.size == 1 and a.ndim < 2:
        return np.reshape(np.exp(_doubled(a)), (1, 1))
    if a.ndim > 2 and a.size:
        return np.stack([expm(m) for m in a])
    if a.ndim > 2 and a.shape[-1] == a.shape[-2]:
        return np.copy(a)
    return apply(matrix_functions.expm, [_square(a)])


@stands_for("scipy.linalg.logm")
def logm(A: Any) -> Any:
    return _function(matrix_functions.logm, _doubled(*_equal(A)))  # as SciPy computes it


@stands_for("scipy.linalg.sqrtm")
def sqrtm(A: Any) -> Any:
    return _function(matrix_functions.sqrtm, A)


# --- matrices of a form


@stands_for("scipy.linalg.toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix whose diagonals are constant: first column ``c``, first row ``r``, by default the conjugate of c."""
    (c,) = lifted(c)
    (r,) = lifted(np.conj(c) if r is None else r)
    c, r = (np.atleast_1d(_no_stack(x, 1)) for x in (c, r))
    line = np.concatenate([c[::-1], r[1:]])
    return line[c.size - 1 - np.arange(c.size)[:, None] + np.arange(r.size)]


@stands_for("scipy.linalg.block_diag")
def block_diag(*arrs: Any) -> Any:
    blocks = [np.atleast_2d(_no_stack(x)) for x in lifted(*arrs)]
    width = sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        rows.append(np.pad(x, ((0, 0), (left, width - left - x.shape[1]))))
        left += x.shape[1]
    return np.concatenate(rows)
