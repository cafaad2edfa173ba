"""The rewrites of equations with a triangular matrix: a fifth of the work of a general solver."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from ..ir.builder import Symbol
from ..ops.equations import solve_triangular
from ..ops.linalg.factorizations import cholesky
from ..ops.linalg.solutions import solve
from ..ops.shape import permute
from .patterns import Rule
from .rules import REASSOCIATE

FEWEST = 16  # rows from which SciPy's solver is quicker than NumPy's general one


@cache
def _has_scipy() -> bool:
    return find_spec("scipy") is not None


def _lower(x: Symbol, b: Symbol) -> Any:
    """L⁻¹ b for a Cholesky factor L of x."""
    return _solved(cholesky(x), b, lower=True)


def _upper(x: Symbol, b: Symbol, axes: tuple[int, ...]) -> Any:
    """L⁻ᵀ b."""
    return _solved(permute(cholesky(x), axes=axes), b, lower=False) if axes == (1, 0) else None


def _solved(factor: Symbol, b: Symbol, *, lower: bool) -> Any:
    if factor.ndim != 2 or factor.shape[0] < FEWEST or factor.dtype.char not in "fdFD" or not _has_scipy():
        return None
    return solve_triangular(factor, b, lower=lower, unit=False, checked=False)


REASSOCIATE += [
    Rule(lambda x, b: solve(cholesky(x), b), _lower),
    Rule(lambda x, b, axes: solve(permute(cholesky(x), axes=axes), b), _upper),
]
