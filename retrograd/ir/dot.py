"""A graph as DOT text and as a networkx graph."""

from __future__ import annotations

from string import Template
from typing import TYPE_CHECKING

from .graph import FORMS, Graph, Value
from .printer import attr_text, value_names
from .types import Aval

if TYPE_CHECKING:
    import networkx as nx

DOT = Template("""digraph $name {
  rankdir=TB
  node [fontname="Helvetica", fontsize=10, shape=box, style="rounded,filled", fillcolor="#f4f4f8"]
  edge [fontname="Helvetica", fontsize=8]
$body
}
""")


def to_networkx(graph: Graph) -> nx.MultiDiGraph[str]:
    """Vertices are inputs, nodes and outputs; edges are values, labelled with name and aval."""
    import networkx as nx  # slow to import

    g: nx.MultiDiGraph[str] = nx.MultiDiGraph(name=graph.name)
    names = value_names(graph)
    source: dict[Value, str] = {}
    for i, value in enumerate(graph.inputs):
        source[value] = f"in{i}"
        g.add_node(f"in{i}", label=f"{names[value]}: {value.aval}", role="input")
    for i, node in enumerate(graph.nodes):
        attrs = [f"{k}={attr_text(a)}" for k, a in sorted(node.attrs.items()) if not isinstance(a, (Graph, Aval))]
        where = [] if node.where is None else [node.where.short]
        bodies = [f"{name}: {len(body.nodes)} nodes" for name, body in node.graphs]
        g.add_node(
            f"n{i}",
            label="\n".join([node.prim.name, *attrs, *bodies, *where]),
            role="node",
            prim=node.prim.name,
            where=str(node.where) if node.where else "",
        )
        for position, value in enumerate(node.inputs):
            g.add_edge(source[value], f"n{i}", operand=position, aval=str(value.aval), name=names[value])
        source.update((value, f"n{i}") for value in node.outputs)
    for i, value in enumerate(graph.outputs):
        g.add_node(f"out{i}", label=f"return {names[value]}", role="output")
        g.add_edge(source[value], f"out{i}", operand=0, aval=str(value.aval), name=names[value])
    return g


def to_dot(graph: Graph) -> str:
    """DOT text of the graph; every label is quoted."""
    g = to_networkx(graph)
    colour = {"input": "#d8ecd8", "output": "#ecd8d8", "node": "#f4f4f8"}
    lines = [
        f"  {vertex} [label={quoted(data['label'])}, fillcolor={quoted(colour[data['role']])}]"
        for vertex, data in g.nodes(data=True)
    ]
    lines += [f"  {a} -> {b} [label={quoted(data['aval'])}]" for a, b, data in g.edges(data=True)]
    return DOT.substitute(name=quoted(graph.name), body="\n".join(lines))


def quoted(text: str) -> str:
    """A DOT string: JSON's escapes of quotes, backslashes and newlines are DOT's."""
    import json  # noqa: PLC0415 - few programs draw graphs

    return json.dumps(text, ensure_ascii=False)


FORMS.update(dot=to_dot, networkx=to_networkx)
