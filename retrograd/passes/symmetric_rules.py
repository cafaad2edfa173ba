"""The rewrites of symmetric matrices: a transpose is the matrix itself, and sums of rows are sums of columns."""

from __future__ import annotations

from typing import Any

from ..ir.builder import Symbol
from ..ops.reduce import sum_
from ..ops.shape import permute, reshape_to
from .facts import Fact, facts
from .patterns import Rule
from .rules import REASSOCIATE


def _is_symmetric(x: Symbol) -> bool:
    square = x.ndim == 2 and x.shape[0] == x.shape[1] and x.dtype.kind == "f"
    return square and Fact.SYMMETRIC in facts(x)


def _itself(x: Symbol, axes: tuple[int, ...]) -> Symbol | None:
    return x if axes == (1, 0) and _is_symmetric(x) else None


def _by_rows(x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Sums along rows as sums along columns: programs that need both have them once."""
    if axis != (1,) or not _is_symmetric(x):
        return None
    found = sum_(x, axis=(0,), keepdims=False)
    return reshape_to(found, (x.shape[0], 1)) if keepdims else found


def _from_the_left(v: Symbol, x: Symbol) -> Any:
    """v x as x v, for a vector: programs that need both have them once."""
    return x @ v if v.ndim == 1 and _is_symmetric(x) else None


def _twice(x: Symbol, y: Symbol) -> Any:
    """The derivative of y yᵀ in a direction x: two products that are transposes of each other."""
    return (x @ y) * 2.0 if _is_symmetric(x) else None


def _transposed(x: Any) -> Any:
    return permute(x, axes=(1, 0))


REASSOCIATE += [
    Rule(lambda x, axes: permute(x, axes=axes), _itself),
    Rule(lambda x, i, k: sum_(x, axis=i, keepdims=k), _by_rows),
    Rule(lambda v, x: v @ x, _from_the_left),
    Rule(lambda x, y: x @ y + _transposed(_transposed(y) @ x), _twice),
    Rule(lambda x, y: _transposed(_transposed(y) @ x) + x @ y, _twice),
]
