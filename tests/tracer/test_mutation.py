"""Writes and views: a traced program sees what NumPy shows, and its derivative is that of what it computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.ir.evaluate import evaluate
from tests.programs.mutation import programs, run

INPUTS = [
    np.array([0.3, -0.7, 1.1]),
    np.array([[0.5, -0.25, 0.8], [0.1, 0.9, -0.6]]),
    np.array([[0.2, 0.4], [0.6, -0.8]]),
]
inputs = st.sampled_from(range(len(INPUTS)))


def results(program, x):
    return [v.copy() if isinstance(v, np.ndarray) else v for v in run(program, x.copy())]


def total(program, x):
    """One number that depends on every element of every array, each with a weight of its own."""
    out = 0.0
    for k, v in enumerate(run(program, x)):
        if v.size:
            weights = np.cos(np.arange(1.0, v.size + 1) * (k + 1))
            out = out + np.sum(v.reshape(-1) * weights)
    return out


@given(programs, inputs)
def test_a_program_that_writes_gives_what_numpy_gives(program, which):
    x = INPUTS[which]
    expected = results(program, x)
    before = x.copy()
    found = rg.jit(lambda x: run(program, x))(x)
    np.testing.assert_array_equal(x, before)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15, strict=True)


@given(programs, inputs)
def test_compiled_and_interpreted_runs_agree_bitwise(program, which):
    x = INPUTS[which]
    compiled = rg.jit(lambda x: run(program, x))
    found = compiled(x)
    graph = compiled.graph(x, stage="traced")
    captures = graph.inputs[1:]
    if captures:  # arrays made in the trace that are no constants
        return
    for a, b in zip(found, evaluate(graph, [x]), strict=True):
        np.testing.assert_array_equal(a, b)


@given(programs, inputs, st.integers(0, 3))
def test_the_derivative_of_a_program_that_writes_is_right(program, which, seed):
    x = INPUTS[which]
    v = np.random.default_rng(seed).standard_normal(x.shape)

    def f(x):
        return total(program, x * 1.0)

    slopes = [(f(x + h * v) - f(x - h * v)) / (2 * h) for h in (1e-4, 5e-5)]
    slope = (4 * slopes[1] - slopes[0]) / 3
    if abs(slopes[0] - slopes[1]) > 1e-4 * (1 + abs(slope)):
        return  # a comparison changes its outcome nearby
    gradient = rg.vjp(f, x)[1](1.0)[0]
    tangent = rg.jvp(f, (x,), (v,))[1]
    assert gradient.shape == x.shape
    assert np.sum(gradient * v) == pytest.approx(slope, rel=1e-6, abs=1e-7)
    assert tangent == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@given(programs, inputs)
def test_second_derivatives_of_programs_that_write_agree(program, which):
    x = INPUTS[which]
    hessian = rg.hessian(lambda x: total(program, x * 1.0))(x).reshape(x.size, x.size)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-10)
    other = rg.jacrev(rg.jacrev(lambda x: total(program, x * 1.0)))(x).reshape(x.size, x.size)
    np.testing.assert_allclose(hessian, other, rtol=1e-9, atol=1e-10)
