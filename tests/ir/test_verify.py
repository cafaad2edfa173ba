"""verify: what a graph must obey, and how a fault is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retrograd.errors import GraphError
from retrograd.ir import Aval, Graph, Node, Value, parse, verify
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.where import Where

F3 = Aval((3,), np.dtype(np.float64))


def chain(n: int) -> Graph:
    """n sines in a row, each with a line of its own."""
    b = Builder()
    x = b.input(F3, "x")
    for i in range(n):
        b.where = Where("/home/someone/chain.py", i + 1)
        x = REGISTRY["sin"](x)
    return b.graph("chain", [x])


def changed(graph: Graph, at: int, **fields: object) -> Graph:
    nodes = list(graph.nodes)
    nodes[at] = replace(nodes[at], **fields)
    return Graph(graph.name, graph.inputs, tuple(nodes), graph.outputs)


def fault_of(graph: Graph) -> GraphError:
    with pytest.raises(GraphError) as caught:
        verify(graph)
    return caught.value


def test_a_valid_graph_is_returned_itself() -> None:
    graph = chain(3)
    assert verify(graph) is graph


def test_the_excerpt_shows_ten_lines_with_a_caret_below_the_fault() -> None:
    graph = chain(20)
    node = graph.nodes[12]
    wrong = Value(Aval((4,), F3.dtype))
    fault = fault_of(changed(graph, 12, outputs=(wrong,)))
    lines = str(fault).splitlines()
    assert lines[0] == "[RG0901] graph chain: results are f64[4] but should be f64[3]"
    excerpt = lines[1:-2]
    caret = next(i for i, line in enumerate(excerpt) if set(line) <= {" ", "^"})
    assert "sin" in excerpt[caret - 1]
    assert "chain.py:13" in excerpt[caret - 1]
    assert len(excerpt[caret]) == len(excerpt[caret - 1])
    assert len(excerpt) == 10 + 1
    assert caret == 6
    assert lines[-2:] == [f"  at {node.where}", f"  remedy: {GraphError.ours}"]
    assert fault.where == node.where


@pytest.mark.parametrize("at", [0, 1, 18, 19])
def test_the_excerpt_stops_at_the_ends_of_the_graph(at: int) -> None:
    fault = fault_of(changed(chain(20), at, outputs=(Value(Aval((4,), F3.dtype)),)))
    assert f"chain.py:{at + 1}\n  ^^^" in str(fault)


def test_a_use_before_the_definition_is_shown() -> None:
    graph = chain(3)
    fault = fault_of(changed(graph, 0, inputs=(graph.nodes[2].out,)))
    assert "is used before it is defined" in str(fault)
    assert "  %0 = sin %2 : f64[3]" in str(fault)


def test_an_operand_from_nowhere_is_called_undefined() -> None:
    fault = fault_of(changed(chain(3), 1, inputs=(Value(F3),)))
    assert "sin %undefined" in str(fault)


def test_an_undefined_output_is_shown_at_the_return() -> None:
    graph = chain(2)
    fault = fault_of(Graph("f", graph.inputs, graph.nodes, (Value(F3, "y"),)))
    assert "output Value(y: f64[3]) is not defined" in str(fault)
    assert "  return %undefined\n  ^^^^^^" in str(fault)


def test_a_value_is_defined_once() -> None:
    graph = chain(3)
    again = changed(graph, 2, outputs=graph.nodes[1].outputs)
    assert "defined twice" in str(fault_of(Graph("f", again.inputs, again.nodes, graph.nodes[1].outputs)))
    assert "defined twice" in str(fault_of(changed(graph, 1, outputs=graph.inputs)))


def test_a_node_defines_each_of_its_results_once() -> None:
    graph = parse("""
