"""sums_in_products: Graph → Graph in which products of matrices add the columns and rows that are added to them.

A power of two that multiplies a product multiplies a smaller factor, which changes no digit of normal numbers.
Squared distances from inner products are the example: c + r - 2 x yᵀ is [-2 x, c, 1] times [yᵀ; 1; r], one call in
place of four that each walk over a large matrix. The sums have the same terms in another order.

Products of one column and one row stay as they are: c and r are then squares that are rounded as the product is, so
that distances of equal points are zero, which may be why a program can take their roots. So are they where all terms
are exact, as for points on a grid. This is why no factors are taken along but powers of two, and no numbers as terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add as plus

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Env, mapped, rebuild
from ..ir.types import Aval
from ..ops.concatenate import concatenate
from ..ops.elementwise import add, const, mul, neg, sub
from ..ops.linear import matmul
from ..ops.shape import broadcast, reshape_to
from .factor_rules import is_power_of_two
from .prune import prune

LEAST = 1 << 14  # elements of a product, from which longer factors cost less than walks over it
FEWEST = 12  # rows and columns; of fewer, `short_axes` makes as quick products
SHARE = 0.75  # of the elements of the product that its longer factors have, at most
TERMS = range(2, 33)  # of a product, so that two more are little
LARGEST = 2.0**20  # factor, or its reciprocal, that moves to what is added
DEEPEST = 8  # sums in sums

Scaled = tuple[Value, float]


def sums_in_products(graph: Graph) -> Graph:
    """The graph, and its bodies, with such products in place of sums."""
    return mapped(graph, _joined)


def _joined(graph: Graph) -> Graph:
    products = (node for node in graph.nodes if _is_large(node)) if matmul in graph.prims else ()
    sums = {found.last: found for node in products if (found := _sum_with(graph, node)) is not None}
    if not sums:
        return graph

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        return [sums[node].as_product(b, env)] if node in sums else None

    return prune(rebuild(graph, rule))


def _is_large(node: Node) -> bool:
    return node.prim is matmul and node.out.aval.size >= LEAST and node.out.aval.dtype.char in "fd"


def _sum_with(graph: Graph, product: Node) -> _Sum | None:
    """The sum that a product may become; None if there is none."""
    x, y = (v.aval for v in product.inputs)
    if x.ndim == y.ndim == 2 and x.shape[1] in TERMS:
        (n, k), m = x.shape, y.shape[1]
        found = _Sum(graph, product, min(n, m) >= FEWEST and (n + m) * (k + 2) <= SHARE * n * m)
        if found.columns and found.rows:
            return found
    found = _Sum(graph, product, adds=False)
    return found if found.last is not product and 2 * min(x.size, y.size) <= product.out.aval.size else None


class _Sum:
    """A multiple of a product of matrices, and multiples of columns and rows that are added to it, if it ``adds``.

    It goes as far as nothing else reads the sum.
    """

    def __init__(self, graph: Graph, product: Node, adds: bool) -> None:
        self.graph, self.factors, self.shape, self.adds = graph, product.inputs, product.out.aval.shape, adds
        self.number, self.columns, self.rows = 1.0, list[Scaled](), list[Scaled]()
        self.last: Node = product
        while (node := self._reader()) is not None and self._takes(node):
            self.last = node

    def _reader(self) -> Node | None:
        """What alone reads the sum as it is so far."""
        readers = self.graph.uses.get(self.last.out, ())
        return readers[0] if len(readers) == 1 and self.last.out not in self.graph.outputs else None

    def _takes(self, node: Node) -> bool:
        """Whether a further operation belongs to the sum, which then contains it."""
        sofar = self.last.out
        scale = self._scale(node, sofar)
        if scale is not None:
            return self._multiply(scale)
        if node.prim not in (add, sub) or not self.adds:
            return False
        first, second = node.inputs
        other, sign = (second if first is sofar else first), (-1.0 if node.prim is sub else 1.0)
        columns, rows = list[Scaled](), list[Scaled]()
        if not self._add_terms(other, sign if other is second else 1.0, columns, rows, DEEPEST):
            return False
        if sofar is second:
            self._multiply(sign)
        self.columns += columns
        self.rows += rows
        return True

    def _multiply(self, a: float) -> bool:
        """Multiply all terms; False if a factor would be too large or too small."""
        terms = self.columns + self.rows
        if not all(_is_normal(number * a) for number in (self.number, *(b for _, b in terms))):
            return False
        self.number *= a
        self.columns, self.rows = ([(v, b * a) for v, b in terms] for terms in (self.columns, self.rows))
        return True

    def _scale(self, node: Node, of: Value) -> float | None:
        """The power of two by which a node multiplies a value; None if it does something else."""
        if node.prim is neg:
            return -1.0
        others = [v for v in node.inputs if v is not of]
        made = self.graph.producer.get(others[0]) if node.prim is mul and len(others) == 1 else None
        number = made.attrs["value"] if made is not None and made.prim is const else None
        return number if isinstance(number, float) and is_power_of_two(number) else None

    def _add_terms(self, v: Value, a: float, columns: list[Scaled], rows: list[Scaled], depth: int) -> bool:
        """Find the columns and rows that a matrix is the sum of; False if it is not."""
        node = self.graph.producer.get(v)
        if node is None or not depth:
            return False
        if node.prim is broadcast:
            (x,) = node.inputs
            n, m = self.shape
            if x.aval.size > 1 and x.aval.shape in ((n, 1), (m,), (1, m)):
                (columns if x.aval.shape == (n, 1) else rows).append((x, a))
                return True
            return False
        if node.prim in (add, sub):
            (x, y), b = node.inputs, -a if node.prim is sub else a
            first = self._add_terms(x, a, columns, rows, depth - 1)
            return first and self._add_terms(y, b, columns, rows, depth - 1)
        for x in node.inputs:
            scale = self._scale(node, x) if x.aval.shape == self.shape else None
            if scale is not None and _is_normal(a * scale):
                return self._add_terms(x, a * scale, columns, rows, depth - 1)
        return False

    def as_product(self, b: Builder, env: Env) -> Symbol:
        """The product of longer factors; the smaller one of the two is multiplied."""
        x, y = (env[v] for v in self.factors)
        x, y = (_times(x, self.number), y) if x.size <= y.size else (x, _times(y, self.number))
        if self.adds:
            n, m = self.shape
            column, row = self._total(env, self.columns, (n, 1)), self._total(env, self.rows, (1, m))
            ones = [b.constant(1.0, Aval(shape, x.dtype)) for shape in ((n, 1), (1, m))]
            x, y = concatenate(x, column, ones[0], axis=1), concatenate(y, ones[1], row, axis=0)
        product: Symbol = x @ y
        return product

    def _total(self, env: Env, terms: list[Scaled], shape: tuple[int, int]) -> Symbol:
        return reduce(plus, [_times(reshape_to(env[v], shape), a) for v, a in terms])


def _is_normal(a: float) -> bool:
    return 1 / LARGEST <= abs(a) <= LARGEST


def _times(x: Symbol, a: float) -> Symbol:
    if a == 1.0:
        return x
    multiple: Symbol = neg(x) if a == -1.0 else x * a
    return multiple
