"""Equations, determinants and inverses of positive definite matrices, by their Cholesky factors.

Programs write these in parts: two triangular equations, or logarithms of a diagonal. As a whole their derivatives need
no derivative of the factor. Like ``cholesky`` they read the lower triangle, so that the other one has no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Node
from ...ir.primitive import REGISTRY, Primitive, primitive, pull, push
from ...ir.types import Aval
from ..axes import swap
from ..batching import Flags, elementwise
from ..diagonals import diagonal
from ..elementary import log
from ..elementwise import square as squared
from ..lane_loops import looped
from ..reduce import sum_
from ..shape import permute, reshape_to
from .factorizations import cholesky
from .forms import half, hermitian, number, square
from .solutions import inv, solve, solve_batch, solve_shape, stacked_columns

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


def _substituted(factor: Symbol, b: Symbol, lower: bool, checked: bool = False) -> Symbol:
    """Solve with a triangle, as NumPy does, or as SciPy does, which refuses nan and infinity."""
    found: Symbol = REGISTRY["solve_triangular"](factor, b, lower=lower, unit=False) if checked else solve(factor, b)
    return found


def _batch(prim: Primitive, size: int, args: Sequence[Symbol], flags: Flags, **checked: bool) -> Any:
    if checked and flags[0]:
        return looped(prim, size, args, flags, **checked)
    return (_form_batch if prim is inverse_form else solve_batch)(partial(prim, **checked), size, args, flags)


def _solve_positive_lower(b: Builder, node: Node, args: list[Symbol]) -> list[Any]:
    factor = cholesky(args[0])
    half_way = _substituted(factor, args[1], lower=True, **node.attrs)
    return [_substituted(swap(factor), half_way, lower=False, **node.attrs)]


def _solve_positive_code(node: Node) -> str:
    if node.attrs.get("checked"):
        return "scipy.linalg.cho_solve((np.linalg.cholesky({0}), True), {1})"
    return "np.linalg.solve(from_lower({0}), {1})"


# with ``checked`` it refuses nan and infinity as SciPy does, in the programs that ask for this
solve_positive: Primitive = primitive(
    "solve_positive",
    lambda x, b, checked=False: solve_shape(_real(x), b),
    _solve_positive_code,
    helper=WHOLE,
    batch=_batch,
    lower=_solve_positive_lower,
    diff=(
        push(lambda t, out, x, b, **checked: -solve_positive(x, hermitian(t) @ out)),
        pull(lambda ct, x, b, **checked: solve_positive(x, ct)),
    ),
)


def _rows(b: Symbol | Aval) -> int:
    """The axis of a right side along which a form is summed."""
    return max(b.ndim - 2, 0)


def _form_shape(x: Aval, b: Aval, checked: bool = False) -> Aval:
    solve_shape(_real(x), b)
    shape = b.shape[: _rows(b)] + b.shape[_rows(b) + 1 :]
    return Aval(shape, b.dtype, "array" if shape else "scalar")


def _form_code(node: Node) -> str:
    factor = "np.linalg.cholesky({0})"
    by_scipy = f"scipy.linalg.solve_triangular({factor}, {{1}}, lower=True)"
    solution = by_scipy if node.attrs.get("checked") else f"np.linalg.solve({factor}, {{1}})"
    return f"np.add.reduce(np.square({solution}), axis={_rows(node.inputs[1].aval)})"


def _form_batch(form: Callable[[Symbol, Symbol], Symbol], size: int, args: Sequence[Symbol], flags: Flags) -> Any:
    x, b = args
    if not flags[0] and x.ndim == 2:
        columns = swap(b) if b.ndim == 2 else reshape_to(permute(b, axes=(1, 0, 2)), (b.shape[1], size * b.shape[2]))
        return reshape_to(form(x, columns), (size, *b.shape[2:]))
    x, b, vector = stacked_columns(size, args, flags)
    out = form(x, b)
    return reshape_to(out, out.shape[:-1]) if vector else out


def _form_lower(b: Builder, node: Node, args: list[Symbol]) -> list[Any]:
    x, right = args
    half_way = _substituted(cholesky(x), right, lower=True, **node.attrs)
    return [sum_(squared(half_way), axis=(_rows(right),), keepdims=False)]


def _form_push_x(t: Symbol, out: Symbol, x: Symbol, b: Symbol, **checked: bool) -> Any:
    solution = solve_positive(x, b)
    return -sum_(solution * (hermitian(t) @ solution), axis=(_rows(b),), keepdims=False)


def _form_push_b(t: Symbol, out: Symbol, x: Symbol, b: Symbol, **checked: bool) -> Any:
    return sum_(solve_positive(x, b) * t * 2.0, axis=(_rows(b),), keepdims=False)


# bᵀ x⁻¹ b for each column b: the squares of L⁻¹ b
inverse_form: Primitive = primitive(
    "inverse_form",
    _form_shape,
    _form_code,
    batch=_batch,
    lower=_form_lower,
    diff=(push(_form_push_x), push(_form_push_b)),
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
