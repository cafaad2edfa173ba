"""parts_in_place: Graph → Graph where what fills a part of a new array is computed there; only the rest is filled."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import mapped, with_nodes
from ..ir.types import Aval
from ..ops.elementwise import const
from ..ops.index import indexed, setitem
from ..ops.parts import empty, into_part

LEAST = 32 * 1024  # bytes of a part from which this saves time
# Operations that IEEE 754 defines to the last bit, so that NumPy's loops cannot differ by the place of their results.
EXACT = frozenset({"add", "sub", "mul", "div", "neg", "square", "sqrt", "abs"})


def parts_in_place(graph: Graph) -> Graph:
    """Compute ``v`` of ``y = np.zeros(n); y[1:] = v`` in place of the zeros, if nothing else reads it.

    The part must lie in one piece: NumPy computes into rows of a matrix more slowly than it copies them. The result is
    for planning and emission only.
    """
    return mapped(graph, _parts_in_place)


def _parts_in_place(graph: Graph) -> Graph:
    if setitem not in graph.prims or graph.largest < LEAST:
        return graph
    found = _PartWrites(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node in found.written:
            nodes += _written(node, found.written[node], graph.producer[node.inputs[0]])
        elif node not in found.moved:
            nodes.append(node)
    return with_nodes(graph, nodes) if found.written else graph


class _PartWrites:
    """The writes whose value is computed in place, each with the operation, and these operations."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.made = graph, graph.producer
        self.at = {node: i for i, node in enumerate(graph.nodes)}
        self.written = {node: made for node in graph.nodes if (made := self._computes(node)) is not None}
        self.moved = frozenset(self.written.values())

    def _computes(self, write: Node) -> Node | None:
        """The operation that can compute the value of a write in place."""
        if write.prim is not setitem or len(write.inputs) != 2:
            return None
        base, value = write.inputs
        source, made = self.made.get(base), self.made.get(value)
        if source is None or made is None or source.prim is not const or isinstance(source.attrs["value"], tuple):
            return None
        if made.prim.name not in EXACT or value.aval.dtype.kind != "f" or value.aval.nbytes < LEAST:
            return None
        if base.aval.kind != "array" or _rows(write.attrs["index"], base.aval) is None:
            return None
        once = len(self.graph.uses[value]) == 1 and value not in self.graph.outputs
        return made if once and self._takes_no_memory(made, write) else None

    def _takes_no_memory(self, made: Node, write: Node) -> bool:
        """Whether the whole array can be made in front of the operation without a higher peak.

        It then lives beside the operands. Without this, the value lives beside it, which may lie in the storage of an
        operand.
        """
        last = {v: self._last(v) for v in made.inputs if v.aval.kind == "array"}
        dying = [v for v, at in last.items() if at <= self.at[write]]
        between = self.graph.nodes[self.at[made] + 1 : self.at[write]]
        near = all(node.prim is const or node.prim.alias is not None for node in between)
        return not dying or (near and len(dying) == 1)

    def _last(self, value: Value) -> int:
        """The number of the last node that reads a value or what it is a view of, as far as is known."""
        last = -1
        while True:
            node = self.made.get(value)
            if value in self.graph.outputs or node is None or node.prim is const:
                return len(self.graph.nodes)
            last = max(last, *(self.at[reader] for reader in self.graph.uses[value]))
            if node.prim.alias is None:
                return last
            value = node.inputs[node.prim.alias]


def _rows(index: tuple[Any, ...], aval: Aval) -> range | None:
    """The rows that an index selects, if it selects all of some that lie beside each other."""
    if not index or not all(isinstance(item, slice) for item in index) or any(i != slice(None) for i in index[1:]):
        return None
    rows = range(*index[0].indices(aval.shape[0]))
    return rows if rows.step == 1 and rows else None


def _written(write: Node, made: Node, source: Node) -> list[Node]:
    """A new array, the number in its rows before and after the part, and the part."""
    aval, replica = write.out.aval, write.replica
    rows = _rows(write.attrs["index"], aval)
    assert rows is not None
    nodes = [Node(empty, (), {"aval": aval}, (Value(aval),), write.where, replica)]
    for rest in (slice(None, rows.start), slice(rows.stop, None)):
        part = indexed(aval, (), (rest,))
        if part.size:
            number = Node(
                const, (), {"aval": part, "value": source.attrs["value"]}, (Value(part),), write.where, replica
            )
            operands = (nodes[-1].out, number.out)
            nodes += [number, Node(setitem, operands, {"index": (rest,)}, (Value(aval),), write.where, replica)]
    attrs = {"index": write.attrs["index"], "of": made.prim.name}
    return [*nodes, Node(into_part, (nodes[-1].out, *made.inputs), attrs, write.outputs, made.where, replica)]
