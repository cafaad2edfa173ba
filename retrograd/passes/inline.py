"""inline: copy the nodes of a graph into a builder."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Value
from ..ir.primitive import TRANSFORMS


@TRANSFORMS.register("inline")
def inline_into(b: Builder, graph: Graph, args: Sequence[Symbol]) -> list[Symbol]:
    """The outputs of ``graph`` applied to ``args``, as symbols of ``b``."""
    env: dict[Value, Value] = {v: s.value for v, s in zip(graph.inputs, args, strict=True)}
    for node in graph.nodes:
        ins = [env[v] for v in node.inputs]
        if node.graphs:  # operands may have another kind than the inputs; elementwise operations mix kinds
            ins = [b.coerce(b.symbol(x), v.aval).value for x, v in zip(ins, node.inputs, strict=True)]
        outs = b.copy_node(node, ins)
        for value, out in zip(node.outputs, outs, strict=True):
            env[value] = out.value
    return [Symbol(b, env[v]) for v in graph.outputs]
