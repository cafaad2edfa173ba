"""hoist_draws: the random draws of a body become inputs, so that a loop can draw for all its steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import UnsupportedError
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Node, Value
from ..ir.rewrite import walk
from ..ir.types import Aval
from ..ops.structural.draw import draw
from ..ops.structural.draws import draws, items_of

DRAWING = (draw, draws)


@dataclass(frozen=True, eq=False)
class StepDraws:
    """What one step draws from a generator, which is an input of the body: items of ``draws``, and the values."""

    generator: Value
    items: list[Any] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def emit(self, generator: Symbol, steps: int) -> list[Symbol]:
        """Draw for so many steps, one after the other; arrays with a row for each step."""
        items = (("loop", steps, tuple(self.items)),)
        return generator.builder.emit(draws, [generator.value], {"items": items})


def drawn_in(graph: Graph) -> list[StepDraws]:
    """What a graph draws from each generator; UnsupportedError for draws in branches and loops inside of it."""
    found: dict[Value, StepDraws] = {}
    for node in graph.nodes:
        if node.prim in DRAWING:
            one = found.setdefault(node.inputs[0], StepDraws(node.inputs[0]))
            one.items.extend(items_of(node))
            one.values.extend(node.outputs)
        else:
            _refuse_inside(node)
    return list(found.values())


def _refuse_inside(node: Node) -> None:
    for _, body in node.graphs:
        for inner in walk(body):
            if inner.prim in DRAWING:
                raise UnsupportedError(
                    f"a random draw inside {node.prim.name}, in a function that is repeated",
                    where=inner.where,
                    remedy="draw all numbers before, and pass them as an argument",
                )


def hoist_draws(graph: Graph, drawn: list[StepDraws], at: int) -> Graph:
    """The graph with what it draws as inputs, from position ``at`` on, in place of the generators."""
    b = Builder()
    env: dict[Value, Symbol] = {v: b.input(v.aval, v.hint) for v in graph.inputs[:at]}
    for v in (v for one in drawn for v in one.values):
        plain = Aval(v.aval.shape, v.aval.dtype, "array" if v.aval.shape else "scalar")
        env[v] = b.coerce(b.input(plain, v.hint), v.aval)
    generators = {one.generator for one in drawn}
    env |= {v: b.input(v.aval, v.hint) for v in graph.inputs[at:] if v not in generators}
    for node in graph.nodes:
        if node.prim not in DRAWING:
            env.update(zip(node.outputs, b.copy_node(node, [env[v].value for v in node.inputs]), strict=True))
    return b.graph(graph.name, [env[v] for v in graph.outputs])
