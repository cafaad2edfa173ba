"""The rewrites of products: of matrices in another order, by numbers before broadcasting, of a value by itself.

A rule does not know whether others use the inner product, too. So it changes the order only where the further products
are cheap beside the program's own. Where the product of all entries is beyond the largest number, an intermediate
result may overflow that did not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive
from ..ir.types import Aval
from ..ops.elementwise import cast, literal_value, square
from ..ops.linear import matmul, vecdot
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, reshape, reshape_to
from .patterns import NUMBER, Rule
from .rules import EXACT, REASSOCIATE

LEAST_WORK = 4096  # multiplications of a chain, from which another order is worth a change of the program's text


def _summed_first(x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol | None:
    """The sum of the rows of a product as the sum of the rows of its first factor times the second."""
    if x.ndim < 2 or y.ndim < 2 or x.dtype.kind != "f":
        return None
    rank = max(x.ndim, y.ndim)
    if axis == (rank - 2,) and x.shape[-2] > 1 and x.shape[-1] <= y.shape[-1]:
        found = sum_(x, axis=(x.ndim - 2,), keepdims=True) @ y
    elif axis == (rank - 1,) and y.shape[-1] > 1 and x.shape[-1] <= x.shape[-2]:
        found = x @ sum_(y, axis=(y.ndim - 1,), keepdims=True)
    else:
        return None
    return found if keepdims else reshape_to(found, tuple(n for k, n in enumerate(found.shape) if k != axis[0]))


def _from_the_right(x: Symbol, y: Symbol, z: Symbol) -> Symbol | None:
    """(x y) z as x (y z)."""
    if not x.ndim == y.ndim == 2 or z.ndim not in (1, 2) or x.dtype.kind != "f":
        return None
    (n, k), m, p = x.shape, y.shape[1], z.shape[1] if z.ndim == 2 else 1
    return x @ (y @ z) if _cheaper(k * p * (m + n), n * m * (k + p)) else None


def _from_the_left(x: Symbol, y: Symbol, z: Symbol) -> Symbol | None:
    """x (y z) as (x y) z."""
    if not y.ndim == z.ndim == 2 or x.ndim not in (1, 2) or x.dtype.kind != "f":
        return None
    (k, m), n, p = y.shape, x.shape[0] if x.ndim == 2 else 1, z.shape[1]
    return (x @ y) @ z if _cheaper(n * m * (k + p), k * p * (m + n)) else None


def _of_one_row(x: Symbol, a: Aval, y: Symbol) -> Any:
    """Equal rows times a matrix: equal rows."""
    if not _is_row(x, a) or y.ndim != 2:
        return None
    return _everywhere(_as_row(x, a) @ y, a.shape[0], y.shape[1])


def _sum_in_rows(x: Symbol, y: Symbol, a: Aval) -> Any:
    """A matrix times equal rows: the sums of its rows times one of them."""
    if not _is_row(y, a) or x.ndim != 2:
        return None
    shape = x.shape[0], a.shape[1]
    return _everywhere(sum_(x, axis=(1,), keepdims=True), *shape) * _everywhere(_as_row(y, a), *shape)


def _outer_first(x: Symbol, a: Aval, y: Symbol, c: Aval, z: Symbol) -> Any:
    """(x y) z as x (y z), for a column x times a row y."""
    if not _is_column(x, a) or not _is_row(y, c) or z.ndim != 2:
        return None
    shape = a.shape[0], z.shape[1]
    return _everywhere(x, *shape) * _everywhere(_as_row(y, c) @ z, *shape)


def _outer_last(x: Symbol, y: Symbol, a: Aval, z: Symbol, c: Aval) -> Any:
    """x (y z) as (x y) z, for a column y times a row z."""
    if not _is_column(y, a) or not _is_row(z, c) or x.ndim != 2:
        return None
    shape = x.shape[0], c.shape[1]
    return _everywhere(x @ y, *shape) * _everywhere(_as_row(z, c), *shape)


def _is_row(x: Symbol, a: Aval) -> bool:
    """Whether x is shown as some equal rows of a matrix."""
    return a.dtype.kind == "f" and a.ndim == 2 and a.shape[0] > 1 and x.shape in (a.shape[1:], (1, a.shape[1]))


def _is_column(x: Symbol, a: Aval) -> bool:
    return a.dtype.kind == "f" and a.ndim == 2 and a.shape[1] > 1 and x.shape == (a.shape[0], 1)


def _as_row(x: Symbol, a: Aval) -> Symbol:
    return reshape_to(x, (1, a.shape[1]))


def _everywhere(x: Symbol, n: int, m: int) -> Symbol:
    return broadcast_to(x, (n, m))


def _of_no_terms(product: Primitive) -> Callable[[Symbol, Symbol], Symbol | None]:
    """Zeros, where a product has no terms to add up, as in the first step of a loop over growing slices."""

    def then(x: Symbol, y: Symbol) -> Symbol | None:
        return x.builder.zeros(product.shape(x.aval, y.aval)) if not x.shape[-1] else None

    return then


def _cheaper(new: int, old: int) -> bool:
    return old >= LEAST_WORK and 2 * new <= old


def _scaled_before(move: Primitive) -> Callable[[Symbol, Aval, Symbol], Symbol | None]:
    """Multiply by a number in front of a move, where a value may be smaller, a number of Python's, or meet others."""

    def then(x: Symbol, a: Aval, y: Symbol) -> Symbol | None:
        n = literal_value(y)
        return move(x * n, aval=a) if n is not None and x.dtype == a.dtype and x.dtype.kind == "f" else None

    return then


EXACT += [
    Rule(lambda x: x * x, lambda x: square(x) if x.dtype.kind == "f" and x.ndim else None),
    Rule(lambda x, a, n=NUMBER: broadcast(x, aval=a) * n, _scaled_before(broadcast)),
    Rule(lambda x, a, n=NUMBER: n * broadcast(x, aval=a), _scaled_before(broadcast)),
    Rule(lambda x, a, n=NUMBER: reshape(x, aval=a) * n, _scaled_before(reshape)),
    Rule(lambda x, a, n=NUMBER: n * reshape(x, aval=a), _scaled_before(reshape)),
    Rule(lambda x, a, n=NUMBER: cast(x, aval=a) * n, _scaled_before(cast)),
    Rule(lambda x, a, n=NUMBER: n * cast(x, aval=a), _scaled_before(cast)),
]
REASSOCIATE += [
    Rule(lambda a, b: a @ b, _of_no_terms(matmul)),
    Rule(lambda a, b: vecdot(a, b), _of_no_terms(vecdot)),  # noqa: PLW0108 - its parameters are the pattern
    Rule(lambda x, y, i, k: sum_(x @ y, axis=i, keepdims=k), _summed_first),
    Rule(lambda x, y, z: (x @ y) @ z, _from_the_right),
    Rule(lambda x, y, z: x @ (y @ z), _from_the_left),
    Rule(lambda x, a, y: broadcast(x, aval=a) @ y, _of_one_row),
    Rule(lambda x, y, a: x @ broadcast(y, aval=a), _sum_in_rows),
    Rule(lambda x, a, y, c, z: (broadcast(x, aval=a) * broadcast(y, aval=c)) @ z, _outer_first),
    Rule(lambda x, a, y, c, z: (broadcast(y, aval=c) * broadcast(x, aval=a)) @ z, _outer_first),
    Rule(lambda x, y, a, z, c: x @ (broadcast(y, aval=a) * broadcast(z, aval=c)), _outer_last),
    Rule(lambda x, y, a, z, c: x @ (broadcast(z, aval=c) * broadcast(y, aval=a)), _outer_last),
]
