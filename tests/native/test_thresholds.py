"""Arithmetic in C has NumPy's bits on both sides of each length from which the code is another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import elements, in_parts, late_sums, nests, prices, shim, sum_order, sums
from tests.native.test_threads import always_helped
from tests.support.native import needs_compiler

pytestmark = [needs_compiler, pytest.mark.usefixtures("all_in_c")]
THRESHOLDS = {
    "SHORT": elements.SHORT,
    "FEW": elements.FEW,
    "LOCAL": prices.LOCAL,
    "LEAF": sum_order.LEAF,
    "BLOCK": sum_order.BLOCK,
    "LONG": nests.LONG,
    "TURNS": sums.TURNS,
    "STACK": shim.STACK // 8,
    "NEAR": sums.NEAR,
    "TERMS": late_sums.TERMS,
}


def arithmetic(x: Any, y: Any) -> Any:
    """Operations that are rounded as NumPy rounds them, a running sum that is read backwards, and folds of both."""
    z = np.sqrt(x * x + y) - x / (y + 2.0)
    running = np.cumsum(z)
    turned = np.where(z > x, running[::-1] * z, z - running)
    return turned, np.sum(z), np.sum(turned * y), np.max(turned), np.min(z), np.sum(z > x)


def operands(n: int, dtype: str) -> Any:
    return np.random.default_rng(n).uniform(0.5, 2.0, (2, n)).astype(dtype)


def agree(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", THRESHOLDS)
def test_lengths_around_a_threshold(name: str, dtype: str) -> None:
    lengths = [THRESHOLDS[name] + k for k in (-2, -1, 0, 1, 2, 7)]
    pairs = [operands(n, dtype) for n in lengths]
    with always_helped("-O2"):
        found = rg.jit(lambda pairs: [arithmetic(x, y) for x, y in pairs])(pairs)
    for results, (x, y) in zip(found, pairs, strict=True):
        agree(results, arithmetic(x, y))


def test_lengths_around_the_first_that_has_parts() -> None:
    def products(x: Any, y: Any) -> Any:
        z = x * y - x
        return z, np.sum(z), np.max(z)

    def has_parts(n: int) -> bool:
        return "in_parts(kernel" in rg.jit(products).source(*operands(n, "f8"), language="c")

    with always_helped("-O2"):
        fewest, most = 1000, 2 * in_parts.LEAST
        assert not has_parts(fewest)
        while most - fewest > 1:
            middle = (fewest + most) // 2
            fewest, most = (fewest, middle) if has_parts(middle) else (middle, most)
        before = rg.config.threads
        for n in (most - 1, most, most + 1, most + in_parts.ALIGNED - 1):
            x, y = operands(n, "f8")
            f = rg.jit(products)
            for number in (1, 2, 3):
                rg.config.threads = number
                try:
                    agree(f(x, y), products(x, y))
                finally:
                    rg.config.threads = before
