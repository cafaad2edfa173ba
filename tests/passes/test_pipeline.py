"""pipeline: passes in turn, watched through one hook."""

from __future__ import annotations

import numpy as np
import pytest
from retrograd.passes.pipeline import DEFAULT, pipeline

from retrograd.errors import GraphError
from retrograd.ir import Aval, Graph, Value, parse
from retrograd.passes.own_outputs import own_outputs
from retrograd.passes.prune import prune
from retrograd.passes.simplify import simplify

GRAPH = parse("""
graph f(%x: f64[3]) {
  %0 = neg %x : f64[3]
  %1 = neg %0 : f64[3]
  %2 = sin %x : f64[3]
  return %1
}""")


def broken(graph: Graph) -> Graph:
    """A pass that forgets the definitions."""
    return Graph(graph.name, graph.inputs, (), (Value(Aval((3,), np.dtype(np.float64))),))


def test_the_hook_sees_every_pass_in_turn_with_its_outcome_and_time() -> None:
    seen: list[tuple[str, Graph, float]] = []
    result = pipeline(GRAPH, (prune, simplify, own_outputs), watch=lambda *event: seen.append(event))
    assert [name for name, _, _ in seen] == ["prune", "simplify", "own_outputs"]
    assert [len(graph.nodes) for _, graph, _ in seen] == [2, 0, 1]
    assert seen[-1][1] is result
    assert all(seconds >= 0 for _, _, seconds in seen)


def test_the_default_passes_leave_a_valid_graph_whose_results_are_its_own() -> None:
    result = pipeline(GRAPH)
    assert [n.prim.name for n in result.nodes] == ["copy"]
    assert {p.__name__ for p in DEFAULT} >= {"prune", "simplify", "own_outputs"}


def test_without_passes_the_graph_is_verified_and_returned() -> None:
    assert pipeline(GRAPH, ()) is GRAPH
    with pytest.raises(GraphError):
        pipeline(broken(GRAPH), ())


def test_the_outcome_is_verified() -> None:
    with pytest.raises(GraphError, match="is not defined"):
        pipeline(GRAPH, (broken,))


def test_with_check_each_pass_is_verified_before_the_next() -> None:
    def mend(graph: Graph) -> Graph:
        return GRAPH

    assert pipeline(GRAPH, (broken, mend)) is GRAPH
    with pytest.raises(GraphError):
        pipeline(GRAPH, (broken, mend), check=True)
