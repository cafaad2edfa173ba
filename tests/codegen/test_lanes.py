"""Loops that work element by element run on block after block of long arrays: the same bits, the memory of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.footprint.footprint import Simulation
from retrograd.compiler.executable import Executable
from retrograd.ir.loop_node import loop_of
from retrograd.ir.rewrite import walk
from retrograd.passes import block_kernels as blocks
from retrograd.passes import cheaper_rules, row_rules
from tests.codegen.test_blocks import MOST, SHORT, SIZES, both
from tests.support.memory import measured, one_thread

STEPS = 7


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short arrays are worked on in blocks, and so no sums of them are left to BLAS."""
    monkeypatch.setattr(cheaper_rules, "LONGEST_ROW", 0)
    monkeypatch.setattr(row_rules, "LONGEST_ROW", 0)
    monkeypatch.setattr(row_rules, "LONGEST_ALONE", 0)
    monkeypatch.setattr(blocks, "SHORTEST", SHORT)
    monkeypatch.setattr(blocks, "MOST", MOST)
    monkeypatch.setattr(blocks, "MOST_IN_LOOPS", MOST)


def loops_in_blocks(made: Executable) -> int:
    """How many loops run on blocks."""
    kernels = [node for node in walk(made.plan.order) if node.prim.name == "kernel"]
    return sum(loop_of(inner) is not None for node in kernels for inner in node.attrs["body"].nodes)


def test_blocks_are_short_here(short: None) -> None:
    source = rg.jit(paths).source(*given(700))
    assert "in_blocks(paths_1, 700, 128, " in source


def check(function: Callable[..., Any], *args: Any, monkeypatch: pytest.MonkeyPatch, made: tuple[int, int]) -> None:
    """Values and gradients have the same bits; ``made`` are the loops in blocks, without and with derivatives."""
    for mode, n in zip((rg.jit, rg.value_and_grad), made, strict=True):
        found, without = both(mode(function).graph(*args), args, monkeypatch)
        assert loops_in_blocks(found) == n
        assert loops_in_blocks(without) == 0


def paths(x: Any, draws: Any, speed: Any) -> Any:
    """Euler's steps with the same speed for all paths."""

    def step(s: Any, z: Any) -> Any:
        moved = s[0] + speed * (0.3 - s[0]) * 0.1 + 0.2 * np.sqrt(np.abs(s[0])) * z
        return (moved, s[1] + 0.1 * s[0]), None

    (last, area), _ = rg.scan(step, (x, np.zeros(x.shape, x.dtype)), draws)
    return np.mean(np.exp(-area)) + np.sum(last * last)


