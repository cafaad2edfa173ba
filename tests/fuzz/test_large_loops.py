"""Random loops over arrays that are large enough for storage to be used again: as in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.programs.control import OURS, PLAIN
from tests.support import values

SIZES = (2048, 8192, 9001)
Block = Callable[[Any, Any, Any], Any]  # (operations, parameter, state) -> state


def written(s: Any, p: Any, c: float) -> Any:
    s = s * 1.0
    s[1:] += p * s[:-1]
    s[::2] *= c
    return s


def through_views(s: Any, p: Any, c: float) -> Any:
    a = s * p
    b = np.tanh(a)
    d = a * b + s
    part = d[10:] * 2.0
    d[10:] = part
    return d * c + b


def block(rng: np.random.Generator, depth: int) -> Block:
    """An elementary step, or a choice or loop over smaller blocks."""
    kind, c, n = rng.integers(9) if depth else rng.integers(5), float(rng.uniform(0.2, 0.9)), int(rng.integers(1, 4))
    if kind < 5:
        return [
            lambda ops, p, s: np.sin(s * p) + c,
            lambda ops, p, s: s * np.exp(-(s**2)) * p + c,
            lambda ops, p, s: np.roll(s, 3) * c + s[::-1] * p,
            lambda ops, p, s: written(s, p, c),
            lambda ops, p, s: through_views(s, p, c),
        ][kind]
    f, g = block(rng, depth - 1), block(rng, depth - 1)

    def scanned(ops: Any, p: Any, s: Any) -> Any:
        xs = np.stack([np.cos(np.arange(s.shape[0]) * j) for j in range(1, n + 1)])
        last, ys = ops.scan(lambda q, x: (f(ops, p, q * 0.5 + x), g(ops, p, q) * x), s, xs)
        return last * 0.3 + np.sum(ys, axis=0) * 0.1

    def two_carries(ops: Any, p: Any, s: Any) -> Any:
        def body(q: Any) -> Any:
            return f(ops, p, q[0]), g(ops, p, q[1]) * 0.5 + q[0], q[2] + 1

        return ops.while_loop(lambda q: q[2] < n, body, (s, s * c, 0))[1]

    return [
        lambda ops, p, s: ops.cond(s[0] > c, lambda t: f(ops, p, t), lambda t: g(ops, p, t), s),
        lambda ops, p, s: g(ops, p, ops.fori_loop(n, lambda i, t: f(ops, p, t) * 0.7, s)),
        two_carries,
        scanned,
    ][kind - 5]


@pytest.mark.costly
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(8, 60))])
def test_large_arrays_in_random_loops(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    step = block(rng, 3)
    x = rng.uniform(-1, 1, size)
    ours, plain = (
        lambda p, x, ops=ops: np.sum(ops.fori_loop(2, lambda i, t: step(ops, p, t) * 0.6 + x * 0.1, x) ** 2)
        for ops in (OURS, PLAIN)
    )
    values.assert_close(rg.value_and_grad(ours, (0, 1))(0.8, x), rg.value_and_grad(plain, (0, 1))(0.8, x), 1e-9)
    if seed % 4 == 0:
        second, expected = (rg.grad(lambda x, f=f: np.sum(rg.grad(f, 1)(0.8, x) ** 2)) for f in (ours, plain))
        values.assert_close(second(x), expected(x), 1e-8)
