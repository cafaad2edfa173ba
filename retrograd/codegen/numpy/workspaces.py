"""workspaces: Plan of a loop's body → values that may live in storage made once, before the loop."""

from __future__ import annotations

from ...ir.graph import Value
from ...ir.plan import Plan

LARGE = 64 * 1024  # bytes from which new storage in every step costs more than what is computed into it


def workspaces(plan: Plan) -> dict[Value, list[Value]]:
    """For each value that makes large storage which nothing needs after the step: all values in that storage.

    What a node with several results reads may be among its results, and so does not count.
    """
    graph = plan.order
    members: dict[int, list[Value]] = {}
    for value, number in plan.buffer.items():
        members.setdefault(number, []).append(value)
    handed_on = {v for node in graph.nodes if node.prim.multi for v in node.inputs}
    kept = {*graph.inputs, *graph.outputs, *handed_on}
    seen: set[int] = set()
    found: dict[Value, list[Value]] = {}
    for node in graph.nodes:
        for out in node.outputs:
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
