"""Few long rows of a state are states of their own: values keep their bits, derivatives are those of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir import Graph
from retrograd.ir.evaluate import evaluate
from retrograd.ir.loop_node import loop_of
from retrograd.passes.rows_apart import LONG, MOST, rows_apart
from tests.support.derivatives import checked_gradient
from tests.support.native import needs_compiler
from tests.support.seeds import SEED

STEPS = 3


def inputs(n: int = LONG, rows: int = 3, dtype: str = "f8") -> tuple[Any, ...]:
    rng = np.random.default_rng(7)
    shapes = (rows, n), (rows,), (STEPS, rows, n)
    return tuple(rng.uniform(0.2, 1.0, shape).astype(dtype) for shape in shapes)


def lorenz(s: Any, p: Any, xs: Any) -> Any:
    def flow(s: Any) -> Any:
        x, y, z = s
        return np.array([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    def step(s: Any, x: Any) -> Any:
        return s + 0.1 * (flow(s) + flow(s + 0.1 * flow(s))) + 0.01 * x, None

    return np.sum(np.sin(rg.scan(step, s, xs)[0]))


def trajectory(s: Any, p: Any, xs: Any) -> Any:
    """Whole states, rows and sums over rows are collected."""

    def step(s: Any, x: Any) -> Any:
        s = np.stack([s[1] * x[0], -s[0], s[2] + s[-1] * p[0]])
        return s, (s, s[1], np.sum(s * s, axis=0), np.sum(s, axis=1) * np.sum(x[1]))

    s, (states, rows, norms, totals) = rg.scan(step, s, xs)
    return np.sum(states[1] * s) + np.sum(rows * norms) + np.sum(totals[:, 0]) + np.sum(totals**2)


def turned(s: Any, p: Any, xs: Any) -> Any:
    """Rows in another order, a product with a small matrix, and numbers for each row."""
    m = np.outer(p, np.cos(p))

    def step(s: Any, x: Any) -> Any:
        return np.tanh(m @ s[::-1] + p[:, None] * x - 0.5 * s[0]), None

    return np.sum(rg.scan(step, s, xs)[0] ** 2)


def written(s: Any, p: Any, xs: Any) -> Any:
    """Rows and parts of rows are written into."""

    def step(s: Any, x: Any) -> Any:
        y = s.copy()
        y[0] += x[1] * s[2]
        y[1, 2:5] = np.exp(-y[0, 2:5])
        y[1:] *= 0.9
        y[-1] = np.where(y[1] > 0.5, y[2], p[1] * y[0])
        return y, y[2]

    s, rows = rg.scan(step, s, xs)
    return np.sum(s * s) + np.sum(rows * xs[:, 1])


def joined(s: Any, p: Any, xs: Any) -> Any:
    """Arrays of one and two rows, and a loop in a loop."""

    def inner(k: Any, s: Any) -> Any:
        return np.concatenate([s[2:] * 0.5, np.vstack([s[0], s[1]]) + s[:1]]) / 1.5

    def step(s: Any, x: Any) -> Any:
        return rg.fori_loop(2, inner, s * x) + p[0], None

    return np.sum(np.cos(rg.scan(step, s, xs)[0]))


PROGRAMS = [lorenz, trajectory, turned, written, joined]


def states(graph: Graph) -> list[tuple[int, ...]]:
    """The shapes of the states of the first loop."""
    loop = next(loop for node in graph.nodes if (loop := loop_of(node)) is not None)
    return [v.aval.shape for v in loop.layout.operands(loop.body.inputs)[1]]


@pytest.fixture(params=PROGRAMS, ids=lambda f: f.__name__)
def program(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_values_have_the_same_bits(program: Callable[..., Any], dtype: str) -> None:
    args = inputs(dtype=dtype)
    if dtype == "c16" and program is written:
        return  # it compares
    args[0][:, :5] = [[-0.0, np.inf, np.nan, 0.0, -np.inf]] * 3
    with np.errstate(all="ignore"):
        graph = rg.trace(program)(*args)
        apart = rows_apart(graph)
        assert states(graph) == [(3, LONG)]
        assert states(apart) == [(LONG,)] * 3
        for a, b in zip(evaluate(apart, args), evaluate(graph, args), strict=True):
            if program is not turned:
                np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, b, rtol=1e-6 if dtype == "f4" else 1e-13)


@pytest.mark.costly
@needs_compiler
def test_derivatives(program: Callable[..., Any]) -> None:
    args = inputs()
    with rg.config(backend="native"):
        gradient = checked_gradient(program, args)
        assert all(shape[:1] != (3,) or len(shape) == 1 for shape in states(gradient.at(*args).graph))
        found = gradient(*args)
    for a, b in zip(found, rg.grad(program, argnums=(0, 1, 2))(*args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@needs_compiler
@pytest.mark.parametrize("transform", [rg.jit, rg.grad, rg.value_and_grad], ids=lambda f: f.__name__)
def test_the_option_of_a_transform_counts(transform: Any) -> None:
    """``backend=`` decides what happens in front of derivatives, as ``rg.config.backend`` does."""
    args = inputs()
    assert states(transform(lorenz, backend="native").at(*args).graph)[0] == (LONG,)
    with rg.config(backend="native"):
        assert states(transform(lorenz).at(*args).graph)[0] == (LONG,)
        assert states(transform(lorenz, backend="numpy").at(*args).graph)[0] == (3, LONG)


@pytest.mark.parametrize(
    ("rows", "n", "apart"),
    [(2, LONG, True), (MOST, LONG, True), (MOST + 1, LONG, False), (2, LONG - 1, False), (1, LONG, False)],
)
def test_few_long_rows_alone(rows: int, n: int, apart: bool) -> None:
    def f(s: Any) -> Any:
        return rg.fori_loop(STEPS, lambda i, s: np.concatenate([s[1:], s[:1] * s[-1]]), s)

    graph = rg.trace(f)(np.ones((rows, n)))
    assert states(rows_apart(graph)) == ([(n,)] * rows if apart else [(rows, n)])


def stays(step: Callable[..., Any]) -> bool:
    graph = rg.trace(lambda s: rg.fori_loop(STEPS, lambda i, s: step(s), s))(inputs()[0])
    return rows_apart(graph) is graph


def test_what_needs_whole_arrays_stays() -> None:
    assert stays(lambda s: np.sort(s, axis=0) + s[0])
    assert stays(lambda s: s.reshape(-1, 3).T.reshape(3, -1) + s[0])
    assert stays(lambda s: s + np.cumsum(s, axis=0))
    assert stays(lambda s: np.roll(s, 1, axis=0) @ np.ones((LONG, LONG)) + s[0])
    assert stays(lambda s: s * np.sin(s))  # no operation reads a row
    assert not stays(lambda s: s + s[0])


@needs_compiler
@pytest.mark.parametrize("plan", [rg.Snapshots(1), rg.Log(), rg.Periodic(2), rg.Tiered(1, 2)])
def test_a_plan_for_memory_changes_no_bit(plan: Any) -> None:
    m = np.array([[0.5, -0.2], [0.3, 0.9]])

    def f(s: Any, p: Any, memory: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            return np.tanh(m @ s + p * s[::-1] * np.sum(s, axis=0)), None

        return np.sum(rg.scan(step, s, None, 7, memory=memory)[0] ** 2)

    s = inputs(2 * LONG, 2)[0]
    assert states(rows_apart(rg.trace(lambda s, p: f(s, p, plan))(s, 0.7)))[0] == (2 * LONG,)
    with rg.config(backend="native"):
        planned = rg.value_and_grad(lambda s, p: f(s, p, plan), argnums=(0, 1))
        value, found = planned(s, 0.7)
        expected_value, expected = rg.value_and_grad(lambda s, p: f(s, p, None), argnums=(0, 1))(s, 0.7)
    assert value == expected_value
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@needs_compiler
def test_lanes_of_vmap_have_the_bits_of_single_calls(program: Callable[..., Any]) -> None:
    args = [np.stack([x, 0.9 * x, 1.1 * x]) for x in inputs()]
    with rg.config(backend="native"):
        gradient = rg.grad(program, argnums=(0, 1, 2))
        ways = [rg.vmap(gradient)(*args)]
        if program not in (trajectory, joined):  # their cotangents are added in another order
            ways.append(rg.grad(lambda *a: np.sum(rg.vmap(program)(*a)), (0, 1, 2))(*args))
        for found in ways:
            for k in range(3):
                for a, b in zip(found, gradient(*(x[k] for x in args)), strict=True):
                    np.testing.assert_array_equal(a[k], b)


def test_a_loop_that_ends_by_its_state_stays() -> None:
    graph = rg.trace(lambda s: rg.while_loop(lambda s: s[0, 0] < 9.0, lambda s: s + s[1], s))(inputs()[0])
    assert rows_apart(graph) is graph


class RandomSystem:
    """A random step on a state of a few long rows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, s: Any, p: Any, xs: Any) -> Any:
        rng = np.random.default_rng(self.seed)  # the same choices in each trace
        kinds, count = rng.integers(0, 11, 8), s.shape[0]

        def step(s: Any, x: Any) -> Any:
            draw = np.random.default_rng(self.seed + 1)
            found = [s, x]
            for kind in kinds:
                y, z = (found[k] for k in draw.integers(0, len(found), 2))
                k, j = draw.integers(0, count, 2)
                found.append(np.tanh(self.made(kind, y, z, int(k), int(j), p)))
            return found[-1], (found[-2], found[-3][0])

        s, (states, rows) = rg.scan(step, s, xs)
        return np.sum(s * s) + np.sum(states[-1] * s) + np.sum(rows * rows[0])

    @staticmethod
    def made(kind: int, y: Any, z: Any, k: int, j: int, p: Any) -> Any:
        if kind == 0:
            return y * z + y[k]
        if kind == 1:
            return np.stack([y[(i + k) % len(y)] - z[j] for i in range(len(y))])
        if kind == 2:
            return np.concatenate([y[k:], z[:k]])
        if kind == 3:
            return y[::-1] * p[:, None]
        if kind == 4:
            y = y.copy()
            y[k] -= z[j] * p[j]
            return y
        if kind == 5:
            y = y.copy()
            y[: k + 1, j:] = z[: k + 1, : y.shape[1] - j]
            return y
        if kind == 6:
            return y + np.sum(z, axis=0)
        if kind == 7:
            return y * np.sum(z, axis=1)[:, None] / y.shape[1]
        if kind == 8:
            return np.where(y > z[k], y, p[j] * z)
        if kind == 9:
            return np.outer(p, np.cos(p))[:, ::-1] @ y / len(p) + z
        return np.broadcast_to(z[j], y.shape) - np.max(y)


def same_on_both_targets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    args = inputs(int(rng.integers(LONG - 2, LONG + 70)), int(rng.integers(2, MOST + 1)))
    f = RandomSystem(seed)
    graph = rg.trace(f)(*args)
    for a, b in zip(evaluate(rows_apart(graph), args), evaluate(graph, args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, err_msg=str(seed))
    expected = rg.value_and_grad(f, argnums=(0, 1, 2))(*args)
    found = rg.value_and_grad(f, argnums=(0, 1, 2), backend="native")(*args)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-11, err_msg=str(seed))
    largest = max(np.max(np.abs(b)) for b in expected[1])  # small ones are differences of terms as large as that
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * largest, err_msg=str(seed))


@needs_compiler
@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))])
def test_random_systems(part: int) -> None:
    for k in range(12):
        same_on_both_targets(SEED * 10_000 + 12 * part + k)
