"""Loops whose steps need one element of each array: all steps of some elements first, with the same bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import lanes
from retrograd.codegen.native.lanes import FEWEST, LANES, LEAST_LANES
from tests.support.blocks import leaves, same_bits_on_threads
from tests.support.growing import again
from tests.support.native import needs_compiler

pytestmark = needs_compiler
STEPS = 40


def pendulums(q: Any, v: Any, length: Any) -> Any:
    def step(s: Any, h: Any) -> Any:
        q, v = s
        v = v - h / length * np.sin(q)
        return (q + h * v, v), q

    (q, v), angles = rg.scan(step, (q, v), np.linspace(0.01, 0.1, STEPS).astype(q.dtype))
    return np.sum(v**2) + np.sum(np.cos(angles[-1]) * q) + np.sum(angles[3])


def paths(rate: Any, speed: Any, draws: Any) -> Any:
    """The gradient with respect to numbers that all elements share."""

    def step(s: Any, z: Any) -> Any:
        r, total = s
        return (r + speed[0] * (speed[1] - r) * 0.1 + np.sqrt(np.abs(r)) * z * 0.1, total + 0.1 * r), None

    (_, total), _ = rg.scan(step, (rate, np.zeros_like(rate)), draws)
    return np.mean(np.exp(-total))


def odd_steps(q: Any, v: Any, length: Any) -> Any:
    """An odd number of steps, and a state that steps do not change."""

    def step(s: Any, _: Any) -> Any:
        q, v = s
        return (v * np.tanh(q), q + 0.1 * length), None

    (q, v), _ = rg.scan(step, (q, v), None, STEPS + 1)
    return np.sum(q * v)


def collected(q: Any, v: Any, length: Any) -> Any:
    """The next state, which is that of two carries, is also a result of each step, twice."""

    def step(s: Any, h: Any) -> Any:
        q, p = s
        new = q + h * np.sin(p) * length + 0.01 * v
        return (new, new), (new, 2.0 * new, new)

    (q, _), (first, second, third) = rg.scan(step, (q, v), np.linspace(0.01, 0.1, STEPS).astype(q.dtype))
    return np.sum(np.sin(first) * second) + np.sum(np.cos(third)) + np.sum(q * q)


PROGRAMS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (pendulums, lambda n, rng: (rng.uniform(-2.0, 2.0, n), rng.standard_normal(n), rng.uniform(0.5, 2.0, n))),
    (odd_steps, lambda n, rng: (rng.uniform(-2.0, 2.0, n), rng.standard_normal(n), rng.uniform(0.5, 2.0, n))),
    (paths, lambda n, rng: (rng.uniform(0.01, 0.05, n), np.array([0.5, 0.04]), rng.standard_normal((STEPS, n)))),
]
LEAST = (FEWEST - 1) * LEAST_LANES + 1  # elements of which steps fall into parts
SIZES = [LEAST - 1, LEAST, LANES, LANES + 1, 5 * LANES + 37, 33 * LANES + 5]


def in_parts(compiled: Any, *args: Any) -> bool:
    return re.search(r"kernel\d+_part\d", compiled.source(*args, language="c")) is not None


@pytest.mark.costly
@pytest.mark.parametrize(("program", "inputs"), PROGRAMS, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_bits_do_not_depend_on_lanes_or_threads(
    program: Callable[..., Any], inputs: Callable[..., Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in SIZES:
        args = tuple(x.astype(dtype) for x in inputs(n, np.random.default_rng(n)))
        gradient = rg.value_and_grad(program, argnums=(0, 1, 2), backend="native")
        found = same_bits_on_threads(gradient, args)
        assert in_parts(gradient, *args) == (n >= LEAST)
        with monkeypatch.context() as patch:
            patch.setattr(lanes, "LEAST", 10**12)
            other = rg.value_and_grad(again(program), argnums=(0, 1, 2), backend="native")
            for a, b in zip(leaves(other(*args)), found, strict=True):
                np.testing.assert_array_equal(a, b)
        expected = leaves(rg.value_and_grad(program, argnums=(0, 1, 2))(*args))
        for a, b in zip(found, expected, strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            eps = 3e-4 if dtype == "f4" else 1e-10
            np.testing.assert_allclose(a, b, rtol=eps, atol=eps * np.max(np.abs(b)))


def test_second_derivatives() -> None:
    args = PROGRAMS[0][1](LANES, np.random.default_rng(0))
    with rg.config(backend="native"):
        rg.check_grads(pendulums, args, order=2)


@pytest.mark.parametrize("plan", [rg.Snapshots(2), rg.Log(), rg.Periodic(3)])
def test_a_plan_for_memory_changes_no_bit(plan: Any) -> None:
    q, v, _ = PROGRAMS[0][1](LANES, np.random.default_rng(0))

    def f(q: Any, v: Any, c: Any, memory: Any) -> Any:
        def step(s: Any, _: Any) -> Any:
            q, v = s
            v = v - 0.1 * c * np.sin(q)
            return (q + 0.1 * v, v), None

        (q, v), _ = rg.scan(step, (q, v), None, STEPS, memory=memory)
        return np.sum(q * v)

    with rg.config(backend="native"):
        planned = rg.value_and_grad(lambda q, v, c: f(q, v, c, plan), argnums=(0, 1, 2))(q, v, 0.3)
        plain = rg.value_and_grad(lambda q, v, c: f(q, v, c, None), argnums=(0, 1, 2))(q, v, 0.3)
    for a, b in zip(leaves(planned), leaves(plain), strict=True):
        np.testing.assert_array_equal(a, b)


def has_parts(step: Callable[..., Any], x: Any, *others: Any) -> bool:
    def f(x: Any, *others: Any) -> Any:
        return rg.scan(lambda x, _: (step(x, *others), None), x, None, 400)[0]

    return in_parts(rg.jit(f, backend="native"), x, *others)


def test_what_needs_other_elements_stays() -> None:
    x = np.linspace(0.1, 1.0, 4 * LEAST_LANES)
    assert has_parts(lambda x: np.sin(x) * 0.5 + x, x)
    assert has_parts(lambda x, c: np.sin(x) * c[0] + x, x, np.ones(3))
    assert has_parts(lambda x, y: np.where(x > 0.5, x, np.minimum(y, x)), x, x[::-1].copy())
    assert not has_parts(lambda x: np.roll(np.sin(x), 1), x)
    assert not has_parts(lambda x: np.sin(x) + 1e-4 * np.sum(x), x)
    assert not has_parts(lambda x: np.sin(x) + x[3], x)
    assert not has_parts(lambda x: np.sin(x)[::-1], x)
    assert not has_parts(lambda x: np.cumsum(np.sin(x)), x)


def test_angles_that_are_too_far_for_c_are_found_in_each_part() -> None:
    """A kernel gives up, and NumPy computes."""

    def f(x: Any, v: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            return np.sin(x) + v, None

        return rg.scan(step, x, None, 400)[0]

    x, v = np.linspace(0.1, 1.0, 4 * LEAST_LANES), np.zeros(4 * LEAST_LANES)
    for k in (0, LEAST_LANES, 4 * LEAST_LANES - 1):
        far = v.copy()
        far[k] = 1e300
        np.testing.assert_array_equal(rg.jit(f, backend="native")(x, far), rg.jit(f)(x, far))


@pytest.mark.parametrize("n", SIZES)
def test_a_state_that_is_a_result_too(n: int) -> None:
    rng = np.random.default_rng(n)
    args = rng.uniform(-2.0, 2.0, n), rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    for transform in (rg.jit, lambda f, **options: rg.grad(f, argnums=(0, 1, 2), **options)):
        found = same_bits_on_threads(transform(collected, backend="native"), args)
        for a, b in zip(leaves(found), leaves(transform(again(collected))(*args)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
