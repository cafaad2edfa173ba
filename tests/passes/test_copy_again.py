"""Adjoints copy slices again where copies would be kept: the same bits, less memory, and only if that is sure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.stages import settled
from retrograd.ops.structural.region import turn
from retrograd.passes.place_buffers import POOL
from retrograd.passes.remat import copy_again as passes
from retrograd.passes.remat.copy_again import copy_again
from retrograd.passes.remat.search import peak_of_order
from tests.support.memory import measured

N = 90


def windows(w: Any, x: Any) -> Any:
    """A convolution: each slice is copied into rows for its product."""
    total = 0.0
    for i in range(3):
        total = total + x[:, i : N - 2 + i].reshape(-1, 4) @ w[i]
    return np.sum(np.tanh(total) ** 2)


def made(w: Any, x: Any) -> Any:
    """The array of which parts are copied is not needed otherwise, so that the copies are kept."""
    return windows(w, np.sin(x))


def arguments(n: int = N) -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((3, 4, 5)), rng.standard_normal((n, N, 4))


def graph_of(function: Any, *args: Any) -> Any:
    """The graph of value and gradient that plans of memory get."""
    return settled(rg.value_and_grad(function, argnums=(0, 1)).at(*args).derived.graph)


def test_a_convolution_keeps_no_copies() -> None:
    args = arguments()
    graph = graph_of(windows, *args)
    twice = copy_again(graph)
    assert twice is not graph
    assert [node.prim for node in twice.nodes].count(turn) == 1
    assert peak_of_order(twice) < 0.9 * peak_of_order(graph)
    assert copy_again(twice) is twice
    gradient = rg.value_and_grad(windows, argnums=(0, 1))
    source = gradient.source(*args)
    assert source.count(".reshape((7920, 4))") == 6
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrograd.compiler.memory.budgets.copy_again", lambda graph: graph)

        def unchanged(w: Any, x: Any) -> Any:
            return windows(w, x)

        kept = rg.value_and_grad(unchanged, argnums=(0, 1))
        assert kept.source(*args).count(".reshape((7920, 4))") == 3
    for a, b in zip(np.ravel(gradient(*args)[1][0]), np.ravel(kept(*args)[1][0]), strict=True):
        assert a == b
    assert measured(gradient, *args) < 0.9 * measured(kept, *args)


@pytest.mark.parametrize(("function", "args"), [(made, arguments()), (windows, arguments(POOL // (8 * 4 * N)))])
def test_copies_of_other_arrays_and_small_ones_are_kept(function: Any, args: Any) -> None:
    graph = graph_of(function, *args)
    assert copy_again(graph) is graph


def options(w: Any, x: Any) -> Any:
    """Cheap parts of arguments, functions of them, and what only the adjoint reads."""
    spread = w * np.sqrt(x)
    up = np.log(x / w) / spread
    return np.sum(np.exp(np.sin(up / 1.5)) * x + np.tanh(up - spread) * np.log1p(w) * np.cos(up) * np.exp(-w))


def test_cheap_parts_of_arguments_are_computed_again() -> None:
    w, x = (np.random.default_rng(k).uniform(1.0, 2.0, POOL // 8 + 100) for k in range(2))
    graph = graph_of(options, w, x)
    twice = copy_again(graph)
    assert twice is not graph
    for name in ("exp", "log", "tanh", "sin", "cos"):
        assert sum(n.prim.name == name for n in twice.nodes) <= sum(n.prim.name == name for n in graph.nodes) + 2
    gradient = rg.value_and_grad(options, argnums=(0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("retrograd.compiler.memory.budgets.copy_again", lambda graph: graph)

        def unchanged(w: Any, x: Any) -> Any:
            return options(w, x)

        kept = rg.value_and_grad(unchanged, argnums=(0, 1))
        expected, most = kept(w, x), measured(kept, w, x)
    assert measured(gradient, w, x) <= 0.9 * most
    np.testing.assert_array_equal(gradient(w, x)[1], expected[1])
    assert gradient(w, x)[0] == expected[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "WORTH", 20)  # so that this much work would have to save more than the whole peak
        assert copy_again(graph) is graph
    for n in (POOL // 8 - 1, 40_000):  # small arrays, and those that blocks compute
        graph = graph_of(options, w[0] * np.ones(n), x[0] * np.ones(n))
        assert copy_again(graph) is graph


def test_budgets_count_what_runs_again_without_one() -> None:
    w, x = (np.random.default_rng(k).uniform(1.0, 2.0, POOL // 8 + 100) for k in range(2))
    gradient = rg.grad(options, argnums=(0, 1))
    plan = gradient.plan(w, x)
    assert plan.work == sum(value.work for value in plan.again) > 0
    assert "computed again: " in str(plan)
    first, *points = gradient.tradeoff(w, x).points
    assert (first.plan, first.peak_bytes, first.work) == ("Everything()", plan.peak_bytes, plan.work)
    assert first.share == plan.share
    assert points
    works = [first.work, *(point.work for point in points)]
    assert works == sorted(works)
    for point in (first, *points):
        within = rg.grad(options, argnums=(0, 1), memory=point.peak_bytes)
        found = within.plan(w, x)
        assert (found.peak_bytes, found.work) == (point.peak_bytes, point.work)
        np.testing.assert_array_equal(within(w, x), gradient(w, x))


def test_strided_arguments_and_writes() -> None:
    """Reshapes of arguments in other orders may be views, and what is written between is not read again."""

    def written(w: Any, x: Any) -> Any:
        before = windows(w, x)
        x = x.copy()
        x[:, 0] = 0.0
        return before + windows(w, x)

    w, x = arguments()
    for given in (x, np.asfortranarray(x), x[::-1], np.repeat(x, 2, axis=1)[:, ::2]):
        for function in (windows, written):
            found = rg.grad(function, argnums=(0, 1))(w, given)
            with rg.config(exact=True):
                expected = rg.grad(function, argnums=(0, 1))(w, np.ascontiguousarray(given))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_budgets_and_halves() -> None:
    args = arguments()
    plain = rg.grad(windows, argnums=(0, 1))
    most = plain.plan(*args).peak_bytes
    for budget in (most, 10 * most):
        for a, b in zip(plain(*args), rg.grad(windows, argnums=(0, 1), memory=budget)(*args), strict=True):
            np.testing.assert_array_equal(a, b)
    _, pull = rg.vjp(windows, *args)
    for a, b in zip(pull(1.0), plain(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
