"""Where the analysis finds no entry there is no derivative, for every primitive and for random graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from retrograd.ir import Graph, evaluate
from retrograd.ir.primitive import REGISTRY
from retrograd.passes.find_sparsity import find_sparsity
from retrograd.passes.jvp import jvp
from retrograd.passes.lower import lower
from tests.support import graphs, values
from tests.support.random_graphs import Example, random_graphs
from tests.support.samples import SAMPLES

pytest.importorskip("scipy")


def assert_covers(graph: Graph, args: list[Any]) -> None:
    """Each unit tangent changes only what the pattern says."""
    if any(v.aval.steps is not None for v in (*graph.inputs, *graph.outputs)):
        return
    for k, on in enumerate(graphs.inexact(graph)):
        if not on or not graphs.differentiable(graph, [i == k for i in range(len(args))]):
            continue
        patterns = [p.toarray() for p in find_sparsity(lower(graph), k, args)]
        pushed = jvp(graph, [i == k for i in range(len(args))], nan_safe=False)
        for i in range(graph.inputs[k].aval.size):
            unit = np.zeros(graph.inputs[k].aval.size, graph.inputs[k].aval.dtype)
            unit[i] = 1
            dot = values.as_kind(unit.reshape(graph.inputs[k].aval.shape), graph.inputs[k].aval)
            with np.errstate(all="ignore"):
                dots = evaluate(pushed, [*args, dot])[len(graph.outputs) :]
            for value, dot, pattern in zip(graph.outputs, dots, patterns, strict=True):
                if value.aval.inexact:
                    assert not np.any(np.ravel(dot)[pattern[:, i] == 0]), f"element {i} of input {k}"


@pytest.mark.parametrize("name", sorted(name for name, prim in REGISTRY.items() if not prim.effect))
def test_every_primitive(name: str) -> None:
    for sample in SAMPLES.get(name, ()):
        assert_covers(sample.graph(), sample.operands())


@given(random_graphs())
def test_random_graphs(example: Example) -> None:
    assert_covers(example.graph, example.args)
