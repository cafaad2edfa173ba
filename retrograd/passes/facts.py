"""What is known of matrices from how they are made: zeros above or below the diagonal, and symmetry."""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto
from functools import reduce
from operator import or_

import numpy as np

from ..ir.builder import Symbol
from ..ir.graph import Node, Value
from ..ir.primitive import Primitive
from ..ops import elementwise
from ..ops.diagonals import diag
from ..ops.index import getitem
from ..ops.linalg.factorizations import cholesky
from ..ops.linalg.positive import cholesky_by_lapack, half_inverse_by_lapack, inverse_of_triangle
from ..ops.linear import matmul, outer_product
from ..ops.shape import broadcast, permute, reshape
from ..ops.triangles import tril, triu

DEEPEST = 40  # operations that are looked through


class Fact(Flag):
    """Facts of square matrices, of each in a stack. A matrix with both triangles zero is diagonal."""

    NONE = 0
    LOWER = auto()  # zeros above the diagonal
    UPPER = auto()  # zeros below it
    SYMMETRIC = auto()  # equal to the transpose in exact arithmetic: products of BLAS may round otherwise


NONE, LOWER, UPPER, SYMMETRIC = Fact.NONE, Fact.LOWER, Fact.UPPER, Fact.SYMMETRIC
DIAGONAL = LOWER | UPPER | SYMMETRIC


def facts(x: Symbol) -> Fact:
    """The facts of a symbol, proved from the operations behind it."""
    return _Proofs(x.builder.made).of(x.value)


class _Proofs:
    """Proves facts of values from the facts of operands; what has no rule, as a write, has no facts."""

    def __init__(self, made: dict[Value, Node]) -> None:
        self.made, self.depth = made, 0
        self.known: dict[Value, Fact] = {}

    def of(self, value: Value) -> Fact:
        """The facts of a value."""
        if value not in self.known:
            self.known[value] = NONE
            node, shape = self.made.get(value), value.aval.shape
            if node is not None and len(shape) > 1 and shape[-2] == shape[-1] and self.depth < DEEPEST:
                self.depth += 1
                self.known[value] = _rule(node)(self, node)
                self.depth -= 1
        return self.known[value]

    def shared(self, node: Node) -> Fact:
        """The facts that all operands have."""
        found = DIAGONAL
        for v in node.inputs:
            found &= self.of(v)
        return found

    def number(self, value: Value) -> float | complex | None:
        """The finite number that fills a constant."""
        node = self.made.get(value)
        if node is None or node.prim is not elementwise.const or isinstance(node.attrs["value"], tuple):
            return None
        with np.errstate(over="ignore"):
            number = node.out.aval.dtype.type(node.attrs["value"])  # a finite number may be too large for the dtype
        return number.item() if np.isfinite(number) else None

    def are_transposed(self, node: Node, *, scaled: bool) -> bool:
        """Whether one operand is the other's transpose, also if they are a column and a row of one vector.

        With ``scaled``, each may be multiplied by a number.
        """
        a, b = node.inputs
        if any(_swaps(self.made.get(x)) and self.made[x].inputs[0] is y for x, y in ((a, b), (b, a))):
            return True
        (v, i), (w, j) = self._line(a, scaled), self._line(b, scaled)
        return v is not None and v is w and {i, j} == {0, 1}

    def _line(self, value: Value, scaled: bool) -> tuple[Value | None, int]:
        """The vector that fills a matrix, and the axis along which it lies."""
        node = self.made.get(value)
        if node is None or node.prim is not broadcast or value.aval.ndim != 2:
            return None, 0
        source, n = node.inputs[0], value.aval.shape[0]
        axis = 0 if source.aval.shape == (n, 1) else 1
        if source.aval.size != n:
            return None, 0
        return self.vector(source, scaled), axis

    def vector(self, value: Value, scaled: bool) -> Value:
        """The vector behind further axes of length one, and behind numbers that it is multiplied by."""
        while (node := self.made.get(value)) is not None:
            known = [self.number(v) is not None for v in node.inputs]
            if all(known):
                break
            is_scaled = node.prim is elementwise.neg or (node.prim is elementwise.mul and known.count(True) == 1)
            if node.prim is not reshape and not _adds_axes(node) and not (scaled and is_scaled):
                break
            value = next(v for v, number in zip(node.inputs, known, strict=True) if not number)
        return value


def _swaps(node: Node | None) -> bool:
    """Whether a node exchanges the last two axes."""
    if node is None or node.prim is not permute:
        return False
    n = node.out.aval.ndim
    return n > 1 and node.attrs["axes"] == (*range(n - 2), n - 1, n - 2)


