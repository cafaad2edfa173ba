"""The rewrites of sums of products, of a softmax's adjoint and of writes into zeros, for NumPy's calls and passes.

Sums of at most ``LONGEST_ROW`` products are left to BLAS, which adds them nearly as accurately as NumPy. What is longer
is summed row by row, and NumPy adds the sums of rows. A vector alone may be longer. The sum of the rows of a matrix
is a product with ones, and so are the sums along its rows.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from ..ir.builder import Symbol
from ..ir.primitive import Primitive
from ..ir.types import Aval
from ..ops.elementary import exp
from ..ops.elementwise import add, div, literal_value, mul, neg, square
from ..ops.linear import matmul, vecdot
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, reshape, reshape_to
from .cheaper_rules import FEWEST, LONGEST_ROW, SHORTEST_ROW
from .patterns import Rule
from .rules import NUMPY, REASSOCIATE
from .short_axes import LONGEST as LONGEST_SHORT

SHORTEST_OF_MANY = 64  # products in a row, from which a call of BLAS for each row beats one array of all products
SHORTEST_ALONE = 16  # products in one row; smaller arrays are taken apart into numbers
LONGEST_ALONE = 10_000  # products in one row, beyond which OpenBLAS shares them among threads
FEWEST_SUMMED = 64  # rows, from which BLAS adds them several times as quickly as NumPy
LONGEST_SUMMED = 256  # elements of rows, beyond which NumPy is nearly as quick
FEWEST_OF_EACH = 32  # rows of a matrix in a stack, for which a call of its own is little
FEWEST_ROWS = 128  # from which sums along rows take less time as a product, with the ones that it needs


def _whole_sum(x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of all products of two arrays, without an array of products."""
    shape = x.shape
    if keepdims or not shape or len(axis) != len(shape) or x.dtype.char not in "fd":
        return None
    if any(literal_value(v) is not None for v in (x, y)):
        return None
    if len(shape) == 1:
        return x @ y if SHORTEST_ALONE <= shape[0] <= LONGEST_ALONE else None
    if not SHORTEST_OF_MANY <= shape[-1] <= LONGEST_ROW or x.aval.size < FEWEST:
        return None
    found = vecdot(*_made_first(x, y))
    return sum_(found, axis=tuple(range(found.ndim)), keepdims=False)


