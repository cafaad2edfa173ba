"""narrow_stacks: Graph → Graph in which large stacks of matrices with few columns are computed transposed.

NumPy runs along the last axis. Of ten elements, as the dimensions of a mixture, it begins anew for each row, to stretch
a row or column or to add what is in a row. Transposed, rows are long. A product x y of matrices is yᵀ xᵀ then.
Elementwise results keep their bits; products and sums may add in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Env, mapped, rebuild
from ..ir.types import Aval
from ..ops.batching import elementwise
from ..ops.elementwise import cast, const
from ..ops.linear import matmul, vecdot
from ..ops.reduce import sum_
from ..ops.shape import broadcast, broadcast_to, copy, permute, reshape_to
from .short_axes import FOLDS, LARGE, SMALLER

LONGEST = 12  # columns
LONGER = 8  # times as many rows as columns, at least


def with_narrow_stacks_turned(graph: Graph) -> Graph:
    """The graph, and its bodies, with such stacks transposed where no large array has to be copied for that."""
    return mapped(graph, _turned_stacks)


def _turned_stacks(graph: Graph) -> Graph:
    if broadcast not in graph.prims:
        return graph
    made = [node for node in graph.nodes if len(node.outputs) == 1 and _is_narrow(node.outputs[0].aval)]
    chosen = {node.out for node in made if _may_turn(node)} - set(graph.outputs)
    while dropped := {v for v in chosen if not _fits(graph, v, chosen)}:
        chosen -= dropped
    nodes = map(graph.producer.__getitem__, chosen)
    stretched = any(node.prim is broadcast and node.inputs[0].aval.size > 1 for node in nodes)
    return rebuild(graph, _Turned(chosen).rule) if stretched else graph


def _is_narrow(aval: Aval) -> bool:
    if aval.ndim < 3 or aval.size < LARGE or aval.kind != "array" or aval.steps is not None:
        return False
    rows, columns = aval.shape[-2:]
    return 1 < columns <= LONGEST and rows >= LONGER * columns


def _may_turn(node: Node) -> bool:
    if node.prim.multi or node.effect:
        return False
    if node.prim is broadcast:
        x = node.inputs[0].aval
        return x.size * SMALLER <= node.out.aval.size or x.shape[-1] == 1
    if node.prim is const:
        return not isinstance(node.attrs["value"], tuple)
    if node.prim is matmul:
        return True
    batch: Any = node.prim.batch
    whole = all(v.aval.shape == node.out.aval.shape for v in node.inputs)
    return whole and (node.prim is cast or (batch is elementwise and node.prim.order == "K"))


def _fits(graph: Graph, value: Value, chosen: set[Value]) -> bool:
    """Whether all that makes and reads a value can do so if it is transposed."""
    node = graph.producer[value]
    made = node.prim in (broadcast, matmul) or chosen.issuperset(node.inputs)
    return made and all(not n.prim.multi and (n.out in chosen or _ends(n, chosen)) for n in graph.uses.get(value, ()))


def _ends(node: Node, chosen: set[Value]) -> bool:
    """Whether a node reads transposes as well as it reads stacks, or makes something smaller of one."""
    ndim = node.inputs[0].aval.ndim
    if node.prim is vecdot:
        return chosen.issuperset(node.inputs) and node.out.aval.dtype.kind == "f"
    if node.prim is permute:
        return bool(node.attrs["axes"] == (*range(ndim - 2), ndim - 1, ndim - 2))
    folds = node.prim.name in FOLDS and not {ndim - 1, ndim - 2}.isdisjoint(node.attrs["axis"])
    return node.prim is matmul or folds


class _Turned:
    """Rewrites nodes; of chosen values, it has the transposes."""

    def __init__(self, chosen: set[Value]) -> None:
        self.chosen = chosen

    def rule(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node.prim.multi:
            return None
        if node.out in self.chosen:
            return self._turned(b, node, env)
        if self.chosen.isdisjoint(node.inputs):
            return None
        if node.prim is matmul:
            x, y = (_swapped(env[v]) if v in self.chosen else env[v] for v in node.inputs)
            return [x @ y]
        x = env[node.inputs[0]]
        if node.prim is permute:
            return [x]
        if node.prim is vecdot:
            return [sum_(x * env[node.inputs[1]], axis=(x.ndim - 2,), keepdims=False)]
        places = {x.ndim - 1: x.ndim - 2, x.ndim - 2: x.ndim - 1}
        axes = tuple(sorted(places.get(a, a) for a in node.attrs["axis"]))
        found: Symbol = node.prim(x, axis=axes, keepdims=False)
        return [reshape_to(found, node.out.aval.shape)]

    def _turned(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol]:
        shape = _turned_shape(node.out.aval)
        if node.prim is broadcast:
            (v,) = node.inputs
            return [broadcast_to(env[v] if v in self.chosen else _transposed(env[v], len(shape)), shape)]
        if node.prim is matmul:
            x, y = (env[v] if v in self.chosen else _swapped(env[v]) for v in node.inputs)
            return [y @ x]
        attrs = {name: Aval(shape, a.dtype) if isinstance(a, Aval) else a for name, a in node.attrs.items()}
        return b.emit(node.prim, [env[v].value for v in node.inputs], attrs, [node.out.hint])


def _turned_shape(aval: Aval) -> tuple[int, ...]:
    *lead, rows, columns = aval.shape
    return (*lead, columns, rows)


def _swapped(x: Symbol) -> Symbol:
    """The view with the last two axes exchanged; of such a view, the stack itself."""
    axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    if x.node is not None and x.node.prim is permute and x.node.attrs["axes"] == axes:
        return x.operands[0]
    swapped: Symbol = permute(x, axes=axes)
    return swapped


def _transposed(x: Symbol, ndim: int) -> Symbol:
    """A small value as a stack of transposes, with ``ndim`` axes, in C order."""
    if x.ndim == 0:
        return x
    x = reshape_to(x, (*(1,) * (ndim - x.ndim), *x.shape))
    if 1 in x.shape[-2:]:
        return reshape_to(x, _turned_shape(x.aval))
    transposed: Symbol = copy(_swapped(x))
    return transposed
