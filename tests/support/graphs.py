"""Graphs for tests: of one node, and derivatives as graphs that can be differentiated again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from retrograd.ir import Aval, Graph, parse, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.graph import Value
from retrograd.ir.primitive import REGISTRY, Primitive, Unknown
from retrograd.passes.batch import batch_into
from retrograd.passes.inline import inline_into
from retrograd.passes.jvp import jvp
from retrograd.passes.linearize import linearize
from retrograd.passes.prune import prune
from retrograd.passes.transpose import transpose_into

# A graph with a body, lines of the user's program, and an input among its results.
LOOPED = parse("""
graph f(%x: f64[3], %w: f64[3,3]) {
  %y = matmul %w, %x : f64[3]  # layer.py:4
  %0 = mul %y, %y : f64[3]
  %1, %2 = scan %x, %0 {arrays=0, carry=2, consts=0, length=2, reverse=False} : f64[3], f64[3]
    body = graph step(%a: f64[3], %b: f64[3]) {
      %0 = add %a, %b : f64[3]
      return %b, %0
    }
  return %2, %x
}""")


def built(function: Callable[..., Any], *avals: Aval, name: str = "f", hints: Sequence[str] = ()) -> Graph:
    """The graph of a function of symbols, which returns one or a tuple or list of them."""
    b = Builder()
    out = function(*(b.input(a, h) for a, h in zip(avals, [*hints, *[None] * (len(avals) - len(hints))], strict=True)))
    return verify(b.graph(name, out if isinstance(out, (tuple, list)) else [out]))


def one_node(prim: Primitive, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Graph:
    """The graph that applies one primitive to its inputs."""
    b = Builder()
    inputs = [b.input(a, f"x{i}") for i, a in enumerate(avals)]
    return verify(b.graph(f"one_{prim.name}", b.emit(prim, [x.value for x in inputs], attrs)))


def with_constants(graph: Graph, args: Sequence[Any], fixed: Sequence[int]) -> tuple[Graph, list[Any]]:
    """The graph in which some operands are constants, each its argument's first element, and the other arguments."""
    b = Builder()
    given: list[Any] = []
    for i, (v, x) in enumerate(zip(graph.inputs, args, strict=True)):
        number = np.asarray(x).reshape(-1)[0].item() if i in fixed else None
        given.append(b.input(v.aval) if number is None else b.constant(number, v.aval))
    found = verify(b.graph(graph.name, inline_into(b, graph, given)))
    return found, [x for i, x in enumerate(args) if i not in fixed]


def inexact(graph: Graph) -> list[bool]:
    """Which inputs can be differentiated: floating-point ones on which no operand of unknown derivative depends."""
    unknown: set[Value] = set()
    for node in reversed(graph.nodes):
        through = not unknown.isdisjoint(node.outputs)
        refused = {i for i in range(len(node.inputs)) if isinstance(node.prim.derivative(i), Unknown)}
        for _, body in node.graphs:
            flags = zip(body.inputs, inexact(body), strict=True)
            refused |= {i for i, (v, on) in enumerate(flags) if v.aval.inexact and not on}
        unknown.update(v for i, v in enumerate(node.inputs) if through or i in refused)
    return [v.aval.inexact and v not in unknown for v in graph.inputs]


def differentiable(graph: Graph, active: Sequence[bool]) -> bool:
    """Whether there is anything to differentiate, and anything to differentiate with respect to."""
    return any(active) and any(v.aval.inexact for v in graph.outputs)


def tangent_graph(graph: Graph, active: Sequence[bool]) -> Graph:
    """f(x…) → y… becomes x…, ẋ… → ẏ…."""
    both = jvp(graph, active, nan_safe=False)
    return verify(prune(Graph(f"{graph.name}_dot", both.inputs, both.nodes, both.outputs[len(graph.outputs) :])))


def reverse_graph(graph: Graph, active: Sequence[bool]) -> Graph:
    """f(x…) → y… becomes x…, ȳ… → x̄…: cotangents for all active outputs in, of all active inputs out."""
    lin = linearize(graph, active, nan_safe=False)
    b = Builder()
    args = b.inputs_like(graph.inputs)
    cts = [b.input(v.aval, f"ct{i}") for i, v in enumerate(graph.outputs) if lin.out_active[i]]
    residuals = inline_into(b, lin.forward, args)[len(graph.outputs) :]
    tangents = lin.linear.inputs[len(residuals) :]
    found = transpose_into(b, lin.linear, [*residuals, *[None] * len(tangents)], cts)
    b.where = None
    targets = [replace(v.aval, kind="scalar") if v.aval.kind == "python" else v.aval for v in tangents]
    filled = [b.zeros(a) if ct is None else b.coerce(ct, a) for ct, a in zip(found, targets, strict=True)]
    return verify(prune(b.graph(f"{graph.name}_bar", filled)))


def lane_aval(size: int, aval: Aval) -> Aval:
    """The aval with a leading axis of lanes, inside lists of steps."""
    return Aval((size, *aval.shape), aval.dtype, "array", aval.steps)


def batched(graph: Graph, size: int, flags: Sequence[bool]) -> tuple[Graph, list[bool]]:
    """The graph over lanes, and which outputs carry them."""
    b = Builder()
    inputs: list[Symbol] = [
        b.input(lane_aval(size, v.aval) if on else v.aval, v.hint) for v, on in zip(graph.inputs, flags, strict=True)
    ]
    outs, on = batch_into(b, graph, size, inputs, flags)
    return verify(b.graph(f"{graph.name}_lanes", outs)), list(on)


def precision(graph: Graph) -> float:
    """The coarsest machine epsilon among all values of a graph, or tolerance of a solution in it."""
    values = (*graph.inputs, *(v for node in graph.nodes for v in node.outputs))
    own = {v.aval.dtype for v in values if v.aval.inexact}
    inner = [precision(body) for node in graph.nodes for _, body in node.graphs]
    asked = [node.attrs["rtol"] for node in graph.nodes if node.prim.name.startswith("ode")]
    return max([float(np.finfo(d).eps) for d in own] + inner + asked, default=0.0)


def op(name: str, *operands: Any, **attrs: Any) -> Any:
    """A primitive applied by name."""
    return REGISTRY[name](*operands, **attrs)