def _made_first(x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """Factors in one order, whichever the program has, so that what is summed twice is summed once."""
    return (y, x) if x.node is None else (x, y)


def _sum_of_squares(x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of sums of squares as a sum of products: none of the terms is negative, so nothing cancels."""
    if keepdims or x.ndim != 1 or axis != (0,) or not SHORTEST_ALONE <= x.shape[0] <= LONGEST_ALONE:
        return None
    if x.dtype.char not in "fd":
        return None
    terms = [_squares(v) for v in (x, y)]
    if any(term is None for term in terms):
        return None
    return reduce(add, [_dot(*term) for term in terms if term is not None])


def _squares(x: Symbol) -> tuple[Symbol, Any] | None:
    """z and a, for x = a z² with a finite a of at least 1, so that Σ z² overflows only where Σ a z² does."""
    if _makes(square, x):
        return x.operands[0], 1.0
    if _makes(mul, x):
        for factor, rest in (x.operands, x.operands[::-1]):
            a = literal_value(factor)
            if isinstance(a, float) and 1.0 <= a < math.inf and _makes(square, rest):
                return rest.operands[0], a
    return None


def _dot(x: Symbol, a: float) -> Symbol:
    found: Symbol = x @ x
    return found if a == 1.0 else found * a


def _sum_of_rows(x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of rows as ones times their matrix. NumPy adds row by row, too, but 10 ns for each row come on top.

    Shorter rows are left to ``short_axes``.
    """
    if x.ndim < 2 or axis != (x.ndim - 2,) or x.dtype.char not in "fd":
        return None
    n, length = x.shape[-2:]
    if n < FEWEST_SUMMED or not LONGEST_SHORT < length <= LONGEST_SUMMED:
        return None
    ones = x.builder.constant(1.0, Aval((n,), x.dtype))
    found = (ones if x.ndim == 2 else broadcast_to(ones, (*x.shape[:-2], 1, n))) @ x
    return reshape_to(found, (*x.shape[:-2], *((1,) if keepdims else ()), length))


def _along_rows(x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sums along rows as a matrix times ones. NumPy begins a sum of its own for each row, which takes 15 ns.

    BLAS adds the elements of a row in several sums, which for 1,024 is nearly as accurate as NumPy.
    """
    if x.ndim < 2 or axis != (x.ndim - 1,) or x.dtype.char not in "fd":
        return None
    *lead, length = x.shape
    if not SHORTEST_ROW <= length <= LONGEST_ROW or x.aval.size < FEWEST_ROWS * length or _may_be_a_view(x):
        return None
    if x.ndim > 2 and lead[-1] >= FEWEST_OF_EACH:  # matrices of a stack, which may run one by one
        found = x @ x.builder.constant(1.0, Aval((*lead[:-1], length, 1), x.dtype))
    else:
        found = reshape_to(x, (x.aval.size // length, length)) @ x.builder.constant(1.0, Aval((length,), x.dtype))
    return reshape_to(found, (*lead, 1) if keepdims else tuple(lead))


def _may_be_a_view(x: Symbol) -> bool:
    """Whether a stack may lie apart in memory, so that it is not a matrix without a copy."""
    return x.ndim > 2 and (x.node is None or x.node.prim.alias is not None)


def _of_softmax(quotient: Symbol, shift: Symbol, raised: Symbol) -> Any:
    """(w / Σ - Σ (w / Σ) p) r as (w - Σ w p) p, for the softmax p = r / Σ of r = exp x: two passes fewer.

    The chances p are at most 1. So w p is never beyond w, and only cotangents beyond half of the largest number may
    overflow in their difference.
    """
    if not _makes(div, quotient) or not _makes(broadcast, shift):
        return None
    w, total = quotient.operands
    (row,) = shift.operands
    if _makes(reshape, row):
        (row,) = row.operands
    if not _makes(neg, row):
        return None
    product = _product_in(row.operands[0])
    if product is None:
        return None
    (one, other), axis = product
    if not _is_kept(shift.operands[0], shift.shape, axis):
        return None
    chances = other if one.value is quotient.value else one
    if {one.value, other.value} != {quotient.value, chances.value} or not _is_softmax(chances, raised, total, axis):
        return None
    one, other = _made_first(chances, w)
    mean = sum_(one * other, axis=axis, keepdims=True)
    return (w - broadcast_to(mean, w.shape)) * chances


def _product_in(x: Symbol) -> tuple[tuple[Symbol, Symbol], tuple[int, ...]] | None:
    """Two arrays and the axes along which their product is summed in x."""
    if _makes(vecdot, x):
        one, other = x.operands
        return (one, other), (one.ndim - 1,)
    summed = _summed(x)
    if summed is not None and _makes(mul, summed[0]):
        one, other = summed[0].operands
        return (one, other), summed[1]
    return None


def _summed(x: Symbol) -> tuple[Symbol, tuple[int, ...]] | None:
    """The array and the axes of which x has the sums, also as a product with ones."""
    if x.node is not None and x.node.prim is sum_:
        return x.operands[0], x.node.attrs["axis"]
    if _makes(reshape, x):
        (x,) = x.operands
    if not _makes(matmul, x):
        return None
    rows, ones = x.operands
    if literal_value(ones) != 1 or (ones.ndim != 1 and ones.shape[-1] != 1):
        return None
    if _makes(reshape, rows) and rows.operands[0].shape[-1:] == ones.shape:
        (rows,) = rows.operands
    return rows, (rows.ndim - 1,)


def _is_softmax(chances: Symbol, raised: Symbol, total: Symbol, axis: tuple[int, ...]) -> bool:
    """Whether these are exponentials over their sum along an axis, and the sum is ``total``."""
    if not (_makes(div, chances) and _makes(exp, raised) and _makes(broadcast, total)) or raised.dtype.kind != "f":
        return False
    if [x.value for x in chances.operands] != [raised.value, total.value]:
        return False
    kept = total.operands[0]
    summed = _summed(kept)
    if summed is None or (summed[0].value, summed[1]) != (raised.value, axis):
        return False
    return _is_kept(kept, raised.shape, axis)


def _is_kept(x: Symbol, shape: tuple[int, ...], axis: tuple[int, ...]) -> bool:
    """Whether the sums along some axes of an array meet that array where they come from, and not along another axis."""
    return (1,) * (len(shape) - x.ndim) + x.shape == tuple(1 if k in axis else n for k, n in enumerate(shape))


def _makes(prim: Primitive, x: Symbol) -> bool:
    """Whether x is a result of this primitive."""
    return x.node is not None and x.node.prim is prim


REASSOCIATE += [Rule(lambda x, y, z: (x + y) * z, _of_softmax)]
NUMPY += [
    Rule(lambda x, y, i, k: sum_(x * y, axis=i, keepdims=k), _whole_sum),
    Rule(lambda x, i, k: sum_(square(x), axis=i, keepdims=k), lambda x, i, k: _whole_sum(x, x, i, k)),
    Rule(lambda x, y, i, k: sum_(x + y, axis=i, keepdims=k), _sum_of_squares),
    Rule(lambda x, i, k: sum_(x, axis=i, keepdims=k), _sum_of_rows),
    Rule(lambda x, i, k: sum_(x, axis=i, keepdims=k), _along_rows),
]
