"""pickling: graphs are pickled as their text, and plans as graphs with numbers for values."""

from __future__ import annotations

import copyreg
from typing import Any

from ..errors import UnsupportedError
from .graph import Graph, Value
from .parser import parse
from .plan import Plan
from .printer import to_text
from .rewrite import walk


def _reduced_graph(graph: Graph) -> tuple[Any, ...]:
    if any(node.prim.name == "host" for node in walk(graph)):
        raise UnsupportedError(
            f"the graph {graph.name} calls a Python function of this process, so it cannot be pickled",
            remedy="pickle the function that it was traced from",
        )
    return parse, (to_text(graph),)


def _reduced_plan(plan: Plan) -> tuple[Any, ...]:
    return _read, (plan.order, _written(plan, plan.order))


copyreg.pickle(Graph, _reduced_graph)
copyreg.pickle(Plan, _reduced_plan)


def _values(graph: Graph) -> list[Value]:
    return [*graph.inputs, *(v for node in graph.nodes for v in node.outputs)]


def _written(plan: Plan, graph: Graph) -> tuple[Any, ...]:
    """A plan of a graph, or of the body that it is, as plain data: a pickle holds its text, so values are numbers."""
    node_at = {id(node): k for k, node in enumerate(graph.nodes)}
    at = {v: k for k, v in enumerate(_values(graph))}
    bodies = [(k, name, body) for k, node in enumerate(graph.nodes) for name, body in node.graphs]
    return (
        [node_at[id(node)] for node in plan.order.nodes],
        {at[v]: k for v, k in plan.buffer.items()},
        {at[v]: at[w] for v, w in plan.into.items()},
        [at[v] for v in plan.copies],
        [at[v] for v in plan.apart],
        {at[v]: k for v, k in plan.last_use.items()},
        [[at[v] for v in gone] for gone in plan.dies],
        plan.scratch,
        plan.peak,
        [at[v] for v in plan.ordered],
        [(k, name, _written(plan.bodies[body], body)) for k, name, body in bodies if body in plan.bodies],
    )


def _read(graph: Graph, data: tuple[Any, ...]) -> Plan:
    """The plan that was written."""
    nodes, buffer, into, copies, apart, last_use, dies, scratch, peak, ordered, bodies = data
    values = _values(graph)
    graphs = {(k, name): body for k, node in enumerate(graph.nodes) for name, body in node.graphs}
    return Plan(
        Graph(graph.name, graph.inputs, tuple(graph.nodes[k] for k in nodes), graph.outputs),
        {values[v]: k for v, k in buffer.items()},
        {values[v]: values[w] for v, w in into.items()},
        frozenset(values[v] for v in copies),
        frozenset(values[v] for v in apart),
        {values[v]: k for v, k in last_use.items()},
        tuple(tuple(values[v] for v in gone) for gone in dies),
        scratch,
        peak,
        frozenset(values[v] for v in ordered),
        {graphs[k, name]: _read(graphs[k, name], body) for k, name, body in bodies},
    )
