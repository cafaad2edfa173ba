"""Large stacks of matrices with few columns are computed transposed: the same elements, and sums nearly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.rewrite import walk
from retrograd.passes import stacks_in_blocks
from retrograd.passes.moved_axes import LARGE
from retrograd.passes.narrow_stacks import LONGER, LONGEST
from tests.support.blocks import agrees, leaves, loops, normals, slopes
from tests.support.memory import measured


def mixture(alpha: Any, mu: Any, factors: Any, x: Any) -> Any:
    scaled = (x - mu[:, None, :]) @ np.swapaxes(factors, 1, 2)
    scores = alpha[:, None] - 0.5 * np.sum(scaled**2, axis=2)
    top = np.max(scores, axis=0)
    return np.sum(np.log(np.sum(np.exp(scores - top), axis=0)) + top)


def layers(x: Any, weights: Any, bias: Any) -> Any:
    for _ in range(2):
        x = np.tanh(x @ weights + bias[:, None, :])
    return np.sum(x * x)


def several(x: Any, mu: Any, weights: Any) -> Any:
    """Folds along each of the last axes, products with either, and weights that stretch columns."""
    d = np.tanh(x - mu[:, None, :]) * weights[:, :, None] + 0.5
    return (
        np.max(d, axis=1),
        np.min(d, axis=(1, 2), keepdims=True),
        np.max(d, axis=2, keepdims=True),
        np.max(d, axis=-1),
        np.min(np.where(d > 0.5, d, x), axis=(0, 1)),
        np.max(np.abs(d) ** 2, axis=(0, 2)),
        np.max(d),
    )


def mixed(k: int, n: int, d: int, dtype: str = "f8") -> list[Any]:
    return normals((k,), (k, d), (k, d, d), (n, d), dtype=dtype)


def at_thresholds() -> list[tuple[int, int, int]]:
    n = -(-LARGE // (8 * 10))
    columns = [(40, 200, LONGEST), (40, 200, LONGEST + 1), (40, 500, 2), (40, 500, 1)]
    return [(8, n, 10), (8, n - 1, 10), (40, 10 * LONGER, 10), (40, 10 * LONGER - 1, 10), *columns]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("k", "n", "d"), at_thresholds())
def test_elements_and_extrema_have_the_same_bits(k: int, n: int, d: int, dtype: str) -> None:
    x, mu, weights = normals((n, d), (k, d), (k, n), dtype=dtype)
    f = rg.jit(several)
    for found, expected in zip(f(x, mu, weights), several(x, mu, weights), strict=True):
        assert found.flags.c_contiguous
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("k", "n", "d"), at_thresholds())
def test_derivatives_agree_with_those_in_numpys_order(k: int, n: int, d: int, dtype: str) -> None:
    args, eps = mixed(k, n, d, dtype), 1e-11 if dtype == "f8" else 2e-4
    f = slopes(3)(mixture)
    agrees(f, *args, eps=eps)
    differences = [node.out.aval.shape for node in walk(f.at(*args).graph) if node.prim.name == "sub"]
    assert ((d, n) in [shape[-2:] for shape in differences]) == (
        1 < d <= LONGEST and n >= LONGER * d and k * n * d >= LARGE
    )
    agrees(rg.jit(mixture), *args, eps=eps)
    agrees(slopes(3)(layers), *normals((k, n, d), (k, d, d), (k, d), dtype=dtype), eps=eps)


def test_maps_and_other_transforms() -> None:
    alpha, mu, factors, x = mixed(12, 200, 10)

    def loss(mu: Any) -> Any:
        return mixture(alpha, mu, factors, x)

    slope = rg.grad(loss)
    agrees(rg.grad(lambda mu: np.sum(slope(mu) ** 2)), mu, eps=1e-10)
    agrees(lambda mu: rg.vjp(loss, mu)[1](2.0), mu)
    agrees(lambda mu: rg.jvp(loss, (mu,), (np.cos(mu),)), mu)
    agrees(rg.vmap(slope), np.stack([mu, 2 * mu]))
    agrees(lambda mu: rg.scan(lambda mu, _: (mu - 1e-3 * slope(mu), None), mu, None, length=3)[0], mu)
    agrees(rg.grad(lambda mu: loss(mu) + rg.checkpoint(loss)(2 * mu)), mu)
    agrees(slopes(4)(mixture), alpha, np.asfortranarray(mu), factors, x[::-1])
    rg.check_grads(loss, (mu,), order=2)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308])
def test_special_values(special: float) -> None:
    x, mu, weights = normals((300, 10), (8, 10), (8, 300))
    x[17, 3] = special
    f = rg.jit(several)
    with np.errstate(all="ignore"):
        for found, expected in zip(f(x, mu, weights), several(x, mu, weights), strict=True):
            np.testing.assert_array_equal(found, expected)
        z = mixed(8, 300, 10)
        z[3][17, 3] = special
        found, expected = leaves(slopes(3)(mixture)(*z)), []
        with rg.config(exact=True):
            expected = leaves(slopes(3)(mixture)(*z))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


def test_complex_numbers_and_integers() -> None:
    def f(x: Any, mu: Any, factors: Any) -> Any:
        d = (x - mu[:, None, :]) @ factors
        return np.sum(d * d, axis=2), np.sum(np.abs(d) ** 2, axis=(1, 2))

    for dtype in (np.complex128, np.int64):
        args = [(5 * z).astype(dtype) for z in normals((300, 10), (8, 10), (8, 10, 10))]
        agrees(rg.jit(f), *args)
    args = [z + 1j * z[::-1] for z in normals((300, 10), (8, 10))]
    agrees(rg.jit(lambda x, mu: np.vecdot(x - mu[:, None, :], 2j * (x + mu[:, None, :]))), *args)


def test_loops_over_transposed_stacks_take_little_memory() -> None:
    """A loop subtracts means again from 1 MiB on, as its rows are long, and has one matrix in a step."""
    stack = 16 * 1000 * 10 * 8
    args = mixed(16, 1000, 10)
    assert stack >= stacks_in_blocks.AGAIN
    f = slopes(3)(mixture)
    assert loops(f, *args) == 2
    agrees(f, *args)
    found = measured(f, *args)
    assert found < 1.5 * stack
    assert abs(found - f.plan(*args).peak_bytes) <= 0.01 * found + 2 * 8192 * 8 + 4096
    assert loops(slopes(3)(mixture), *mixed(16, 999, 8)) == 0, "a smaller stack"
    peak, free = f.plan(*args).peak_bytes, leaves(f(*args))
    within = rg.value_and_grad(mixture, argnums=(0, 1, 2), memory=peak)
    for a, b in zip(leaves(within(*args)), free, strict=True):
        np.testing.assert_array_equal(a, b)
