"""apart: a function and its pullback as one graph with a turn, so that what is kept between them can be chosen."""

from __future__ import annotations

from dataclasses import replace

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph
from ...ir.rewrite import with_nodes
from ...ops.shape import copy
from ...ops.structural.call import make_call
from ...ops.structural.region import turn
from ..inline import inline_into
from ..prune import prune


def together(forward: Graph, outs: int, back: Graph) -> Graph:
    """forward(x…) → y…, r… and back(r…, ȳ…) → x̄… become joint(x…, ȳ…) → y…, x̄…; ``back`` begins with a turn."""
    b = Builder()
    found = inline_into(b, forward, b.inputs_like(forward.inputs))
    cts = b.inputs_like(back.inputs[len(forward.outputs) - outs :])
    back = with_nodes(back, (replace(n, attrs={**n.attrs, "again": True}) if n.prim is turn else n for n in back.nodes))
    return b.graph(forward.name, [*found[:outs], *inline_into(b, back, [*found[outs:], *cts])])


def apart(joint: Graph, inputs: int, outs: int) -> tuple[Graph, Graph]:
    """What joint(x…, ȳ…) → y…, x̄… does before its turn as x… → y…, kept…, and after it as x…, kept…, ȳ… → x̄…."""
    at = next(i for i, node in enumerate(joint.nodes) if node.prim is turn)
    ours, theirs = joint.nodes[:at], joint.nodes[at + 1 :]
    made = {v: node for node in ours for v in node.outputs}
    read = [v for v in (*(v for node in theirs for v in node.inputs), *joint.outputs[outs:]) if v in made]
    constants = dict.fromkeys(made[v] for v in read if not made[v].inputs and not made[v].prim.effect)
    kept = tuple(dict.fromkeys(v for v in read if made[v] not in constants))
    xs, cts = joint.inputs[:inputs], joint.inputs[inputs:]
    return (
        prune(Graph(joint.name, xs, ours, (*joint.outputs[:outs], *kept))),
        prune(Graph(f"{joint.name}_pullback", (*xs, *kept, *cts), (*constants, *theirs), joint.outputs[outs:])),
    )


def in_turn(forward: Graph, outs: int, back: Graph) -> Graph:
    """A graph that calls both of what ``apart`` gives: its memory is that of a function and one call of its pullback.

    Arguments are copied, for the caller may change them before the pullback runs; what it reads lives on after it.
    """
    b = Builder()
    xs = [_owned(b, x) for x in b.inputs_like(forward.inputs)]
    found = make_call(b, forward, xs)
    cts = b.inputs_like(back.inputs[len(xs) + len(found) - outs :])
    return b.graph(forward.name, [*xs, *found, *make_call(b, back, [*xs, *found[outs:], *cts])])


def _owned(b: Builder, x: Symbol) -> Symbol:
    return b.emit(copy, (x.value,), {})[0] if x.aval.kind == "array" else x
