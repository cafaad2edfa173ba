"""The rewrites of one costly operation as a few cheap ones, for arrays that are worth the further calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ..ir.builder import Symbol
from ..ir.graph import Node
from ..ir.primitive import Primitive
from ..ir.texts import Arg
from ..ir.types import Aval
from ..ops.complex import abs_
from ..ops.elementary import exp, log1p, power, reciprocal, sqrt
from ..ops.elementwise import add, const, literal_value, neg, square
from ..ops.extrema import logaddexp, maximum, minimum
from ..ops.further_reductions import max_, min_
from ..ops.gather import scatter_add
from ..ops.index import Index, additem, getitem, setitem
from ..ops.linear import outer_product, vecdot
from ..ops.ragged import add_within
from ..ops.reduce import sum_
from ..ops.shape import broadcast, permute, reshape, reshape_to
from .early_views import disjoint
from .index_rules import counts_up
from .moved_axes import LARGE
from .patterns import NUMBER, Rule
from .rules import NUMPY, REASSOCIATE

SHORTEST_ROW, LONGEST_ROW = 8, 1024  # in between, BLAS sums rows more quickly than NumPy, and nearly as accurately
FEW_PLACES = 16  # of a row, of which NumPy finds the extremum more slowly than that of whole arrays
FEW_CALLS = 3  # places of which one call, for rows that lie in front, would not be shorter
FEWEST_ROWS = 256  # from which a few additions take less time than a sum along short rows
FEWEST = 128  # elements from which two calls of ufuncs take less time than a power
MOST_PARTS = 8  # that are added to another array in place of zeros
MOST_WRITES = 32  # that are looked at in front of a further one
OF_TWO: dict[Primitive, Primitive] = {sum_: add, max_: maximum, min_: minimum}
MOST_BY_BLAS = 1 << 18  # multiplications from which OpenBLAS shares a product among threads


def _worth_it(x: Symbol) -> bool:
    return x.dtype.kind == "f" and x.aval.size >= FEWEST


def _products(x: Symbol, y: Symbol) -> Symbol | None:
    """A power as products, quotients and a root, none of which is larger than base and power are.

    Half exponents of -inf give nan instead of inf, as the derivative of a power has it.
    """
    form = POWERS.get(literal_value(y))
    return form(x) if form is not None and _worth_it(x) else None


POWERS: dict[Any, Callable[[Symbol], Symbol]] = {
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    1.5: lambda x: x * sqrt(x),
    -1.5: lambda x: reciprocal(x) / sqrt(x),
    -2.0: lambda x: square(reciprocal(x)),
    -3.0: lambda x: reciprocal(x) / square(x),
}


def _softplus(x: Symbol) -> Symbol | None:
    """log(e⁰ + eˣ), as NumPy computes it, but in operations that it vectorises."""
    if not _worth_it(x):
        return None
    found: Symbol = maximum(x, x.builder.zeros(x.aval)) + log1p(exp(neg(abs_(x))))
    return found


def _moved(v: Symbol, i: Index, x: Symbol) -> Symbol | None:
    """What is added to zeros is all of them, if it has as many elements."""
    if literal_value(x) != 0 or not all(part is None or isinstance(part, int) or part == slice(None) for part in i):
        return None
    return reshape_to(v, x.shape) if v.aval.size == x.aval.size and v.dtype == x.dtype else None


def _outer_product(x: Symbol, y: Symbol, a: Aval, c: Aval) -> Symbol | None:
    """The product of a column and a row by NumPy's BLAS, as long as that starts no threads.

    Each element is one product in either case, and only the sign of zero may differ.
    """
    shape, kind = a.shape, a.dtype.char
    if len(shape) != 2 or kind not in "fd" or a.size >= MOST_BY_BLAS or min(shape) < 2:
        return None
    column, row = (x, y) if x.shape == (shape[0], 1) else (y, x)
    if column.shape != (shape[0], 1) or row.shape not in ((shape[1],), (1, shape[1])):
        return None
    found: Symbol = outer_product(reshape_to(column, shape[:1]), reshape_to(row, shape[1:]))
    return found


def _added(y: Symbol, x: Symbol, *rest: Any) -> Symbol:
    """An array and an updated one: the array is updated, so that nothing is added to zeros as long as it."""
    *operands, starts = rest
    found: Symbol = add_within(y if literal_value(x) == 0 else y + x, *operands, starts=starts)
    return found


def _onto(y: Symbol, x: Symbol) -> Symbol | None:
    """An array and zeros into which parts were written: the parts are added to the array."""
    if y.aval != x.aval:  # a number in place of an array without axes
        return None
    parts, before = list[Node](), x
    while literal_value(before) != 0:
        node = before.node
        if node is None or node.prim not in (additem, setitem) or len(parts) == MOST_PARTS:
            return None
        if any(part.prim is setitem and not _apart(part, node, x.shape) for part in parts):
            return None
        parts.append(node)
        before = before.operands[0]
    found = y
    for node in reversed(parts):
        found = additem(found, *(y.builder.symbol(v) for v in node.inputs[1:]), index=node.attrs["index"])
    return found


def _apart(a: Node, b: Node, shape: tuple[int, ...]) -> bool:
    """Whether writes change different elements."""
    return len(a.inputs) == len(b.inputs) == 2 and disjoint(a.attrs["index"], b.attrs["index"], shape)


def _short(x: Symbol, axis: tuple[int, ...], keepdims: bool, fold: Primitive) -> Symbol | None:
    """A fold along short rows, from left to right as NumPy's, but a column at a time.

    NumPy takes 15 ns for a row, however short it is. Only for rows of nothing but zeros may the sign differ. Of large
    arrays `short_axes` may put the rows in front, and then folds them by one call.
    """
    if not folds_short_rows(x.aval, axis, fold) or (x.shape[-1] > FEW_CALLS and x.aval.size >= LARGE):
        return None
    return by_columns(x, keepdims, fold)


def folds_short_rows(x: Aval, axis: tuple[int, ...], fold: Primitive) -> bool:
    """Whether a fold goes along few elements of many rows, which NumPy takes one by one."""
    longest = SHORTEST_ROW - 1 if fold is sum_ else FEW_PLACES
    rows = x.ndim > 1 and axis == (x.ndim - 1,) and x.dtype.kind == "f"
    return rows and 2 <= x.shape[-1] <= longest and x.size >= FEWEST_ROWS * x.shape[-1]


def by_columns(x: Symbol, keepdims: bool, fold: Primitive) -> Symbol:
    """A fold along the last axis, a column at a time."""
    before = (slice(None),) * (x.ndim - 1)
    columns = [slice(k, k + 1) if keepdims else k for k in range(x.shape[-1])]
    found: Symbol = reduce(OF_TWO[fold], [getitem(x, index=(*before, k)) for k in columns])
    return found


def _sum_of_written(
    x: Symbol, v: Symbol, s: Symbol, t: Symbol, i: Index, axis: tuple[int, ...], keepdims: bool
) -> Symbol | None:
    """The sums along rows of zeros in which one element of each row has a number added: these numbers."""
    if literal_value(x) != 0 or x.ndim != 2 or axis != (1,) or i != (Arg(2), Arg(3)):
        return None
    if not counts_up(s) or not s.shape == t.shape == v.shape == x.shape[:1] or x.dtype != v.dtype:
        return None
    return reshape_to(v, (*v.shape, 1)) if keepdims else v


def _first_there(x: Symbol, v: Symbol, i: Index) -> Symbol | None:
    """What is added to zeros at which nothing was written before is written. Only the sign of zero may differ."""
    made, before = x.builder.made, x.value
    for _ in range(MOST_WRITES):
        node = made.get(before)
        if node is not None and node.prim is const and node.attrs["value"] == 0:
            written: Symbol = setitem(x, v, index=i)
            return written
        if node is None or node.prim not in (additem, setitem) or len(node.inputs) > 2:
            return None
        if not disjoint(i, node.attrs["index"], x.shape):
            return None
        before = node.inputs[0]
    return None


def _sum_of_one(x: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol | None:
    """The sums along axes of one element: the array, whose zeros keep their sign."""
    if not axis or len(axis) == x.ndim or any(x.shape[a] != 1 for a in axis) or x.dtype.kind not in "fc":
        return None
    return x if keepdims else reshape_to(x, tuple(n for a, n in enumerate(x.shape) if a not in axis))


def _without_order(x: Symbol, axes: tuple[int, ...], a: Aval) -> Symbol | None:
    """An array with another shape, of which only axes of one element were moved before."""
    longer = [axis for axis in axes if x.shape[axis] != 1]
    return reshape_to(x, a.shape) if longer == sorted(longer) else None


def _dots(x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol | None:
    """The sums of the products of rows, by BLAS: no array of products, and a third of the time for short rows.

    If all rows of a factor are one, this is a product with a vector.
    """
    last = axis == (x.ndim - 1,) and x.ndim > 1 and SHORTEST_ROW <= x.shape[-1] <= LONGEST_ROW
    if not last or not _worth_it(x) or x.dtype.char not in "fd" or any(literal_value(v) is not None for v in (x, y)):
        return None
    row, other = (_equal_row(x), y) if _equal_row(x) is not None else (_equal_row(y), x)
    found: Symbol = vecdot(x, y) if row is None else other @ row
    return reshape_to(found, (*found.shape, 1)) if keepdims else found


def _equal_row(x: Symbol) -> Symbol | None:
    """The row that is all rows of a matrix."""
    if x.ndim != 2 or x.node is None or x.node.prim is not broadcast:
        return None
    (row,) = x.operands
    return reshape_to(row, x.shape[-1:]) if row.size == x.shape[-1] == row.shape[-1] else None


NUMPY += [
    Rule(lambda x, i, k: sum_(x, axis=i, keepdims=k), lambda x, i, k: _short(x, i, k, sum_)),
    Rule(lambda x, i, k: max_(x, axis=i, keepdims=k), lambda x, i, k: _short(x, i, k, max_)),
    Rule(lambda x, i, k: min_(x, axis=i, keepdims=k), lambda x, i, k: _short(x, i, k, min_)),
    Rule(lambda x, i, k: sum_(square(x), axis=i, keepdims=k), lambda x, i, k: _dots(x, x, i, k)),
    Rule(lambda x, y, i, k: sum_(x * y, axis=i, keepdims=k), _dots),
    Rule(lambda x, y, a, c: broadcast(x, aval=a) * broadcast(y, aval=c), _outer_product),
    Rule(lambda x, v, i: additem(x, v, index=i), _first_there),
    Rule(lambda y, x, v, i: y + setitem(x, v, index=i), lambda y, x, v, i: _onto(y, setitem(x, v, index=i))),
    Rule(lambda y, x, v, i: setitem(x, v, index=i) + y, lambda y, x, v, i: _onto(y, setitem(x, v, index=i))),
    Rule(lambda x, i, k: sum_(x, axis=i, keepdims=k), _sum_of_one),
    Rule(lambda x, p, a: reshape(permute(x, axes=p), aval=a), _without_order),
    Rule(
        lambda y, v, s, t, i: y + scatter_add(0, v, s, t, index=i, unique=True),
        lambda y, v, s, t, i: scatter_add(y, v, s, t, index=i, unique=True),
    ),
    Rule(
        lambda y, v, s, t, i: scatter_add(0, v, s, t, index=i, unique=True) + y,
        lambda y, v, s, t, i: scatter_add(y, v, s, t, index=i, unique=True),
    ),
]

REASSOCIATE += [
    Rule(lambda x, n=NUMBER: power(x, n), _products),
    Rule(lambda x: logaddexp(0, x), _softplus),
    Rule(lambda x: logaddexp(x, 0), _softplus),
    Rule(lambda v, i, n=NUMBER: additem(n, v, index=i), _moved),
    Rule(lambda y, x, v, i: y + additem(x, v, index=i), lambda y, x, v, i: _onto(y, additem(x, v, index=i))),
    Rule(lambda y, x, v, i: additem(x, v, index=i) + y, lambda y, x, v, i: _onto(y, additem(x, v, index=i))),
    Rule(
        lambda y, x, v, t, i: y + additem(x, v, t, index=i), lambda y, x, v, t, i: _onto(y, additem(x, v, t, index=i))
    ),
    Rule(
        lambda y, x, v, t, i: additem(x, v, t, index=i) + y, lambda y, x, v, t, i: _onto(y, additem(x, v, t, index=i))
    ),
    Rule(
        lambda y, x, v, s, t, i: y + additem(x, v, s, t, index=i),
        lambda y, x, v, s, t, i: _onto(y, additem(x, v, s, t, index=i)),
    ),
    Rule(lambda y, x, c, v, n, i: y + add_within(x, c, v, n, starts=i), _added),
    Rule(lambda y, x, c, v, n, s, i: y + add_within(x, c, v, n, s, starts=i), _added),
    Rule(lambda y, x, c, v, n, s, t, i: y + add_within(x, c, v, n, s, t, starts=i), _added),
    Rule(
        lambda y, v, t, i: y + scatter_add(0, v, t, index=i, unique=True),
        lambda y, v, t, i: scatter_add(y, v, t, index=i, unique=True),
    ),
    Rule(
        lambda y, v, t, i: scatter_add(0, v, t, index=i, unique=True) + y,
        lambda y, v, t, i: scatter_add(y, v, t, index=i, unique=True),
    ),
    Rule(
        lambda x, v, s, t, i, a, k: sum_(scatter_add(x, v, s, t, index=i, unique=True), axis=a, keepdims=k),
        _sum_of_written,
    ),
]
