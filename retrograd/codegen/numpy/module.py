"""Graph and plan to a module of NumPy source."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import jinja2

from ...ir.graph import Graph
from ...ir.plan import Plan
from ...ir.types import Where
from ..names import harmless
from .emitter import Emitter, Line

VERSION = "0.1.0"
COMMENT_COLUMN = 64


@dataclass(frozen=True)
class Module:
    """Generated source, the name of its function, and the user's line behind each line of it."""

    source: str
    function: str
    lines: dict[int, Where]


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("retrograd.codegen")
    environment = jinja2.Environment(  # noqa: S701 - the template makes Python, not HTML
        loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template("module.py.j2")


def emit_module(plan: Plan, notes: tuple[str, ...] = ()) -> Module:
    """The source of a graph under a plan."""
    graph = plan.order
    emitter = Emitter(plan)
    name = graph.name if harmless(graph.name) else "function"
    emitter.names.used.add(name)
    parameters, results = emitter.function()
    lines = [*emitter.lines, Line(1, _return(results), None)]
    column = min(max((4 * line.depth + len(line.text) for line in lines if line.where), default=0), COMMENT_COLUMN)
    text = _template().render(
        title=_signature(graph, name, parameters), version=VERSION, notes=notes, name=name, parameters=parameters,
        lines=[_comment(line, column) for line in lines],
    )  # fmt: skip
    offset = text.count("\n") - len(lines) + 1
    return Module(text, name, {offset + i: line.where for i, line in enumerate(lines) if line.where is not None})


def _comment(line: Line, column: int) -> str:
    text = "    " * line.depth + line.text
    if line.where is None:
        return text
    return f"{text:<{column}}  # {_printable(line.where.short)}"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _return(results: list[str]) -> str:
    if len(results) == 1:
        return f"return {results[0]}"
    return f"return ({', '.join(results)}{',' if len(results) == 1 else ''})"


def _signature(graph: Graph, name: str, parameters: list[str]) -> str:
    takes = ", ".join(f"{p}: {v.aval}" for p, v in zip(parameters, graph.inputs, strict=True))
    return f"{name}({takes}) -> {', '.join(str(v.aval) for v in graph.outputs) or 'nothing'}"
