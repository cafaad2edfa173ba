"""batch: f(x...) → y... becomes f over a batch: flagged inputs, and all that depends on them, get a leading axis."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InternalError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Value
from ..ir.primitive import TRANSFORMS
from ..ir.types import Aval
from ..ops.batching import lanes


@TRANSFORMS.register("batch")
def batch_into(
    b: Builder, graph: Graph, size: int, args: Sequence[Symbol], flags: Sequence[bool]
) -> tuple[list[Symbol], list[bool]]:
    """The outputs, and for each whether it carries lanes; a node that depends on no lane is computed once."""
    env: dict[Value, Symbol] = dict(zip(graph.inputs, args, strict=True))
    batched: dict[Value, bool] = dict(zip(graph.inputs, flags, strict=True))
    for node in graph.nodes:
        ins = [env[v] for v in node.inputs]
        on = [batched[v] for v in node.inputs]
        if not any(on):
            outs, out_on = b.copy_node(node, [s.value for s in ins]), [False] * len(node.outputs)
        elif node.prim.batch is None:
            raise InternalError(f"{node.prim.name} has no batching rule", where=node.where)
        else:
            b.where, b.replica = node.where, node.replica
            result = node.prim.batch(node.prim, size, ins, on, **node.attrs)
            outs, out_on = result if node.prim.multi else ([result], [True])
            b.replica = 0
        for value, out, flag in zip(node.outputs, outs, out_on, strict=True):
            if value.hint and out.value.hint is None:
                out.value.hint = value.hint
            env[value], batched[value] = out, flag
    return [env[v] for v in graph.outputs], [batched[v] for v in graph.outputs]


def batch(graph: Graph, size: int, flags: Sequence[bool]) -> Graph:
    """The graph over ``size`` lanes; every output gets the leading axis."""
    b = Builder()
    inputs = [
        b.input(Aval((size, *v.aval.shape), v.aval.dtype), v.hint) if on else b.input(v.aval, v.hint)
        for v, on in zip(graph.inputs, flags, strict=True)
    ]
    outs, on = batch_into(b, graph, size, inputs, flags)
    return b.graph(f"{graph.name}_vmap", [lanes(size, o, f) for o, f in zip(outs, on, strict=True)])
