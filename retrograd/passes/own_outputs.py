"""own_outputs: Graph → Graph whose results share storage with no argument, no capture and no other result."""

from __future__ import annotations

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ops.shape import owned
from ..ops.structural.region import turn_of
from .inline import inline_into


def own_outputs(graph: Graph) -> Graph:
    """Copy results that are inputs, views of inputs or of other results, read-only, or may be operands of a loop."""
    at = turn_of(graph)
    if at is not None and at.attrs.get("split") is not None:  # it will be divided, and each half gets its own
        return graph
    made = _makers(graph)
    seen: set[Value] = set()
    shared = []
    for value in graph.outputs:
        root, read_only = value, False
        while root in made and (alias := made[root].prim.alias) is not None and value.aval.kind == "array":
            read_only |= made[root].prim.name in ("broadcast", "diagonal", "windows")
            root = made[root].inputs[alias]
        node = made.get(root)
        fresh = node is not None and (not node.prim.multi or node.outputs.index(root) in _fresh(node))
        shared.append(
            value.aval.kind == "array" and value.aval.steps is None and (not fresh or read_only or root in seen)
        )
        seen.add(root)
    if not any(shared):
        return graph
    b = Builder()
    inputs = b.inputs_like(graph.inputs)
    outs = inline_into(b, graph, inputs)
    b.where = None
    return b.graph(graph.name, [_copied(b, o) if s else o for o, s in zip(outs, shared, strict=True)])


def _makers(graph: Graph) -> dict[Value, Node]:
    """The nodes that make the results, and the values of which these are views."""
    wanted, made = set(graph.outputs), dict[Value, Node]()
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            made.update(dict.fromkeys(node.outputs, node))
            if node.prim.alias is not None:
                wanted.add(node.inputs[node.prim.alias])
    return made


def _copied(b: Builder, x: Symbol) -> Symbol:
    """A copy of a value, even if another result is a copy of the same value."""
    b.replica += 1
    return b.emit(owned, (x.value,), {})[0]


def _fresh(node: Node) -> set[int]:
    return set(node.prim.fresh(node)) if node.prim.fresh else set()