def given(n: int, dtype: Any = np.float64, steps: int = STEPS) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(0.1, 2.0, n).astype(dtype), rng.normal(size=(steps, n)).astype(dtype), dtype(0.7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", SIZES)
def test_paths(n: int, dtype: Any, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    made = (1, 2) if n >= SHORT else (0, 0)
    check(paths, *given(n, dtype), monkeypatch=monkeypatch, made=made)
    of_all = rg.value_and_grad(paths, argnums=(0, 1, 2)).graph(*given(n, dtype))
    found, _ = both(of_all, given(n, dtype), monkeypatch)
    assert loops_in_blocks(found) == made[1]


@pytest.mark.parametrize("n", [blocks.SHORTEST - 1, blocks.SHORTEST, 65_537])
def test_real_sizes(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = (1, 2) if n >= blocks.SHORTEST else (0, 0)
    check(lambda speed, x, z: paths(x, z, speed), np.float64(0.7), *given(n)[:2], monkeypatch=monkeypatch, made=made)


def test_special_values(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.tile([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-310, 1e300, -1e308], 100)
    draws = np.random.default_rng(0).normal(size=(STEPS, x.size))
    draws[2, ::7], draws[3, ::11] = np.inf, -0.0
    for mode, n in ((rg.jit, 1), (rg.value_and_grad, 2)):
        found, _ = both(mode(paths).graph(*given(x.size)), (x, draws, np.float64(0.7)), monkeypatch)
        assert loops_in_blocks(found) == n


def test_rows_numbers_and_times(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps give rows, sums and extrema; numbers count, sum up sums, and are read step by step; in both directions."""

    def f(x: Any, z: Any, rates: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            s, total, time = c
            draw, rate = row
            s = np.sin(s) + draw * rate * time
            return (s, np.tanh(total + np.sum(s * s)), time + 0.5), (s * 2.0, np.max(s), total, time)

        state = (x, np.float64(0.1), np.float64(1.0))
        (s, total, time), ys = rg.scan(step, state, (z, rates))
        back, _ = rg.scan(lambda s, z: (np.cos(s) * z, None), s, z, reverse=True)
        return np.sum(back) + total * time + sum(np.sum(y) for y in ys)

    x, z, _ = given(700)
    rates = np.linspace(0.5, 1.0, STEPS)
    check(f, x, z, rates, monkeypatch=monkeypatch, made=(2, 2))
    check(lambda rates, x, z: f(x, z, rates), rates, x, z, monkeypatch=monkeypatch, made=(2, 2))

    def rows(x: Any, z: Any) -> Any:
        _, ys = rg.scan(lambda s, z: (np.sin(s) * z, (s * 2.0 + z, np.sum(s), np.min(s))), x, z)
        return ys

    found, _ = both(rg.jit(rows).graph(x, z), (x, z), monkeypatch)
    assert loops_in_blocks(found) == 1


def test_steps_that_read_sums_of_all_elements_stay_whole(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, z: Any) -> Any:
        s, _ = rg.scan(lambda s, z: (np.exp(s - np.max(s)) / np.sum(np.exp(s)) + z, None), x, z)
        return np.sum(s)

    def neighbours(x: Any, z: Any) -> Any:
        s, _ = rg.scan(lambda s, z: (np.sin(s[::-1]) * z + np.cos(s), None), x, z)
        return np.sum(s)

    def later(x: Any, z: Any) -> Any:
        (s, _), _ = rg.scan(lambda c, z: ((np.sin(c[0]) * z + c[1], np.sum(c[0])), None), (x, np.float64(0.0)), z)
        return np.sum(s)

    x, z, _ = given(700)
    for function in (f, neighbours, later):
        check(function, x, z * 0.1, monkeypatch=monkeypatch, made=(0, 0))


def test_adjoints_that_wait_for_a_sum_keep_whole_arrays(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cotangent of a square is known when all elements are summed: no list of states is parted into blocks."""
    check(lambda x, z, k: (paths(x, z, k) - 1.0) ** 2, *given(700), monkeypatch=monkeypatch, made=(1, 0))


def random_loop(seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    steps = [(int(rng.integers(0, 7)), int(rng.integers(0, 99)), int(rng.integers(0, 99))) for _ in range(9)]

    def step(c: Any, z: Any, t: Any) -> Any:
        arrays, numbers = [*c[:2], z], [t, c[2], 0.5]
        for kind, i, k in steps:
            a, b, s = arrays[i % len(arrays)], arrays[k % len(arrays)], numbers[k % len(numbers)]
            match kind:
                case 0:
                    arrays.append(np.sin(a) * b)
                case 1:
                    arrays.append(a * (s if s is not c[2] else t) + 0.1)
                case 2:
                    arrays.append(np.tanh(a) - b)
                case 3:
                    numbers.append(np.sum(a * b) * 1e-3)
                case 4:
                    numbers.append(np.tanh(s))
                case 5:
                    arrays.append(np.where(a > 0.1, b, a * 0.5))
                case _:
                    arrays.append(np.maximum(a, b) * 0.9)
        return (arrays[-1], arrays[-2] * 0.5, np.tanh(numbers[-1] + c[2])), (arrays[-3], numbers[-2] * t)

    def run(x: Any, y: Any, draws: Any, t: Any) -> Any:
        start = (x, y, np.float64(0.1))
        (a, b, s), (rows, numbers) = rg.scan(lambda c, z: step(c, z, t), start, draws, reverse=bool(seed % 2))
        return np.sum(a) + np.sum(b * a) + s + np.sum(rows[3]) + np.sum(numbers)

    return run


@pytest.mark.parametrize("seed", range(20))
def test_random_loops(seed: int, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    args = (*rng.normal(size=(2, 700)), rng.normal(size=(5, 700)), np.float64(0.3))
    for mode in (rg.jit, rg.value_and_grad):
        both(mode(random_loop(seed)).graph(*args), args, monkeypatch)


def test_random_loops_are_in_blocks(short: None) -> None:
    """At least some of the random loops are what this file is about."""
    rng = np.random.default_rng(0)
    args = (*rng.normal(size=(2, 700)), rng.normal(size=(5, 700)), np.float64(0.3))
    graphs = [rg.jit(random_loop(seed)).graph(*args) for seed in range(6)]
    assert sum(loops_in_blocks(Executable(graph)) > 0 for graph in graphs) >= 2


@pytest.mark.parametrize("plan", [None, rg.Snapshots(2), rg.Log(), rg.Periodic(3), "40 kB"])
def test_plans_of_memory(plan: Any, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any) -> Any:
        memory = None if isinstance(plan, str) else plan
        last, sums = rg.scan(lambda c, _: (np.sin(c) * y + 0.1 * c, np.sum(c * c)), x, None, length=9, memory=memory)
        return np.sum(last) + np.sum(sums)

    x, y = np.random.default_rng(0).normal(size=(2, 700))
    g = rg.value_and_grad(f, memory=plan) if isinstance(plan, str) else rg.value_and_grad(f)
    plain = rg.value_and_grad(f)
    assert str(g(x, y)) == str(plain(x, y))
    both(g.graph(x, y), (x, y), monkeypatch)


def test_second_derivatives_and_vmap(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, z, speed = given(700)
    product = rg.jit(lambda x, v, z, speed: rg.jvp(lambda x: rg.grad(paths)(x, z, speed), (x,), (v,))[1])
    args = (x, z[0], z, speed)
    found, _ = both(product.graph(*args), args, monkeypatch)
    assert loops_in_blocks(found) == 2
    many = rg.jit(rg.vmap(lambda speed: rg.grad(paths, argnums=2)(x, z, speed)))
    one = rg.grad(paths, argnums=2)
    speeds = np.array([0.3, 0.7])
    np.testing.assert_allclose(many(speeds), [one(x, z, s) for s in speeds], rtol=1e-12)


def test_exact(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with rg.config(exact=True):
        check(paths, *given(700), monkeypatch=monkeypatch, made=(1, 2))


def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    args = given(50_000, steps=30)
    f = rg.value_and_grad(paths, argnums=(0, 1, 2))
    results = []
    for number in (1, 2, 3):
        monkeypatch.setattr(rg.config, "threads", number)
        results.append(f(*args))
    for other in results[1:]:
        assert other[0] == results[0][0]
        for x, y in zip(other[1], results[0][1], strict=True):
            np.testing.assert_array_equal(x, y)


@one_thread()
def test_the_memory_is_that_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    args = given(100_000, steps=40)
    found, without = both(rg.value_and_grad(paths, argnums=2).graph(*args), args, monkeypatch)
    for made in (found, without):
        assert Simulation(made.plan).peak() == pytest.approx(measured(made, *args), rel=0.02)
    assert Simulation(found.plan).peak() < 0.15 * Simulation(without.plan).peak()


def test_an_exported_module_runs_alone() -> None:
    args = given(blocks.SHORTEST)
    f = rg.value_and_grad(paths, argnums=(0, 2))
    scope: dict[str, Any] = {"__name__": "made"}
    source = f.source(*args)
    exec(source, scope)
    value, (dx, dk) = f(*args)
    found = scope["paths_grad"](*args)
    assert found[0] == value
    np.testing.assert_array_equal(found[1], dx)
    assert found[2] == dk


def test_arguments_and_results_share_nothing(short: None) -> None:
    x, z, speed = given(700)
    kept = x.copy(), z.copy()
    f = rg.value_and_grad(paths, argnums=(0, 1))
    first = f(x, z, speed)
    for array in first[1]:
        array[:] = 7.0
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(z, kept[1])
    again = f(x, z, speed)
    np.testing.assert_array_equal(again[1][0], f(*given(700))[1][0])