graph f(%x: f64[3]) {
  %0, %1 = scan %x, %x {arrays=0, carry=2, consts=0, length=1, reverse=False} : f64[3], f64[3]
    body = graph step(%a: f64[3], %b: f64[3]) {
      return %b, %a
    }
  return %0
}""")
    out = graph.nodes[0].outputs[0]
    assert "defined twice" in str(fault_of(changed(graph, 0, outputs=(out, out))))


def test_an_input_occurs_once() -> None:
    x = Value(F3, "x")
    assert "occurs twice" in str(fault_of(Graph("f", (x, x), (), (x,))))


def test_a_primitive_must_be_the_registered_one() -> None:
    other = replace(REGISTRY["sin"])
    assert "not the registered one" in str(fault_of(changed(chain(2), 1, prim=other)))


def test_a_shape_rule_may_fail_in_any_way() -> None:
    assert "sin rejects its operands" in str(fault_of(changed(chain(2), 1, inputs=())))
    assert "sin rejects its operands" in str(fault_of(changed(chain(2), 1, attrs={"axis": 3})))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("%0 = broadcast %x : f64[2]", "broadcast"),
        ("%0 = broadcast %x : f32[2,3]", "does not broadcast"),
        ("%0 = reshape %x : f64[4]", "does not reshape"),
        ("%0 = cast %x : f32[4]", "cannot be cast"),
        ("%0 = iota : i64[2,2]", "one axis"),
        ("%0 = const {value=(1.0, 2.0)} : f64[3]", "is not of the type f64"),
        ("%0 = matmul %x, %y : f64", "does not fit"),
        ("%0 = add %x, %y : f64[3]", "differ"),
        ("%0 = sum %x {axis=(1,), keepdims=False} : f64", "not distinct axes"),
        ("%0 = concatenate %x, %z {axis=0} : f64[6]", "differ"),
        ("%0 = permute %x {axes=(1,)} : f64[3]", "is not a permutation"),
        ("%0 = setitem %x, %y {index=s_[:,]} : f64[3]", "does not fit into"),
        ("%0 = getitem %x {index=(3,)} : f64", "out of bounds"),
        ("%0 = where %x, %x, %x : f64[3]", "wants a bool"),
        ("%0 = sin %x : f64[3]*2", "should be"),
    ],
)
def test_every_family_of_primitives_checks_its_operands(line: str, why: str) -> None:
    graph = parse(f"graph f(%x: f64[3], %y: f64[2], %z: f32[3]) {{\n  {line}\n  return %0\n}}")
    fault = str(fault_of(graph))
    assert why in fault
    assert line in fault


def test_a_body_is_verified_too() -> None:
    graph = parse("""
graph f(%x: f64[3]) {
  %0 = call %x : f64[3]
    body = graph inner(%x: f64[3]) {
      %0 = sin %x : f64[3]
      return %0
    }
  return %0
}""")
    body = graph.nodes[0].attrs["body"]
    wrong = Graph(body.name, body.inputs, (), body.outputs)
    fault = fault_of(changed(graph, 0, attrs={"body": wrong}))
    assert "graph inner: output" in str(fault)


def test_a_body_sees_no_value_of_the_graph_around_it() -> None:
    graph = parse("""
graph f(%x: f64[3]) {
  %0 = call %x : f64[3]
    body = graph inner(%x: f64[3]) {
      return %x
    }
  return %0
}""")
    body = graph.nodes[0].attrs["body"]
    leaky = Graph(body.name, body.inputs, (), graph.inputs)
    assert "is not defined" in str(fault_of(changed(graph, 0, attrs={"body": leaky})))


def test_a_node_without_a_line_has_a_fault_without_one() -> None:
    x = Value(F3, "x")
    fault = fault_of(Graph("f", (x,), (Node(REGISTRY["sin"], (x,), {}, (Value(Aval((), F3.dtype)),)),), ()))
    assert fault.where is None
    assert "\n  at " not in str(fault)


@pytest.mark.parametrize("node", ["cos %x, %y", "add %x", "conj %x, %y", "where %b, %x", "hypot %x, %y, %x"])
def test_a_node_has_as_many_operands_as_its_primitive(node):
    text = f"graph f(%x: f64[3], %y: f64[3], %b: b8[3]) {{\n  %0 = {node} : f64[3]\n  return %0\n}}"
    with pytest.raises(GraphError, match="operands"):
        verify(parse(text))
