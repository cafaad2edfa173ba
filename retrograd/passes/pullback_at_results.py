"""recall: f(x...) → y... becomes (some of x..., y..., then ȳ...) → x̄..., for remembered inputs and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Value
from ..ir.verify import verify
from .differentiate import filled
from .linearize import linearize
from .prune import live_inputs, prune
from .transpose import transpose_into


@dataclass(frozen=True, eq=False)
class Recalled:
    """``graph`` takes the values that it ``reads``, as positions in (inputs..., results...), and then cotangents."""

    graph: Graph
    reads: tuple[int, ...]


def recall(graph: Graph, active: Sequence[bool], seeds: Sequence[str | None], *, nan_safe: bool) -> Recalled:
    """The adjoint of a graph that was run node by node, so that its inputs and results need no computing.

    ``active`` are the inputs whose cotangents are wanted. ``seeds`` gives the cotangent of each result: ``"given"``,
    which is a further input; ``"one"``; or None, which is zero. All other values that the adjoint needs are computed
    again.
    """
    lin = linearize(graph, active, nan_safe=nan_safe)
    n = len(graph.outputs)
    remembered = (*lin.forward.inputs, *lin.forward.outputs[:n])
    b = Builder()
    env: dict[Value, Symbol] = {}
    for value in remembered:
        if value not in env:
            env[value] = b.input(value.aval, value.hint)
    for node in lin.forward.nodes:
        if not all(v in env for v in node.outputs):
            made = b.copy_node(node, [env[v].value for v in node.inputs])
            for value, symbol in zip(node.outputs, made, strict=True):
                env.setdefault(value, symbol)
    b.where = None
    cts = [b.input(v.aval, "ct") if seed == "given" else None for v, seed in zip(graph.outputs, seeds, strict=True)]
    chosen = [b.constant(1, v.aval) if s == "one" else ct for v, s, ct in zip(graph.outputs, seeds, cts, strict=True)]
    residuals = [env[v] for v in lin.forward.outputs[n:]]
    tangents = lin.linear.inputs[len(residuals) :]
    wanted = [ct for ct, on in zip(chosen, lin.out_active, strict=True) if on]
    found = transpose_into(b, lin.linear, [*residuals, *[None] * len(tangents)], wanted)
    b.where = None
    grads = [filled(b, ct, v.aval) for ct, v in zip(found, tangents, strict=True)]
    return _narrowed(prune(b.graph(f"{graph.name}_adjoint", grads)), env, remembered)


def _narrowed(graph: Graph, env: dict[Value, Symbol], remembered: Sequence[Value]) -> Recalled:
    """Drop the remembered values that no node reads."""
    live = {v for v, on in zip(graph.inputs, live_inputs(graph, [True] * len(graph.outputs)), strict=True) if on}
    first: dict[Value, int] = {}
    for k, value in enumerate(remembered):
        first.setdefault(env[value].value, k)
    inputs = tuple(v for v in graph.inputs if v not in first or v in live)
    reads = tuple(first[v] for v in inputs if v in first)
    return Recalled(verify(Graph(graph.name, inputs, graph.nodes, graph.outputs)), reads)
