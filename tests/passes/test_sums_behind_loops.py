"""Sums that steps add up become one sum behind the loop, where each step needs one element of each array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.ir.evaluate import evaluate
from retrograd.ir.loop_node import loop_of
from retrograd.passes.sums_behind_loops import LONG, sums_behind_loops
from tests.support.native import needs_compiler

STEPS = 4


def decay(x: Any, c: Any) -> Any:
    """Each step adds to one number, and takes from another."""

    def step(s: Any, t: Any) -> Any:
        x, total, left = s
        return (x * np.exp(-c * t), total + np.sum(x * x), left - 0.5 * np.sum(np.sin(x))), None

    start = 0.0 * np.sum(x)
    times = np.linspace(0.1, 0.4, STEPS).astype(x.real.dtype)
    (x, total, left), _ = rg.scan(step, (x, start + 0.5, start + 2.0), times)
    return np.sum(x) + total * left


def columns(x: Any, c: Any) -> Any:
    """Sums of each column, and a loop in a loop."""

    def inner(k: Any, s: Any) -> Any:
        x, total = s
        return np.sin(x) * c, total + np.sum(x, axis=0)

    def step(s: Any, _: Any) -> Any:
        return rg.fori_loop(2, inner, s), None

    (x, total), _ = rg.scan(step, (x[:, None] * np.arange(1, 4, dtype=x.real.dtype), np.zeros(3, x.dtype)), None, STEPS)
    return np.sum(x) + np.sum(total**2)


PROGRAMS = [decay, columns]


def sums_in_loops(graph: Graph, inside: bool = False) -> int:
    count = 0
    for node in graph.nodes:
        count += inside and node.prim.name == "sum"
        count += sum(sums_in_loops(body, inside or loop_of(node) is not None) for _, body in node.graphs)
    return count


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_values(program: Callable[..., Any], dtype: str) -> None:
    args = np.random.default_rng(0).standard_normal(LONG).astype(dtype), np.array(0.7, dtype)[()]
    graph = rg.trace(program)(*args)
    behind = sums_behind_loops(graph)
    assert sums_in_loops(graph) > 0
    assert sums_in_loops(behind) == 0
    for a, b in zip(evaluate(behind, args), evaluate(graph, args), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4 if dtype == "f4" else 1e-12)


@needs_compiler
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives(program: Callable[..., Any]) -> None:
    args = np.random.default_rng(1).standard_normal(3 * LONG), 0.7
    with rg.config(backend="native"):
        rg.check_grads(program, args, order=2)
        gradient = rg.grad(program, argnums=(0, 1))
        found = gradient(*args)
        assert sums_in_loops(gradient.at(*args).graph) == 0
    for a, b in zip(found, rg.grad(program, argnums=(0, 1))(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    assert sums_in_loops(rg.grad(program, argnums=(0, 1)).at(*args).graph) > 0  # NumPy's sums stay in the loop


def stays(step: Callable[..., Any], *start: Any) -> bool:
    graph = rg.trace(lambda *s: rg.fori_loop(STEPS, lambda i, s: step(*s), s))(*start)
    return sums_behind_loops(graph) is graph


def test_what_stays() -> None:
    x = np.ones(LONG)
    assert not stays(lambda x, a: (np.sin(x), a + np.sum(x)), x, 0.0)
    assert stays(lambda x, a: (np.sin(x), a + np.sum(x)), x[1:], 0.0)  # few terms
    assert stays(lambda x, a: (np.sin(x) * a, a + np.sum(x)), x, 0.0)  # steps read the sum
    assert stays(lambda x, a: (np.sin(x), np.sum(x) - a), x, 0.0)  # it has another sign in each step
    assert not stays(lambda x, a: (np.sin(x), a + np.sum(x) * np.exp(0.1)), x, 0.0)
    assert stays(lambda x, a: (np.sin(x), a + np.sum(x) ** 2), x, 0.0)
    assert stays(lambda x, a: (np.sin(x), a + np.sum(x) * np.sum(np.cos(x))), x, 0.0)
    assert stays(lambda x, a: (np.sin(x), a + np.max(x)), x, 0.0)
    assert stays(lambda x, a, b: (np.sin(x), a + np.sum(x), np.sin(b)), x, 0.0, x[:8])  # a state of another shape


def test_a_sum_that_two_states_add_up() -> None:
    def f(x: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            x, a, b = s
            total = np.sum(x)
            return (np.sin(x), a + total, b + total), None

        return rg.scan(step, (x, 0.0, 1.0), None, STEPS)[0][1:]

    x = np.linspace(0.0, 1.0, LONG)
    graph = rg.trace(f)(x)
    for a, b in zip(evaluate(sums_behind_loops(graph), (x,)), evaluate(graph, (x,)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
