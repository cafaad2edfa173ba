"""Linear equations by LU factors that LAPACK finds, for equations with one matrix and with its transpose."""

from __future__ import annotations

import numpy as np

from ..ir.primitive import Primitive, primitive
from ..ir.types import Aval
from .equations import matrix
from .linalg.solutions import solve_shape

FACTORIZE = """
def lu_by_lapack(x):
    factorize = scipy.linalg.get_lapack_funcs("getrf", (x,))
    lu, pivots, singular = factorize(x)
    if singular:
        raise np.linalg.LinAlgError("Singular matrix")
    return lu, pivots
"""
SUBSTITUTE = """
def solve_by_lu(lu, pivots, b, transposed):
    substitute = scipy.linalg.get_lapack_funcs("getrs", (lu,))
    return substitute(lu, pivots, b, trans=transposed)[0]
"""


def _factors(a: Aval) -> tuple[Aval, ...]:
    return matrix(a), Aval(a.shape[:1], np.dtype(np.int32))


def _solution(lu: Aval, pivots: Aval, b: Aval, transposed: bool) -> Aval:
    return solve_shape(lu, b)


lu_by_lapack: Primitive = primitive(
    "lu_by_lapack",
    _factors,
    "lu_by_lapack({0})",
    helper=FACTORIZE,
    multi=True,
    final=True,
    fresh=lambda node: (0, 1),
)
solve_by_lu: Primitive = primitive(
    "solve_by_lu", _solution, "solve_by_lu({0}, {1}, {2}, {transposed})", helper=SUBSTITUTE, final=True
)
