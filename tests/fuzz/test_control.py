"""Random programs of nested choices and loops: values, derivatives and lanes are those of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.programs.control import OURS, PLAIN
from tests.support import values

W = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 3))
DEPTH = 3
Block = Callable[[Any, Any, Any], Any]  # (operations, parameter, state) -> state


def elementary(rng: np.random.Generator) -> Block:
    """A smooth step that keeps numbers small."""
    c = float(rng.uniform(-1, 1))
    return [
        lambda ops, p, s: np.sin(s * p) + c,
        lambda ops, p, s: np.tanh(W @ s) * p,
        lambda ops, p, s: s * np.exp(-(s**2)) + p * c,
        lambda ops, p, s: s[::-1] * 0.5 + np.cos(p),
        lambda ops, p, s: written(s, p, c),
        lambda ops, p, s: s / (1 + np.sum(s * s)) - c * p,
    ][rng.integers(6)]


def written(s: Any, p: Any, c: float) -> Any:
    s = s * 1.0
    s[1:] += p * s[:-1]
    s[0] = c * s[2]
    return s


def thrown(ops: Any, p: Any, s: Any, first: Block, second: Block, level: float) -> Any:
    def body() -> Any:
        t = first(ops, p, s)
        ops.throw_if(np.sum(t) > level, (t, p))
        return second(ops, p, t)

    return ops.try_catch(body, lambda q: q[0] * 0.5 + q[1])


def left(ops: Any, p: Any, s: Any, first: Block, second: Block, level: float) -> Any:
    def body(k: Any) -> Any:
        def step(i: Any, t: Any) -> Any:
            t = first(ops, p, t)
            return ops.cond(t[0] > level, lambda: k(second(ops, p, t)), lambda: t * 0.9)

        return ops.fori_loop(3, step, s)

    return ops.callcc(body)


def block(rng: np.random.Generator, depth: int) -> Block:
    """A random block: elementary steps one after another, or a choice or loop over smaller blocks."""
    kind = rng.integers(9) if depth else 0
    if kind == 0:
        steps = [elementary(rng) for _ in range(rng.integers(1, 4))]
        return lambda ops, p, s: chained(steps, ops, p, s)
    first, second = block(rng, depth - 1), block(rng, depth - 1)
    level, n = float(rng.uniform(-0.5, 0.5)), int(rng.integers(0, 4))
    if kind == 1:
        return lambda ops, p, s: ops.cond(s[0] > level, lambda t: first(ops, p, t), lambda t: second(ops, p, t), s)
    if kind == 2:  # closures instead of operands
        return lambda ops, p, s: ops.cond(np.sum(s) > level, lambda: first(ops, p, s), lambda: second(ops, p, s))
    if kind == 3:
        return lambda ops, p, s: second(ops, p, ops.fori_loop(n, lambda i, t: first(ops, p, t) + 0.1 * i, s))
    if kind == 4:
        return lambda ops, p, s: ops.while_loop(
            lambda c: (np.sum(c[0] ** 2) > 0.3) & (c[1] < n + 1), lambda c: (first(ops, p, c[0]), c[1] + 1), (s, 0)
        )[0]
    if kind == 5:
        xs = rng.uniform(-1, 1, (n + 1, 3))

        def scanned(ops: Any, p: Any, s: Any) -> Any:
            last, ys = ops.scan(
                lambda c, x: (first(ops, p, c + x * p), second(ops, p, c) * x), s, xs, reverse=bool(n % 2)
            )
            return last + np.sum(ys, axis=0) * 0.1

        return scanned
    if kind == 6:

        def chosen(ops: Any, p: Any, s: Any) -> Any:
            i = np.floor(s[1] * 3).astype(np.int64)
            return ops.switch(i, [lambda t: first(ops, p, t), lambda t: second(ops, p, t), lambda t: t * p], s)

        return chosen
    shape = thrown if kind == 7 else left
    return lambda ops, p, s: shape(ops, p, s, first, second, level)


def chained(steps: list[Block], ops: Any, p: Any, s: Any) -> Any:
    for step in steps:
        s = step(ops, p, s)
    return s


@pytest.mark.costly
@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@pytest.mark.parametrize("seed", [*range(30), *(pytest.param(k, marks=pytest.mark.slow) for k in range(30, 300))])
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = block(rng, DEPTH)
    ps, xs = rng.uniform(0.5, 1.2, 4), rng.uniform(-1, 1, (4, 3))
    ours, plain = (lambda p, x, ops=ops: np.sum(program(ops, p, x) ** 2) for ops in (OURS, PLAIN))

    def along(f: Any) -> Any:
        return lambda p, x: rg.jvp(f, (p, x), (0.3, x[::-1]))[1]

    def both(f: Any) -> Any:
        return lambda p, x: sum(np.sum(g**2) for g in rg.grad(f, (0, 1))(p, x))

    gradient, slope, second = rg.value_and_grad(ours, (0, 1)), along(ours), rg.grad(both(ours), (0, 1))
    single = [(gradient(p, x), slope(p, x), second(p, x)) for p, x in zip(ps, xs, strict=True)]
    for (p, x), found in zip(zip(ps, xs, strict=True), single, strict=True):
        expected = rg.value_and_grad(plain, (0, 1))(p, x), along(plain)(p, x), rg.grad(both(plain), (0, 1))(p, x)
        values.assert_close(found, expected, 1e-8)
    for transform, k in ((gradient, 0), (slope, 1), (second, 2)):
        values.assert_close(rg.vmap(transform)(ps, xs), stacked([s[k] for s in single]), 1e-8)


def stacked(each: list[Any]) -> Any:
    if isinstance(each[0], tuple):
        return tuple(stacked(list(column)) for column in zip(*each, strict=True))
    return np.stack(each)
