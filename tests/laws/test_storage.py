"""Storage that is used again: sizes on both sides of the thresholds, chains of all kinds, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, evaluate
from retrograd.passes.place_buffers import POOL, REUSE
from tests.support import graphs, laws, values
from tests.support.graphs import built, op
from tests.support.stages import pipeline

SIZES = (100, 2047, 2048, 2049, 8191, 8192, 8193, 20000)
Function = Callable[..., Any]


def test_the_sizes_lie_on_both_sides_of_the_thresholds() -> None:
    for bytes_each in (8, 4):
        for threshold in (REUSE, POOL):
            sizes = [n * bytes_each for n in SIZES]
            assert any(n < threshold for n in sizes)
            assert any(n >= threshold for n in sizes)
    assert {REUSE - 8, REUSE, POOL - 8, POOL} <= {8 * n for n in SIZES}


def in_place(x: Any, y: Any) -> list[Any]:
    """Operands that die in turn."""
    p = op("sin", x)
    q = op("exp", p)
    r = q * p
    s = op("tanh", r - q)
    return [op("square", s) + s]


def kept_alive(x: Any, y: Any) -> list[Any]:
    """Operands that are read again later, and results that are read by others."""
    p = op("sin", x)
    q = op("cos", p)
    r = p + q
    return [r * y, q * p, op("neg", r)]


def through_views(x: Any, y: Any) -> list[Any]:
    """Views of storage that would be free without them."""
    n = x.shape[0]
    p = op("sin", x)
    half = op("getitem", p, index=(slice(None, n // 2),))
    q = op("exp", p)
    back = op("getitem", q, index=(slice(None, None, -1),))
    r = back * q
    total = op("sum", half, axis=(0,), keepdims=False)
    return [r, op("broadcast", total, aval=Aval((n,), x.dtype)) * op("neg", back)]


def written(x: Any, y: Any) -> list[Any]:
    """Writes into storage that is dead, and into storage that is not."""
    n = x.shape[0]
    first, last = (slice(0, n // 2),), (slice(n // 2, None),)
    p = op("sin", x)
    a = op("setitem", p, op("getitem", y, index=first), index=first)
    b = op("additem", a, op("getitem", p, index=last), index=last)
    c = op("setitem", b, op("getitem", b, index=(slice(n - n // 2, None),)), index=first)
    return [op("exp", c) * b, p * 2]


def columns(x: Any, y: Any) -> list[Any]:
    """Matrices, transposes, and reductions over them."""
    n = x.shape[0]
    m = op("reshape", op("sin", x), aval=Aval((1, n), x.dtype))
    t = op("permute", m, axes=(1, 0))
    u = op("cos", t) * t
    v = op("exp", u) - t
    return [op("reshape", v, aval=Aval((n,), x.dtype)), op("sum", u * v, axis=(0,), keepdims=False)]


def shared_constants(x: Any, y: Any) -> list[Any]:
    """One constant array that starts several writes."""
    zero = x.builder.zeros(x.aval)
    head, tail = (slice(0, 50),), (slice(50, 100),)
    p = op("setitem", zero, op("getitem", x, index=head), index=head)
    q = op("setitem", zero, op("getitem", y, index=tail), index=tail)
    r = op("additem", zero, op("getitem", y, index=head), index=head)
    return [op("sin", p) + q, q * r, zero]


CHAINS: list[Function] = [in_place, kept_alive, through_views, written, columns, shared_constants]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
def test_storage_used_again_keeps_every_bit(chain: Function, n: int, dtype: Any) -> None:
    aval = Aval((n,), np.dtype(dtype))
    graph = built(chain, aval, aval)
    rng = np.random.default_rng(n)
    args = [rng.uniform(-1, 1, n).astype(dtype) for _ in range(2)]
    laws.emission(graph, args)
    for derivative, more in laws.derivative_graphs(graph, args):
        laws.emission(derivative, more)


def test_storage_is_used_again() -> None:
    aval = Aval((POOL // 8,), np.dtype(float))
    plan = Executable(pipeline(built(in_place, aval, aval))).plan
    assert plan.into
    assert plan.peak < 4 * POOL


@pytest.mark.parametrize("n", SIZES)
def test_loops_over_large_states_keep_every_bit(n: int) -> None:
    def f(h: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            p = np.sin(c) * x
            q = np.exp(p) - p
            return np.tanh(q + c), q[: n // 2] * 2

        last, ys = rg.scan(body, h, xs)
        return np.sum(last * last) + np.sum(ys)

    rng = np.random.default_rng(n)
    args = [rng.uniform(-1, 1, n), rng.uniform(-1, 1, (3, n))]
    graph = rg.trace(f)(*args)
    laws.emission(graph, args)
    derivative = graphs.reverse_graph(graph, [True, True])
    laws.emission(derivative, [*args, np.float64(1.0)])


@pytest.mark.parametrize("n", SIZES)
def test_a_compiled_function_may_be_called_again_and_again(n: int) -> None:
    aval = Aval((n,), np.dtype(float))
    graph = built(through_views, aval, aval)
    run = Executable(pipeline(graph))
    rng = np.random.default_rng(n)
    kept = []
    for _ in range(3):
        args = [rng.uniform(-1, 1, n) for _ in range(2)]
        found = run(*args)
        kept.append((found, values.snapshot(found)))
        values.assert_same_bits(found, evaluate(graph, args))
    for found, before in kept:
        values.assert_same_bits(found, before)
