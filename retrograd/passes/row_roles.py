"""What operations do with the rows of matrices: each row by itself, or a sum over all of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..ir.graph import Graph, Node, Value
from ..ops.batching import by_elements
from ..ops.concatenate import concatenate
from ..ops.elementwise import cast, const
from ..ops.index import additem, getitem, setitem
from ..ops.linear import matmul, vecdot
from ..ops.masks import putmask
from ..ops.roll import roll
from ..ops.shape import broadcast, permute, reshape

NARROW = 32  # rows, columns or terms of a product that costs little more than to read its factors
SMALL = 1 << 20  # bytes of what every block of rows reads as a whole
ALONG_ROWS = frozenset({"sum", "max", "min", "count"})


@dataclass(frozen=True)
class Role:
    """The operands that a node reads row by row, those that it reads as a whole, and whether it adds all rows."""

    rows: tuple[Value, ...]
    whole: tuple[Value, ...] = ()
    folds: bool = False


class Rows:
    """The roles of the nodes of a graph for rows of a number.

    The rows of ``stacks`` may be matrices, which a product takes one by one. Nothing adds them. With ``several``, an
    array may have several rows in place of one, as there are several points in an image.
    """

    def __init__(self, graph: Graph, n: int, stacks: bool = False, several: bool = False) -> None:
        self.made, self.uses, self.shown = graph.producer, graph.uses, set(graph.outputs)
        self.n, self.stacks, self.several = n, stacks, several
        self.roles: dict[Node, Role] = {}
        for node in graph.nodes:
            role = None if node.prim.multi or node.effect else self._role(node)
            if role is not None:
                self.roles[node] = role

    def has(self, v: Value) -> bool:
        """Whether a value is an array of these rows, and no transpose, whose rows lie apart in memory."""
        made = self.made.get(v)
        found = v.aval.shape[0] if v.aval.shape else 0
        fits = found == self.n or (self.several and found > 0 and found % self.n == 0)
        rows = fits and v.aval.kind == "array" and v.aval.steps is None
        return rows and (made is None or made.prim is not permute or (self.stacks and made.attrs["axes"][0] == 0))

    def all_read_rows(self, v: Value, group: Collection[Node]) -> bool:
        """Whether nodes of a group alone read a value, and row by row, also as a transpose that a product takes so."""
        if v in self.shown:
            return False
        for node in self.uses.get(v, ()):
            if node in group:
                if v in self.roles[node].whole:
                    return False
            elif node.prim is not permute or node in self.roles or not self._is_taken(node, group):
                return False
        return True

    def _is_taken(self, turned: Node, group: Collection[Node]) -> bool:
        """Whether products of a group alone read a transpose, of which they take the rows before."""
        (v,) = turned.inputs
        uses = self.uses.get(turned.out, ())
        taken = (n in group and v in self.roles[n].rows and turned.out not in self.roles[n].whole for n in uses)
        return turned.out not in self.shown and all(taken)

    def stretched(self, v: Value) -> Node | None:
        """The node that makes equal rows of a smaller value or of a number, which each block can do for itself."""
        node = self.made.get(v)
        if node is None or not self.has(v):
            return None
        if node.prim is const:
            return None if isinstance(node.attrs["value"], tuple) else node
        return node if node.prim is broadcast and not self._keeps_rows(node) else None

    def _keeps_rows(self, node: Node) -> bool:
        """Whether a broadcast stretches other axes alone."""
        x, out = node.inputs[0].aval, node.out.aval
        return x.ndim == out.ndim and x.shape[0] == out.shape[0]

    def _role(self, node: Node) -> Role | None:
        if node.prim is matmul:
            return self._product_of_stacks(node) if self.stacks else self._product(node)
        if not node.inputs or not self.has(node.inputs[0]):
            return None
        if node.prim.name in ALONG_ROWS and 0 in node.attrs["axis"]:
            summed = not self.stacks and node.prim.name == "sum" and node.out.aval.dtype.kind == "f"
            return Role(node.inputs, folds=True) if summed else None
        if node.prim is broadcast and not self._keeps_rows(node):
            return None
        if node.prim is putmask:
            return Role(node.inputs[:2], whole=node.inputs[2:]) if all(map(self.has, node.inputs[:2])) else None
        alike = self.has(node.out) and all(map(self.has, node.inputs))
        alike &= node.prim is reshape or {v.aval.shape[:1] for v in node.inputs} == {node.out.aval.shape[:1]}
        return Role(node.inputs) if alike and _by_rows(node) else None

    def _product_of_stacks(self, node: Node) -> Role | None:
        alike = node.out.aval.ndim > 2 and node.out.aval.dtype.kind == "f" and all(map(self.has, node.inputs))
        return Role(node.inputs) if alike and len({v.aval.ndim for v in (*node.inputs, node.out)}) == 1 else None

    def _product(self, node: Node) -> Role | None:
        x, y = node.inputs
        if x.aval.ndim > 2 or y.aval.ndim > 2 or node.out.aval.dtype.kind != "f":
            return None
        turned = self.made.get(x)
        source = turned.inputs[0] if turned is not None and turned.prim is permute else None
        if self.has(y) and x.aval.ndim == 1 and self.has(x):
            role, beside, widths = Role((x, y), folds=True), node.out, (1, _width(y))
        elif self.has(y) and source is not None and self.has(source):
            role, beside, widths = Role((source, y), folds=True), node.out, (_width(source), _width(y))
        elif self.has(x) and x.aval.ndim == 2:
            role, beside, widths = Role((x,), whole=(y,)), y, (_width(x), _width(y))
        else:
            return None
        return role if min(widths) <= NARROW and beside.aval.nbytes <= SMALL else None


def _width(v: Value) -> int:
    """The elements of a row; a vector has one in each."""
    return v.aval.shape[1] if v.aval.ndim == 2 else 1


def _by_rows(node: Node) -> bool:
    """Whether a row of the result needs the same rows of the operands alone."""
    if node.prim in (reshape, vecdot, broadcast, cast):
        return node.prim is not vecdot or node.inputs[0].aval.ndim > 1
    if node.prim is permute:
        return bool(node.attrs["axes"][0] == 0)
    if node.prim in (concatenate, roll):
        return bool(node.attrs["axis"] != 0)
    if node.prim in (getitem, setitem, additem):
        first, *rest = node.attrs["index"] or (slice(None),)
        return first == slice(None) and all(i is None or isinstance(i, int | slice) for i in rest)
    if node.prim.name in ALONG_ROWS:
        return True
    same = all(v.aval.shape == node.out.aval.shape for v in node.inputs)
    if node.out.aval.ndim <= 2 and node.prim.order not in ("K", "C"):
        return False  # it may be a function of vectors or matrices, such as an inverse, and goes along stacks alone
    return same and by_elements(node.prim) and node.prim.alias is None
