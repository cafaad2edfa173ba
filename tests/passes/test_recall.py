"""recall: the adjoint on remembered values is the adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import retrograd as rg
from retrograd.ir import Graph, evaluate
from retrograd.ir.primitive import REGISTRY
from retrograd.passes.linearize import linearize
from retrograd.passes.pullback import pullback
from retrograd.passes.pullback_at_results import recall
from tests.support import graphs, laws, values
from tests.support.random_graphs import Example, random_graphs
from tests.support.samples import SAMPLES


def is_the_adjoint(graph: Graph, args: Sequence[Any]) -> None:
    active = graphs.inexact(graph)
    seeded = [v.aval.inexact for v in graph.outputs]
    rng = np.random.default_rng(0)
    cts = [values.random_of(rng, v.aval) for v, on in zip(graph.outputs, seeded, strict=True) if on]
    lin = linearize(graph, active, nan_safe=False)
    residuals = evaluate(lin.forward, args)[len(graph.outputs) :]
    expected = evaluate(pullback(lin, seeded), [*residuals, *cts])
    made = recall(graph, active, ["given" if on else None for on in seeded], nan_safe=False)
    remembered = [*args, *evaluate(graph, args)]
    found = evaluate(made.graph, [*(remembered[k] for k in made.reads), *cts])
    values.assert_close(list(found), list(expected), laws.tolerance_of(graph))
    values.assert_has_avals(found, made.graph.out_avals)


@given(example=random_graphs())
def test_on_random_graphs(example: Example) -> None:
    is_the_adjoint(example.graph, example.args)


@pytest.mark.parametrize("name", sorted(set(REGISTRY) & set(SAMPLES)))
def test_on_every_primitive(name: str) -> None:
    for sample in SAMPLES[name]:
        graph = sample.graph()
        if any(graphs.inexact(graph)) and any(v.aval.inexact for v in graph.outputs):
            is_the_adjoint(graph, sample.operands())


def test_remembered_values_are_not_computed_again() -> None:
    graph = rg.trace(lambda x: np.exp(np.sin(x)))(np.ones(3))
    every = Graph(graph.name, graph.inputs, graph.nodes, (*graph.outputs, graph.nodes[0].out))
    made = recall(every, [True], ["given", None], nan_safe=False)
    assert sorted(node.prim.name for node in made.graph.nodes) == ["cos", "mul", "mul"]
    assert made.reads == (0, 1)
    alone = recall(graph, [True], ["given"], nan_safe=False)
    assert [node.prim.name for node in alone.graph.nodes].count("exp") == 0


def test_a_seed_of_one_is_no_input() -> None:
    graph = rg.trace(lambda x, y: x * y)(2.0, 3.0)
    made = recall(graph, [True, False], ["one"], nan_safe=False)
    assert len(made.graph.inputs) == 1
    assert evaluate(made.graph, [3.0]) == (3.0,)
