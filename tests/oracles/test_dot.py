"""DOT text as the public package pydot reads it, where that is installed."""

from __future__ import annotations

from collections import Counter

import pytest

from retrograd.ir import Graph, Node, Value, parse
from retrograd.ir.dot import to_dot
from retrograd.ir.primitive import REGISTRY
from retrograd.where import Where
from tests.golden import dotlexer

pydot = pytest.importorskip("pydot")
pytestmark = pytest.mark.filterwarnings("ignore:'.*' deprecated - use:DeprecationWarning")  # of what pydot calls

GRAPH = parse("""
graph f(%x: f64[3], %w: f64[3,3]) {
  %y = matmul %w, %x : f64[3]  # layer.py:4
  %0 = mul %y, %y : f64[3]
  %1, %2 = scan %x, %0 {arrays=0, carry=2, consts=0, length=2, reverse=False} : f64[3], f64[3]
    body = graph step(%a: f64[3], %b: f64[3]) {
      %0 = add %a, %b : f64[3]
      return %b, %0
    }
  return %2, %x
}""")


def assert_read(graph: Graph) -> None:
    """The vertices, the edges and the labels of both are those of the graph."""
    (found,) = pydot.graph_from_dot_data(to_dot(graph))
    expected = graph.to_networkx()
    labels = {v.get_name(): dotlexer.unquoted(v.get("label")) for v in found.get_nodes() if v.get("label")}
    assert labels == {v: d["label"] for v, d in expected.nodes(data=True)}
    edges = Counter((e.get_source(), e.get_destination(), dotlexer.unquoted(e.get("label"))) for e in found.get_edges())
    assert edges == Counter((a, b, d["aval"]) for a, b, d in expected.edges(data=True))


def test_the_text_holds_the_graph() -> None:
    assert_read(GRAPH)


@pytest.mark.parametrize(
    "text", ['"', "\\", "\\n", "a\nb", '"]; evil [label="', "<b>html</b>", "é", "$name", "}", "->"]
)
def test_hostile_text_stays_inside_its_label(text: str) -> None:
    x = Value(GRAPH.inputs[0].aval, text)
    y = Value(x.aval)
    assert_read(Graph(text, (x,), (Node(REGISTRY["neg"], (x,), {"text": text}, (y,), Where(text, 3)),), (y,)))
