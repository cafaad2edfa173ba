"""The memory that is said of a native call is that of C's own storage, and budgets hold with it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.kernel_function import KernelFunction
from retrograd.codegen.native.shim import workspace
from tests.native.test_threads import PROGRAMS
from tests.support.memory import measured
from tests.support.native import needs_compiler

pytestmark = needs_compiler
SMALL = 4096  # bytes of what is no array
X = np.random.default_rng(0).normal(size=(60, 700))


def taken(f: Any, *args: Any) -> int:
    """The most bytes that a call holds, with what kernels keep for it, though no call was before."""
    run = f.executable(*args).function
    leaves = rg.tree.leaves(args)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run(*leaves)
        tracemalloc.reset_peak()
        run(*leaves)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


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


GRADIENTS = {
    **{name: PROGRAMS[name][0] for name in ("long sums", "neighbours", "pairs", "differences")},
    "softmax": softmax,
    "steps": steps,
    "layers": layers,
    "recurrent": recurrent,
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_what_is_predicted_is_measured(name: str) -> None:
    x = PROGRAMS[name][1][0] if name in PROGRAMS else X
    g = rg.value_and_grad(GRADIENTS[name], backend="native")
    predicted, found = g.plan(x).peak_bytes, taken(g, x)
    assert predicted is not None
    assert abs(predicted - found) <= 0.01 * found + SMALL


@pytest.mark.parametrize("budget", [400_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (900_000, 4_000_000))])
def test_budgets_hold(budget: int) -> None:
    def f(x: Any) -> Any:
        return np.sum(rg.fori_loop(0, 60, lambda k, x: np.sin(x) + 0.1 * np.roll(x, 1), x) ** 2)

    x = np.linspace(0.0, 1.0, 7001 + budget % 97)  # a kernel of its own, which has kept nothing yet
    g = rg.grad(f, memory=budget, backend="native")
    predicted, found = g.plan(x).peak_bytes, taken(g, x)
    assert predicted is not None
    assert found - SMALL <= budget
    assert abs(predicted - found) <= 0.01 * found + SMALL
    np.testing.assert_array_equal(g(x), rg.grad(f, backend="native")(x))


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
