"""The rewrites of products and sums of a matrix whose rows and columns are scaled, or that a number multiplies.

A form such as yᵀ K y has an adjoint of this kind: y yᵀ ∘ E for a matrix E. The products and sums of such a matrix are
those of E, with the scales applied to the other factor and to the result. So the scaled matrix need not be computed.
The scales of the other factor may overflow there where they met smaller elements before, as in other products.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import mul

import numpy as np

from ..ir.builder import Symbol
from ..ir.primitive import Primitive
from ..ir.types import Aval
from ..ops import elementwise
from ..ops.elementwise import literal_value
from ..ops.linear import outer_product
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, permute, reshape_to
from .facts import Fact, facts
from .patterns import Rule
from .product_rules import LEAST_WORK
from .rules import REASSOCIATE

DEEPEST = 4  # products in products
NARROW = 4  # the matrix has at least so many times the elements of what is scaled in its place

Scale = tuple[Symbol, bool]  # a number, column or row, and whether it divides


@dataclass
class _Factors:
    """The factors of a matrix: numbers of shape (), columns of shape (n, 1), rows of shape (1, m), and matrices."""

    numbers: list[Scale] = field(default_factory=list)
    columns: list[Scale] = field(default_factory=list)
    rows: list[Scale] = field(default_factory=list)
    whole: list[Symbol] = field(default_factory=list)

    def add(self, x: Symbol, divides: bool, depth: int) -> bool:
        """Take the factors of x; False if it is a divisor that is no scale."""
        node, inputs = x.node, x.operands
        number = literal_value(x)
        if number is not None:
            self.numbers.append((x.builder.constant(number, _of_one(x)), divides))
        elif node is not None and node.prim is broadcast and self._scale(inputs[0], x.shape, divides):
            pass
        elif divides:
            return False
        elif node is not None and node.prim is outer_product:
            self.columns.append((reshape_to(inputs[0], (x.shape[0], 1)), False))
            self.rows.append((reshape_to(inputs[1], (1, x.shape[1])), False))
        elif node is None or not self._product(node.prim, inputs, depth):
            self.whole.append(x)
        return True

    def _scale(self, x: Symbol, shape: tuple[int, ...], divides: bool) -> bool:
        if x.size == 1:
            self.numbers.append((reshape_to(x, ()), divides))
        elif len(shape) != 2:
            return False
        elif x.shape == (shape[0], 1):
            self.columns.append((x, divides))
        elif x.shape in (shape[1:], (1, shape[1])):
            self.rows.append((reshape_to(x, (1, shape[1])), divides))
        else:
            return False
        return True

    def _product(self, prim: Primitive, inputs: list[Symbol], depth: int) -> bool:
        """Take the factors of a product or quotient with columns or rows."""
        if prim not in (elementwise.mul, elementwise.div, elementwise.neg) or not depth:
            return False
        inner = _factors(prim, inputs, depth - 1)
        if inner is None or not (inner.columns or inner.rows):
            return False
        for name in ("numbers", "columns", "rows", "whole"):
            getattr(self, name).extend(getattr(inner, name))
        return True

    @property
    def outer(self) -> bool:
        """Whether a column and a row multiply a matrix."""
        return bool(self.columns and self.rows and self.whole)

    @property
    def matrix(self) -> Symbol:
        """The product of the matrices."""
        product: Symbol = reduce(mul, self.whole)
        return product


def _of_one(x: Symbol) -> Aval:
    """The aval of one element."""
    return Aval((), x.dtype, "scalar")


def _factors(prim: Primitive, inputs: list[Symbol], depth: int = DEEPEST) -> _Factors | None:
    """The factors of a product, quotient or negation; None if it divides by what is no scale."""
    found = _Factors()
    if prim is elementwise.neg:
        found.numbers.append((inputs[0].builder.constant(-1.0, _of_one(inputs[0])), False))
    for k, x in enumerate(inputs):
        if not found.add(x, k == 1 and prim is elementwise.div, depth):
            return None
    return found


def _beside(prim: Primitive, x: Symbol, y: Symbol, z: Symbol, axis: int) -> _Factors | None:
    """The factors of a matrix that z multiplies along an axis, if the result is so small that it is better scaled.

    With numbers alone, they may be those of a stack of matrices.
    """
    found = _of_matrix(prim, x, y) if z.ndim <= max(x.ndim, 2) else None
    if found is None or (x.ndim > 2 and z.shape[:-2] != x.shape[:-2]):
        return None
    result = x.size // x.shape[axis] * (z.shape[axis] if z.ndim > 1 else 1)
    return found if NARROW * (result + (z.size if found.outer else 0)) <= x.size else None


def _of_matrix(prim: Primitive, x: Symbol, y: Symbol) -> _Factors | None:
    """The factors of a large matrix of real numbers, if scales can leave it."""
    if x.ndim < 2 or x.dtype.kind != "f" or x.size < LEAST_WORK:
        return None
    found = _factors(prim, [x, y])
    if found is None or found.outer:
        return found
    found = _factors(prim, [x, y], 0)
    only_numbers = found is not None and len(found.whole) == 1 and not found.columns and not found.rows
    return found if only_numbers else None


def _scaled(x: Symbol, scales: list[Scale], shape: tuple[int, ...]) -> Symbol:
    """A value times scales, which have this shape before they are stretched to that of the value."""
    for scale, divides in scales:
        stretched = broadcast_to(reshape_to(scale, shape), x.shape)
        x = x / stretched if divides else x * stretched
    return x


def _times(prim: Primitive, x: Symbol, y: Symbol, z: Symbol) -> Symbol | None:
    """(x y) z, for a product of elements x y."""
    found = _beside(prim, x, y, z, axis=-1)
    if found is None:
        return None
    n, m = x.shape[-2:]
    end = (1,) * (z.ndim - 1)
    product = found.matrix @ _scaled(z, found.rows, (m, *end))
    return _scaled(_scaled(product, found.columns, (n, *end)), found.numbers, ())


def _before(prim: Primitive, z: Symbol, x: Symbol, y: Symbol) -> Symbol | None:
    """z (x y), for a product of elements x y; programs that need the product with a symmetric matrix have it once."""
    found = _beside(prim, x, y, z, axis=-2)
    if found is None:
        return None
    n, m = x.shape[-2:]
    if z.ndim == 2 and n == m and Fact.SYMMETRIC in facts(found.matrix):
        product = found.matrix @ _scaled(permute(z, axes=(1, 0)), found.columns, (n, 1))
        product = _scaled(_scaled(product, found.rows, (m, 1)), found.numbers, ())
        turned: Symbol = permute(product, axes=(1, 0))
        return turned
    product = _scaled(z, found.columns, (n,)) @ found.matrix
    return _scaled(_scaled(product, found.rows, (m,)), found.numbers, ())


def _sum(prim: Primitive, x: Symbol, y: Symbol, axis: tuple[int, ...], keepdims: bool) -> Symbol | None:
    """Sums as products with the scales of the other axis. Products of single precision add less exactly than sums."""
    found = _of_matrix(prim, x, y) if x.dtype == np.float64 and x.ndim == 2 else None
    if found is None or not found.outer:
        return None
    n, m = x.shape
    if axis == (0,):
        total = _scaled(_ones(x, n), found.columns, (n,)) @ found.matrix
        total = _scaled(total, found.rows, (m,))
    else:
        total = found.matrix @ _scaled(_ones(x, m), found.rows, (m,))
        total = _scaled(total, found.columns, (n,))
    if axis == (0, 1):
        total = sum_(total, axis=(0,), keepdims=False)
    total = _scaled(total, found.numbers, ())
    return reshape_to(total, tuple(1 if a in axis else k for a, k in enumerate(x.shape))) if keepdims else total


def _ones(x: Symbol, n: int) -> Symbol:
    return x.builder.constant(1.0, Aval((n,), x.dtype))


MUL, DIV = elementwise.mul, elementwise.div
REASSOCIATE += [
    Rule(lambda x, y, z: (x * y) @ z, lambda x, y, z: _times(MUL, x, y, z)),
    Rule(lambda x, y, z: (x / y) @ z, lambda x, y, z: _times(DIV, x, y, z)),
    Rule(lambda x, y, z: z @ (x * y), lambda x, y, z: _before(MUL, z, x, y)),
    Rule(lambda x, y, z: z @ (x / y), lambda x, y, z: _before(DIV, z, x, y)),
    Rule(lambda x, y, i, k: sum_(x * y, axis=i, keepdims=k), lambda x, y, i, k: _sum(MUL, x, y, i, k)),
    Rule(lambda x, y, i, k: sum_(x / y, axis=i, keepdims=k), lambda x, y, i, k: _sum(DIV, x, y, i, k)),
]
