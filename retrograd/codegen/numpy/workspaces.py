"""workspaces: Plan of the body of a loop → values that may use storage allocated once, before the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ...ir.graph import Graph, Node, Value
from ...ir.loop_node import LoopNode, loop_of
from ...ir.plan import Plan
from ...ir.rewrite import walk
from ...ops.structural.kernel import kernel

LARGE = 64 * 1024  # bytes from which new storage in every step costs more than the computation into it


def workspaces(plan: Plan, results: bool = True) -> dict[Value, list[Value]]:
    """For each value with large storage of its own that nothing needs after the step: all values in that storage.

    What is handed on does not count. ``results`` says whether results of the function lie in its storage; else they are
    written into given arrays, and so are the arrays that loops fill.
    """
    graph = plan.order
    if graph.largest < LARGE:
        return {}
    members: dict[int, list[Value]] = {}
    given = frozenset() if results else frozenset(graph.outputs)
    for value, number in plan.buffer.items():
        if value in given:
            continue
        members.setdefault(number, []).append(value)
    kept = {*graph.inputs, *graph.outputs, *_handed_on(graph)}
    seen: set[int] = set()
    found: dict[Value, list[Value]] = {}
    for node in graph.nodes:
        for out in node.outputs:
            if out in given or (node.prim.multi and not results):
                continue
            number = plan.buffer[out]
            if number in seen:
                continue
            seen.add(number)
            if _may_be_given(plan, out) and kept.isdisjoint(members[number]):
                found[out] = members[number]
    return found


def _handed_on(graph: Graph) -> set[Value]:
    """Operands that may be results of their node, too, or be seen by what it calls."""
    return {v for node in graph.nodes if node.prim.multi and not _only_fills_arrays(node) for v in node.inputs}


def _only_fills_arrays(node: Node) -> bool:
    """Whether a node is a loop without results but arrays, whose steps call nothing."""
    loop = loop_of(node)
    fills = loop is not None and len(node.outputs) == loop.layout.arrays
    return fills and not any(inner.prim.multi for _, body in node.graphs for inner in body.nodes)


def _may_be_given(plan: Plan, value: Value) -> bool:
    """Whether a result is large, and can be computed into storage in C order that it is given."""
    aval, node = value.aval, plan.order.producer[value]
    if aval.kind != "array" or aval.steps is not None or aval.nbytes < LARGE:
        return False
    loop = loop_of(node)
    filled = loop is not None and value in loop.layout.results(node.outputs)[1]
    into = filled or (node.prim.into and not node.prim.multi)
    return bool(into and value not in plan.copies and value in plan.ordered)


def in_results(plan: Plan, results: Sequence[Value]) -> dict[Value, Value]:
    """The values whose storage may be the array given for a result, until the operation that fills it; the result.

    Such an array first gets the storage that is needed longest, and then what is needed at other times.
    """
    made = {out: i for i, node in enumerate(plan.order.nodes) for out in node.outputs}
    storage = workspaces(plan, results=False)
    times = {first: (made[first], max(plan.last_use[v] for v in storage[first])) for first in storage}
    found: dict[Value, Value] = {}
    taken: dict[Value, list[tuple[int, int]]] = {v: [] for v in results}
    for first, (start, end) in sorted(times.items(), key=lambda item: item[1][0] - item[1][1]):
        for result in results:
            if first.aval != result.aval or end > made[result]:
                continue
            prim = plan.order.nodes[made[result]].prim
            if end == made[result] and prim.into and not prim.over:
                continue
            if all(end < other or last < start for other, last in taken[result]):
                taken[result].append((start, end))
                found.update(dict.fromkeys(storage[first], result))
                break
    return found


class StateRows(NamedTuple):
    """Rows for the states of a loop: their number, source of the row of step ``{t}``, and the results that they are.

    The last of the states that a list keeps as it begins its steps is in no list, so that it may be freed before them:
    it lies in ``{new}`` storage of its own, which an operation makes itself if its row is None.
    """

    number: int
    source: str
    results: list[int]


def rows_of_states(loop: LoopNode, plan: Plan) -> dict[Value, StateRows]:
    """The values of a step that later steps read, by the first in their storage.

    A list of all steps takes a row for each. For other carries two rows do: a step writes one, and reads the other, to
    which nothing else may refer.
    """
    body, number = plan.order, plan.buffer
    found: dict[Value, StateRows] = {}
    if loop.length < 2 or body.largest < LARGE:
        return found
    _, before, _ = loop.layout.operands(body.inputs)
    then, arrays, stacks = loop.layout.results(body.outputs)
    listed, ends = [number[v] for v in stacks], [number[v] for v in then]
    over = {number[v] for node in body.nodes if node.prim is kernel for v in node.outputs if v in plan.into}
    outside = {number[v] for v in body.inputs} | over  # a kernel's result may lie elsewhere, if NumPy computes it
    handed_on = {number[v] for v in _handed_on(body)}
    for value in (v for node in body.nodes for v in node.outputs):
        at = number[value]
        if at in outside or at not in {*listed, *ends}:
            continue
        outside.add(at)  # what comes later in this storage has the same place
        carried = [k for k, end in enumerate(ends) if end == at]
        last = {number[before[k]] for k in carried}
        lists = [len(then) + len(arrays) + k for k, entry in enumerate(listed) if entry in {at, *last}]
        if len(carried) > 1 or not _may_be_given(plan, value):
            continue
        if at in listed:
            found[value] = StateRows(loop.length, "[{t}]", lists)
        elif lists and handed_on.isdisjoint({at}):
            n = loop.length - 1
            source = "[{t} - 1] if {t} else {new}" if loop.reverse else f"[{{t}}] if {{t}} < {n} else {{new}}"
            found[value] = StateRows(n, source, lists)
        elif last.isdisjoint(ends) and handed_on.isdisjoint({at, *last}):
            found[value] = StateRows(2, "[{t} & 1]", carried)
    return found


def rows_of_arrays(loop: LoopNode, plan: Plan) -> dict[Value, int]:
    """The values of a step that are computed into the row of an array of all steps, and the number of the array.

    They are the first ones in the storage of what a step adds to the array.
    """
    body, number = plan.order, plan.buffer
    then, arrays, stacks = loop.layout.results(body.outputs)
    if body.largest < LARGE or not arrays:
        return {}
    views = {node.out for node in body.nodes if node.prim.alias is not None}
    turned = {number[v] for v in views.intersection(plan.into.values())}  # storage that is written into as a view
    handed_on = {number[v] for v in _handed_on(body)}
    taken = turned | handed_on | {number[v] for v in (*body.inputs, *then, *stacks)}
    times = Counter(number[v] for v in arrays)
    rows = {number[v]: k for k, v in enumerate(arrays) if times[number[v]] == 1 and v in plan.ordered - views}
    found: dict[Value, int] = {}
    for value in (v for node in body.nodes for v in node.outputs):
        at = number[value]
        if at in taken or at not in rows:
            continue
        taken.add(at)
        if _may_be_given(plan, value) and value.aval == arrays[rows[at]].aval:
            found[value] = rows[at]
    return found


def looped_once(graph: Graph) -> set[Graph]:
    """The bodies of all nodes, inner ones too, that one node alone has."""
    bodies = Counter(body for node in walk(graph) for _, body in node.graphs)
    return {body for body, times in bodies.items() if times == 1}
