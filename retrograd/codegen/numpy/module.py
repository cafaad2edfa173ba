"""Emit a graph and its plan as a module of NumPy source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ...ir.graph import Graph
from ...ir.modules import scipy_parts
from ...ir.plan import Plan
from ...ir.target import VERSION, Module
from ...where import Where
from .emitter import Definition, Line, Scope

COMMENT_COLUMN = 64
DEFINITIONS: list[Callable[[Scope], list[str]]] = []  # the lines of the arrays of a module; the last one writes them


@lru_cache(maxsize=1)
def _template() -> Any:
    import jinja2  # noqa: PLC0415 - it would be a tenth of the time that importing the package takes

    loader = jinja2.PackageLoader("retrograd.codegen")
    environment = jinja2.Environment(  # noqa: S701 - the template makes Python, not HTML
        loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template("module.py.j2")


def emit_module(plan: Plan, constants: Mapping[int, np.ndarray[Any, Any]] | None = None) -> Module:
    """The source of a graph under a plan.

    ``constants`` are the values of inputs, by position: they stand in the module, as defaults of the parameters.
    """
    graph = plan.order
    scope = Scope()
    main = scope.add(plan, graph.name)
    defaults = {k: scope.names.fresh(f"constant_{k}") for k in constants or {}}
    scope.arrays |= {defaults[k]: array for k, array in (constants or {}).items()}
    arrays = DEFINITIONS[-1](scope)
    lines = [Line(0, text, None) for helper in scope.helpers for text in ("", "", *helper.strip().splitlines())]
    lines += [Line(0, text, None) for text in ([""] * (1 + bool(lines)) + arrays if arrays else [])]
    lines += [line for f in scope.functions for line in _definition(f, defaults if f is main else {})]
    column = min(max((4 * line.depth + len(line.text) for line in lines if line.where), default=0), COMMENT_COLUMN)
    imports = scipy_parts("\n".join(line.text for line in lines))
    places = {where: where.short for where in {line.where for line in lines} if where is not None}
    text = _template().render(
        imports=imports,
        modules=list(scope.modules),
        hosts=scope.calls_back,
        title=_signature(graph, main),
        version=VERSION,
        lines=[_comment(line, column, places) for line in lines],
    )
    offset = text.count("\n") - len(lines) + 1
    return Module(text, main.name, {offset + i: x.where for i, x in enumerate(lines) if x.where}, (), scope.by_graph)


def _definition(function: Definition, defaults: Mapping[int, str]) -> Iterator[Line]:
    parameters = [f"{p}={defaults[k]}" if k in defaults else p for k, p in enumerate(function.parameters)]
    yield from [Line(0, "", None)] * 2
    yield Line(0, f"def {function.name}({', '.join(parameters)}):", None)
    yield from function.lines
    if function.results is not None:
        yield Line(1, return_statement(function.results), None)


def _comment(line: Line, column: int, places: Mapping[Where, str]) -> str:
    text = "    " * line.depth + line.text
    return text if line.where is None else f"{text:<{column}}  # {places[line.where]}"


def return_statement(results: list[str]) -> str:
    """The statement that ends a function with these results."""
    return f"return {results[0]}" if len(results) == 1 else f"return ({', '.join(results)})"


def _signature(graph: Graph, function: Definition) -> str:
    takes = ", ".join(f"{p}: {v.aval}" for p, v in zip(function.parameters, graph.inputs, strict=True))
    return f"{function.name}({takes}) -> {', '.join(str(v.aval) for v in graph.outputs) or 'nothing'}"
