"""Stages: passes and planners in turn, checked and watched through one driver."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler import stages
from retrograd.compiler.pass_table import passes
from retrograd.compiler.settings import Settings
from retrograd.compiler.stages import PIPELINE, STAGES, Rest, Stage, of_pass, run
from retrograd.errors import GraphError
from retrograd.ir import Aval, Graph, Value, parse

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


def mend(graph: Graph) -> Graph:
    return GRAPH


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STAGES, "broken", of_pass(broken))
    monkeypatch.setitem(STAGES, "mend", of_pass(mend))


def test_every_stage_of_the_pipeline_is_registered_and_leaves_a_valid_graph() -> None:
    assert set(PIPELINE) == set(STAGES)
    assert [n.prim.name for n in run(GRAPH).nodes] == ["owned"]


def test_without_stages_the_graph_is_verified_and_returned() -> None:
    assert run(GRAPH, ()) is GRAPH
    with pytest.raises(GraphError):
        run(broken(GRAPH), ())


def test_the_outcome_is_verified(planted: None) -> None:
    with pytest.raises(GraphError, match="is not defined"):
        run(GRAPH, ("broken",))
    assert run(GRAPH, ("broken", "mend")) is GRAPH
    with pytest.raises(GraphError):
        run(GRAPH, ("broken", "mend"), Settings(verify=1))


def test_watchers_see_every_stage_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Graph, float, int]] = []
    monkeypatch.setattr(stages, "WATCHERS", [lambda *event: seen.append(event)])
    result = run(GRAPH, ("prune", "simplify", "own_outputs"), Settings(verify=2))
    assert [name for name, *_ in seen] == ["prune", "simplify", "own_outputs"]
    assert [len(graph.nodes) for _, graph, _, _ in seen] == [2, 0, 1]
    assert seen[-1][1] is result
    assert all(seconds >= 0 for _, _, seconds, _ in seen)


def test_the_texts_of_outcomes_are_printed_at_the_third_level(capsys: pytest.CaptureFixture[str]) -> None:
    with rg.config(verify=3):
        run(GRAPH, ("prune",))
    assert "--- prune: 2 nodes" in capsys.readouterr().err


def test_a_planner_measures_by_what_follows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def plan(graph: Graph, rest: Rest) -> Graph:
        found.append(len(rest(graph).nodes))
        found.append(len(rest(graph, until="own_outputs").nodes))
        found.append(len(rest.after("prune")(graph).nodes))
        found.append(len(rest.without("own_outputs").without("prune")(graph).nodes))
        return graph

    monkeypatch.setitem(STAGES, "plan", Stage(plan, plans=True))
    run(GRAPH, ("plan", "prune", "own_outputs"))
    assert found == [2, 2, 3, 3]
    assert "plan" not in passes()
    assert {"prune", "divide", "jvp", "absorb"} <= set(passes())
