"""Graph to text: one node a line, nested graphs in braces, the user's names and lines kept."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .graph import Graph, Node, Value
from .texts import Arg, literal, subscript
from .types import DTYPE_NAMES, Aval

UNNAMABLE = re.compile(r"[^\w.<>-]")
IDENTIFIER = re.compile(r"[^\W\d]\w*")


def to_text(graph: Graph) -> str:
    """The text form; ``parse`` reads it back, and ``to_text(parse(text)) == text``."""
    return "\n".join(graph_lines(graph)) + "\n"


def graph_lines(graph: Graph) -> list[str]:
    """The lines of the text form, without the final newline."""
    names = value_names(graph)
    header = ", ".join(f"{names[v]}: {v.aval}" for v in graph.inputs)
    lines = [f"graph {UNNAMABLE.sub('?', graph.name) or '_'}({header}) {{"]
    for node in graph.nodes:
        lines.extend("  " + line for line in node_lines(node, names))
    returned = ", ".join(names[v] for v in graph.outputs)
    return [*lines, f"  return {returned}".rstrip(), "}"]


def node_lines(node: Node, names: dict[Value, str]) -> list[str]:
    """One line for the node, and the lines of each graph among its attributes."""
    outs = ", ".join(names[v] for v in node.outputs)
    tag = f"~{node.replica}" if node.replica else ""
    text = (f"{outs} = " if outs else "") + node.prim.name + tag
    if node.inputs:
        text += " " + ", ".join(names.get(v, "%undefined") for v in node.inputs)
    plain = {k: a for k, a in sorted(node.attrs.items()) if not isinstance(a, (Graph, Aval))}
    if plain:
        text += " {" + ", ".join(f"{k}={attr_text(a)}" for k, a in plain.items()) + "}"
    if node.outputs:
        text += " : " + ", ".join(str(v.aval) for v in node.outputs)
    if node.where is not None:
        text += f"  # {node.where.short}"
    lines = [text]
    for name, graph in sorted(node.graphs):
        body = graph_lines(graph)
        lines += [f"  {name} = {body[0]}", *("  " + line for line in body[1:])]
    return lines


def value_names(graph: Graph) -> dict[Value, str]:
    """``%name`` from the hint if it is an identifier, with ``.1``, ``.2`` on later ones, or a running number."""
    names: dict[Value, str] = {}
    seen: dict[str, int] = {}
    number = 0
    for value in (*graph.inputs, *(v for node in graph.nodes for v in node.outputs)):
        if value.hint is None or not IDENTIFIER.fullmatch(value.hint):
            names[value] = f"%{number}"
            number += 1
        else:
            count = seen.get(value.hint, 0)
            seen[value.hint] = count + 1
            names[value] = f"%{value.hint}" + (f".{count}" if count else "")
    return names


def attr_text(value: Any) -> str:
    """A Python literal, except that dtypes stand as ``f64`` and indices as ``s_[1:, 0]``."""
    if isinstance(value, np.dtype):
        return DTYPE_NAMES[value]
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, tuple) and any(isinstance(v, (slice, Arg)) or v is Ellipsis for v in value):
        return f"s_[{subscript(value)}{',' if len(value) == 1 else ''}]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(attr_text, value)) + ("," if len(value) == 1 else "") + ")"
    return literal(value)