def _adds_axes(node: Node) -> bool:
    return node.prim is getitem and all(i is None or i == slice(None) for i in node.attrs["index"])


def _transposed(proofs: _Proofs, node: Node) -> Fact:
    if not _swaps(node):
        return NONE
    found = proofs.of(node.inputs[0])
    turned = found & SYMMETRIC
    if LOWER in found:
        turned |= UPPER
    if UPPER in found:
        turned |= LOWER
    return turned


def _sum(proofs: _Proofs, node: Node) -> Fact:
    return proofs.shared(node) | (SYMMETRIC if proofs.are_transposed(node, scaled=False) else NONE)


def _product(proofs: _Proofs, node: Node) -> Fact:
    """A zero times infinity is no zero, so triangles stay if the other factor is a number."""
    a, b = node.inputs
    for x, y in ((a, b), (b, a)):
        if proofs.number(y) is not None:
            return proofs.of(x)
    if proofs.are_transposed(node, scaled=True):
        return SYMMETRIC
    return proofs.shared(node) & SYMMETRIC


def _quotient(proofs: _Proofs, node: Node) -> Fact:
    if proofs.number(node.inputs[1]):
        return proofs.of(node.inputs[0])
    return proofs.shared(node) & SYMMETRIC


def _elementwise(proofs: _Proofs, node: Node) -> Fact:
    return proofs.shared(node) & SYMMETRIC


def _broadcast(proofs: _Proofs, node: Node) -> Fact:
    (x,), out = node.inputs, node.out.aval
    if x.aval.ndim >= 2 and x.aval.shape[-2:] == out.shape[-2:]:
        return proofs.of(x)
    return SYMMETRIC if x.aval.shape[-1:] in ((), (1,)) and x.aval.shape[-2:-1] in ((), (1,)) else NONE


def _constant(proofs: _Proofs, node: Node) -> Fact:
    value = node.attrs["value"]
    if not isinstance(value, tuple):
        return SYMMETRIC if value else DIAGONAL
    x = np.array(value)
    forms = ((LOWER, np.tril(x)), (UPPER, np.triu(x)), (SYMMETRIC, x.swapaxes(-1, -2)))
    return reduce(or_, (fact for fact, form in forms if np.array_equal(x, form)), NONE)


def _lower_triangle(proofs: _Proofs, node: Node) -> Fact:
    return LOWER | proofs.of(node.inputs[0]) & UPPER if node.attrs["k"] <= 0 else proofs.of(node.inputs[0]) & LOWER


def _upper_triangle(proofs: _Proofs, node: Node) -> Fact:
    return UPPER | proofs.of(node.inputs[0]) & LOWER if node.attrs["k"] >= 0 else proofs.of(node.inputs[0]) & UPPER


def _gram(proofs: _Proofs, node: Node) -> Fact:
    return SYMMETRIC if proofs.are_transposed(node, scaled=False) else NONE


def _outer_product(proofs: _Proofs, node: Node) -> Fact:
    a, b = (proofs.vector(v, scaled=True) for v in node.inputs)
    return SYMMETRIC if a is b else NONE


def _nothing(proofs: _Proofs, node: Node) -> Fact:
    return NONE


def _rule(node: Node) -> Rule:
    """The rule of a primitive; functions of elements that have none keep symmetry."""
    ufunc = node.prim.numpy.broadcasts and not node.prim.multi
    return RULES.get(node.prim, _elementwise if ufunc else _nothing)


Rule = Callable[[_Proofs, Node], Fact]
RULES: dict[Primitive, Rule] = {
    elementwise.neg: lambda proofs, node: proofs.shared(node),
    elementwise.cast: lambda proofs, node: proofs.shared(node),
    elementwise.add: _sum,
    elementwise.sub: lambda proofs, node: proofs.shared(node),
    elementwise.mul: _product,
    elementwise.div: _quotient,
    elementwise.const: _constant,
    elementwise.where: _elementwise,
    broadcast: _broadcast,
    permute: _transposed,
    matmul: _gram,
    outer_product: _outer_product,
    diag: lambda proofs, node: NONE if node.attrs["offset"] else DIAGONAL,
    tril: _lower_triangle,
    triu: _upper_triangle,
    cholesky: lambda proofs, node: LOWER,
    cholesky_by_lapack: lambda proofs, node: LOWER,
    half_inverse_by_lapack: lambda proofs, node: LOWER,
    inverse_of_triangle: lambda proofs, node: LOWER if node.attrs["lower"] else UPPER,
}
