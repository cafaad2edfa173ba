"""Loops that write elements of matrices fold for C, which changes the matrix where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import gauss_seidel
from retrograd.passes.reroll.prove_loops import SMALL
from tests.support.native import needs_compiler

pytestmark = needs_compiler
EDGE = int((SMALL / 8) ** 0.5)  # the longest edge of a small matrix


def relaxed(a: Any) -> Any:
    """Each element from neighbours, of which some are new, and not linear in them."""
    a = a.copy()
    n = a.shape[0]
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            a[i, j] += 0.2 * np.sin(a[i - 1, j] * a[i, j - 1]) - 0.1 * a[i + 1, j]
    return np.sum(a * a)


def along_columns(a: Any) -> Any:
    """Steps of a recurrence down each column, which read the row that is written last."""
    a = a.copy()
    for j in range(a.shape[1]):
        for i in range(1, a.shape[0]):
            a[i, j] = 0.5 * a[i, j] + a[i - 1, j] * a[0, j]
    return np.sum(np.cos(a))


def at_known_places(a: Any) -> Any:
    """Elements in an order that no index counts, some of them twice."""
    a = a.copy()
    n = a.shape[0]
    places = np.random.default_rng(0).integers(0, n, (200, 4))
    for i, j, k, m in places:
        a[i, j] = 0.9 * a[i, j] + 0.1 * a[k, m] * a[i, j]
    return np.sum(a**2)


def loops(graph: Any) -> int:
    return sum(node.prim.name == "scan" for node in graph.nodes)


@pytest.mark.costly
@pytest.mark.parametrize("program", [gauss_seidel, relaxed, along_columns, at_known_places])
@pytest.mark.parametrize("n", [EDGE, EDGE + 1, pytest.param(EDGE + 8, marks=pytest.mark.slow)])
def test_values_and_gradients(program: Callable[..., Any], n: int) -> None:
    a = np.random.default_rng(n).uniform(0.2, 1.0, (n, n))
    gradient = rg.value_and_grad(program, backend="native")
    value, found = gradient(a)
    assert loops(gradient.at(a).graph) > 0
    assert not any(reason.startswith(program.__name__) for reason in rg.native_info().refused)
    np.testing.assert_allclose(value, program(a), rtol=1e-13)
    with rg.config(backend="native"):
        rg.check_grads(program, (a,), order=1, modes=("rev",))
    if program is not gauss_seidel:  # NumPy's code for it takes long to compile
        np.testing.assert_allclose(found, rg.grad(program)(a), rtol=1e-11, atol=1e-13)


def test_second_derivatives_and_lanes() -> None:
    a = np.random.default_rng(0).uniform(0.2, 1.0, (EDGE + 1, EDGE + 1))
    with rg.config(backend="native"):
        product = rg.hvp(relaxed)(a, np.cos(a))
        lanes = rg.vmap(rg.grad(relaxed))(np.stack([a, 0.5 * a]))
        for k, scale in enumerate((1.0, 0.5)):
            np.testing.assert_array_equal(lanes[k], rg.grad(relaxed)(scale * a))
    np.testing.assert_allclose(product, rg.hvp(relaxed)(a, np.cos(a)), rtol=1e-10, atol=1e-12)


def test_numpy_computes_elements_of_larger_matrices_by_levels() -> None:
    a = np.random.default_rng(0).uniform(0.2, 1.0, (EDGE + 1, EDGE + 1))
    assert loops(rg.jit(relaxed).graph(a, stage="traced")) == 0
    assert loops(rg.jit(relaxed, backend="native").graph(a, stage="traced")) == 1
