"""Large arrays with a short last axis are computed with this axis in front: the same elements, and sums nearly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.moved_axes import LARGE
from retrograd.passes.short_axes import LONGEST, LONGEST_OF_MATRICES, MOST_TERMS
from tests.support.memory import measured

FRONT = ".transpose((2, 0, 1))"


def places(n: int, k: int = 3, dtype: str = "f8") -> Any:
    return np.random.default_rng(n + k).standard_normal((n, k)).astype(dtype)


def apart(x: Any) -> Any:
    return x[:, None, :] - x[None, :, :]


def energy(x: Any, m: Any) -> Any:
    d = apart(x)
    near = np.sum(d * d, axis=-1, keepdims=True) + 0.1
    pulls = np.sum(m[None, :, None] * d / near**1.5, axis=1)
    return np.sum(pulls**2) + np.max(np.cos(d) * near)


def several(x: Any, m: Any) -> Any:
    """Folds along each of the axes, with and without them, and elements."""
    d = np.tanh(apart(x)) * m[:, None, None] + 0.5
    return (
        np.max(d, axis=1),
        np.min(d, axis=(0, 2), keepdims=True),
        np.max(d, axis=0, keepdims=True),
        d[:, :, 1] * 2.0,
        np.min(np.where(d > 0.5, d, x), axis=(0, 1)),
        np.max(d),
    )


def at_thresholds() -> list[tuple[int, int]]:
    n = int((LARGE / 3) ** 0.5)
    return [(n, 3), (n + 1, 3), (60, LONGEST), (60, LONGEST + 1), (200, 1), (130, 2)]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("n", "k"), at_thresholds())
def test_elements_and_extrema_have_the_same_bits(n: int, k: int, dtype: str) -> None:
    x, m = places(n, k, dtype), np.linspace(0.5, 1.5, n).astype(dtype)
    f = rg.jit(several if k > 1 else lambda x, m: (np.max(apart(x) * m[:, None, None], axis=1),))
    for found, expected in zip(f(x, m), f.__wrapped__(x, m), strict=True):
        assert found.flags.c_contiguous
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert (FRONT in f.at(x, m).source) == (1 < k <= LONGEST and n * n * k >= LARGE)


@pytest.mark.parametrize(("n", "k"), at_thresholds())
def test_derivatives_agree_with_those_in_numpys_order(n: int, k: int) -> None:
    x, m = places(n, k), np.linspace(0.5, 1.5, n)
    t = np.cos(x)
    calls: list[Any] = [
        rg.value_and_grad(energy, argnums=(0, 1)),
        lambda x, m: rg.jvp(lambda x: energy(x, m), (x,), (t,)),
        lambda x, m: rg.vjp(energy, x, m)[1](1.0),
        rg.vmap(energy, (0, None)),
    ]
    for call in calls:
        args = (np.stack([x, 2.0 * x]), m) if call is calls[-1] else (x, m)
        found = _flat(call(*args))
        with rg.config(exact=True):
            expected = _flat(call(*args))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * float(np.max(np.abs(b))))


def _flat(tree: Any) -> list[Any]:
    return [leaf for branch in tree for leaf in _flat(branch)] if isinstance(tree, tuple | list) else [tree]


def test_gradients_beside_finite_differences() -> None:
    rg.check_grads(energy, (places(80), np.linspace(0.5, 1.5, 80)), order=1)


def test_in_the_body_of_a_loop() -> None:
    def steps(x: Any, m: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            return x + 0.01 * np.sum(m[None, :, None] * np.sin(apart(x)), axis=1), None

        return np.sum(rg.scan(step, x, None, length=3)[0] ** 2)

    x, m = places(80), np.linspace(0.5, 1.5, 80)
    f = rg.jit(steps)
    np.testing.assert_allclose(f(x, m), steps(x, m), rtol=1e-12)
    assert FRONT in f.at(x, m).source
    slopes = rg.grad(steps, argnums=(0, 1))
    found = slopes(x, m)
    with rg.config(exact=True):
        for a, b in zip(found, slopes(x, m), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_large_arrays_are_not_moved() -> None:
    x = np.random.default_rng(0).normal(size=(100, 80, 3))
    for f in (
        rg.jit(lambda x: np.sum(x * np.sum(x, axis=2, keepdims=True), axis=0)),  # a large operand
        rg.jit(lambda x: apart(x[0])),  # a large result
        rg.jit(lambda x: np.sum(apart(x[0]) @ np.ones((3, 3)))),  # a large operand of something else
    ):
        np.testing.assert_allclose(f(x), f.__wrapped__(x), rtol=1e-12)
        assert FRONT not in f.at(x).source


def test_exact_code_keeps_the_order() -> None:
    f, x, m = rg.value_and_grad(energy), places(100), np.linspace(0.5, 1.5, 100)
    with rg.config(exact=True):
        f(x, m)
        assert FRONT not in f.at(x, m).source
    f(x, m)
    assert FRONT in f.at(x, m).source


def test_the_memory_of_a_call_is_foretold() -> None:
    def unmasked(x: Any, m: Any) -> Any:  # NumPy converts masks in buffers of its own
        d = apart(x)
        return np.sum(m[None, :, None] * d / (np.sum(d * d, axis=-1, keepdims=True) + 0.1) ** 1.5 * np.sin(d))

    f, x, m = rg.value_and_grad(unmasked, argnums=(0, 1)), places(400), np.linspace(0.5, 1.5, 400)
    found = measured(f, x, m)
    assert FRONT in f.at(x, m).source
    assert abs(found - f.plan(x, m).peak_bytes) <= 0.01 * found + 4096


def test_a_moved_array_is_stretched_along_axes_in_front_of_it() -> None:
    def f(c: Any) -> Any:
        rows = np.sin(np.broadcast_to(c, (LARGE, 3)))
        return np.sum(np.broadcast_to(rows, (4, LARGE, 3)) * 2.0, axis=-1)

    np.testing.assert_allclose(rg.jit(f)(np.arange(3.0)), f(np.arange(3.0)), rtol=1e-15)


@pytest.mark.parametrize("part", [slice(-1, 0), slice(5, 6), slice(2, 2), slice(-1, None), slice(2, None), slice(2, 9)])
def test_slices_of_one_element_and_of_none(part: slice) -> None:
    def f(x: Any) -> Any:
        d = np.sin(apart(x))[:, :, part]
        return np.sum(d), np.max(d, axis=(0, 1)), np.sum(d**2)

    for found, expected in zip(rg.jit(f)(places(90)), f(places(90)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def nearest(centres: Any, x: Any) -> Any:
    """The sum of the squared distances of points to the nearest of few centres, and of their scores."""
    apart = np.sum(x**2, axis=1)[:, None] - 2.0 * (x @ centres.T) + np.sum(centres**2, axis=1)
    return np.sum(np.min(apart, axis=1)) + np.sum(np.cos(0.01 * apart) @ np.ones(len(centres)))


def products_at_thresholds() -> list[tuple[int, int, int]]:
    n = LARGE // 8
    some = [(n - 1, 8, 5), (n, 8, 5), (n, 8, 8 * MOST_TERMS), (n, 8, 8 * MOST_TERMS + 1)]
    return [*some, (n, LONGEST_OF_MATRICES, 5), (n, LONGEST_OF_MATRICES + 1, 5), (LARGE, 1, 3), (LARGE, 2, 3)]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("n", "k", "terms"), products_at_thresholds())
def test_products_with_few_columns(n: int, k: int, terms: int, dtype: str) -> None:
    centres, x = 3.0 * places(k, terms, dtype), places(n, terms, dtype)
    f = rg.value_and_grad(nearest, argnums=(0, 1))
    found = _flat(f(centres, x))
    moved = (k, n) in [node.out.aval.shape for node in f.at(centres, x).graph.nodes if node.prim.name == "matmul"]
    with rg.config(exact=True):
        expected = _flat(f(centres, x))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.flags.c_contiguous
        np.testing.assert_allclose(a, b, rtol=0, atol=200 * np.finfo(dtype).eps * float(np.max(np.abs(b))) + 1e-30)
    assert moved == (1 < k <= LONGEST_OF_MATRICES and n * k >= LARGE and terms <= k * MOST_TERMS)


def test_maps_orders_and_loops_of_products_with_few_columns() -> None:
    centres, x = 3.0 * places(4, 3), places(LARGE // 4, 3)

    def scores(centres: Any, x: Any) -> Any:
        return np.sum(np.tanh(x @ centres.T - np.sum(centres, axis=1)) ** 2)

    def fitted(centres: Any, x: Any) -> Any:
        slope = rg.grad(scores)
        return np.sum(rg.scan(lambda c, _: (c - 1e-4 * slope(c, x), None), centres, None, length=3)[0] ** 2)

    calls: list[Any] = [
        rg.grad(lambda c, x: np.sum(rg.grad(scores)(c, x) ** 2)),
        rg.grad(fitted),
        lambda c, x: rg.vmap(rg.grad(scores), (0, None))(np.stack([c, 2.0 * c]), x),
        lambda c, x: rg.jvp(lambda c: scores(c, x), (c,), (np.cos(c),))[1],
    ]
    for call in calls:
        found = call(centres, x)
        with rg.config(exact=True):
            expected = call(centres, x)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * float(np.max(np.abs(expected))))
    rg.check_grads(scores, (centres, x[:40]), order=2)


def test_products_with_few_columns_within_a_budget() -> None:
    def deep(c: Any, x: Any) -> Any:
        z = x @ c.T + c[:, 0]
        for k in range(1, 5):
            z = np.tanh(k * z)
        return np.sum(z**2)

    centres, x = places(8, 5), places(LARGE // 8, 5)
    free = rg.value_and_grad(deep)
    peak = free.plan(centres, x).peak_bytes
    within = rg.value_and_grad(deep, memory=int(0.7 * peak))
    for a, b in zip(_flat(free(centres, x)), _flat(within(centres, x)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert within.plan(centres, x).peak_bytes <= 0.7 * peak
