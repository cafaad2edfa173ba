"""The rewrites of equations: triangles take a fifth of the work, and multiples and transposes share theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..ir.builder import Symbol
from ..ops.diagonals import diagonal
from ..ops.elementary import log
from ..ops.elementwise import literal_value, neg, square
from ..ops.equations import solve_triangular
from ..ops.equations_by_factors import lu_by_lapack, solve_by_lu
from ..ops.linalg.factorizations import cholesky
from ..ops.linalg.positive import (
    cholesky_by_lapack,
    half_log_det,
    inverse_form,
    inverse_of_triangle,
    solve_positive,
    solved_by_scipy,
)
from ..ops.linalg.solutions import inv, solve
from ..ops.reduce import sum_
from ..ops.shape import permute
from .facts import Fact, facts
from .patterns import NUMBER, Rule
from .rules import BEFORE, NUMPY, REASSOCIATE

LEAST, MOST = 2**-10, 2**10  # numbers that are taken out of equations: solutions near overflow may not become larger


def _is_lower(x: Symbol) -> bool | None:
    """Whether SciPy's functions are to take the lower triangle of a matrix, or the upper one; None if neither."""
    if not solved_by_scipy(x):
        return None
    found = facts(x)
    return Fact.LOWER in found if Fact.LOWER in found or Fact.UPPER in found else None


def _solved(x: Symbol, b: Symbol) -> Any:
    lower = _is_lower(x)
    return None if lower is None else solve_triangular(x, b, lower=lower, unit=False, checked=False)


def _inverse(x: Symbol) -> Any:
    lower = _is_lower(x)
    return None if lower is None else inverse_of_triangle(x, lower=lower)


def _factor(x: Symbol) -> Any:
    return cholesky_by_lapack(x) if solved_by_scipy(x) else None


def _by_factors(x: Symbol, b: Symbol) -> Any:
    """Equations by the factors of the matrix, which those with its transpose share."""
    if not solved_by_scipy(x) or not b.size:
        return None
    node = x.node
    transposed = node is not None and node.prim is permute
    matrix = node.inputs[0] if node is not None and transposed else x.value
    lu, pivots = x.builder.emit(lu_by_lapack, [matrix], {})
    return solve_by_lu(lu, pivots, b, transposed=transposed)


def _multiple(x: Symbol, b: Symbol, y: Symbol, **form: Any) -> Any:
    """x⁻¹ (b n) as (x⁻¹ b) n, so that equations that differ by a number are solved once."""
    n = literal_value(y)
    if n is None or b.dtype.kind != "f" or not LEAST <= abs(n) <= MOST:
        return None
    return (solve_triangular if form else solve)(x, b, **form) * n


def _multiple_of_triangle(x: Symbol, b: Symbol, y: Symbol, low: bool, unit: bool, checked: bool) -> Any:
    return _multiple(x, b, y, lower=low, unit=unit, checked=checked)


def _positive(x: Symbol, b: Symbol, axes: tuple[int, ...], **checked: bool) -> Any:
    """L⁻ᵀ L⁻¹ b for the Cholesky factor L of x."""
    return solve_positive(x, b, **checked) if axes == (1, 0) and x.dtype.kind == "f" else None


def _form(x: Symbol, b: Symbol, n: Symbol | None = None, **checked: bool) -> Any:
    """z z for z = L⁻¹ b, or (n z) z."""
    number = 1.0 if n is None else literal_value(n)
    if b.ndim != 1 or b.dtype.kind != "f" or number is None or not LEAST <= abs(number) <= MOST:
        return None
    found = inverse_form(x, b, **checked)
    return found if n is None else found * number


def _forms(x: Symbol, b: Symbol, axis: tuple[int, ...], keepdims: bool, **checked: bool) -> Any:
    """The sum of the squares of L⁻¹ b along each column, or of all."""
    if x.ndim != 2 or x.dtype.kind != "f" or keepdims or axis[:1] != (0,):
        return None
    found = inverse_form(x, b, **checked)
    return sum_(found, axis=(0,), keepdims=False) if axis == (0, 1) else found


def _determinant(x: Symbol, offset: int, axis: tuple[int, ...], keepdims: bool) -> Any:
    whole = x.ndim == 2 and x.dtype.kind == "f" and offset == 0 and axis == (0,) and not keepdims
    return half_log_det(x) if whole else None


def _equations_of_a_factor(
    lower: Callable[[Any, Any], Any], upper: Callable[[Any, Any], Any], **checked: bool
) -> list[Rule]:
    """Rules for a function that solves with lower triangles, and one for upper triangles."""

    def then(rule: Callable[..., Any]) -> Callable[..., Any]:
        return partial(rule, **checked)

    def half_way(x: Any, b: Any) -> Any:
        return lower(cholesky(x), b)

    return [
        Rule(lambda x, b, axes: upper(permute(cholesky(x), axes=axes), half_way(x, b)), then(_positive)),
        Rule(lambda x, b: half_way(x, b) @ half_way(x, b), then(_form)),
        Rule(lambda x, b, n=NUMBER: (n * half_way(x, b)) @ half_way(x, b), then(_form)),
        Rule(lambda x, b, i, k: sum_(square(half_way(x, b)), axis=i, keepdims=k), then(_forms)),
    ]


BEFORE += [
    *_equations_of_a_factor(solve, solve),
    *_equations_of_a_factor(
        lambda x, b: solve_triangular(x, b, lower=True, unit=False),
        lambda x, b: solve_triangular(x, b, lower=False, unit=False),
        checked=True,
    ),
    Rule(lambda x, o, i, k: sum_(log(diagonal(cholesky(x), offset=o)), axis=i, keepdims=k), _determinant),
]
NUMPY += [
    Rule(lambda x: cholesky(x), _factor),  # noqa: PLW0108 - a rule asks for the names of parameters
    Rule(lambda x, b: solve(x, b), _by_factors),  # noqa: PLW0108 - a rule asks for the names of parameters
]
REASSOCIATE += [
    Rule(lambda x, b: solve(x, b), _solved),  # noqa: PLW0108 - a rule asks for the names of parameters
    Rule(lambda x: inv(x), _inverse),  # noqa: PLW0108 - a rule asks for the names of parameters
    Rule(lambda x, b: solve(x, neg(b)), lambda x, b: neg(solve(x, b)) if b.dtype.kind == "f" else None),
    Rule(lambda x, b, n=NUMBER: solve(x, b * n), _multiple),
    Rule(lambda x, b, n=NUMBER: solve(x, n * b), _multiple),
    Rule(
        lambda x, b, lower, unit, checked: solve_triangular(x, neg(b), lower=lower, unit=unit, checked=checked),
        lambda x, b, lower, unit, checked: neg(solve_triangular(x, b, lower=lower, unit=unit, checked=checked)),
    ),
    Rule(
        lambda x, b, low, unit, checked, n=NUMBER: solve_triangular(x, b * n, lower=low, unit=unit, checked=checked),
        lambda x, b, low, unit, checked, n: _multiple_of_triangle(x, b, n, low, unit, checked),
    ),
    Rule(
        lambda x, b, low, unit, checked, n=NUMBER: solve_triangular(x, n * b, lower=low, unit=unit, checked=checked),
        lambda x, b, low, unit, checked, n: _multiple_of_triangle(x, b, n, low, unit, checked),
    ),
]
