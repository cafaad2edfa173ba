"""Products and sums of slices whose length the data decide are loops in C."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import durbin
from retrograd.codegen.native.decided_slices import LONGEST
from retrograd.ir import Aval, Graph, evaluate
from retrograd.ir.builder import Builder
from retrograd.ir.texts import Arg
from retrograd.ops.gather import gather
from retrograd.ops.index import getitem
from retrograd.ops.ragged import add_within, dot_within
from tests.support.native import as_kernels, is_one_kernel, needs_compiler, taken

pytestmark = [needs_compiler, pytest.mark.usefixtures("all_in_c")]
NUMBER = Aval((), np.dtype(np.int64), "scalar")


def graph_of(name: str, dtype: Any, starts: tuple[bool, bool], sizes: tuple[int, int] = (40, 30)) -> Graph:
    b = Builder()
    x, y = (b.input(Aval((n,), np.dtype(dtype))) for n in sizes)
    c = b.input(Aval((), np.dtype(dtype), "scalar"))
    numbers = [b.input(NUMBER) for _ in range(1 + sum(starts))]
    if name == "dot":
        return b.graph("f", [dot_within(x, y, *numbers, starts=starts) * c])
    return b.graph("f", [add_within(x, c, y, *numbers, starts=starts)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["dot", "add"])
def test_slices_of_any_length(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    each = [(False, False), (True, False), (False, True), (True, True)]
    graphs = [graph_of(name, dtype, starts) for starts in each]
    assert all(map(taken, graphs))
    for starts, graph, function in zip(each, graphs, as_kernels(graphs), strict=True):
        x, y = rng.normal(size=40).astype(dtype), rng.normal(size=30).astype(dtype)
        for n, i, j in product((0, 1, 2, 17, 30), (0, 1, 10), (0, 3)):
            if n + (i if starts[0] else 0) <= 40 and n + (j if starts[1] else 0) <= 30:
                own = [np.int64(k) for k, on in zip((i, j), starts, strict=True) if on]
                args = [x, y, dtype(1.5), np.int64(n), *own]
                (expected,) = evaluate(graph, args)
                found = function(*args)
                if name == "dot":  # BLAS adds in another order
                    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-13, atol=1e-6)
                else:
                    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [LONGEST, LONGEST + 1])
def test_long_vectors_are_numpys(n: int) -> None:
    assert taken(graph_of("dot", float, (True, False), (n, 30))) == (n == LONGEST)
    assert taken(graph_of("add", float, (False, False), (30, n))) == (n == LONGEST)
    x = np.random.default_rng(0).uniform(-0.01, 0.01, n)
    found, expected = (rg.value_and_grad(durbin, backend=backend)(x) for backend in ("native", "numpy"))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-11)


def test_a_vector_is_added_to_itself() -> None:
    b = Builder()
    x, n = b.input(Aval((9,), np.dtype(float))), b.input(NUMBER)
    turned = getitem(x, index=(slice(None, None, -1),))
    graph = b.graph(
        "f", [add_within(x, b.constant(0.5, Aval((), np.dtype(float), "scalar")), turned, n, starts=(False, False))]
    )
    given = np.arange(9.0)
    np.testing.assert_array_equal(as_kernels([graph])[0](given, np.int64(6)), evaluate(graph, [given, np.int64(6)])[0])


def test_the_factor_may_be_an_array_of_no_axes() -> None:
    b = Builder()
    x, y, n = (b.input(aval) for aval in (Aval((5,), np.dtype(float)), Aval((4,), np.dtype(float)), NUMBER))
    graph = b.graph("f", [add_within(x, b.input(Aval((), np.dtype(float))), y, n, starts=(False, False))])
    assert taken(graph)
    args = [np.ones(5), np.arange(4.0), np.int64(3), np.array(0.5)]
    np.testing.assert_array_equal(as_kernels([graph])[0](*args), evaluate(graph, args)[0])


@pytest.mark.parametrize("name", ["dot", "add"])
def test_places_out_of_bounds_beside_slices_end_the_kernel(name: str) -> None:
    b = Builder()
    x, places = b.input(Aval((40,), np.dtype(float))), b.input(Aval((30,), np.dtype(np.int64)))
    c, n = b.input(Aval((), np.dtype(float), "scalar")), b.input(NUMBER)
    y = gather(x, places, index=(Arg(1),))
    z = b.input(Aval((35,), np.dtype(float)))
    found = (
        dot_within(z, y, n, starts=(False, False)) * c
        if name == "dot"
        else add_within(z, c, y, n, starts=(False, False))
    )
    graph = b.graph("f", [found])
    (function,) = as_kernels([graph])
    rng = np.random.default_rng(0)
    args = [rng.normal(size=40), rng.integers(0, 40, 30), np.float64(1.5), np.int64(29), rng.normal(size=35)]
    np.testing.assert_allclose(function(*args), evaluate(graph, args)[0], rtol=1e-13)
    for k in (0, 9, 23, 28):
        wrong = [*args]
        wrong[1] = args[1].copy()
        wrong[1][k] = 40
        with pytest.raises(AssertionError, match="does not take"):  # what runs in its place: NumPy raises IndexError
            function(*wrong)


def forward(a: Any) -> Any:
    """A system of the lower triangle, whose rows grow."""
    x = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        x[i] = (1.0 - a[i, :i] @ x[:i]) / (3.0 + a[i, i])
    return np.sum(x * x)


@pytest.mark.parametrize(("f", "shape"), [(durbin, (64,)), (forward, (40, 40))], ids=["durbin", "forward"])
def test_derivatives_are_one_kernel(f: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).uniform(-0.1, 0.1, shape)
    value, slope = rg.value_and_grad(f, backend="native")(x)
    expected, gradient = rg.value_and_grad(f)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, gradient, rtol=1e-9, atol=1e-11)
    assert is_one_kernel(rg.value_and_grad(f), x)


def test_second_derivatives() -> None:
    x, v = np.random.default_rng(0).uniform(-0.1, 0.1, (2, 40))
    found, expected = rg.hvp(durbin, backend="native")(x, v), rg.hvp(durbin)(x, v)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
