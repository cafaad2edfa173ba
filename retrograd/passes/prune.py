"""prune: Graph → Graph without the nodes that no output needs."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Graph, Node, Value
from ..ir.primitive import TRANSFORMS
from ..ir.rewrite import with_nodes


@TRANSFORMS.register("prune")
def prune(graph: Graph) -> Graph:
    """Drop dead nodes, and dead results of structural nodes."""
    if graph.knows("pruned"):
        return graph
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        outputs = node.outputs
        if len(outputs) == 1 and (outputs[0] in live or not node.effect):
            if outputs[0] in live:
                kept.append(node)
                live.update(node.inputs)
            continue
        used = [v in live for v in node.outputs]
        if any(used) or node.effect:
            kept.append(node if all(used) or node.prim.dce is None else _narrowed(node, used))
            live.update(kept[-1].inputs)
    pruned = with_nodes(graph, reversed(kept))
    pruned.once("pruned", lambda: True)
    return pruned


def _narrowed(node: Node, used: list[bool]) -> Node:
    """A structural node with only the results that are used, and the operands that these results need."""
    assert node.prim.dce is not None
    attrs, ins, outs = node.prim.dce(node, used)
    inputs, outputs = tuple(node.inputs[i] for i in ins), tuple(node.outputs[i] for i in outs)
    return Node(node.prim, inputs, attrs, outputs, node.where, node.replica)


@TRANSFORMS.register("live_inputs")
def live_inputs(graph: Graph, used: Sequence[bool]) -> list[bool]:
    """For each input, whether the used outputs need it."""
    live: set[Value] = {v for v, on in zip(graph.outputs, used, strict=True) if on}
    for node in reversed(graph.nodes):
        if any(v in live for v in node.outputs) or node.effect:
            live.update(node.inputs)
    return [v in live for v in graph.inputs]
