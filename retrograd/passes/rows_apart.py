"""rows_apart: Graph → Graph in which loops keep a few long rows of a state as states of their own.

The state of a thousand systems of three numbers is an array of 3 × 1,000, and each of their equations reads its rows. C
computes one element after the other: with rows apart, one loop computes all numbers of a system, and nothing between
them has storage. The pass runs in front of derivatives, so that adjoints and residuals are rows as well. Elementwise
results keep their bits; products of matrices are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.loop_node import LoopNode, loop_of
from ..ir.primitive import TRANSFORMS, Primitive
from ..ir.rewrite import Env, copy_nodes, mapped, rebuild
from ..ir.types import Aval
from ..ops.concatenate import concatenate
from ..ops.elementwise import add, const
from ..ops.index import Index, additem, getitem, setitem
from ..ops.linear import matmul
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, reshape, reshape_to
from .moved_axes import keeps_places

MOST = 8  # rows
LONG = 64  # elements of a row


@TRANSFORMS.register("rows_apart")
def rows_apart(graph: Graph) -> Graph:
    """The graph, and its bodies, with such states apart in loops that read or join their rows."""
    return mapped(graph, lambda g: rebuild(g, _with_rows_apart)) if graph.nested else graph


def _with_rows_apart(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
    loop = loop_of(node)
    if loop is None or loop.condition is not None or loop.count is not None or loop.stacks:
        return None
    for axis in range(max((v.aval.ndim for v in loop.layout.operands(loop.body.inputs)[1]), default=0)):
        with suppress(_NeedsWhole):
            apart = _RowsOfBody(loop, axis)
            if apart.crossings:
                return apart.emit(b, env)
    return None


class _NeedsWhole(Exception):  # noqa: N818 - a signal, not an error: the loop stays as it is
    """An operation needs an array whose rows are apart."""


class _RowsOfBody:
    """The body of a loop with rows apart, which lie along one axis: the first, or one behind the lanes of a batch.

    ``crossings`` are the operations that would read or join rows.
    """

    def __init__(self, loop: LoopNode, axis: int) -> None:
        self.loop, self.axis, self.b = loop, axis, Builder()
        self.lead = (slice(None),) * axis
        self.crossings = 0
        self.rows: dict[Value, list[Symbol]] = {}
        self.whole: Env = {}
        consts, self.carry, xs = loop.layout.operands(loop.body.inputs)
        if not any(self._has_rows(v.aval) for v in self.carry):
            return
        self._take(consts)
        for v in self.carry:
            if self._has_rows(v.aval):
                self.rows[v] = [self.b.input(self._row(v.aval), v.hint) for _ in range(self.few(v.aval))]
            else:
                self._take([v])
        self._take(xs)
        for node in loop.body.nodes:
            self.b.where, self.b.replica = node.where, node.replica
            self._add(node)
        self.b.replica = 0
        self.outputs = self._outputs()

    def few(self, aval: Aval) -> int:
        """The rows of an array if they are few, else 0."""
        n = aval.shape[self.axis] if aval.ndim > self.axis else 0
        return n if n <= MOST else 0

    def _has_rows(self, aval: Aval) -> bool:
        n = self.few(aval) if aval.kind == "array" and aval.steps is None else 0
        return n > 1 and aval.ndim > 1 and aval.size >= LONG * n

    def _row(self, aval: Aval) -> Aval:
        return Aval((*aval.shape[: self.axis], *aval.shape[self.axis + 1 :]), aval.dtype)

    def _take(self, values: Sequence[Value]) -> None:
        self.whole.update((v, self.b.input(v.aval, v.hint)) for v in values)

    def _add(self, node: Node) -> None:
        """Add a node, by rows if it reads some or makes arrays that have them."""
        rule = RULES.get(node.prim, _elementwise)
        by_rows = any(
            v in self.rows or self._has_rows(v.aval) or self.few(v.aval) == 1 for v in (*node.inputs, *node.outputs)
        )
        if by_rows and not node.prim.multi and not node.effect and rule(self, node):
            return
        if any(v not in self.whole for v in node.inputs):
            raise _NeedsWhole
        copy_nodes(self.b, [node], self.whole)

    def rows_of(self, v: Value) -> list[Symbol]:
        """The rows of a value."""
        if v not in self.rows:
            if not self.few(v.aval):
                raise _NeedsWhole
            self.rows[v] = self.apart(self.whole[v])
        return self.rows[v]

    def apart(self, x: Symbol) -> list[Symbol]:
        """The rows of an array."""
        return [getitem(x, index=(*self.lead, k)) for k in range(x.shape[self.axis])]

    def all_of(self, v: Value) -> Symbol:
        """A value as a whole, which one with several rows is no more."""
        if v not in self.whole:
            if len(self.rows[v]) > 1:
                raise _NeedsWhole
            self.whole[v] = reshape_to(self.rows[v][0], v.aval.shape)
        return self.whole[v]

    def each(self, node: Node) -> list[Symbol]:
        """An operation on each row; operands without axes are the same for all."""
        given = [self.rows_of(v) if v.aval.shape else None for v in node.inputs]
        attrs = {k: self._row(a) if isinstance(a, Aval) else a for k, a in node.attrs.items()}
        found = []
        for k in range(self.few(node.out.aval)):
            row = [self.whole[v] if rows is None else rows[k] for v, rows in zip(node.inputs, given, strict=True)]
            found.append(self.b.emit(node.prim, [x.value for x in row], attrs)[0])
        return found

    def _outputs(self) -> list[list[Symbol]]:
        """The rows of each result of the body, or the result itself."""
        found = []
        for k, out in enumerate(self.loop.body.outputs):
            apart = self.carry[k] in self.rows if k < len(self.carry) else len(self.rows.get(out, ())) > 1
            found.append(self.rows_of(out) if apart else [self.all_of(out)])
        return found

    def emit(self, b: Builder, env: Env) -> Sequence[Symbol]:
        """The loop; of its results, those with rows are joined."""
        loop, layout = self.loop, self.loop.layout
        body = self.b.graph(loop.body.name, [x for rows in self.outputs for x in rows])
        consts, starts, xs = layout.operands([env[v] for v in loop.operands])
        states = [self.apart(x) if v in self.rows else [x] for v, x in zip(self.carry, starts, strict=True)]
        sizes = [len(rows) for rows in self.outputs]
        layout = replace(layout, carry=sum(sizes[: layout.carry]), arrays=sum(sizes[layout.carry :]))
        operands = [*consts, *(row for rows in states for row in rows), *xs]
        made = iter(b.emit(loop.node.prim, [x.value for x in operands], loop.attrs(body, layout)))
        found = [[next(made) for _ in range(size)] for size in sizes]
        return [
            _joined(x, v.aval, self.axis + (k >= len(states)))
            for k, (v, x) in enumerate(zip(loop.node.outputs, found, strict=True))
        ]


def _joined(rows: list[Symbol], aval: Aval, axis: int) -> Symbol:
    """The array that has such rows along an axis."""
    if rows[0].aval.shape == aval.shape:
        return rows[0]
    shape = (*aval.shape[:axis], 1, *aval.shape[axis + 1 :])
    joined: Symbol = concatenate(*(reshape_to(x, shape) for x in rows), axis=axis)
    return joined


def _elementwise(to: _RowsOfBody, node: Node) -> bool:
    alike = to.few(node.out.aval) and all(v.aval.shape in ((), node.out.aval.shape) for v in node.inputs)
    if not alike or not keeps_places(node):
        return False
    to.rows[node.out] = to.each(node)
    return True


def _constant(to: _RowsOfBody, node: Node) -> bool:
    one = not isinstance(node.attrs["value"], tuple)
    if one:
        to.rows[node.out] = to.each(node)
    return one


def _broadcast(to: _RowsOfBody, node: Node) -> bool:
    (v,), out, axis = node.inputs, node.out.aval, to.axis
    n, own = to.few(out), axis - out.ndim + v.aval.ndim  # the axis of the operand that becomes that of the rows
    if not n or (v in to.rows and own not in (-1, axis)):
        return False
    if own < 0:
        rows = [to.all_of(v)] * n
    elif v in to.rows:
        rows = to.rows_of(v) * (n if to.few(v.aval) == 1 else 1)
    else:
        rows = [getitem(to.whole[v], index=((slice(None),) * own + (k % v.aval.shape[own],))) for k in range(n)]
    to.rows[node.out] = [broadcast_to(x, (*out.shape[:axis], *out.shape[axis + 1 :])) for x in rows]
    return True


def _reshape(to: _RowsOfBody, node: Node) -> bool:
    """An axis of length one among rows, or no more there."""
    (v,), shape, before, axis = node.inputs, node.out.aval.shape, node.inputs[0].aval.shape, to.axis
    if shape == (*before[:axis], 1, *before[axis:]):
        to.rows[node.out] = [to.all_of(v)]
    elif before == (*shape[:axis], 1, *shape[axis:]):
        to.whole[node.out] = to.rows_of(v)[0]
    else:
        return False
    return True


def _concatenate(to: _RowsOfBody, node: Node) -> bool:
    if node.attrs["axis"] != to.axis or not to.few(node.out.aval):
        return False
    to.rows[node.out] = [x for v in node.inputs for x in to.rows_of(v)]
    to.crossings += 1
    return True


def _place(to: _RowsOfBody, index: Index) -> tuple[Any, Index] | None:
    """Which rows an index selects, and what of each row; None if it selects among arrays of rows."""
    lead, (first, *rest) = index[: to.axis], index[to.axis :] or (slice(None),)
    if any(i != slice(None) for i in lead) or not isinstance(first, int | slice):
        return None
    return first, (*to.lead, *rest)


def _getitem(to: _RowsOfBody, node: Node) -> bool:
    place = _place(to, node.attrs["index"])
    if len(node.inputs) > 1 or place is None:
        return False
    (first, inner), rows = place, to.rows_of(node.inputs[0])
    chosen = [rows[first]] if isinstance(first, int) else rows[first]
    if any(i != slice(None) for i in inner):
        chosen = [getitem(x, index=inner) for x in chosen]
    if isinstance(first, int):
        to.whole[node.out] = chosen[0]
        to.crossings += 1
    else:
        to.rows[node.out] = chosen
    return True


def _write(to: _RowsOfBody, node: Node) -> bool:
    place = _place(to, node.attrs["index"])
    if len(node.inputs) > 2 or place is None:
        return False
    (first, inner), (x, v) = place, node.inputs
    rows = list(to.rows_of(x))
    places = range(len(rows))[first] if isinstance(first, slice) else [range(len(rows))[first]]
    values = to.rows_of(v) if isinstance(first, slice) else [to.all_of(v)]
    index = inner or (slice(None),) * (rows[0].ndim > 0)
    for k, value in zip(places, values, strict=True):
        rows[k] = node.prim(rows[k], value, index=index)
    to.rows[node.out] = rows
    to.crossings += isinstance(first, int)
    return True


def _sum(to: _RowsOfBody, node: Node) -> bool:
    axes = node.attrs["axis"]
    if node.attrs["keepdims"] or min(axes, default=0) < to.axis:
        return False
    if to.axis not in axes:
        inner = tuple(a - 1 for a in axes)
        to.rows[node.out] = [sum_(x, axis=inner, keepdims=False) for x in to.rows_of(node.inputs[0])]
    elif len(axes) == 1:
        to.whole[node.out] = reduce(add, to.rows_of(node.inputs[0]))
        to.crossings += 1
    return to.axis not in axes or len(axes) == 1


def _matmul(to: _RowsOfBody, node: Node) -> bool:
    """Small matrices times arrays of rows."""
    (a, y), n = node.inputs, to.few(node.out.aval)
    if a in to.rows or not n or a.aval.ndim < 2 or {y.aval.ndim, node.out.aval.ndim} != {to.axis + 2}:
        return False
    rows, matrix, found = to.rows_of(y), to.whole[a], []
    lead = (slice(None),) * (matrix.ndim - 2)
    for i in range(n):
        weights = [getitem(matrix, index=(*lead, i, k)) for k in range(len(rows))]
        wide = [
            broadcast_to(reshape_to(w, (*w.shape, 1)) if lead else w, x.shape)
            for w, x in zip(weights, rows, strict=True)
        ]
        found.append(reduce(add, [w * x for w, x in zip(wide, rows, strict=True)]))
    to.rows[node.out] = found
    to.crossings += 1
    return True


RULES: dict[Primitive, Callable[[_RowsOfBody, Node], bool]] = {
    const: _constant,
    broadcast: _broadcast,
    reshape: _reshape,
    concatenate: _concatenate,
    getitem: _getitem,
    setitem: _write,
    additem: _write,
    sum_: _sum,
    matmul: _matmul,
}
