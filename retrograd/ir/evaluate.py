"""evaluate: the plain interpreter of graphs, (Graph, arguments) → results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from .builder import attrs_key
from .graph import Graph, Node, Value
from .modules import scope_for

REMEMBERED = 8192
_RUNNERS: dict[Any, Callable[..., Any]] = {}  # by all that a node's text depends on


class Left(Exception):  # noqa: N818 - a signal, not an error
    """A node ends its graph early; ``results`` are the results of the graph."""

    def __init__(self, results: tuple[Any, ...]) -> None:
        super().__init__()
        self.results = results


Watch = Callable[[Node, Sequence[Any], Sequence[Any]], None]


def evaluate(graph: Graph, args: Sequence[Any], watch: Watch | None = None) -> tuple[Any, ...]:
    """Run a graph node by node on NumPy values; arguments are never changed.

    ``watch(node, operands, results)`` sees each node, the nodes of bodies included.
    """
    run = evaluate if watch is None else partial(evaluate, watch=watch)
    env: dict[Value, Any] = dict(zip(graph.inputs, args, strict=True))
    try:
        for node in graph.nodes:
            operands = _operands(graph, node, env)
            results = run_node(node, operands, run)
            if watch is not None:
                watch(node, operands, results)
            env.update(zip(node.outputs, results, strict=True))
    except Left as left:
        return left.results
    return tuple(env[v] for v in graph.outputs)


def _operands(graph: Graph, node: Node, env: dict[Value, Any]) -> list[Any]:
    operands = [env[v] for v in node.inputs]
    for i in node.prim.numpy.numbers:
        source = graph.producer.get(node.inputs[i])
        if source is not None and source.prim.name == "const" and not isinstance(source.attrs["value"], tuple):
            operands[i] = source.attrs["value"]
    return operands


def run_node(
    node: Node, args: Sequence[Any], run: Callable[[Graph, Sequence[Any]], tuple[Any, ...]] = evaluate
) -> tuple[Any, ...]:
    """The results of one node; ``run`` evaluates the graphs that it holds."""
    prim = node.prim
    if prim.run is not None:
        results = prim.run(run, node, *args)
        return tuple(results) if prim.multi else (results,)
    results = runner_of(node, len(args))(*args)
    return (results,) if len(node.outputs) == 1 else tuple(results)


def runner_of(node: Node, arity: int) -> Callable[..., Any]:
    """Compile the code of a node as a function of its operands."""
    prim, code = node.prim, node.prim.numpy
    template = code.statement or code.code
    operands = () if isinstance(template, str) else tuple([v.aval for v in node.inputs])
    key = (template, code.helper, arity, attrs_key(node.attrs), operands)
    found = _RUNNERS.get(key)
    if found is None:
        if len(_RUNNERS) >= REMEMBERED:
            _RUNNERS.clear()
        text = code.render(node, [f"_{i}" for i in range(arity)], template)
        found = _RUNNERS[key] = _compiled(text, arity, prim.writes if code.statement else None, code.helper)
    return found


@lru_cache(maxsize=16384)
def _compiled(text: str, arity: int, writes: int | None, helper: str) -> Callable[..., Any]:
    parameters = ", ".join(f"_{i}" for i in range(arity))
    scope: dict[str, Any] = {**scope_for(f"{text}\n{helper}"), "__name__": __name__}
    exec(helper, scope)  # noqa: S102 - the source comes from declarations of primitives
    if writes is None:
        source = f"def run({parameters}): return {text}"
    else:
        source = f"def run({parameters}):\n    _{writes} = _{writes}.copy()\n    {text}\n    return _{writes}"
    exec(source, scope)  # noqa: S102 - so does this
    run: Callable[..., Any] = scope["run"]
    return run
