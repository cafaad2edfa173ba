"""Functions of a square matrix, by SciPy: exponential, logarithm and square root.

The derivative of f at A along E is the upper right block of f applied to [[A, E], [0, A]] (Mathias, A chain rule for
matrix functions and applications, 1996). As an operation of A and E it has a derivative of the same form.
"""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive, primitive, pull, push
from ..ir.texts import literal
from ..ir.types import Aval
from .axes import swap
from .equations import matrix, solve_sylvester
from .index import getitem, setitem
from .lane_loops import looped

# SciPy's root of a real matrix may be complex; here it is nan then, like np.log of a negative number
SQRTM = """
def real_sqrtm(a):
    found = scipy.linalg.sqrtm(a)
    if np.iscomplexobj(found) > np.iscomplexobj(a):
        return np.full(a.shape, np.nan, a.dtype)
    return found.astype(a.dtype)
"""
# By square roots until the matrix is near 1, and Padé approximation in partial fractions there (Dieci, Morini and
# Papini, Computational techniques for real logarithms of matrices, 1996). SciPy's logm takes a hundred times as long,
# and draws random numbers from NumPy's global generator. The roots of a singular matrix stay away from 1: it has no
# logarithm, and the result is nan.
LOGM = """
def real_logm(a):
    eye = np.eye(len(a), dtype=a.dtype)
    near, factor = a, 1.0
    for root in range(100):
        found = np.abs(near - eye).sum(axis=0).max() < 0.25
        if found:
            break
        near, factor = scipy.linalg.sqrtm(near), factor * 2
    if not found or np.iscomplexobj(near) > np.iscomplexobj(a):
        return np.full(a.shape, np.nan, a.dtype)
    points, weights = np.polynomial.legendre.leggauss(8)
    total = eye * 0
    for point, weight in zip(points, weights):
        total = total + weight / 2 * np.linalg.solve(eye + (point + 1) / 2 * (near - eye), near - eye)
    return (total * factor).astype(a.dtype)


def logm_frechet(a, e):
    n = len(a)
    size = np.abs(e).max() + np.finfo(a.dtype).tiny
    whole = np.zeros((2 * n, 2 * n), a.dtype)
    whole[:n, :n] = a
    whole[n:, n:] = a
    whole[:n, n:] = e / size
    return real_logm(whole)[:n, n:] * size
"""


def _along(a: Aval, e: Aval) -> Aval:
    if matrix(a).shape != e.shape or a.dtype != e.dtype:
        raise ValueError(f"{e} is not a direction at {a}")
    return Aval(a.shape, a.dtype)


def _blocks(diagonal: Symbol, corner: Symbol | None) -> Any:
    """[[D, C], [0, D]]."""
    n = diagonal.shape[0]
    first, last = slice(0, n), slice(n, 2 * n)
    whole = diagonal.builder.zeros(Aval((2 * n, 2 * n), diagonal.dtype))
    for block, rows, columns in ((diagonal, first, first), (diagonal, last, last), (corner, first, last)):
        if block is not None:
            whole = setitem(whole, block, index=(rows, columns))
    return whole


def _frechet(name: str, code: Any, **fields: Any) -> Primitive:
    """The derivative of a matrix function at ``a`` along ``e``."""

    def slope(t: Symbol, out: Symbol, a: Symbol, e: Symbol) -> Any:
        n = a.shape[0]
        moved = prim(_blocks(a, e), _blocks(t, None))
        return getitem(moved, index=(slice(0, n), slice(n, 2 * n)))

    prim: Primitive = primitive(
        name, _along, code, **fields, batch=looped, diff=(push(slope), pull(lambda ct, a, e: prim(swap(a), ct)))
    )
    return prim


def _expm_frechet_code(node: Node) -> str:
    """SciPy computes in double precision."""
    found = "scipy.linalg.expm_frechet({0}, {1}, compute_expm=False)"
    dtype = node.out.aval.dtype
    return found if dtype.name in ("float64", "complex128") else f"{found}.astype({literal(dtype)})"


expm_frechet = _frechet("expm_frechet", _expm_frechet_code, names="linalg expm_frechet")
logm_frechet = _frechet("logm_frechet", "logm_frechet({0}, {1})", helper=LOGM)

expm = primitive(
    "expm", matrix, "scipy.linalg.expm({0})", batch=looped, diff=(push(lambda t, out, a: expm_frechet(a, t)),)
)
logm = primitive(
    "logm", matrix, "real_logm({0})", helper=LOGM, batch=looped, diff=(push(lambda t, out, a: logm_frechet(a, t)),)
)
# X dX + dX X = dA
sqrtm = primitive(
    "sqrtm",
    matrix,
    "real_sqrtm({0})",
    helper=SQRTM,
    batch=looped,
    diff=(push(lambda t, out, a: solve_sylvester(out, out, t)),),
)
