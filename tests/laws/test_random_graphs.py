"""Random graphs: every pass keeps the value, and both modes of differentiation agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrograd.ir import Graph, evaluate, to_text, verify
from retrograd.passes import place_buffers
from retrograd.passes.differentiate import value_and_grad
from retrograd.passes.linearize import linearize
from retrograd.passes.own_outputs import own_outputs
from retrograd.passes.prune import prune
from retrograd.passes.simplify import simplify
from tests.support import graphs, laws, values
from tests.support.random_graphs import Example, random_graphs


@contextmanager
def everything_is_large() -> Iterator[None]:
    """Storage is reused and freed from the first byte on."""
    kept = place_buffers.REUSE, place_buffers.POOL
    place_buffers.REUSE = place_buffers.POOL = 1
    try:
        yield
    finally:
        place_buffers.REUSE, place_buffers.POOL = kept


@pytest.mark.parametrize("step", [prune, simplify, own_outputs], ids=lambda step: step.__name__)
@given(example=st.one_of(random_graphs(), random_graphs(np.float32)))
def test_a_pass_keeps_every_bit(step: Any, example: Example) -> None:
    graph, args = example.graph, example.args
    values.assert_same_bits(evaluate(verify(step(graph)), args), evaluate(graph, args))


@given(example=random_graphs())
def test_simplify_reaches_a_fixpoint(example: Example) -> None:
    graph, args = example.graph, example.args
    for g, _ in [(graph, args), *laws.derivative_graphs(graph, args)]:
        once = simplify(g)
        assert to_text(simplify(once)) == to_text(once)


@given(example=st.one_of(random_graphs(), random_graphs(np.float32)))
def test_text_is_read_back(example: Example) -> None:
    laws.round_trip(example.graph, example.args)


@given(example=st.one_of(random_graphs(), random_graphs(np.float32)))
def test_generated_code_keeps_every_bit(example: Example) -> None:
    laws.emission(example.graph, example.args)
    with everything_is_large():
        laws.emission(example.graph, example.args, laws.tolerance_of(example.graph))


@given(example=random_graphs())
def test_generated_code_of_derivatives_keeps_every_bit(example: Example) -> None:
    for derivative, args in laws.derivative_graphs(example.graph, example.args):
        laws.round_trip(derivative, args)
        laws.emission(derivative, args)
        with everything_is_large():
            laws.emission(derivative, args, laws.tolerance_of(derivative))


@given(example=random_graphs())
def test_forward_and_reverse_agree(example: Example) -> None:
    graph, args = example.graph, example.args
    active = graphs.inexact(graph)
    laws.reverse(graph, active, args)
    laws.reverse(graph, [i == 0 for i in range(len(args))], args)


@given(example=random_graphs())
def test_second_derivatives_agree(example: Example) -> None:
    for derivative, args in laws.derivative_graphs(example.graph, example.args):
        laws.reverse(derivative, graphs.inexact(derivative), args)


@given(example=random_graphs(scalar=True))
def test_the_gradient_is_the_same_with_and_without_simplify(example: Example) -> None:
    graph, args = example.graph, example.args
    active = [True] * len(args)

    def gradient(g: Graph) -> Graph:
        return verify(value_and_grad(g, active, linearize(g, active, nan_safe=False)))

    plain = list(evaluate(gradient(graph), args))
    tolerance = laws.tolerance_of(graph)
    values.assert_same_bits(evaluate(simplify(gradient(graph)), args), plain)
    values.assert_close(list(evaluate(gradient(simplify(graph)), args)), plain, tolerance)
    values.assert_close(list(evaluate(simplify(gradient(simplify(graph))), args)), plain, tolerance)


@given(example=random_graphs(), data=st.data())
def test_lanes_are_a_loop(example: Example, data: st.DataObject) -> None:
    graph, args = example.graph, example.args
    flags = data.draw(st.lists(st.booleans(), min_size=len(args), max_size=len(args)))
    rng = np.random.default_rng(0)
    cases = [args, *([values.random_of(rng, v.aval) for v in graph.inputs] for _ in range(2))]
    if any(flags):
        laws.lanes(graph, flags, cases)
