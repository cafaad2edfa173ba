"""short_axes: Graph → Graph in which large arrays with a short last axis are computed with that axis first.

NumPy runs along the last axis. Of three elements, as coordinates have, it does so for each place anew if an operand is
stretched along them, which takes several times as long. With the axis in front, the rows are long. A product x y of
matrices is yᵀ xᵀ then. Elementwise results keep their bits; sums may add in another order.
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
from ..ops.index import getitem
from ..ops.linear import matmul
from ..ops.shape import broadcast, broadcast_to, copy, permute, reshape_to

LONGEST = 8  # elements of an axis that goes first
LONGEST_OF_MATRICES = 16  # ... of arrays with two axes, which BLAS makes and reads in either order
MOST_TERMS = 4  # times as many as columns: BLAS loses as much with longer sums as NumPy gains
LARGE = 16_384  # elements of an array of which that is worth the further calls
SMALLER = 4  # times, at least, that what is copied into the other order is smaller
FOLDS = frozenset({"sum", "max", "min", "count"})


def short_axes_first(graph: Graph) -> Graph:
    """The graph, and its bodies, with short last axes in front where no large array has to be copied for that."""
    return mapped(graph, _first)


def _first(graph: Graph) -> Graph:
    if broadcast not in graph.prims:
        return graph
    large = [node for node in graph.nodes if len(node.outputs) == 1 and _is_large(node.outputs[0].aval)]
    chosen = {node.out for node in large if _may_move(node)} - set(graph.outputs)
    while dropped := {v for v in chosen if not _fits(graph, v, chosen)}:
        chosen -= dropped
    stretched = any(graph.producer[v].prim is broadcast for v in chosen)
    return rebuild(graph, _AxisFirst(chosen).rule) if stretched else graph


def _may_move(node: Node) -> bool:
    if node.prim.multi or node.effect:
        return False
    if node.prim is broadcast:
        x = node.inputs[0].aval
        return not x.shape or x.shape[-1] == 1 or x.size * SMALLER <= node.out.aval.size
    if node.prim is const:
        return not isinstance(node.attrs["value"], tuple)
    if node.prim is matmul:
        (_, *terms), (_, *columns) = (v.aval.shape for v in node.inputs)
        return len(terms) == len(columns) == 1 and terms[0] <= MOST_TERMS * columns[0]
    batch: Any = node.prim.batch
    whole = all(v.aval.shape == node.out.aval.shape for v in node.inputs)
    return whole and (node.prim is cast or (batch is elementwise and node.prim.order == "K"))


def _is_large(aval: Aval) -> bool:
    longest = LONGEST_OF_MATRICES if aval.ndim == 2 else LONGEST
    if aval.ndim < 2 or not 1 < aval.shape[-1] <= longest:
        return False
    return aval.kind == "array" and aval.steps is None and aval.size >= LARGE


def _fits(graph: Graph, value: Value, chosen: set[Value]) -> bool:
    """Whether all that makes and reads a value can do so with the axis in front."""
    node = graph.producer[value]
    made = node.prim in (broadcast, matmul) or chosen.issuperset(node.inputs)
    return made and all(not n.prim.multi and (n.out in chosen or _ends(n)) for n in graph.uses.get(value, ()))


def _ends(node: Node) -> bool:
    """Whether a node makes something smaller of an array."""
    x = node.inputs[0].aval
    if node.prim is matmul:
        return all(v.aval.ndim <= 2 for v in node.inputs)
    if node.prim is getitem:
        index = node.attrs["index"]
        whole = len(index) == x.ndim and all(i == slice(None) for i in index[:-1])
        return whole and _place(index[-1], x.shape[-1]) is not None
    return node.prim.name in FOLDS and (x.ndim - 1 in node.attrs["axis"] or node.out.aval.size * SMALLER <= x.size)


def _place(index: Any, size: int) -> int | None:
    """The int that an index selects of an axis, also as a slice of one element."""
    if isinstance(index, slice):
        chosen = range(size)[index]
        return chosen[0] if len(chosen) == 1 else None
    return index if isinstance(index, int) else None


class _AxisFirst:
    """Rewrites nodes; of chosen values, it has those with the axis in front."""

    def __init__(self, chosen: set[Value]) -> None:
        self.chosen = chosen

    def rule(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        if node.prim.multi:
            return None
        if node.out in self.chosen:
            return self._moved(b, node, env)
        if self.chosen.isdisjoint(node.inputs):
            return None
        if node.prim is matmul:
            return [self._as_before(node.inputs[0], env) @ self._as_before(node.inputs[1], env)]
        x = env[node.inputs[0]]
        if node.prim is getitem:
            *others, at = node.attrs["index"]
            return [reshape_to(getitem(x, index=(_place(at, x.shape[0]), *others)), node.out.aval.shape)]
        return [self._folded(node, x)]

    def _moved(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol]:
        *rest, short = node.out.aval.shape
        shape = (short, *rest)
        if node.prim is broadcast:
            (v,) = node.inputs
            ones = (1,) * (len(shape) - v.aval.ndim)
            moved = v in self.chosen
            x = reshape_to(env[v], (short, *ones, *v.aval.shape[:-1])) if moved else _in_front(env[v], len(shape))
            return [broadcast_to(x, shape)]
        if node.prim is matmul:
            x, y = (_turned(self._as_before(v, env)) for v in node.inputs)
            return [y @ x]
        attrs = {name: Aval(shape, a.dtype) if isinstance(a, Aval) else a for name, a in node.attrs.items()}
        return b.emit(node.prim, [env[v].value for v in node.inputs], attrs, [node.out.hint])

    def _as_before(self, v: Value, env: Env) -> Symbol:
        """A matrix or vector with its axes in their order."""
        return _turned(env[v]) if v in self.chosen else env[v]

    def _folded(self, node: Node, x: Symbol) -> Symbol:
        last = x.ndim - 1
        axes = tuple(sorted(0 if a == last else a + 1 for a in node.attrs["axis"]))
        found: Symbol = node.prim(x, axis=axes, keepdims=False)
        if 0 not in axes and found.ndim > 1:
            found = copy(permute(found, axes=(*range(1, found.ndim), 0)))
        return reshape_to(found, node.out.aval.shape)


def _turned(x: Symbol) -> Symbol:
    """The transpose of a matrix; of a transpose, the matrix itself."""
    if x.node is not None and x.node.prim is permute and x.node.attrs["axes"] == (1, 0):
        return x.operands[0]
    turned: Symbol = permute(x, axes=(1, 0))
    return turned


def _in_front(x: Symbol, ndim: int) -> Symbol:
    """The value with its last axis in front, and axes of length 1 behind it up to ``ndim``."""
    if x.ndim == 0:
        return x
    *rest, short = x.shape
    others = (*(1,) * (ndim - x.ndim), *rest)
    if short == 1:
        return reshape_to(x, (1, *others))
    first: Symbol = copy(permute(reshape_to(x, (*others, short)), axes=(ndim - 1, *range(ndim - 1))))
    return first
