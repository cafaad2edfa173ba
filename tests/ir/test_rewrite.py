"""Walks over graphs and rebuilds of them: what stays is kept, what is shared is treated once, meaning is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from retrograd.ir import Aval, Graph, Node, Value, evaluate, to_text, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.rewrite import copy_nodes, mapped, rebuild, walk, with_bodies, with_nodes
from retrograd.ops.structural.call import make_call
from retrograd.where import Where
from tests.support import values
from tests.support.graphs import built, op
from tests.support.random_graphs import Example, random_graphs

F3 = Aval((3,), np.dtype(np.float64))


def nested(inner: Graph) -> Graph:
    """A graph that calls another one twice, and once more inside a graph that it calls."""
    b = Builder()
    outer = b.graph("outer", make_call(b, inner, b.inputs_like(inner.inputs)))
    b = Builder()
    args = b.inputs_like(inner.inputs)
    first, second = make_call(b, inner, args), make_call(b, outer, args)
    moved = [x * 1 if x.aval.inexact else x for x in args]
    return verify(b.graph("nested", [*first, *second, *make_call(b, inner, moved)]))


def small() -> Graph:
    """``sin(x) * y`` under a call."""
    return nested(built(lambda x, y: op("sin", x) * y, F3, F3, name="inner"))


def copied(b: Builder, node: Node, env: dict[Value, Symbol]) -> Sequence[Symbol]:
    """A rule that gives each node again, in other words than None."""
    return b.copy_node(node, [env[v].value for v in node.inputs])


def anew(b: Builder, node: Node, env: dict[Value, Symbol]) -> Sequence[Symbol]:
    """A rule that makes each node anew."""
    hints = [v.hint for v in node.outputs]
    return b.emit(node.prim, [env[v].value for v in node.inputs], node.attrs, hints)


def unrolled(graph: Graph) -> Iterator[Node]:
    """Every node of a graph and of those inside, each time that it stands there."""
    for node in graph.nodes:
        yield node
        for _, body in node.graphs:
            yield from unrolled(body)


@given(example=random_graphs())
def test_a_walk_meets_every_node_once_in_the_order_in_which_it_first_stands(example: Example) -> None:
    graph = nested(example.graph)
    assert list(walk(graph)) == list(dict.fromkeys(unrolled(graph)))


def test_a_walk_goes_into_a_body_right_after_the_node_that_holds_it() -> None:
    assert [node.prim.name for node in walk(small())] == [
        "call",
        "sin",
        "mul",
        "call",
        "call",
        "const",
        "mul",
        "mul",
        "call",
    ]


@pytest.mark.parametrize("rule", [lambda b, node, env: None, copied], ids=["none", "copied"])
@given(example=random_graphs())
def test_a_graph_whose_nodes_all_stay_is_itself(rule: object, example: Example) -> None:
    graph = nested(example.graph)
    assert rebuild(graph, rule) is graph  # type: ignore[arg-type]
    assert mapped(graph, lambda g: rebuild(g, rule)) is graph  # type: ignore[arg-type]


@given(example=random_graphs())
def test_a_graph_of_new_nodes_reads_the_same_and_keeps_every_bit(example: Example) -> None:
    graph = nested(example.graph)
    made = mapped(graph, lambda g: rebuild(g, anew))
    assert not set(walk(made)) & set(walk(graph))
    assert to_text(verify(made)) == to_text(graph)
    values.assert_same_bits(evaluate(made, example.args), evaluate(graph, example.args))


@given(example=random_graphs())
def test_a_body_is_treated_once_before_what_holds_it_and_stays_one(example: Example) -> None:
    graph, seen = nested(example.graph), list[str]()

    def change(graph: Graph) -> Graph:
        seen.append(graph.name)
        return rebuild(graph, anew)

    first, second, third = (node for node in mapped(graph, change).nodes if node.prim.name == "call")
    assert seen == [example.graph.name, "outer", "nested"]
    assert first.attrs["body"] is third.attrs["body"] is second.attrs["body"].nodes[0].attrs["body"]


def test_nodes_that_depend_on_no_change_are_kept() -> None:
    def cosine(b: Builder, node: Node, env: dict[Value, Symbol]) -> Sequence[Symbol] | None:
        return [op("cos", env[node.inputs[0]])] if node.prim.name == "sin" else None

    graph = built(lambda x, y: (op("exp", x) * y, op("tanh", op("sin", x))), F3, F3)
    made = verify(rebuild(graph, cosine))
    assert made.inputs == graph.inputs
    assert [a is b for a, b in zip(made.nodes, graph.nodes, strict=True)] == [True, True, False, False]
    outer = nested(graph)
    inner = mapped(outer, lambda g: rebuild(g, cosine))
    assert [a is b for a, b in zip(inner.nodes, outer.nodes, strict=True)] == [not node.graphs for node in outer.nodes]
    assert inner.outputs == outer.outputs


def test_what_a_rule_makes_has_the_line_and_the_replica_tag_of_the_node() -> None:
    graph = built(lambda x: op("tanh", op("sin", x)), F3)
    tagged = (replace(graph.nodes[0], where=Where("a.py", 7), replica=2), graph.nodes[1])

    def doubled(b: Builder, node: Node, env: dict[Value, Symbol]) -> Sequence[Symbol] | None:
        return [op("cos", env[node.inputs[0]]) * 2] if node.prim.name == "sin" else None

    made = rebuild(replace(graph, nodes=tagged), doubled)
    assert [(node.prim.name, node.replica) for node in made.nodes] == [
        ("cos", 2),
        ("const", 2),
        ("mul", 2),
        ("tanh", 0),
    ]
    assert {node.where for node in made.nodes[:3]} == {Where("a.py", 7)}


def test_copied_nodes_read_what_their_operands_became() -> None:
    graph = built(lambda x, y: op("sin", x) * y, F3, F3)
    b = Builder()
    (x,) = b.inputs_like(graph.inputs[:1])
    env = dict.fromkeys(graph.inputs, x)
    copy_nodes(b, graph.nodes, env)
    assert to_text(b.graph("f", [env[v] for v in graph.outputs])) == to_text(built(lambda x: op("sin", x) * x, F3))


def test_a_node_whose_bodies_stay_is_itself_and_so_is_a_graph_whose_nodes_stay() -> None:
    graph = small()
    call = graph.nodes[0]
    assert with_bodies(call, lambda body: body) is call
    assert with_nodes(graph, list(graph.nodes)) is graph
    body = rebuild(call.attrs["body"], anew)
    other = with_bodies(call, lambda _: body)
    assert other.attrs["body"] is body
    assert (other.prim, other.inputs, other.outputs, other.where) == (call.prim, call.inputs, call.outputs, call.where)
    counted = Counter(node.prim for node in with_nodes(graph, (other, *graph.nodes[1:])).nodes)
    assert counted[REGISTRY["call"]] == 3
