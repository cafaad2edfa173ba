"""inline: copy the nodes of a graph into a builder, and inline calls."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.primitive import TRANSFORMS


@TRANSFORMS.register("inline")
def inline_into(b: Builder, graph: Graph, args: Sequence[Symbol], opening: bool = False) -> list[Symbol]:
    """The outputs of ``graph`` applied to ``args``, as symbols of ``b``; with ``opening``, calls are inlined, too."""
    env: dict[Value, Value] = {v: s.value for v, s in zip(graph.inputs, args, strict=True)}
    for node in graph.nodes:
        ins = [env[v] for v in node.inputs]
        if node.prim.structure is None and tuple(ins) == node.inputs:
            b.where = node.where
            env.update(zip(node.outputs, b.keep(node), strict=True))
            continue
        if node.graphs:  # operands may have another kind than the inputs; elementwise operations mix kinds
            ins = [b.coerce(b.symbol(x), v.aval).value for x, v in zip(ins, node.inputs, strict=True)]
        body = body_in_place(node) if opening and not node.attrs.get("closed", False) else None
        outs = b.copy_node(node, ins) if body is None else inline_into(b, body, list(map(b.symbol, ins)), True)
        env.update(zip(node.outputs, [out.value for out in outs], strict=True))
    return [Symbol(b, env[v]) for v in graph.outputs]


def body_in_place(node: Node) -> Graph | None:
    """The body of a call that may be inlined, else None."""
    structure = node.prim.structure
    return structure.body(node) if structure is not None and structure.transparent else None
