"""verify: Graph → Graph, or an error that shows the ten lines around the fault."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import GraphError
from .graph import Graph, Node, Value
from .primitive import REGISTRY
from .printer import node_lines, value_names

CONTEXT = 5
CHECKS: list[Callable[[Node], str]] = []  # each tells what is wrong with a node whose avals fit


def verify(graph: Graph) -> Graph:
    """Check every rule of the IR: definitions before uses, avals as the primitives infer them.

    Returns the graph itself, so that a pass ends in ``return verify(...)``. Raises ``GraphError``.
    """
    defined = set(graph.inputs)
    if len(defined) < len(graph.inputs):
        raise _fault(graph, -1, "an input occurs twice")
    for i, node in enumerate(graph.nodes):
        if problem := _problem(node, defined):
            raise _fault(graph, i, problem)
        defined.update(node.outputs)
        for _, body in node.graphs if node.prim.structure is not None else ():
            verify(body)
    for value in graph.outputs:
        if value not in defined:
            raise _fault(graph, len(graph.nodes), f"output {value!r} is not defined")
    return graph


def _problem(node: Node, defined: set[Value]) -> str:
    if REGISTRY.get(node.prim.name) is not node.prim:
        return f"primitive {node.prim.name} is not the registered one"
    if not defined.issuperset(node.inputs):
        return f"operand {next(v for v in node.inputs if v not in defined)!r} is used before it is defined"
    if not defined.isdisjoint(node.outputs) or (len(node.outputs) > 1 and len({*node.outputs}) < len(node.outputs)):
        return "a result is defined twice"
    try:
        expected = node.prim.avals([v.aval for v in node.inputs], node.attrs)
    except Exception as fault:  # noqa: BLE001 - a shape rule may fail in any way on a malformed node
        return f"{node.prim.name} rejects its operands: {fault}"
    if expected != (found := tuple([v.aval for v in node.outputs])):
        return f"results are {', '.join(map(str, found))} but should be {', '.join(map(str, expected))}"
    for check in CHECKS:
        if problem := check(node):
            return problem
    return ""


def _fault(graph: Graph, at: int, problem: str) -> GraphError:
    where = graph.nodes[at].where if 0 <= at < len(graph.nodes) else None
    return GraphError(f"graph {graph.name}: {problem}\n{excerpt(graph, at)}", where=where)


def excerpt(graph: Graph, at: int) -> str:
    """The ten lines around node ``at``, with a caret below it."""
    names = value_names(graph)
    lines = []
    for i in range(max(at - CONTEXT, 0), min(at + CONTEXT, len(graph.nodes))):
        line = node_lines(graph.nodes[i], names)[0]
        lines.append(f"  {line}")
        if i == at:
            lines.append("  " + "^" * len(line))
    if at >= len(graph.nodes):
        lines += ["  return " + ", ".join(names.get(v, "%undefined") for v in graph.outputs), "  ^^^^^^"]
    return "\n".join(lines)
