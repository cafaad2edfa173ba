"""quotients: Graph → Graph in which a line that divides by numbers also divides by powers of two.

``simplify`` multiplies by their reciprocals instead. So of the steps of a loop that divides by a counter, those with 1,
2, 4, 8, ... would be others. The bits are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.builder import Builder, Symbol
from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import Env, rebuild
from ...ops.elementwise import const, div, mul


def quotients(graph: Graph) -> Graph:
    """Divide by the reciprocals of these factors; the graph itself if no line has both."""
    lines = {node.where for node in graph.nodes if node.prim is div and _number(graph, node.inputs[1]) is not None}

    def rule(b: Builder, node: Node, env: Env) -> Sequence[Symbol] | None:
        factor = _number(graph, node.inputs[1]) if node.prim is mul and node.where in lines else None
        if not factor or abs(math.frexp(factor)[0]) != 0.5 or not 1e-4 < abs(factor) < 1e4:
            return None
        x, y = node.inputs
        return [div(env[x], b.constant(1 / factor, y.aval))]

    return rebuild(graph, rule) if lines else graph


def _number(graph: Graph, value: Value) -> float | None:
    """The float that fills a constant."""
    node = graph.producer.get(value)
    if node is None or node.prim is not const or value.aval.dtype.kind != "f":
        return None
    number = node.attrs["value"]
    return None if isinstance(number, tuple) or not math.isfinite(number) else float(number)
