"""Stencils on large arrays run on few rows at a time: where, that all numbers stay, and that memory is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.rewrite import walk
from retrograd.passes import fewer_rows, rows_in_blocks, stencils_in_blocks
from tests.support.blocks import agrees, leaves, loops, normals, same_bits_in_all_ways, slopes
from tests.support.memory import measured, one_thread

LARGE = 1 << 17  # bytes, of which parts have workspaces
BUFFERS = 2 * 8192 * 8  # bytes that NumPy takes to add to a part of an array


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of small arrays."""
    monkeypatch.setattr(rows_in_blocks, "MIDDLE", 128)
    monkeypatch.setattr(stencils_in_blocks, "LARGE", LARGE)
    for name, value in {"LARGE": LARGE, "BLOCK": LARGE // 4}.items():
        monkeypatch.setattr(fewer_rows, name, value)


def heat(u: Any) -> Any:
    """A step with rolls along both axes."""
    around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return u + 0.1 * (around - 4.0 * u + 0.01 * u * (1.0 - u**2))


def upwind(u: Any) -> Any:
    """Rolls one way, by one and two rows, and one of the columns by more."""
    return u - 0.1 * (1.5 * u - 2.0 * np.roll(u, 1, 0) + 0.5 * np.roll(u, 2, 0)) * np.tanh(np.roll(u, 7, 1) * u)


def corners(u: Any) -> Any:
    """A roll along two axes, and products of several rolled arrays."""
    v = np.sin(u)
    return 0.5 * u + 0.1 * (np.roll(u, (1, -1), (0, 1)) * np.roll(v, -3, 0) - np.roll(v, 2, 0) * np.roll(u, -2, 0) * v)


def plate(u: Any) -> Any:
    """Slices, and a write of what they give into a copy."""
    u = u.copy()
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inner
    u[1:-1, 1:-1] += 0.1 * around * np.exp(-(inner**2))
    return u


def with_energy(u: Any) -> Any:
    """A sum over all rows, which the next operations wait for."""
    v = heat(u) * np.roll(u, 1, 0)
    return v / (1.0 + np.mean(v * v))


def space(u: Any) -> Any:
    """Rolls along three axes."""
    around = sum(np.roll(u, k, axis) for axis in range(3) for k in (1, -1))
    return u + 0.1 * (around - 6.0 * u) * np.cos(u)


STEPS = (heat, upwind, corners, plate, with_energy, space)


def looped(step: Any) -> Any:
    return lambda u: np.sum(np.sin(rg.fori_loop(4, lambda _, v: step(v), u)))


def given(step: Any, n: int, dtype: str = "f8") -> Any:
    (u,) = normals((n, 12, 20) if step is space else (n, 240), dtype=dtype)
    return u


def inner_loops(f: Any, *args: Any) -> int:
    """The loops in bodies of a compiled function."""
    found = sum(node.prim.name == "scan" for node in walk(f.at(*args).graph))
    return found - loops(f, *args)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("n", [67, 128, 251])
def test_programs(step: Any, n: int) -> None:
    for dtype, eps in (("f8", 1e-12), ("f4", 1e-4)):
        u = given(step, n, dtype)
        agrees(slopes(1)(looped(step)), u, eps=eps)
        agrees(rg.jit(lambda u: np.sin(step(step(u)))), u, eps=eps)  # without a loop in time
    agrees(rg.grad(lambda u: np.sum(rg.grad(looped(step))(u) ** 2)), given(step, n), eps=1e-11)


@pytest.mark.parametrize("step", STEPS)
def test_steps_run_on_few_rows(step: Any) -> None:
    large, small = given(step, 128), given(step, 67)
    f = rg.jit(looped(step))
    assert inner_loops(f, large) >= 1
    assert inner_loops(f, small) == 0, "67 rows have less than LARGE bytes"
    with rg.config(exact=True):
        assert inner_loops(f, large) == 0
    assert inner_loops(slopes(1)(looped(step)), large) >= 1


@pytest.mark.parametrize("step", [heat, upwind, corners, plate, space])
@pytest.mark.parametrize("n", [96, 97, 128, 131])
def test_all_bits_stay_where_nothing_is_summed(step: Any, n: int) -> None:
    u = given(step, n)
    u[0, 3], u[n - 1, 5], u[n // 2, 1], u[n // 4, 2] = np.nan, np.inf, -0.0, 5e-324
    f = rg.jit(lambda u: rg.fori_loop(3, lambda _, v: step(v), u))
    with np.errstate(all="ignore"):
        found = f(u)
        with rg.config(exact=True):
            expected = f(u)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("step", [heat, plate, with_energy])
def test_ways_threads_and_budgets_have_the_same_bits(step: Any) -> None:
    loss = looped(step)
    same_bits_in_all_ways(lambda u: 1.5 * loss(u), [given(step, 128)])


def test_a_loop_that_ends_by_itself() -> None:
    def settle(u: Any) -> Any:
        return rg.while_loop(lambda s: s[1] < 5, lambda s: (heat(s[0]), s[1] + 1), (u, 0))[0]

    agrees(slopes(1)(lambda u: np.sum(settle(u) ** 2)), given(heat, 128))


def test_every_step_is_kept_and_returned() -> None:
    def states(u: Any) -> Any:
        return rg.scan(lambda v, _: (heat(v), heat(v)), u, None, length=4)

    u = given(heat, 128)
    f = rg.jit(states)
    assert inner_loops(f, u) >= 1
    first = leaves(f(u))
    kept = [np.copy(v) for v in first]
    f(2.0 * u)  # must not write into what the first call returned
    for a, b in zip(first, kept, strict=True):
        np.testing.assert_array_equal(a, b)
    agrees(f, u)
    agrees(slopes(1)(lambda u: sum(np.sum(v**2) for v in states(u))), u)


def test_the_argument_stays() -> None:
    for step in STEPS:
        u = given(step, 128)
        before = u.copy()
        slopes(1)(looped(step))(u)
        np.testing.assert_array_equal(u, before)


def test_batches_of_states() -> None:
    u = np.stack([given(heat, 128) * k for k in (1.0, 2.0)])
    agrees(rg.vmap(rg.grad(looped(heat))), u)
    agrees(rg.grad(lambda u: np.sum(rg.vmap(looped(heat))(u))), u)


def test_an_array_in_another_order() -> None:
    agrees(slopes(1)(looped(heat)), np.asfortranarray(given(heat, 128)))


@pytest.mark.parametrize("shift", [1, 12, 16, 17, 64, 111, 112, 127])
def test_rolls_by_few_rows_alone_are_slices(shift: int) -> None:
    def step(u: Any) -> Any:
        return 0.3 * (np.roll(u, shift, 0) + np.sin(u) * np.cos(u) * np.exp(-u * u) + np.roll(u, 2 * shift, 0))

    u = given(heat, 128)
    near = [min(k % 128, -k % 128) <= 16 for k in (shift, 2 * shift)]
    assert (inner_loops(rg.jit(looped(step)), u) > 0) == all(near)
    agrees(slopes(1)(looped(step)), u)


def test_few_operations_are_not_worth_blocks() -> None:
    def step(u: Any) -> Any:
        return np.roll(u, 1, 0) + np.roll(u, -1, 0)

    assert inner_loops(rg.jit(looped(step)), given(heat, 128)) == 0


def test_the_peak_is_predicted() -> None:
    for step in (heat, plate, with_energy):
        f = slopes(1)(looped(step))
        with one_thread():
            predicted, found = f.plan(given(step, 128)).peak_bytes, measured(f, given(step, 128))
        assert abs(found - predicted) <= 0.01 * predicted + BUFFERS + 8192, step.__name__
