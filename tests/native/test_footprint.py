"""The memory that is said of a native call is that of C's own storage, and budgets hold with it."""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads import WORKLOADS
from retrograd.codegen.native.kernel_function import KernelFunction
from retrograd.codegen.native.shared_objects import keep_workspaces
from retrograd.codegen.native.shim import STACK, workspace
from tests.fuzz.test_memory_programs import EVERY, Case
from tests.native.test_threads import PROGRAMS, Program
from tests.support.folding import loops_from
from tests.support.memory import measured, nothing_kept, one_thread
from tests.support.native import in_a_hurry, needs_compiler

pytestmark = needs_compiler
SMALL = 4096  # bytes of what is no array
X = np.random.default_rng(0).normal(size=(60, 700))


def taken(g: Any, *args: Any, run: Any = None) -> int:
    """The most bytes that a call holds, with what kernels keep from the first one on."""
    g.executable(*args)
    call = partial(g if run is None else run, *args)
    with one_thread(), nothing_kept():
        keep_workspaces(True)  # but what kernels keep, which a prediction counts
        tracemalloc.start()
        try:
            call()
            kept = sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.size > STACK)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            call()
            return kept + tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()


def said_is_taken(g: Any, *args: Any, run: Any = None) -> None:
    predicted, found = g.plan(*args).peak_bytes, taken(g, *args, run=run)
    assert predicted is not None
    assert abs(predicted - found) <= 0.01 * found + SMALL


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum((e / np.sum(e, axis=1, keepdims=True)) ** 2)


def steps(x: Any) -> Any:
    for _ in range(3):
        x = np.sin(x) + 0.1 * np.roll(x, 1, axis=1)
    return np.sum(x * x)


def layers(x: Any) -> Any:
    """Products of NumPy's between kernels."""
    for _ in range(3):
        x = np.tanh(x @ x.T @ x / 700.0) + x
    return np.sum(x * x)


def recurrent(x: Any) -> Any:
    w, h = x[:, :60], np.zeros(60)
    for k in range(60, 200):
        h = np.tanh(w @ h + x[:, k])
    return np.sum(h * h)


GRADIENTS: dict[str, Program] = {
    **{name: program for name, program in PROGRAMS.items() if name != "nan"},  # the same kernels as another
    **{f.__name__: (f, (X,)) for f in (softmax, steps, layers, recurrent)},
    "running sums": (lambda x: np.sum(np.sin(np.cumsum(np.sin(np.cumsum(x)))) ** 2), (X[0],)),
    "complex": (lambda x: np.sum(np.abs(np.exp(1j * x) * x) ** 2), (X[0],)),
}
QUICK = (
    *("softmax", "logsumexp", "layernorm", "attention", "logistic", "k-means", "gmm-10", "lstm", "black-scholes-10000"),
    *("mlp-784-128-10", "heat-64", "lorenz-scan", "lorenz-arrays", "rosenbrock-100", "rosenbrock-10000"),
)
MANY_OBJECTS = (  # thousands of views and small arrays of NumPy's, whose objects are no arrays' memory
    *("kernel-lu", "kernel-lu-elements", "kernel-lu-elements-24", "kernel-cholesky", "kernel-cholesky-rows"),
    *("kernel-seidel", "kernel-channel", "kernel-sparse"),
)


@pytest.mark.costly
@pytest.mark.parametrize("name", GRADIENTS)
def test_what_is_predicted_is_measured(name: str) -> None:
    f, args = GRADIENTS[name]
    said_is_taken(rg.value_and_grad(f, tuple(range(len(args))), backend="native"), *args)


@pytest.mark.whole
@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(k, marks=pytest.mark.slow) for k in WORKLOADS if k not in {*QUICK, *MANY_OBJECTS})],
)
def test_programs_of_the_benchmark(name: str) -> None:
    row = WORKLOADS[name]
    f = row.in_retrograd(rg) if row.in_retrograd else row.function
    with in_a_hurry():
        said_is_taken(rg.value_and_grad(f, row.argnums), *row.inputs())


@pytest.mark.costly
@pytest.mark.parametrize("kind", ["", "regions"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 60))])
@pytest.mark.filterwarnings("ignore")
def test_random_programs_with_plans_and_regions(seed: int, kind: str, tmp_path: Path) -> None:
    for planned in (0, 1):  # kernels of its own size, which have kept nothing yet
        case = Case(seed, tmp_path, (30_000 + 12 * seed + 6 * (kind == "regions") + 3 * planned,), kind)
        f = case.planned() if planned else case.plain()
        with in_a_hurry(), loops_from(20):
            g = rg.value_and_grad(f, EVERY)
            if g.plan(*case.args).peak_bytes is not None:  # the data decide the steps of a loop
                predicted, found = g.plan(*case.args).peak_bytes, taken(g, *case.args, run=partial(case.run, g))
                assert found <= 1.01 * predicted + SMALL
                assert predicted <= 1.01 * found + SMALL or "cond" in case.program.source  # the data choose


