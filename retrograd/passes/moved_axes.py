"""The frame of passes that compute large arrays with their axes in another order, from where they are made to the end.

NumPy runs along the last axis, and begins anew for each row if an operand is stretched along it. With a short axis
elsewhere, rows are long. A product x y of matrices is yᵀ xᵀ then. Elementwise results keep their bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import Env, rebuild
from ..ir.types import Aval
from ..ops.batching import by_elements
from ..ops.elementwise import cast, const
from ..ops.linear import matmul
from ..ops.shape import broadcast, broadcast_to, permute

LARGE = 16_384  # elements of an array of which that is worth the further calls
SMALLER = 4  # times, at least, that what is copied into the other order is smaller
FOLDS = frozenset({"sum", "max", "min", "count"})


class MovedAxes(ABC):
    """The arrays of a graph whose axes go into another order, and the rule that rewrites what makes and reads them."""

    def __init__(self, graph: Graph) -> None:
        made = [node for node in graph.nodes if len(node.outputs) == 1 and self._is_large(node.outputs[0].aval)]
        self.chosen = {node.out for node in made if self._may_move(node)} - set(graph.outputs)
        while dropped := {v for v in self.chosen if not self._fits(graph, v)}:
            self.chosen -= dropped
        self.saves_time = any(self.gains(graph.producer[v]) for v in self.chosen)

    @abstractmethod
    def fits(self, aval: Aval) -> bool:
        """Whether the last axes of an array have such lengths."""

    @abstractmethod
    def moved(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape with the axes in the other order."""

    @abstractmethod
    def ends(self, node: Node) -> bool:
        """Whether a node reads the moved arrays as well, or makes something smaller of them."""

    @abstractmethod
    def ended(self, node: Node, env: Env) -> Symbol:
        """What such a node makes, other than a product, of moved arrays."""

    @abstractmethod
    def small(self, x: Symbol, ndim: int) -> Symbol:
        """A small value in the other order, as an array with ``ndim`` axes, which is then stretched."""

    def aligned(self, x: Symbol, ndim: int) -> Symbol:
        """A moved array as one that stretches to ``ndim`` axes."""
        return x

    def product_fits(self, node: Node) -> bool:
        """Whether a product is as fast in the other order."""
        return True

    def gains(self, node: Node) -> bool:
        """Whether an operation takes less time in the other order."""
        return node.prim is broadcast

    def _is_large(self, aval: Aval) -> bool:
        return aval.size >= LARGE and aval.kind == "array" and aval.steps is None and self.fits(aval)

    def _may_move(self, node: Node) -> bool:
        if node.prim.multi or node.effect:
            return False
        if node.prim is broadcast:
            x = node.inputs[0].aval
            return x.size * SMALLER <= node.out.aval.size or x.shape[-1] == 1
        if node.prim is const:
            return not isinstance(node.attrs["value"], tuple)
        if node.prim is matmul:
            return self.product_fits(node)
        return keeps_places(node) and all(v.aval.shape == node.out.aval.shape for v in node.inputs)

    def _fits(self, graph: Graph, value: Value) -> bool:
        """Whether all that makes and reads a value can do so in the other order."""
        node = graph.producer[value]
        made = node.prim in (broadcast, matmul) or self.chosen.issuperset(node.inputs)
        readers = graph.uses.get(value, ())
        return made and all(not n.prim.multi and (n.out in self.chosen or self.ends(n)) for n in readers)

    def rule(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        """Rewrite a node; of chosen values, the environment has those with moved axes."""
        if node.prim.multi:
            return None
        if node.out in self.chosen:
            return self._made(b, node, env)
        if self.chosen.isdisjoint(node.inputs):
            return None
        if node.prim is matmul:
            x, y = (swapped(env[v]) if v in self.chosen else env[v] for v in node.inputs)
            return [x @ y]
        return [self.ended(node, env)]

    def _made(self, b: Builder, node: Node, env: Env) -> Sequence[Symbol]:
        shape = self.moved(node.out.aval.shape)
        if node.prim is broadcast:
            (v,) = node.inputs
            x = env[v]
            return [broadcast_to((self.aligned if v in self.chosen else self.small)(x, len(shape)), shape)]
        if node.prim is matmul:
            x, y = (env[v] if v in self.chosen else swapped(env[v]) for v in node.inputs)
            return [y @ x]
        attrs = {name: Aval(shape, a.dtype) if isinstance(a, Aval) else a for name, a in node.attrs.items()}
        return b.emit(node.prim, [env[v].value for v in node.inputs], attrs, [node.out.hint])


def with_moved_axes(graph: Graph, moves: type[MovedAxes]) -> Graph:
    """The graph with arrays in the other order where no large one has to be copied for that."""
    if broadcast not in graph.prims:
        return graph
    found = moves(graph)
    return rebuild(graph, found.rule) if found.saves_time else graph


def keeps_places(node: Node) -> bool:
    """Whether an operation computes each element from those at its place, in any order of axes."""
    return node.prim is cast or (by_elements(node.prim) and node.prim.order == "K")


def swapped(x: Symbol) -> Symbol:
    """The view with the last two axes exchanged; of such a view, the stack itself."""
    axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    if x.node is not None and x.node.prim is permute and x.node.attrs["axes"] == axes:
        return x.operands[0]
    found: Symbol = permute(x, axes=axes)
    return found
