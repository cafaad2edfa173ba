"""What the steps of a loop keep for the adjoint: the state, or in its place what several operations make of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.loop_node import loop_of

STEPS = 12


def step(u: Any, conductivity: Any) -> Any:
    """Heat by slices. The adjoint needs the five points, which are nearly as large as the plate."""
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
    u = u.copy()
    u[1:-1, 1:-1] += conductivity * around
    return u


def plate(u: Any, conductivity: Any) -> Any:
    return np.sum(rg.fori_loop(STEPS, lambda _, u: step(u, conductivity), u) ** 2)


def recurrent(h: Any, w: Any) -> Any:
    return np.sum(rg.fori_loop(STEPS, lambda _, h: np.tanh(h @ w), h) ** 2)


def mixed(u: Any, w: Any) -> Any:
    """The state is needed itself, too."""

    def step(_: Any, u: Any) -> Any:
        around = u + 0.1 * (np.sin(u) * 2.0 + 1.0 - u * 0.5)
        return np.tanh(u + w * around * u)

    return np.sum(rg.fori_loop(STEPS, step, u) ** 2)


def inputs(f: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    n = 400 if f is plate else 20
    return rng.standard_normal((n, n)), rng.uniform(0.05, 0.2, (n - 2, n - 2) if f is plate else (n, n))


def adjoint(slope: Any, *args: Any) -> Counter[str]:
    """The operations in the body of the last loop."""
    *_, last = [loop for node in slope.at(*args).graph.nodes if (loop := loop_of(node)) is not None]
    return Counter(node.prim.name for node in last.body.nodes)


@pytest.mark.parametrize(
    ("f", "name", "number"),
    [(plate, "getitem", 1), (recurrent, "square", 1), (mixed, "sin", 1)],
)
def test_a_state_is_kept_unless_much_is_computed_of_it_again(f: Any, name: str, number: int) -> None:
    args = inputs(f)
    slope = rg.value_and_grad(f, argnums=(0, 1))
    found = slope(*args)
    assert adjoint(slope, *args)[name] == number
    with rg.config(exact=True):
        expected = slope(*args)
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_nothing_more_is_kept_than_the_states() -> None:
    u, c = inputs(plate)
    assert rg.value_and_grad(plate, argnums=(0, 1)).plan(u, c).peak_bytes <= (STEPS + 6) * u.nbytes


def test_plans_orders_and_maps() -> None:
    u, c = inputs(plate)
    slope = rg.grad(plate, argnums=(0, 1))
    free = slope(u, c)
    with pytest.raises(rg.errors.MemoryBudgetError) as raised:
        rg.grad(plate, argnums=(0, 1), memory=1)(u, c)
    within = rg.grad(plate, argnums=(0, 1), memory=raised.value.minimum)
    np.testing.assert_array_equal(within(u, c)[0], free[0])
    np.testing.assert_array_equal(within(u, c)[1], free[1])
    assert within.plan(u, c).peak_bytes < 0.6 * slope.plan(u, c).peak_bytes
    np.testing.assert_array_equal(rg.vmap(slope, (0, None))(np.stack([u, 2.0 * u]), c)[1][1], slope(2.0 * u, c)[1])


def test_second_derivatives_of_steps_one_by_one() -> None:
    u, c = inputs(plate)

    def unrolled(u: Any, conductivity: Any) -> Any:
        for _ in range(STEPS):
            u = step(u, conductivity)
        return np.sum(u**2)

    def bent(f: Any) -> Any:
        return rg.grad(lambda u, c: np.sum(rg.grad(f, argnums=1)(u, c) ** 2))(u, c)

    found, expected = bent(plate), bent(unrolled)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * float(np.max(np.abs(expected))))


def gated(h: Any, w: Any) -> Any:
    """A gate and a candidate, which are as large as the product that they are parts of."""

    def step(_: Any, h: Any) -> Any:
        both = h @ np.concatenate([w, w.T], axis=1)
        n = h.shape[1]
        return 1.0 / (1.0 + np.exp(-both[:, :n])) * np.tanh(both[:, n:])

    return np.sum(rg.fori_loop(STEPS, step, h) ** 2)


@pytest.mark.parametrize(("rows", "again"), [(1, 2), (20, 0)])
def test_two_arrays_are_kept_in_place_of_one_as_large(rows: int, again: int) -> None:
    """Of few bytes, one array is kept: a further one costs as much as it has elements."""
    rng = np.random.default_rng(1)
    h, w = rng.standard_normal((rows, 6)), rng.standard_normal((6, 6))
    slope = rg.value_and_grad(gated, argnums=(0, 1))
    found = slope(h, w)
    names = adjoint(slope, h, w)
    assert names["exp"] + names["tanh"] == again
    rg.check_grads(gated, (h, w), order=2)
    with rg.config(exact=True):
        expected = slope(h, w)
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    with pytest.raises(rg.errors.MemoryBudgetError) as raised:
        rg.grad(gated, argnums=(0, 1), memory=1)(h, w)
    within = rg.grad(gated, argnums=(0, 1), memory=raised.value.minimum)(h, w)
    for a, b in zip(within, found[1], strict=True):
        np.testing.assert_array_equal(a, b)


def negated(x: Any) -> Any:
    """Two operations up to the exponentials, from which the derivative follows."""
    return 1.0 / (1.0 + np.exp(-x))


def plain(x: Any) -> Any:
    """One operation up to them."""
    e = np.exp(x)
    return e / (1.0 + e)


@pytest.mark.parametrize(("gate", "again"), [(negated, 0), (plain, 4)])
def test_each_further_array_saves_two_operations(gate: Any, again: int) -> None:
    def four(h: Any, w: Any) -> Any:
        def step(_: Any, h: Any) -> Any:
            n = h.shape[1]
            all_gates = h @ np.concatenate([w, w.T, -w, w @ w], axis=1)
            a, b, c, d = (gate(all_gates[:, k * n : (k + 1) * n]) for k in range(4))
            return a * h + b * c - 0.5 * d

        return np.sum(rg.fori_loop(STEPS, step, h) ** 2)

    rng = np.random.default_rng(2)
    h, w = rng.standard_normal((20, 6)), rng.standard_normal((6, 6))
    with rg.config(backend="native"):  # for NumPy, gates become one operation
        slope = rg.grad(four, argnums=(0, 1))
        found = slope(h, w)
        assert adjoint(slope, h, w)["exp"] == again
    for a, b in zip(found, rg.grad(four, argnums=(0, 1))(h, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    rg.check_grads(four, (h, w), order=2)
