"""Graphs as networkx graphs and as DOT text."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.ir import Aval, Graph, Node, Value
from retrograd.ir.dot import quoted, to_dot
from retrograd.ir.primitive import REGISTRY
from retrograd.where import Where
from tests.golden import dotlexer
from tests.support.graphs import LOOPED as GRAPH

F3 = Aval((3,), np.dtype(np.float64))


def test_vertices_are_inputs_nodes_and_outputs() -> None:
    g = GRAPH.to_networkx()
    assert list(g) == ["in0", "in1", "n0", "n1", "n2", "out0", "out1"]
    assert g.nodes["in1"]["label"] == "%w: f64[3,3]"
    assert g.nodes["n0"]["label"] == "matmul\nlayer.py:4"
    assert (g.nodes["n0"]["prim"], g.nodes["n0"]["where"]) == ("matmul", "layer.py:4")
    assert g.nodes["n2"]["label"].splitlines()[-1] == "body: 1 nodes"
    assert g.nodes["out0"]["label"] == "return %2"
    assert [d["role"] for _, d in g.nodes(data=True)] == ["input"] * 2 + ["node"] * 3 + ["output"] * 2


def test_edges_are_values_with_operand_positions() -> None:
    edges = [(a, b, d["operand"], d["aval"], d["name"]) for a, b, d in GRAPH.to_networkx().edges(data=True)]
    assert sorted(edges) == [
        ("in0", "n0", 1, "f64[3]", "%x"),
        ("in0", "n2", 0, "f64[3]", "%x"),
        ("in0", "out1", 0, "f64[3]", "%x"),
        ("in1", "n0", 0, "f64[3,3]", "%w"),
        ("n0", "n1", 0, "f64[3]", "%y"),
        ("n0", "n1", 1, "f64[3]", "%y"),
        ("n1", "n2", 1, "f64[3]", "%0"),
        ("n2", "out0", 0, "f64[3]", "%2"),
    ]


def test_the_networkx_graph_is_acyclic_and_its_order_is_the_graph_s() -> None:
    g = GRAPH.to_networkx()
    assert nx.is_directed_acyclic_graph(g)
    place = {v: i for i, v in enumerate(g)}
    assert all(place[a] < place[b] for a, b in g.edges())


def test_dot_text_holds_the_same_graph() -> None:
    vertices, edges = dotlexer.read(to_dot(GRAPH))
    g = GRAPH.to_networkx()
    assert {v: a["label"] for v, a in vertices.items()} == {v: d["label"] for v, d in g.nodes(data=True)}
    assert sorted(edges) == sorted((a, b, d["aval"]) for a, b, d in g.edges(data=True))


def hostile(name: str, attr: str, file: str) -> Graph:
    x, y = Value(F3, "x"), Value(F3)
    node = Node(REGISTRY["neg"], (x,), {"text": attr}, (y,), Where(file, 3))
    return Graph(name, (x,), (node,), (y,))


@pytest.mark.parametrize(
    "text", ['"', "\\", "\\n", "a\nb", '"]; evil [label="', "<b>html</b>", "é\u2028", "\x1b", "$name", "}", "->", ""]
)
def test_hostile_text_stays_inside_its_label(text: str) -> None:
    vertices, edges = dotlexer.read(to_dot(hostile(text, text, text)))
    assert set(vertices) == {"in0", "n0", "out0"}
    assert len(edges) == 2
    assert vertices["n0"]["label"].splitlines()[0] == "neg"


@given(st.text())
def test_a_quoted_string_is_one_token_that_shows_the_text(text: str) -> None:
    ((kind, token),) = dotlexer.tokens(quoted(text))
    assert kind == "string"
    assert dotlexer.unquoted(token) == text
    assert json.loads(token) == text
