"""Long chains of writes at known slices go into the array they change, and who reads an old state gets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import cholesky
from retrograd.codegen.native.overwriting import LARGEST, LONG, long_chains, writes_in_place
from retrograd.ir import Aval, Graph, evaluate
from retrograd.ir.builder import Builder, Symbol
from tests.native.test_random_kernels import TOGETHER, RandomComplexKernel, RandomKernel, as_numpy_computes
from tests.support.graphs import op
from tests.support.native import as_kernels, in_a_hurry, needs_compiler, taken
from tests.support.seeds import SEED

pytestmark = needs_compiler


class RandomChains(RandomKernel):
    """Random kernels with chains of writes; each reads its array and older states of it, in parts and as a whole."""

    def step(self) -> None:
        if self.integer(0, 4) and any(x.aval.size > 16 for x in self.values):
            self.values.append(self._chain())
        else:
            super().step()

    def _chain(self) -> Symbol:
        large = [x for x in self.values if x.aval.size > 16]
        states = [large[self.integer(0, len(large))]]
        for _ in range(self.integer(LONG - 2, LONG + 8)):
            now = states[-1]
            index = self._index(now.shape, (1,))
            name = ("setitem", "additem", "subitem")[self.integer(0, 3)]
            states.append(op(name, now, self._part(states, index), index=index))
            if self.integer(0, 4) == 0:
                read = self._part(states, self._index(now.shape, (1, 2, -1)))
                self.values.append(self._bounded(read) if read.ndim else op("copy", read))
        if self.integer(0, 3) == 0:
            self.values.append(self._bounded(states[self.integer(0, len(states))]))
        return self._bounded(states[-1])

    def _part(self, states: list[Symbol], index: tuple[Any, ...]) -> Symbol:
        """What one of the last states, or any other, has at an index: its elements, turned around, or one of them."""
        x = states[self.integer(max(0, len(states) - 3), len(states)) if self.integer(0, 3) else 0]
        part = op("getitem", x, index=index)
        kind = self.integer(0, 4)
        if kind == 0 and part.ndim:
            return op("getitem", part, index=(slice(None, None, -1),))
        if kind == 1:
            one = op("getitem", x, index=tuple(self.integer(0, n) for n in x.shape))
            return op("broadcast", one, aval=part.aval) if part.ndim else one
        return op("neg", part) if kind == 2 else self._bounded(part)


class RandomComplexChains(RandomComplexKernel, RandomChains):
    """The same on complex numbers."""


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 100))])
def test_random_chains_compute_what_numpy_computes(part: int) -> None:
    start = 10**9 + (SEED * 1000 + part) * TOGETHER
    with in_a_hurry():
        assert as_numpy_computes(range(start, start + TOGETHER), RandomChains) >= 0.6 * TOGETHER


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))])
def test_random_chains_of_complex_numbers(part: int) -> None:
    start = 2 * 10**9 + (SEED * 1000 + part) * 20
    with in_a_hurry():
        assert as_numpy_computes(range(start, start + 20), RandomComplexChains) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_optimised_chains(part: int) -> None:
    start = 3 * 10**9 + (SEED * 1000 + part) * TOGETHER
    assert as_numpy_computes(range(start, start + TOGETHER), RandomChains) >= TOGETHER // 2


def solve(lower: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return np.sum(x * x)


def shifts(x: Any) -> Any:
    """Each write reads what it changes, one element further on."""
    x = x.copy()
    for k in range(LONG + 2):
        x[k + 1 : k + 20] += 0.5 * x[k : k + 19]
        x[k] = x[k + 3]
    return np.sum(x * x)


def kept(x: Any) -> Any:
    """Old states are read when all is written."""
    x, states = x.copy(), []
    for k in range(LONG + 2):
        states.append(x.copy())
        x[k] = 2.0 * x[k + 1] + x[k]
    return sum(np.sum(np.sin(s) * s[::-1]) for s in states) + np.sum(x * x)


def states_of(f: Any, *args: Any) -> tuple[list[Any], list[Any]]:
    made = [rg.value_and_grad(f, backend=backend)(*args) for backend in ("numpy", "native")]
    return list(made[0]), list(made[1])


@pytest.mark.parametrize("n", [LONG - 1, LONG, 17, 40])
def test_a_triangular_system(n: int) -> None:
    rng = np.random.default_rng(0)
    lower, b = np.tril(rng.normal(size=(n, n))) + n * np.eye(n), rng.normal(size=n)
    expected, found = states_of(solve, lower, b)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("f", [shifts, kept])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_a_write_changes_is_read_before(f: Any, dtype: str) -> None:
    x = np.random.default_rng(1).normal(size=40).astype(dtype)
    expected, found = states_of(f, x)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12 if dtype == "float64" else 1e-4)
    batch = np.stack([x, -x, 2 * x])
    for backend in ("numpy", "native"):
        slope = rg.grad(f, backend=backend)
        rows = rg.vmap(slope, backend=backend)(batch)
        assert rows.tobytes() == np.stack([slope(row) for row in batch]).tobytes()


def test_second_derivatives_and_plans() -> None:
    a = np.random.default_rng(2).normal(size=(6, 6)) / 6 + 2 * np.eye(6)
    a = a @ a.T
    v = np.cos(np.arange(36.0)).reshape(6, 6)
    assert rg.hvp(cholesky, backend="native")(a, v).tobytes() == rg.hvp(cholesky)(a, v).tobytes()
    plain = rg.grad(cholesky, backend="native")(a)
    assert plain.tobytes() == rg.grad(cholesky)(a).tobytes()
    saved = rg.grad(rg.checkpoint(cholesky), backend="native")(a)
    assert saved.tobytes() == plain.tobytes()


def chain(n: int, size: int) -> Graph:
    def writes(x: Any) -> Any:
        x = x.copy()
        for k in range(n):
            x[k] = x[k + 1] * 2.0
        return x

    return rg.jit(writes).graph(np.ones(size))


@pytest.mark.parametrize(("n", "size", "found"), [(7, 17, 0), (8, 17, 8), (8, 16, 0), (9, LARGEST + 1, 0)])
def test_which_chains_are_long(n: int, size: int, found: int) -> None:
    assert len(long_chains(chain(n, size))) == found


def test_only_the_first_write_of_a_chain_copies() -> None:
    graph = chain(20, 40)
    chained = long_chains(graph)
    plan = writes_in_place(graph, chained, [node for node in graph.nodes if node in chained])
    assert len(plan.numbers) == 19
    assert not plan.wanted


@pytest.mark.parametrize("name", ["setitem", "additem", "subitem"])
@pytest.mark.parametrize(
    "index",
    [
        (slice(7, None, -1),),
        (slice(None, 3, -1), slice(1, 5)),
        (slice(None, None, -1), 2),
        (-1, slice(4, 0, -1)),
        (slice(None, None, -1), slice(None, None, -1)),
    ],
    ids=str,
)
def test_what_is_written_may_run_the_other_way(name: str, index: tuple[Any, ...]) -> None:
    b = Builder()
    x = b.input(Aval((9, 6), np.dtype(float)))
    y = b.input(Aval(np.empty((9, 6))[index].shape, np.dtype(float)))
    graph = b.graph("f", [op(name, x, y, index=index)])
    assert taken(graph)
    rng = np.random.default_rng(0)
    args = [rng.normal(size=v.aval.shape) for v in graph.inputs]
    np.testing.assert_array_equal(as_kernels([graph])[0](*args), evaluate(graph, args)[0])


def test_long_chains_of_writes_of_what_is_given() -> None:
    def f(x: Any, rows: Any) -> Any:
        y = np.zeros((12, 20))
        for k in range(12):
            y[k, 1:] = rows[k]
        return y * x

    x, rows = np.linspace(0.0, 1.0, 20), [np.full(19, float(k)) for k in range(12)]
    native = rg.jit(f, backend="native")
    np.testing.assert_array_equal(native(x, rows), f(x, rows))
    assert "12" in native.source(x, rows, language="c")
    assert "[20 * " in native.source(x, rows, language="c")


def test_loops_with_several_results_may_read_what_long_chains_write() -> None:
    def f(a: Any) -> Any:
        a = a.copy()
        for i in range(5):
            a[i] *= 0.5
            c, ys = rg.scan(lambda c, j, a=a, i=i: (c + a[i, j] * c, c), 1.0, np.arange(20))
            a[i] += ys * c
        return np.sum(a)

    a = np.linspace(0.0, 0.1, 240).reshape(12, 20)
    for transform in (rg.jit, rg.grad):
        np.testing.assert_allclose(transform(f, backend="native")(a), transform(f)(a), rtol=1e-12)
