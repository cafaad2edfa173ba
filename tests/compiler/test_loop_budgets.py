"""Budgets in bytes for loops, of known and unknown length: what is predicted holds, and is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.memory.budgets import peak_of
from retrograd.ir.target import TARGETS
from retrograd.passes.checkpoint.binomial import binomial_advances
from tests.support.memory import measured, one_thread

U = np.random.default_rng(4).normal(size=(400, 400))  # 1.28 MB
PYTHON = 64 * 1024  # bytes of Python objects, which do not count
Function = Callable[..., Any]


def scanned(memory: Any, n: int = 40) -> Function:
    """A recurrence whose every output counts."""

    def loss(u: Any, k: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            new = np.tanh(h * u + x * k)
            return new, new * x

        last, ys = rg.scan(body, u, np.linspace(0.0, 1.0, n), memory=memory)
        return np.sum(last) + np.sum(ys**2)

    return loss


def counted(memory: Any, n: int = 40) -> Function:
    """Nonlinear diffusion in a counted loop."""

    def loss(u: Any, k: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            return c + k * (np.roll(c, 1, 0) + np.roll(c, -1, 1) - 2 * c) * np.exp(-c * c) + 0.001 * i

        return np.sum(rg.fori_loop(n, body, u, memory=memory) ** 2)

    return loss


def nested(memory: Any, n: int = 10) -> Function:
    """A loop in a loop, both with the plan."""

    def loss(u: Any, k: Any) -> Any:
        def outer(c: Any, _: Any) -> Any:
            return rg.scan(lambda d, _: (np.sin(d) * k + 0.1 * c * d, None), c, None, 6, memory=memory)[0], None

        return np.sum(rg.scan(outer, u, None, n, memory=memory)[0])

    return loss


def shifted(memory: Any, n: int = 40) -> Function:
    """States that share arrays with their neighbours."""

    def loss(u: Any, k: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            now, before, oldest = c
            return (np.sin(now) * k + before - 0.1 * oldest, now, before), None

        return np.sum(rg.scan(body, (u, u * 0.5, u), None, n, memory=memory)[0][0])

    return loss


def settling(memory: Any, n: float = 40.0) -> Function:
    """A loop of unknown length."""

    def loss(u: Any, k: Any) -> Any:
        def body(c: Any) -> Any:
            now, t = c
            return np.sin(now) * k + 0.1 * now * u, t + 1

        return np.sum(rg.while_loop(lambda c: c[1] < n, body, (u, 0.0), memory=memory)[0])

    return loss


def numbered(memory: Any, n: float = 40.0) -> Function:
    """A loop of a traced number of steps."""

    def loss(u: Any, k: Any) -> Any:
        steps = (n + 0.0 * k).astype(int)
        return np.sum(rg.fori_loop(steps, lambda i, c: np.sin(c) * k + 0.01 * i * c * u, u, memory=memory))

    return loss


K = np.float64(0.1)


def slopes(loss: Function, **options: Any) -> Function:
    return rg.grad(loss, argnums=(0, 1), **options)


def predicted(f: Function, u: Any) -> int:
    return peak_of(f.graph(u, K))


def assert_same_bits(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


known = pytest.mark.parametrize("program", [scanned, counted, nested], ids=lambda p: p.__name__)
late = pytest.mark.parametrize("program", [settling, numbered], ids=lambda p: p.__name__)


def ever_fewer_steps(program: Function, budgets: Sequence[int], u: Any, expected: Any) -> list[int]:
    """The repeated steps under ever larger budgets: each is kept to, and neither peaks fall nor steps rise."""
    peaks, steps = [], []
    for budget in budgets:
        f = slopes(program(budget))
        with rg.debug_counters() as counters:
            assert_same_bits(f(u, K), expected)
            peaks.append(predicted(f, u))
        steps.append(counters.advances)
        assert peaks[-1] <= budget
    assert peaks == sorted(peaks)
    assert steps == sorted(steps, reverse=True)
    return steps


@known
@pytest.mark.parametrize("budgets", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_larger_budgets_take_ever_more_memory_and_ever_fewer_steps(program: Function, budgets: int) -> None:
    u, n = U[:70, :70], 6 if program is nested else 24  # 39,200 bytes: storage is used again
    plain = slopes(program(None, n))
    expected = plain(u, K)
    least, most = predicted(slopes(program(rg.Snapshots(1), n)), u), predicted(plain, u)
    budgets_of_all = np.linspace(least, most, budgets).astype(int).tolist()
    steps = ever_fewer_steps(lambda budget: program(budget, n), budgets_of_all, u, expected)
    assert len(set(steps)) > 2
    assert steps[-1] == 0


@pytest.mark.parametrize("program", [scanned, counted, pytest.param(nested, marks=pytest.mark.slow)])
def test_large_states_take_what_is_predicted_and_no_more_than_the_budget(program: Function) -> None:
    least, most = (predicted(slopes(program(plan, 7)), U) for plan in (rg.Snapshots(1), None))
    for budget in np.linspace(least, most, 4).astype(int).tolist():
        f = slopes(program(budget, 7))
        with one_thread():
            found, expected = measured(f, U, K), predicted(f, U)
        assert expected == pytest.approx(found, rel=0.01)
        assert found <= budget + PYTHON


@known
def test_the_least_budget_of_the_error_is_enough_and_a_byte_less_is_not(program: Function) -> None:
    u = U[:200, :200].copy()
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        slopes(program(1000, 5))(u, K)
    least = caught.value.minimum
    assert least is not None
    assert measured(slopes(program(least, 5)), u, K) <= least + PYTHON
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        slopes(program(least - 1, 5))(u, K)
    assert caught.value.minimum == least


PLANS = [
    *(rg.Snapshots(c) for c in (1, 2, 8, 39)),
    rg.Log(),
    rg.Log("ctz"),
    rg.Periodic(),
    rg.Periodic(3),
    rg.Tiered(1, 2),
    rg.Snapshots(4, mixed=True),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("program", [scanned, counted, shifted], ids=lambda p: p.__name__)
def test_what_a_prediction_leaves_out_takes_no_more_memory(program: Function, plan: Any) -> None:
    target = TARGETS["numpy"]
    for n, side in ((7, 100), (40, 100), (200, 20)):
        graph = slopes(program(plan, n)).graph(U[:side, :side], K)
        footprint = target.footprint(target.plan(target.legalise(graph)))
        assert footprint.peak() == footprint.course().peak


def test_ten_thousand_steps_are_predicted_like_all_their_steps() -> None:
    u = U[:70, :70]
    f = slopes(counted("20 MB", 10_000))
    (sweep,) = [node for node in f.graph(u, K).nodes if node.prim.name == "sweep"]
    plan = f.plan(u, K)
    assert plan.peak_bytes == predicted(f, u)
    assert plan.advances == binomial_advances(10_000, sweep.attrs["slots"])
    assert 20_000_000 - u.nbytes < predicted(f, u) <= 20_000_000


@late
@pytest.mark.parametrize("budget", [16_000_000, pytest.param(40_000_000, marks=pytest.mark.slow)])
def test_a_loop_of_unknown_length_stays_within_its_budget_at_every_length(program: Function, budget: int) -> None:
    peaks = []
    for n in (0.0, 50.0):
        f = slopes(program(budget, n))
        peaks.append(measured(f, U, K))
        assert predicted(f, U) <= budget
        assert peaks[-1] <= predicted(f, U) + PYTHON
    assert peaks[-1] == pytest.approx(predicted(f, U), rel=0.01)
    assert budget - predicted(f, U) < 1.01 * U.nbytes  # one more slot does not fit


@late
def test_with_more_memory_a_loop_of_unknown_length_repeats_fewer_steps(program: Function) -> None:
    u = U[:70, :70]
    expected = slopes(program(None))(u, K)
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        slopes(program("1 kB"))(u, K)
    least = caught.value.minimum
    assert least is not None
    steps = ever_fewer_steps(program, range(least, least + 50 * u.nbytes, 7 * u.nbytes), u, expected)
    assert (steps[0], steps[-1]) == (40 + 40 * 39 // 2, 40)
    with pytest.raises(rg.errors.MemoryBudgetError):
        slopes(program(least - 1))(u, K)


@late
def test_a_gradient_with_a_budget_may_hold_a_loop_of_unknown_length(program: Function) -> None:
    u = U[:200, :200].copy()
    f = slopes(program(None), memory="5 MB")
    with rg.debug_counters() as counters:
        assert_same_bits(f(u, K), slopes(program(None))(u, K))
    assert counters.advances > 40
    assert measured(f, u, K) <= 5_000_000 + PYTHON
    assert predicted(f, u) <= 5_000_000


@pytest.mark.parametrize("inner", [settling, numbered], ids=lambda p: p.__name__)
def test_a_gradient_with_a_budget_may_hold_one_in_the_steps_of_a_loop(inner: Function) -> None:
    def loss(u: Any, k: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return c * 0.9 + inner(None, 9.0)(c, k) * u, None

        return np.sum(rg.scan(body, u, None, 4)[0])

    u = U[:200, :200].copy()
    f = slopes(loss, memory="13 MB")
    assert_same_bits(f(u, K), slopes(loss)(u, K))
    assert predicted(f, u) <= 13_000_000
    assert measured(f, u, K) <= 13_000_000 + PYTHON


def test_kept_numbers_count() -> None:
    halving = rg.grad(
        lambda x: rg.while_loop(lambda c: c[1] < 300, lambda c: (np.sin(c[0]), c[1] + 1.0), (x, 0.0), memory="1 kB")[0]
    )
    with rg.debug_counters() as counters:
        halving(0.5)
    assert counters.taped == 300 < counters.advances  # 300 numbers take 10 kB


def test_a_budget_holds_beside_a_loop_of_unknown_length_that_keeps_nothing() -> None:
    def loss(u: Any, memory: Any = "12 MB") -> Any:
        v = rg.scan(lambda c, _: (np.sin(c), None), u, None, 9, memory=memory)[0]
        return np.sum(rg.while_loop(lambda c: c[0, 0] < 10.0, lambda c: c * 2.0 + 1.0, v))

    f = rg.grad(loss)
    assert f.plan(U).peak_bytes <= 12_000_000
    np.testing.assert_array_equal(f(U), rg.grad(partial(loss, memory=None))(U))


def test_beside_a_loop_of_unknown_length_that_keeps_all_there_is_no_budget() -> None:
    def loss(u: Any) -> Any:
        v = rg.scan(lambda c, _: (np.sin(c), None), u, None, 5, memory="100 MB")[0]
        return rg.while_loop(lambda c: c < 10.0, lambda c: c * c + 1.0, np.sum(v**2) + 1.0)

    with pytest.raises(rg.errors.OptionError, match="depends on its data") as caught:
        rg.grad(loss)(U)
    assert caught.value.where is not None
