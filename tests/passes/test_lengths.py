"""Loops of lengths on both sides of every size from which memory is treated otherwise, with every plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

LENGTHS = (0, 1, 2, 9, 128, 129, 2049, 8192)  # numbers of 1 KiB, 16 KiB and 64 KiB
PLANS = {
    "none": None,
    "snapshots": rg.Snapshots(3),
    "log": rg.Log(),
    "periodic": rg.Periodic(40),
    "everything": rg.Everything(),
}


def counted(n: int, x: Any, plan: Any) -> Any:
    return rg.fori_loop(n, lambda i, c: c * 0.999 + np.sin(c) * 0.001, x, memory=plan)


def counting(n: int, x: Any, plan: Any) -> Any:
    return rg.fori_loop(n, lambda i, c: c * 0.999 + i * 1e-4 * np.sin(c), x, memory=plan)


def counted_late(n: int, x: Any, plan: Any) -> Any:
    late = (np.sum(x) * 0).astype(np.int64) + n
    return rg.fori_loop(late, lambda i, c: c * 0.999 + np.sin(c) * 0.001, x, memory=plan)


def scanned(n: int, x: Any, plan: Any) -> Any:
    steps = np.arange(float(n)) * 1e-4
    last, ys = rg.scan(lambda c, t: (c * 0.999 + t * np.sin(c), np.sum(c)), x, steps, memory=plan)
    return last + np.sum(ys) * 1e-3


def repeated(n: int, x: Any, plan: Any) -> Any:
    state = x, 0.0
    return rg.while_loop(
        lambda s: s[1] < n, lambda s: (s[0] * 0.999 + np.sin(s[0]) * 0.001, s[1] + 1), state, memory=plan
    )[0]


def by_python(loop: Callable[..., Any], n: int, x: Any) -> Any:
    total = 0.0
    for i in range(n):
        factor = {counting: i * 1e-4, scanned: i * 1e-4}.get(loop, 0.001)
        total += np.sum(x)
        x = x * 0.999 + factor * np.sin(x)
    return x + total * 1e-3 if loop is scanned else x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("loop", [counted, counting, counted_late, scanned, repeated])
def test_loops_of_any_length(loop: Callable[..., Any], plan: Any) -> None:
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        x = rng.normal(size=3)
        value, slope = rg.value_and_grad(lambda x, n=n: np.sum(loop(n, x, plan)))(x)
        np.testing.assert_allclose(rg.jit(lambda x, n=n: loop(n, x, plan))(x), by_python(loop, n, x), rtol=1e-10)
        np.testing.assert_allclose(value, np.sum(by_python(loop, n, x)), rtol=1e-10)
        ahead, back = (np.sum(by_python(loop, n, x + h)) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(np.sum(slope), (ahead - back) / 2e-6, rtol=1e-5, atol=1e-9)
