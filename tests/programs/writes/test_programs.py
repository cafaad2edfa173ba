"""Each program: NumPy's values at two points, its derivative in both modes against finite differences, no objects."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg
from tests.programs.writes.programs import PROGRAMS

X = np.array([0.7, 1.9, 0.4, 2.6, 1.3, 3.1])
OTHER = np.array([2.2, 0.6, 3.3, 1.1, 0.45, 1.7])  # another order: other decisions
V = np.array([0.3, -0.7, 0.4, 0.2, -0.5, 0.6])

over_programs = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())


def results(out):
    """All results, as arrays of numbers."""
    arrays = [np.asarray(v) for v in (out if isinstance(out, tuple) else (out,))]
    assert all(a.dtype.kind in "fc" for a in arrays)
    return arrays


def weighed(program):
    """One number that depends on every element of every result."""

    def total(x):
        out = program(x)
        parts = out if isinstance(out, tuple) else (out,)
        return sum(
            np.sum(v * np.cos(np.arange(1.0, np.size(v) + 1) * (k + 1)).reshape(np.shape(v)))
            for k, v in enumerate(parts)
        )

    return total


def test_there_are_enough_of_them():
    assert len(PROGRAMS) >= 60


@over_programs
def test_a_program_gives_what_numpy_gives(program):
    compiled = rg.jit(program)
    for x in (X, OTHER, X):
        before = x.copy()
        found, expected = results(compiled(x)), results(program(x.copy()))
        np.testing.assert_array_equal(x, before)
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15, strict=True)


@over_programs
def test_its_derivative_is_that_of_what_it_computes(program):
    total = weighed(program)
    for x in (X, OTHER):
        slopes = [(total(x + h * V) - total(x - h * V)) / (2 * h) for h in (1e-4, 5e-5)]
        slope = (4 * slopes[1] - slopes[0]) / 3
        gradient = rg.grad(total)(x)
        assert np.sum(gradient * V) == pytest.approx(slope, rel=1e-6, abs=1e-8)
        assert rg.jvp(total, (x,), (V,))[1] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@over_programs
def test_its_second_derivatives_agree(program):
    total = weighed(program)
    curvature = rg.jvp(rg.grad(total), (X,), (V,))[1]
    (other,) = rg.vjp(rg.grad(total), X)[1](V)
    np.testing.assert_allclose(curvature, other, rtol=1e-8, atol=1e-9)
    h = 1e-5
    step = (rg.grad(total)(X + h * V) - rg.grad(total)(X - h * V)) / (2 * h)
    np.testing.assert_allclose(curvature, step, rtol=1e-4, atol=1e-5)


def filled(x):
    h = np.zeros((len(x) + 1, *x.shape[1:]))
    for t in range(len(x)):
        h[t + 1] = np.tanh(h[t]) * x[t]
    return np.sum(h * h)


def summed_in_place(x):
    s = x * 0.5
    for k in range(1, len(s)):
        s[k] += np.sin(s[k - 1])
    return np.sum(s)


def columns_in_place(x):
    a = x.T * 0.5
    for k in range(1, len(x)):
        a[..., k] -= a[..., k - 1] * x[k - 1]
    return np.sum(a)


@pytest.mark.parametrize("program", [filled, summed_in_place, columns_in_place])
@pytest.mark.parametrize("width", [(), (700,)])  # on both sides of the sizes at which memory is reused
def test_a_loop_that_fills_an_array_becomes_source_that_writes_in_place_and_is_linear_in_the_loop(program, width):
    lengths = []
    for n in (14, 20, 26):
        source = rg.grad(program).source(np.ones((n, *width)))
        lengths.append(len(source.splitlines()))
        assert source.count(".copy()") <= 2
    assert abs((lengths[2] - lengths[1]) - (lengths[1] - lengths[0])) <= 2
