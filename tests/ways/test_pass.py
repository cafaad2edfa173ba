"""The pass alone: what folds, into what, and what its proof refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.folding import recorded_apart
from retrograd.ir.evaluate import evaluate
from retrograd.ir.graph import Graph
from retrograd.ir.verify import verify
from retrograd.passes.fold_ways.apart import merged
from retrograd.passes.fold_ways.fold_ways import fold_ways
from retrograd.passes.fold_ways.prove_ways import follow
from retrograd.tracer import record as recorder
from tests.ways.generated import generated
from tests.ways.programs import PROGRAMS, counted_hits, short_ball, slope_by_count


def recording(program: Any, *args: Any) -> Graph:
    """The recording of a call, with equal operations apart."""
    compiled = rg.jit(program)
    return recorded_apart(compiled, compiled._take(args, {})).graph


def recordings(name: str, count: int) -> list[Graph]:
    rng = np.random.default_rng(3)
    return [recording(PROGRAMS[name][0], *PROGRAMS[name][1](rng)) for _ in range(count)]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_merged_recordings_are_the_usual_ones(name: str) -> None:
    program, starts = PROGRAMS[name]
    start = starts(np.random.default_rng(3))
    apart = recorded_apart(compiled := rg.jit(program), call := compiled._take(start, {})).graph
    usual = []

    def record(function: Any, *options: Any) -> Any:
        usual.append(run(function, *options))
        return usual[0]

    run = recorder._recorded
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "_recorded", record)
        compiled._record(call)
    assert str(merged(apart)) == str(usual[0].graph)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_folded_gives_the_results_of_its_recordings(name: str) -> None:
    program, starts = PROGRAMS[name]
    for count in (1, 2, 3):
        rng = np.random.default_rng(3)
        given = [starts(rng) for _ in range(count)]
        if name == "raising":
            given = [(-0.1 * k, 0.2) for k in range(count)]
        found = fold_ways([recording(program, *start) for start in given])
        if found is not None:
            verify(found[0].graph)
            for start, answers in zip(given, found[1], strict=True):
                results = evaluate(found[0].graph, start)
                np.testing.assert_array_equal(results[0], program(*start))
                for mine, theirs in zip(results[1:], answers, strict=True):
                    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_what_is_folded_of_a_generated_program_gives_its_results(seed: int) -> None:
    source, program = generated(seed)
    rng = np.random.default_rng(seed)
    starts = [(rng.normal(), rng.normal(), rng.normal(size=5)) for _ in range(4)]
    graphs = [recording(program, *start) for start in starts]
    for some in (slice(0, 1), slice(1, 2), slice(0, 2)):
        if graphs[0].in_avals != graphs[1].in_avals or len({len(g.inputs) for g in graphs[some]}) > 1:
            continue
        found = fold_ways(graphs[some])
        for start, graph in zip(starts, graphs, strict=True) if found is not None and len(starts[0]) == 3 else ():
            if len(graph.inputs) == 3 and follow(found[0], graph) is not None:
                np.testing.assert_array_equal(evaluate(found[0].graph, start)[0], program(*start), err_msg=source)


def test_the_body_of_a_ball_is_a_choice() -> None:
    found = fold_ways([recording(short_ball, 0.5, 0.0)])
    assert found is not None
    loop = found[0].loop
    assert (loop.length, loop.parts.carry, found[0].choices) == (30, 2, 1)
    assert [node.prim.name for node in loop.body.nodes if node.graphs] == ["cond"]
    assert len(loop.body.nodes) < 12


def test_other_numbers_of_steps_are_one_loop() -> None:
    graphs = recordings("adaptive", 3)
    found = fold_ways(graphs)
    assert found is not None
    assert all(follow(found[0], graph) is not None for graph in recordings("adaptive", 8))


def test_a_count_that_decides_is_noticed() -> None:
    few, many = recording(counted_hits, 2.5, 0.0), recording(counted_hits, 0.2, 0.0)
    found = fold_ways([few])
    assert found is not None
    assert follow(found[0], few) is not None
    assert follow(found[0], many) is None


def test_another_derivative_of_an_equal_value_is_noticed() -> None:
    """Hits of other parity end in another product, whose value may be the same."""
    graphs = [recording(slope_by_count, y, 0.0) for y in np.linspace(0.3, 2.0, 12)]
    found = fold_ways(graphs[:1])
    assert found is not None
    followed = [follow(found[0], graph) is not None for graph in graphs]
    assert any(followed)
    assert not all(followed)


@pytest.mark.parametrize("name", ["ball", "three_balls", "stored", "queue"])
def test_a_changed_operation_is_noticed(name: str) -> None:
    """A planted fault: a recording in which one operation reads another operand is not followed."""
    (graph,) = recordings(name, 1)
    found = fold_ways([graph])
    assert found is not None
    steps = [k for k, node in enumerate(graph.nodes) if len(node.inputs) == 2 and node.inputs[0] is not node.inputs[1]]
    for k in steps[:: max(len(steps) // 12, 1)]:
        node = graph.nodes[k]
        swapped = type(node)(node.prim, node.inputs[::-1], node.attrs, node.outputs, node.where, node.replica)
        changed = Graph(graph.name, graph.inputs, (*graph.nodes[:k], swapped, *graph.nodes[k + 1 :]), graph.outputs)
        assert follow(found[0], changed) is None
    shorter = Graph(graph.name, graph.inputs, graph.nodes[:-1], graph.outputs)
    assert follow(found[0], shorter) is None


def test_recordings_with_draws_or_calls_are_left() -> None:
    rng = np.random.default_rng(0)

    def drawing(x: Any, a: Any) -> Any:
        for _ in range(30):
            x = x + a * rng.standard_normal() if x > 0 else 0.5 - x
        return x

    assert fold_ways([recording(drawing, 0.3, 0.1)]) is None
    assert fold_ways([recording(lambda x, a: x * a, 0.3, 0.1)]) is None
