"""Traces in which equal operations stay separate, as Python ran them, and their merging afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.primitive import Primitive
from ...ir.types import Aval
from ...ops.structural.guard import guard


class Apart(Builder):
    """A builder that makes a node for each operation, also for equal ones; what has no operands is made once.

    Where a variable keeps its value, a step of a loop so still has all of its operations.
    """

    def __init__(self) -> None:
        super().__init__()
        self._avals: dict[Any, tuple[Sequence[Aval], Sequence[Aval]]] = {}

    def emit(
        self,
        prim: Primitive,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        hints: Sequence[str | None] = (),
        avals: Sequence[Aval] | None = None,
    ) -> list[Symbol]:
        if not inputs:
            return super().emit(prim, inputs, attrs, hints, avals)
        given = tuple(inputs)
        if avals is None:
            avals = prim.avals([v.aval for v in given], attrs) if attrs else self._plainly(prim, given)
        if len(avals) == 1:
            outputs: tuple[Value, ...] = (Value(avals[0], hints[0] if hints else None),)
        else:
            outputs = tuple([Value(a, h) for a, h in zip(avals, hints or [None] * len(avals), strict=True)])
        node = Node(prim, given, attrs, outputs, self.where, self.replica)
        self.nodes.append(node)
        for out in outputs:
            self.made[out] = node
        return [Symbol(self, v) for v in outputs]

    def single(
        self, prim: Primitive, inputs: tuple[Value, ...], attrs: Mapping[str, Any], key: Any, aval: Aval
    ) -> Symbol:
        if not inputs:
            return super().single(prim, inputs, attrs, key, aval)
        value = Value(aval)
        node = self.made[value] = Node(prim, inputs, attrs, (value,), self.where, self.replica)
        self.nodes.append(node)
        return Symbol(self, value)

    def _plainly(self, prim: Primitive, operands: Sequence[Value]) -> Sequence[Aval]:
        """The avals of the results of an operation without attributes, remembered by identities: hashing takes long."""
        taken = [v.aval for v in operands]
        key = (prim, *map(id, taken))
        found = self._avals.get(key)
        if found is None:
            found = self._avals[key] = taken, prim.avals(taken, {})  # the entry keeps what has these identities
        return found[1]

    def keep(self, node: Node) -> tuple[Value, ...]:
        if not node.inputs:
            return super().keep(node)
        self.nodes.append(node)
        self.made.update(dict.fromkeys(node.outputs, node))
        return node.outputs


def keep_apart(builder: Builder) -> None:
    """Let a builder make a node for each operation from now on."""
    builder.__class__ = Apart
    vars(builder)["_avals"] = {}


def merged(graph: Graph) -> Graph:
    """The graph with equal nodes merged, and one guard for each value: what a recording is in general."""
    b = Builder()
    env = dict(zip(graph.inputs, b.share_inputs(graph), strict=True))
    asked = set()
    for node in graph.nodes:
        operands = [env[v].value for v in node.inputs]
        if node.prim is guard:
            question = operands[0], node.attrs["kind"]
            if question in asked:
                continue
            asked.add(question)
        for value, found in zip(node.outputs, b.copy_node(node, operands), strict=True):
            env[value] = found
            if found.value.hint is None:  # the first variable that it was bound to
                found.value.hint = value.hint
    return b.graph(graph.name, [env[v] for v in graph.outputs])
