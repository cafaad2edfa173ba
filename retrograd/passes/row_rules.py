"""The rewrites of sums of products, of a softmax's adjoint and of writes into zeros, for NumPy's calls and passes.

Sums of at most ``LONGEST_ROW`` products are left to BLAS, which adds them nearly as accurately as NumPy. What is longer
is summed row by row, and NumPy adds the sums of rows.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ops.elementary import exp
from ..ops.elementwise import add, div, literal_value, mul, neg, square
from ..ops.index import Index, additem, setitem
from ..ops.linear import vecdot
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, reshape
from .cheaper_rules import FEWEST, LONGEST_ROW
from .patterns import Rule
from .rules import NUMPY, REASSOCIATE

SHORTEST_OF_MANY = 64  # products in a row, from which a call of BLAS for each row beats one array of all products
SHORTEST_ALONE = 16  # products in one row; smaller arrays are taken apart into numbers


def _whole_sum(x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of all products of two arrays, without an array of products."""
    shape = x.shape
    if keepdims or not shape or len(axis) != len(shape) or x.dtype.char not in "fd":
        return None
    if any(literal_value(v) is not None for v in (x, y)):
        return None
    if len(shape) == 1:
        return x @ y if SHORTEST_ALONE <= shape[0] <= LONGEST_ROW else None
    if not SHORTEST_OF_MANY <= shape[-1] <= LONGEST_ROW or x.aval.size < FEWEST:
        return None
    found = vecdot(*_made_first(x, y))
    return sum_(found, axis=tuple(range(found.ndim)), keepdims=False)


def _made_first(x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """Factors in one order, whichever the program has, so that what is summed twice is summed once."""
    return (y, x) if _made(x) is None else (x, y)


def _sum_of_squares(x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of sums of squares as a sum of products: none of the terms is negative, so nothing cancels."""
    if keepdims or x.ndim != 1 or axis != (0,) or not SHORTEST_ALONE <= x.shape[0] <= LONGEST_ROW:
        return None
    if x.dtype.char not in "fd":
        return None
    terms = [_squares(v) for v in (x, y)]
    if any(term is None for term in terms):
        return None
    return reduce(add, [_dot(*term) for term in terms if term is not None])


def _squares(x: Symbol) -> tuple[Symbol, Any] | None:
    """z and a, for x = a z² with a of at least 1, so that Σ z² overflows only where Σ a z² does."""
    node = _made(x)
    if node is not None and node.prim is square:
        return _symbols(x, node)[0], 1.0
    if node is not None and node.prim is mul:
        for factor, rest in (_symbols(x, node), _symbols(x, node)[::-1]):
            a, inner = literal_value(factor), _made(rest)
            if isinstance(a, float) and a >= 1.0 and inner is not None and inner.prim is square:
                return _symbols(x, inner)[0], a
    return None


def _dot(x: Symbol, a: float) -> Symbol:
    found: Symbol = x @ x
    return found if a == 1.0 else found * a


def _of_softmax(quotient: Symbol, shift: Symbol, raised: Symbol) -> Any:
    """(w / Σ - Σ (w / Σ) p) r as (w - Σ w p) p, for the softmax p = r / Σ of r = exp x: two passes fewer.

    The chances p are at most 1. So w p is never beyond w, and only cotangents beyond half of the largest number may
    overflow in their difference.
    """
    divided, rows = _made(quotient), _made(shift)
    if divided is None or divided.prim is not div or rows is None or rows.prim is not broadcast:
        return None
    w, total = _symbols(quotient, divided)
    inner = _made(_symbols(shift, rows)[0])
    if inner is not None and inner.prim is reshape:
        inner = _made(_symbols(shift, inner)[0])
    if inner is None or inner.prim is not neg:
        return None
    product = _product_in(_symbols(shift, inner)[0])
    if product is None:
        return None
    (one, other), axis = product
    chances = other if one.value is quotient.value else one
    if {one.value, other.value} != {quotient.value, chances.value} or not _is_softmax(chances, raised, total, axis):
        return None
    one, other = _made_first(chances, w)
    mean = sum_(one * other, axis=axis, keepdims=True)
    return (w - broadcast_to(mean, w.shape)) * chances


def _product_in(x: Symbol) -> tuple[tuple[Symbol, Symbol], tuple[int, ...]] | None:
    """Two arrays and the axes along which their product is summed in x."""
    node = _made(x)
    if node is not None and node.prim is vecdot:
        one, other = _symbols(x, node)
        return (one, other), (one.ndim - 1,)
    if node is not None and node.prim is sum_:
        made = _made(_symbols(x, node)[0])
        if made is not None and made.prim is mul:
            one, other = _symbols(x, made)
            return (one, other), node.attrs["axis"]
    return None


def _is_softmax(chances: Symbol, raised: Symbol, total: Symbol, axis: tuple[int, ...]) -> bool:
    """Whether these are exponentials over their sum along an axis, and the sum is ``total``."""
    node, power, stretched = _made(chances), _made(raised), _made(total)
    if node is None or node.prim is not div or power is None or power.prim is not exp or stretched is None:
        return False
    if node.inputs != (raised.value, total.value) or stretched.prim is not broadcast or raised.dtype.kind != "f":
        return False
    made = _made(_symbols(total, stretched)[0])
    summed = made is not None and made.prim is sum_ and made.inputs == (raised.value,)
    return summed and made is not None and made.attrs["axis"] == axis and made.attrs["keepdims"]


def _made(x: Symbol) -> Node | None:
    return x.builder.made.get(x.value)


def _symbols(x: Symbol, node: Node) -> list[Symbol]:
    return [Symbol(x.builder, v) for v in node.inputs]


def _into_zeros(x: Symbol, v: Symbol, i: Index) -> Symbol | None:
    """A value that is added to a slice of zeros is written there; only the sign of a zero may differ."""
    if literal_value(x) != 0 or x.dtype != v.dtype or x.dtype.kind != "f":
        return None
    found: Symbol = setitem(x, v, index=i)
    return found


REASSOCIATE += [
    Rule(lambda x, y, z: (x + y) * z, _of_softmax),
]
NUMPY += [
    Rule(lambda x, y, i, k: sum_(x * y, axis=i, keepdims=k), _whole_sum),
    Rule(lambda x, i, k: sum_(square(x), axis=i, keepdims=k), lambda x, i, k: _whole_sum(x, x, i, k)),
    Rule(lambda x, y, i, k: sum_(x + y, axis=i, keepdims=k), _sum_of_squares),
    Rule(lambda x, v, i: additem(x, v, index=i), _into_zeros),
    Rule(lambda y, v, i: y + setitem(0, v, index=i), lambda y, v, i: additem(y, v, index=i)),
    Rule(lambda y, v, i: setitem(0, v, index=i) + y, lambda y, v, i: additem(y, v, index=i)),
]
