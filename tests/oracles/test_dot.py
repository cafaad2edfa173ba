"""DOT text as the public package pydot reads it, where that is installed."""

from __future__ import annotations

from collections import Counter

import pytest

from retrograd.ir import Graph, Node, Value
from retrograd.ir.dot import to_dot
from retrograd.ir.primitive import REGISTRY
from retrograd.where import Where
from tests.golden import dotlexer
from tests.support.graphs import LOOPED as GRAPH

pydot = pytest.importorskip("pydot")
pytestmark = pytest.mark.filterwarnings("ignore:'.*' deprecated - use:DeprecationWarning")  # of what pydot calls


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
