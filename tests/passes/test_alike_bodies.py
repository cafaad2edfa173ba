"""Loops of loops: bodies that differ in ints of their indices alone become one, with these as operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import gauss_seidel
from retrograd.ir import Graph, evaluate, verify
from retrograd.ir.rewrite import walk
from retrograd.passes.reroll.alike_bodies import alike_bodies
from retrograd.passes.reroll.reroll import reroll


def two_inner_loops(a: Any) -> Any:
    """Rows from below, each from the one before by a loop ahead and a loop back."""
    a = a.copy()
    n, m = a.shape
    for i in range(n - 2, 0, -1):
        for j in range(1, m):
            a[i, j] = np.sin(a[i, j - 1]) + 0.5 * a[i + 1, j]
        for j in range(m - 2, -1, -1):
            a[i, j] -= 0.25 * a[i, j + 1] * a[i - 1, j]
    return np.sum(a * a)


def counted_from_the_end(a: Any) -> Any:
    """The same rows by indices below zero."""
    a = a.copy()
    n, m = a.shape
    for i in range(2, n + 1):
        for j in range(1, m):
            a[-i, j] = 0.5 * a[-i, j - 1] * a[1 - i, j]
    return a


def whole_rows_between(a: Any) -> Any:
    """An inner loop between operations on rows, and a number that all rows share."""
    a = a.copy()
    total = 0.0
    for i in range(1, a.shape[0]):
        a[i] = np.tanh(a[i] + a[i - 1])
        for j in range(2, a.shape[1]):
            a[i, j] = np.sin(a[i, j] + a[i, j - 1] * a[i, j - 2])
        total = total + np.sum(a[i])
    return total


def other_numbers(a: Any) -> Any:
    """Rows whose inner loops differ in a factor: each keeps its own."""
    a = a.copy()
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] += (0.1 + 0.01 * i) * a[i, j - 1] * a[i - 1, j]
    return np.sum(a)


def growing_rows(a: Any) -> Any:
    """Rows whose inner loops have other lengths."""
    a = a.copy()
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - i):
            a[i, j] += 0.5 * a[i, j - 1] * a[i - 1, j]
    return np.sum(a)


def traced(program: Callable[..., Any], a: Any, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr("retrograd.compiler.rolled.LONG", 10**9)
    monkeypatch.setattr("retrograd.tracer.repeats.comparing.UNWATCHED", 10**9)
    return rg.trace(program)(a)


@pytest.mark.parametrize("shape", [(20, 24), (26, 40)])
@pytest.mark.parametrize(
    ("program", "nodes", "depth"),
    [
        (gauss_seidel, 80, 2),
        (two_inner_loops, 110, 2),
        (counted_from_the_end, 30, 1),
        (whole_rows_between, 90, 2),
        (other_numbers, 10**5, 1),
        (growing_rows, 10**5, 0),
    ],
)
def test_loops_of_loops_are_small_and_keep_every_bit(
    program: Callable[..., Any], nodes: int, depth: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = np.random.default_rng(0).uniform(-0.5, 0.5, shape)
    graph = traced(program, a, monkeypatch)
    rolled, columns = reroll(graph, elements=True)
    verify(rolled)
    assert sum(1 for _ in walk(rolled)) <= nodes
    assert _depth(rolled) >= depth
    for x, y in zip(evaluate(graph, [a]), evaluate(rolled, [a, *columns]), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
    np.testing.assert_array_equal(evaluate(graph, [a])[0], program(a))


def _depth(graph: Graph) -> int:
    """How deep loops are nested."""
    return max((1 + _depth(body) for node in graph.nodes for _, body in node.graphs), default=0)


def test_a_graph_without_loops_that_are_alike_is_itself() -> None:
    graph = rg.trace(lambda x: rg.fori_loop(3, lambda k, x: x * 2.0, x) + np.sin(x))(np.ones(3))
    assert alike_bodies(graph) is graph


@pytest.mark.parametrize("program", [gauss_seidel, two_inner_loops, whole_rows_between])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_gradients(program: Callable[..., Any], backend: str) -> None:
    a = np.random.default_rng(1).uniform(-0.5, 0.5, (12, 20))
    along = np.random.default_rng(2).normal(size=a.shape)
    found = np.sum(rg.grad(program, backend=backend)(a) * along)
    np.testing.assert_allclose(found, rg.jvp(program, (a,), (along,))[1], rtol=1e-10)
    h = 1e-6
    slope = (program(a + h * along) - program(a - h * along)) / (2 * h)
    np.testing.assert_allclose(found, slope, rtol=1e-6)
