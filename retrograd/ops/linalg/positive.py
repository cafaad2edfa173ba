"""Equations, determinants and inverses of positive definite matrices, by their Cholesky factors.

Programs write these in parts: two triangular equations, or logarithms of a diagonal. As a whole their derivatives need
no derivative of the factor. Like ``cholesky`` they read the lower triangle, so that the other one has no influence.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive, pull, push
from ...ir.types import Aval
from ..axes import swap
from ..batching import elementwise
from ..diagonals import diagonal
from ..elementary import log
from ..reduce import sum_
from .factorizations import cholesky
from .forms import half, hermitian, number, square
from .solutions import inv, solve, solve_batch, solve_shape

FEWEST = 16  # rows from which SciPy's functions of triangles are quicker than NumPy's of matrices

WHOLE = """
def from_lower(x):
    low = np.tril(x, -1)
    return np.tril(x) + low.swapaxes(-1, -2)
"""
# LAPACK takes the rows for columns; NumPy, which copies them into columns, takes up to three times as long
FACTOR = """
def cholesky_by_lapack(x):
    factorize = scipy.linalg.get_lapack_funcs("potrf", (x,))
    factor, missing = factorize(x.T, lower=0, clean=1)
    if missing:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factor.T
"""
# a third of the work of a general inverse; LAPACK leaves the zeros of the factor where they are
INVERSE = """
def half_inverse(factor):
    invert = scipy.linalg.get_lapack_funcs("potri", (factor,))
    inverse = invert(factor.T, lower=0)[0].T
    inverse.flat[:: len(factor) + 1] *= 0.5
    return inverse
"""
# a sixth of the work of a general inverse
TRIANGLE = """
def inverse_of_triangle(x, lower):
    invert = scipy.linalg.get_lapack_funcs("trtri", (x,))
    inverse, singular = invert(x.T, lower=not lower)
    if singular:
        raise np.linalg.LinAlgError("Singular matrix")
    return inverse.T
"""


@cache
def has_scipy() -> bool:
    """Whether generated modules may use SciPy."""
    return find_spec("scipy") is not None


def solved_by_scipy(x: Symbol) -> bool:
    """Whether SciPy's functions of triangles are to be used for a matrix."""
    return x.ndim == 2 and x.shape[0] >= FEWEST and x.dtype.char in "fdFD" and has_scipy()


def _real(x: Aval) -> Aval:
    if x.dtype.kind != "f":
        raise ValueError(f"{x} is not a stack of real matrices")
    return square(x)


def _solve_positive_lower(b: Builder, node: Node, args: list[Symbol]) -> list[Any]:
    factor = cholesky(args[0])
    return [solve(swap(factor), solve(factor, args[1]))]


solve_positive: Primitive = primitive(
    "solve_positive",
    lambda x, b: solve_shape(_real(x), b),
    "np.linalg.solve(from_lower({0}), {1})",
    helper=WHOLE,
    batch=solve_batch,
    lower=_solve_positive_lower,
    diff=(
        push(lambda t, out, x, b: -solve_positive(x, hermitian(t) @ out)),
        pull(lambda ct, x, b: solve_positive(x, ct)),
    ),
)


cholesky_by_lapack: Primitive = primitive(
    "cholesky_by_lapack", square, "cholesky_by_lapack({0})", helper=FACTOR, final=True
)
half_inverse_by_lapack: Primitive = primitive(
    "half_inverse_by_lapack", _real, "half_inverse({0})", helper=INVERSE, final=True
)

inverse_of_triangle: Primitive = primitive(
    "inverse_of_triangle",
    lambda x, lower: square(x),
    "inverse_of_triangle({0}, {lower})",
    helper=TRIANGLE,
    final=True,
)


def _half_inverse_code(node: Node) -> str:
    n = node.out.aval.shape[-1]
    return f"np.linalg.inv(from_lower({{0}})) * ((np.tri({n}) + np.tri({n}, k=-1)) * 0.5).astype({{0}}.dtype)"


def _half_inverse_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    inverse = out + swap(out)
    return -half(inverse @ hermitian(t) @ inverse)


def _half_inverse_lower(b: Builder, node: Node, args: list[Symbol]) -> list[Any]:
    factor = cholesky(args[0])
    if solved_by_scipy(factor):
        return [half_inverse_by_lapack(factor)]
    inverse = inv(factor)
    return [half(swap(inverse) @ inverse)]


# the lower triangle of the inverse, with half of the diagonal: the derivative of half_log_det
half_inverse: Primitive = primitive(
    "half_inverse",
    _real,
    _half_inverse_code,
    helper=WHOLE,
    batch=elementwise,
    lower=_half_inverse_lower,
    diff=(push(_half_inverse_push),),
)


def _half_log_det_push(t: Symbol, out: Symbol, x: Symbol) -> Any:
    return sum_(half_inverse(x) * t, axis=(x.ndim - 2, x.ndim - 1), keepdims=False) if x.size else None


def _half_log_det_lower(b: Builder, node: Node, args: list[Symbol]) -> list[Any]:
    logarithms = log(diagonal(cholesky(args[0]), offset=0))
    return [sum_(logarithms, axis=(logarithms.ndim - 1,), keepdims=False)]


half_log_det: Primitive = primitive(
    "half_log_det",
    lambda x: number(_real(x)),
    "0.5 * np.linalg.slogdet(from_lower({0}))[1]",
    helper=WHOLE,
    batch=elementwise,
    lower=_half_log_det_lower,
    diff=(push(_half_log_det_push),),
)
