"""Large arrays with a short last axis are computed with this axis in front: the same elements, and sums nearly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.short_axes import LARGE, LONGEST
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
