"""Runners: nodes and graphs made ready to be interpreted many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .evaluate import Left, evaluate, runner_of
from .graph import Graph, Node, Value


def prepared_node(graph: Graph, node: Node) -> tuple[Callable[..., Any], bool]:
    """A function of the operands of a node, and whether it gives the one result bare, and not a sequence of all."""
    if node.prim.run is not None:
        return partial(node.prim.run, evaluate, node), not node.prim.multi
    run = runner_of(node, len(node.inputs))
    numbers = {}
    for i in node.prim.numpy.numbers:
        source = graph.producer.get(node.inputs[i])
        if source is not None and source.prim.name == "const" and not isinstance(source.attrs["value"], tuple):
            numbers[i] = source.attrs["value"]
    return partial(_with_numbers, run, numbers) if numbers else run, len(node.outputs) == 1


def _with_numbers(run: Callable[..., Any], numbers: dict[int, Any], *operands: Any) -> Any:
    return run(*(numbers.get(i, x) for i, x in enumerate(operands)))


class PreparedGraph:
    """A graph to be interpreted many times, several times as fast as by ``evaluate``."""

    def __init__(self, graph: Graph) -> None:
        places: dict[Value, int] = {v: k for k, v in enumerate(graph.inputs)}
        count = len(graph.inputs)
        self._steps: list[tuple[Callable[..., Any], bool, list[int]]] = []
        for node in graph.nodes:
            self._steps.append((*prepared_node(graph, node), [places[v] for v in node.inputs]))
            places.update((v, count + k) for k, v in enumerate(node.outputs))
            count += len(node.outputs)
        self._outputs = [places[v] for v in graph.outputs]

    def __call__(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The results for these arguments, which are never changed."""
        values = [*args]
        append, extend = values.append, values.extend
        try:
            for run, single, operands in self._steps:
                found = run(*[values[i] for i in operands])
                if single:
                    append(found)
                else:
                    extend(found)
        except Left as left:
            return left.results
        return tuple([values[i] for i in self._outputs])
