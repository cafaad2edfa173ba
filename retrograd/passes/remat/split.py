"""divide: split a function and its pullback, planned as one graph with a turn, into two graphs and a call of each."""

from __future__ import annotations

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph
from ...ir.primitive import TRANSFORMS
from ...ops.shape import copy
from ...ops.structural.call import call, make_call
from ...ops.structural.region import turn, turn_of
from ..checkpoint.checkpoint import run_again
from ..inline import inline_into
from ..own_outputs import own_outputs
from ..prune import prune
from .order import without_turn


def together(forward: Graph, outs: int, back: Graph, budget: int | None) -> Graph:
    """forward(x…) → y…, r… and back(r…, ȳ…) → x̄… as one graph joint(x…, ȳ…) → y…, x̄…, with a turn between them.

    It is the only turn: those of derivatives inside tell nothing there.
    """
    forward, back = without_turn(forward), without_turn(back)
    b = Builder()
    xs = b.inputs_like(forward.inputs)
    found = inline_into(b, forward, xs)
    cts = b.inputs_like(back.inputs[len(forward.outputs) - outs :])
    b.emit(turn, (), {"budget": budget, "split": (len(xs), outs)})
    return b.graph(forward.name, [*found[:outs], *inline_into(b, back, [*found[outs:], *cts])])


def divide(graph: Graph) -> Graph:
    """Turn a graph with a turn that splits it into one that calls a function and its pullback once; else drop the turn.

    The memory of the graph is then the memory of both calls. The function is x… → y…, x…, kept…, and the pullback is
    x…, kept…, ȳ… → x̄…. The function copies its arguments, since the caller may change them before the pullback runs.
    """
    split = splits(graph)
    if split is None:
        return without_turn(graph)
    inputs, outs = split
    head, tail = _apart(graph, inputs, outs)
    head, tail = own_outputs(with_own_inputs(head, outs)), own_outputs(run_again(tail))
    b = Builder()
    found = make_call(b, head, b.inputs_like(head.inputs))
    cts = b.inputs_like(tail.inputs[len(found) - outs :])
    return b.graph(graph.name, [*found, *make_call(b, tail, [*found[outs:], *cts])])


def turned(back: Graph, budget: int | None) -> Graph:
    """A pullback for a trace in which its budget, if it has one, has to hold: it begins with a turn."""
    if budget is None:
        return back
    b = Builder()
    inputs = b.inputs_like(back.inputs)
    b.emit(turn, (), {"budget": budget})
    return b.graph(back.name, inline_into(b, back, inputs))


@TRANSFORMS.register("without_idle_turn")
def without_idle_turn(graph: Graph) -> Graph:
    """The graph without a turn that has no budget, for a trace in which such a turn would say nothing."""
    if not any(node.prim is turn and node.attrs["budget"] is None for node in graph.nodes):
        return graph
    return graph.once("without turn", lambda: without_turn(graph))


def splits(graph: Graph) -> tuple[int, int] | None:
    """How many inputs and results the function has, if the turn of a graph says that it is split."""
    at = turn_of(graph)
    return None if at is None else at.attrs.get("split")


def halves(divided: Graph) -> tuple[Graph, Graph]:
    """The two graphs that a split graph calls."""
    head, tail = (body for node in divided.nodes if node.prim is call for _, body in node.graphs)
    return head, tail


def with_own_inputs(graph: Graph, at: int | None = None) -> Graph:
    """The graph on copies of its arguments, which the caller cannot change; with ``at``, they are results, too."""
    b = Builder()
    xs = [_owned(b, x) for x in b.inputs_like(graph.inputs)]
    found = inline_into(b, graph, xs)
    return b.graph(graph.name, found if at is None else [*found[:at], *xs, *found[at:]])


def _apart(joint: Graph, inputs: int, outs: int) -> tuple[Graph, Graph]:
    """Split joint(x…, ȳ…) → y…, x̄… at its turn into x… → y…, kept… and x…, kept…, ȳ… → x̄…."""
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


def _owned(b: Builder, x: Symbol) -> Symbol:
    return b.emit(copy, (x.value,), {})[0] if x.aval.kind == "array" else x
