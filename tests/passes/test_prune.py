"""prune: what no output needs is dropped, and effects stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retrograd.ir import Aval, Graph
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from retrograd.passes.prune import live_inputs, prune
from tests.support.graphs import built, op

F3 = Aval((3,), np.dtype(np.float64))


def test_a_graph_in_which_everything_lives_is_returned_itself() -> None:
    graph = built(lambda x: op("sin", x), F3)
    assert prune(graph) is graph


def test_inputs_stay() -> None:
    graph = prune(built(lambda x, y: op("sin", y), F3, F3))
    assert len(graph.inputs) == 2


def test_effects_and_what_they_read_stay() -> None:
    check = replace(REGISTRY["sin"], name="check", effect=True)
    b = Builder()
    x, y = b.input(F3), b.input(F3)
    b.emit(check, [(x * 2).value], {})
    (y * 3)
    graph = prune(b.graph("f", [y]))
    assert [n.prim.name for n in graph.nodes] == ["const", "mul", "check"]
    assert live_inputs(graph, [False]) == [True, False]


def test_live_inputs_follow_the_used_outputs() -> None:
    graph = built(lambda x, y, z: (op("sin", x), op("cos", y), x * y), F3, F3, F3)
    assert live_inputs(graph, [True, False, False]) == [True, False, False]
    assert live_inputs(graph, [False, True, False]) == [False, True, False]
    assert live_inputs(graph, [False, False, True]) == [True, True, False]
    assert live_inputs(graph, [False, False, False]) == [False, False, False]


def test_a_loop_without_used_results_is_gone() -> None:
    inner = Builder()
    h = inner.input(F3)
    body = inner.graph("step", [op("sin", h)])
    b = Builder()
    x = b.input(F3)
    attrs = {"arrays": 0, "body": body, "carry": 1, "consts": 0, "length": 2, "reverse": False}
    b.emit(REGISTRY["scan"], [x.value], attrs)
    graph: Graph = prune(b.graph("f", [x]))
    assert graph.nodes == ()
