"""workspaces: Plan of the body of a loop → values that may use storage allocated once, before the loop."""

from __future__ import annotations

from ...ir.graph import Value
from ...ir.plan import Plan

LARGE = 64 * 1024  # bytes from which new storage in every step costs more than the computation into it


def workspaces(plan: Plan, results: bool = True) -> dict[Value, list[Value]]:
    """For each value with large storage of its own that nothing needs after the step: all values in that storage.

    Operands of a node with several results may be among its results, and so do not count. ``results`` says whether
    results of the function lie in its storage; else they are written into given arrays.
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
    handed_on = {v for node in graph.nodes if node.prim.multi for v in node.inputs}
    kept = {*graph.inputs, *graph.outputs, *handed_on}
    seen: set[int] = set()
    found: dict[Value, list[Value]] = {}
    for node in graph.nodes:
        for out in node.outputs:
            if out in given:
                continue
            number = plan.buffer[out]
            if number in seen:
                continue
            seen.add(number)
            large = out.aval.kind == "array" and out.aval.steps is None and out.aval.nbytes >= LARGE
            makes = not node.prim.multi and node.prim.into and out not in plan.copies
            makes = makes and out in plan.ordered
            if large and makes and kept.isdisjoint(members[number]):
                found[out] = members[number]
    return found