def region(x: Any) -> Any:
    for _ in range(4):
        x = np.sin(x) * 1.1 + 0.1 * np.roll(x, 1)
    return x


@pytest.mark.costly
@pytest.mark.parametrize("n", [700, 7001, 70_001])
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_regions(kept: int, n: int) -> None:
    policy = [rg.policies.save_nothing, rg.policies.save_all, rg.policies.save_matmuls][kept]

    def f(x: Any) -> Any:
        for _ in range(3):
            x = rg.checkpoint(region, policy=policy)(x)
        return np.sum(x * x)

    x = np.linspace(0.0, 1.0, n + kept)  # kernels of its own, which have kept nothing yet
    with in_a_hurry():
        g = rg.grad(f)
        said_is_taken(g, x)
        plain = rg.grad(lambda x: np.sum(region(region(region(x))) ** 2))
        np.testing.assert_array_equal(g(x), plain(x))


@pytest.mark.parametrize("budget", [400_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (900_000, 4_000_000))])
def test_budgets_hold(budget: int) -> None:
    def f(x: Any) -> Any:
        return np.sum(rg.fori_loop(0, 60, lambda k, x: np.sin(x) + 0.1 * np.roll(x, 1), x) ** 2)

    x = np.linspace(0.0, 1.0, 7001 + budget % 97)  # a kernel of its own, which has kept nothing yet
    g = rg.grad(f, memory=budget, backend="native")
    said_is_taken(g, x)
    assert taken(g, x) - SMALL <= budget
    np.testing.assert_array_equal(g(x), rg.grad(f, backend="native")(x))


def test_kernels_keep_nothing_without_a_workspace() -> None:
    """... and free what they have: one that waits, one that runs, and one that is loaded later."""

    def function(x: Any) -> Any:
        return np.sum(rg.fori_loop(3, lambda i, s: np.sin(s) + 0.1 * np.roll(s, 1), x))

    def held() -> int:
        traces = tracemalloc.take_snapshot().traces  # of domain 0 are Python's own, such as dicts that grow meanwhile
        return sum(trace.size for trace in traces if trace.domain and trace.size > STACK)

    first, second = (np.linspace(0.0, 1.0, n) for n in (40_011, 40_012))
    g = rg.grad(function, backend="native")
    expected = [g(first), g(second)]
    keep_workspaces(False)  # both begin anew
    keep_workspaces(True)
    tracemalloc.start()
    try:
        g(first)
        assert held() > 300_000
        with nothing_kept():
            assert held() == 0
            assert np.array_equal(g(first), expected[0])
            assert np.array_equal(g(second), expected[1])
            assert held() == 0
            third = rg.grad(lambda x: 2 * function(x), backend="native")
            third(first)
            assert held() == 0
        g(first)
        third(first)
        assert held() > 600_000
    finally:
        tracemalloc.stop()


def test_memory_is_said_as_c_has_it() -> None:
    """NumPy's statements for the same kernel hold arrays that C computes where they are read."""
    g = rg.value_and_grad(lambda x: np.sum(np.exp(np.sin(x) * x) * np.cos(x)), backend="native")
    x = np.linspace(0.0, 1.0, 50_000)
    in_numpy = rg.value_and_grad(g.__wrapped__)
    assert g.plan(x).peak_bytes <= 1.01 * x.nbytes + SMALL
    assert in_numpy.plan(x).peak_bytes > 2 * x.nbytes
    assert measured(g, x) <= 1.01 * x.nbytes + 2 * SMALL


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), (0, True)),
        ((2**14,), (0, True)),
        ((2**14 + 1,), (2**14 + 128, True)),
        ((2**13, 2**13, 8), (2**14 + 128, True)),
        ((2**26,), (2**26 + 64, True)),
        ((2**26 + 1,), (2**26 + 128, False)),
    ],
)
def test_workspaces_on_the_stack_kept_and_given_back(sizes: tuple[int, ...], expected: tuple[int, bool]) -> None:
    assert workspace(KernelFunction("", sizes, 0)) == expected


def test_rows_of_as_many_steps_as_the_data_decide_are_not_known() -> None:
    def f(x: Any) -> Any:
        return np.sum(rg.while_loop(lambda x: np.sum(x) > 1.0, lambda x: np.sin(x) * 0.5, x) ** 2)

    g = rg.grad(f, backend="native")
    assert g.plan(np.linspace(0.0, 1.0, 50)).peak_bytes is None


@pytest.mark.parametrize("n", [60, 130])
def test_loops_of_formulas_take_what_is_said(n: int) -> None:
    def log_determinant(a: Any) -> Any:
        a = a.copy()
        for k in range(n - 1):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return np.sum(np.log(np.abs(np.diag(a))))

    matrix = np.random.default_rng(0).normal(size=(n, n)) + n * np.eye(n)
    gradient = rg.grad(log_determinant, backend="native")
    assert "write_within" in str(gradient.graph(matrix))
    said_is_taken(gradient, matrix)
