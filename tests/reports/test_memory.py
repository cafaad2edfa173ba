"""Budgets in bytes: what is predicted is what is measured, and more memory never means more steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.api.memory import bytes_of
from retrograd.compiler.memory import available
from retrograd.compiler.memory.budgets import peak_of
from retrograd.compiler.memory.loops import most_slots
from retrograd.passes.checkpoint.binomial import binomial_advances
from tests.support.memory import measured, one_thread

U = np.random.default_rng(3).normal(size=(400, 400))  # 1.28 MB
PYTHON = 64 * 1024  # bytes of Python objects, which do not count
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with one_thread():
        yield


def heat(memory: Any, n: int = 12) -> Function:
    """Nonlinear diffusion."""

    def loss(u: Any, k: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            around = np.roll(c, 1, 0) + np.roll(c, -1, 0) + np.roll(c, 1, 1) + np.roll(c, -1, 1)
            return c + k * (around - 4 * c) * np.exp(-c * c), None

        return np.sum(rg.scan(body, u, None, n, memory=memory)[0] ** 2)

    return rg.value_and_grad(loss, argnums=(0, 1))


def recurrent(memory: Any) -> Function:
    """A recurrence whose every output counts, with large inputs for each step."""

    def loss(w: Any, h: Any, xs: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            new = np.tanh(h * w + x)
            return new, new * x

        last, ys = rg.scan(body, h, xs, memory=memory)
        return np.sum(last**2) + np.sum(ys**2)

    def gradient(u: Any, k: Any) -> Any:
        return rg.grad(loss, argnums=(0, 1, 2))(u * 0.05, u, np.stack([u] * 6) * k)

    return rg.jit(gradient)


def nested(memory: Any) -> Function:
    """A loop in a loop, both with the plan."""

    def loss(u: Any, k: Any) -> Any:
        def outer(c: Any, _: Any) -> Any:
            return rg.scan(lambda d, _: (np.sin(d) * k + 0.1 * c * d, None), c, None, 5, memory=memory)[0], None

        return np.sum(rg.scan(outer, u, None, 6, memory=memory)[0])

    return rg.value_and_grad(loss, argnums=(0, 1))


def predicted(f: Function, *args: Any) -> int:
    return peak_of(f.graph(*args))


PLANS = [
    None,
    rg.Snapshots(1),
    rg.Snapshots(3),
    rg.Snapshots(20),
    rg.Log(),
    rg.Log("ctz"),
    rg.Snapshots(4, mixed=True),
    rg.Periodic(),
    rg.Periodic(5),
]


@pytest.mark.costly
@pytest.mark.sampled(2)
@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("program", [heat, recurrent, nested], ids=lambda p: p.__name__)
def test_the_predicted_peak_is_the_measured_one(program: Function, plan: Any) -> None:
    f = program(plan)
    found, expected = measured(f, U, 0.1), predicted(f, U, 0.1)
    assert expected == pytest.approx(found, rel=0.01)
    assert found <= expected + PYTHON


def test_states_that_share_arrays_with_their_neighbours_are_counted_right() -> None:
    def loss(u: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            now, before, oldest = c
            return (np.sin(now) * 0.5 + before - 0.1 * oldest, now, before), None

        return np.sum(rg.scan(body, (u, u * 0.5, u), None, 60, memory="4 MB")[0][0])

    f = rg.grad(loss)
    u = U[:100, :100].copy()
    (sweep,) = [node for node in f.graph(u).nodes if node.prim.name == "sweep"]
    assert sweep.attrs["slots"] > 5
    assert f.plan(u).peak_bytes <= 4_000_000
    assert predicted(f, u) == pytest.approx(f.plan(u).peak_bytes, rel=0.01)
    assert predicted(f, u) == pytest.approx(measured(f, u), rel=0.02)


@pytest.mark.costly
@pytest.mark.parametrize("budget", ["7 MB", "9 MB", "10 MB", "15.4 MB", "16.7 MB", "20 MB", "33 MB", "100 MB"])
def test_a_call_stays_within_its_budget(budget: str) -> None:
    f, limit = heat(budget), bytes_of(budget)
    if limit < predicted(heat(rg.Snapshots(1)), U, 0.1):
        with pytest.raises(rg.errors.MemoryBudgetError, match="no plan for this loop stays within 7,000,000 bytes"):
            f(U, 0.1)
        return
    assert predicted(f, U, 0.1) <= limit
    assert measured(f, U, 0.1) <= limit + PYTHON
    for found, expected in zip(f(U, 0.1), heat(None)(U, 0.1), strict=True):
        np.testing.assert_array_equal(
            found[0] if isinstance(found, tuple) else found, expected[0] if isinstance(expected, tuple) else expected
        )


def test_a_budget_that_is_too_small_names_the_least_one_before_anything_runs() -> None:
    ran: list[int] = []

    def loss(u: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            ran.append(1)
            return np.sin(c), None

        return np.sum(rg.scan(body, u, None, 10, memory="1 MB")[0])

    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        rg.grad(loss)(U)
    least = caught.value.minimum
    assert f"allow at least {least:,} bytes" in str(caught.value)
    assert caught.value.where is not None
    assert len(ran) == 1  # recorded once

    def again(memory: int) -> Function:
        return rg.grad(lambda u: np.sum(rg.scan(lambda c, _: (np.sin(c), None), u, None, 10, memory=memory)[0]))

    assert measured(again(least), U) <= least + PYTHON
    with pytest.raises(rg.errors.MemoryBudgetError):
        again(least - 1)(U)


def test_what_is_not_differentiated_needs_no_plan() -> None:
    last = rg.jit(lambda u: rg.scan(lambda c, _: (np.sin(c), None), u, None, 10, memory="1 kB")[0])
    np.testing.assert_allclose(last(U), rg.scan(lambda c, _: (np.sin(c), None), U, None, 10)[0])


@pytest.mark.parametrize(
    ("text", "found"),
    [("1", 1), ("64 MiB", 64 * 2**20), ("1.5kB", 1500), (" 2 gib ", 2**31), ("3 MB", 3_000_000), (7, 7), ("0.5 B", 0)],
)
def test_bytes_as_they_are_written(text: Any, found: int) -> None:
    assert bytes_of(text) == found


@pytest.mark.parametrize("text", ["", "MB", "-1 MB", "1 MiBs", 0, -5, True, 0.5, None, "64 furlongs", b"1"])
def test_what_is_no_number_of_bytes_is_refused(text: Any) -> None:
    with pytest.raises(rg.errors.OptionError, match="is neither a plan nor a number of bytes"):
        bytes_of(text)


def test_available_memory_is_some_and_not_all() -> None:
    found = bytes_of("available")
    assert 0 < found < available._free()
    slope = rg.grad(lambda x: rg.scan(lambda c, _: (np.sin(c), None), x, None, 20, memory="available")[0])
    plain = rg.grad(lambda x: rg.scan(lambda c, _: (np.sin(c), None), x, None, 20)[0])
    assert slope(0.5) == plain(0.5)


@pytest.mark.parametrize("state", [1, 7, 100])
@pytest.mark.parametrize("base", [0, 50])
def test_the_search_for_slots_finds_the_most_that_fit(state: int, base: int) -> None:
    for n in (2, 3, 10, 77):
        for budget in range(base + state, base + state * n + 3, max(state * n // 40, 1)):
            calls = []

            def peak(slots: int) -> int:
                calls.append(slots)  # noqa: B023 - called in this turn
                return base + state * slots

            assert most_slots(peak, budget, n) == min((budget - base) // state, n - 1)
            assert len(calls) <= 8


def test_where_the_data_choose_the_larger_way_counts() -> None:
    def loss(memory: Any) -> Function:
        def run(u: Any) -> Any:
            def body(c: Any, _: Any) -> Any:
                return rg.cond(np.sum(c) > 0, lambda c: np.sin(np.exp(-c * c) * np.cos(c) + c), np.sin, c), None

            return np.sum(rg.scan(body, u, None, 10, memory=memory)[0])

        return rg.grad(run)

    u = U[:200, :200]
    for plan in (None, rg.Snapshots(2)):
        f = loss(plan)
        assert predicted(f, u) == f.plan(u).peak_bytes
        peaks = [measured(f, sign * np.abs(u) - 0.1 * sign) for sign in (1.0, -1.0)]
        assert max(peaks) <= predicted(f, u) + PYTHON
    f = loss("6 MB")
    assert predicted(f, u) <= 6_000_000
    assert measured(f, np.abs(u)) <= 6_000_000 + PYTHON


def chain(u: Any) -> Any:
    return rg.scan(lambda c, _: (np.sin(c) * c, None), u, None, 12)[0]


def test_a_pullback_takes_a_plan_for_the_loops_that_have_none() -> None:
    u = U[:100, :100].copy()
    ct = np.cos(u)
    expected = rg.vjp(chain, u)[1](ct)[0]
    for plan, advances in ((rg.Snapshots(3), binomial_advances(12, 3)), (rg.Log(), 18), (rg.Everything(), 0)):
        with rg.debug_counters() as counters:
            _, pullback = rg.vjp(chain, u, memory=plan)
            np.testing.assert_array_equal(pullback(ct)[0], expected)
        assert counters.advances == advances


@pytest.mark.parametrize("plan", [None, rg.Snapshots(2), rg.Log(), rg.Tiered(1, 2)], ids=str)
def test_a_pullback_is_that_of_the_point_even_if_the_argument_changes(plan: Any) -> None:
    u = np.linspace(0.1, 1.0, 50)
    steps = np.linspace(1.0, 2.0, 7)

    def run(u: Any, steps: Any) -> Any:
        return rg.scan(lambda c, x: (np.sin(c) * x, c), u, steps, memory=plan)

    _, pullback = rg.vjp(run, u, steps)
    first = pullback((np.ones(50), np.ones((7, 50))))
    u[:], steps[:] = 7.0, 0.0
    for before, after in zip(first, pullback((np.ones(50), np.ones((7, 50)))), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_linear_function_is_that_of_the_point_even_if_the_argument_changes() -> None:
    u = np.linspace(0.1, 1.0, 50)
    _, linear = rg.linearize(chain, u)
    first = linear(np.ones(50))
    u[:] = 7.0
    np.testing.assert_array_equal(linear(np.ones(50)), first)
