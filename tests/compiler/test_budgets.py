"""Budgets for whole gradients: kept to, bit for bit the same, and with more memory never more is computed again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.stages import settled
from retrograd.ir import Graph
from retrograd.passes.remat.search import Crossing
from tests.support.memory import measured

R = np.random.default_rng(5)


def perceptron(depth: int, width: int, batch: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    weights = [R.normal(size=(width, width)) / np.sqrt(width) for _ in range(depth)]

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = np.tanh(x @ w)
        return np.sum(x * x)

    return loss, (weights, R.normal(size=(batch, width)))


def u_net() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Down by halving and up again, with a path across at each level."""

    def loss(k: Any, x: Any) -> Any:
        across = []
        for i in range(4):
            x = np.tanh(k[i, 0] * x + k[i, 1] * np.roll(x, 1, 0) + k[i, 2] * np.roll(x, 1, 1))
            across.append(x)
            x = 0.25 * (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2])
        for i in range(3, -1, -1):
            x = np.repeat(np.repeat(x, 2, 0), 2, 1)
            x = np.tanh(k[i, 3] * x + across[i] * k[i, 4])
        return np.mean(x * x)

    return loss, (R.normal(size=(4, 5)), R.normal(size=(256, 256)))


def transformer() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    d, n = 64, 256

    def block(w: Any, x: Any) -> Any:
        q, k, v = x @ w[0], x @ w[1], x @ w[2]
        s = q @ k.T / 8.0
        p = np.exp(s - np.max(s, axis=1, keepdims=True))
        p = p / np.sum(p, axis=1, keepdims=True)
        x = x + p @ v
        m = np.mean(x, axis=1, keepdims=True)
        x = (x - m) / np.sqrt(np.mean((x - m) ** 2, axis=1, keepdims=True) + 1e-5)
        return x + np.tanh(x @ w[3]) @ w[4]

    def loss(w: Any, x: Any) -> Any:
        for i in range(2):
            x = block(w[i], x)
        return np.sum(x * x)

    return loss, (R.normal(size=(2, 5, d, d)) / 8.0, R.normal(size=(n, d)))


CASES = {"perceptron": perceptron(16, 64, 400), "u-net": u_net(), "transformer": transformer()}
every_case = pytest.mark.parametrize(("loss", "args"), CASES.values(), ids=CASES.keys())


def least(loss: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """The number of bytes that the error names."""
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        rg.value_and_grad(loss, (0, 1), memory=1)(*args)
    return int(caught.value.minimum)


@every_case
def test_budgets_hold_and_gradients_keep_every_bit(loss: Callable[..., Any], args: tuple[Any, ...]) -> None:
    plain = rg.value_and_grad(loss, (0, 1))
    value, grads = plain(*args)
    most = plain.plan(*args).peak_bytes
    small = least(loss, args)
    assert small < 0.97 * most
    last = 0
    for budget in np.linspace(small, most, 4).astype(int).tolist():
        thrifty = rg.value_and_grad(loss, (0, 1), memory=budget)
        found, others = thrifty(*args)
        assert found == value
        for x, y in zip(_leaves(grads), _leaves(others), strict=True):
            np.testing.assert_array_equal(x, y)
        predicted = thrifty.plan(*args).peak_bytes
        assert last <= predicted <= budget
        last = predicted
        assert measured(thrifty, *args) <= predicted * 1.01 + 200_000  # the buffers of NumPy's iterators


def _leaves(tree: Any) -> list[Any]:
    return [leaf for item in tree for leaf in (_leaves(item) if isinstance(item, (list, tuple)) else [item])]


@every_case
def test_more_memory_never_means_more_work(loss: Callable[..., Any], args: tuple[Any, ...]) -> None:
    choices = Crossing(turned(loss, args)).choices()
    assert choices[0].score.again == 0
    for before, after in pairwise(choices):
        assert before.score.again < after.score.again
        assert before.score.peak > after.score.peak


def turned(loss: Callable[..., Any], args: tuple[Any, ...]) -> Graph:
    """The graph of a gradient with its turn."""
    compiled = rg.value_and_grad(loss, (0, 1), memory=10**15)
    return settled(compiled.at(*args).derived.graph)


def test_a_budget_that_cannot_be_kept_is_an_error_before_anything_runs() -> None:
    loss, args = CASES["u-net"]
    with pytest.raises(rg.errors.MemoryBudgetError, match="allow at least"):
        rg.grad(loss, memory="1 kB")(*args)
    minimum = least(loss, args)
    rg.value_and_grad(loss, (0, 1), memory=minimum)(*args)
    with pytest.raises(rg.errors.OptionError):
        rg.grad(loss, memory="a lot")
    assert rg.grad(loss, memory="available")(*args).shape == args[0].shape


def test_loops_share_the_budget_of_the_gradient() -> None:
    def loss(x: Any) -> Any:
        last = rg.scan(lambda c, _: (np.sin(c) * 1.01, None), x, None, 200)[0]
        return np.sum(last)

    x = R.normal(size=20_000)
    plain = rg.grad(loss)
    most = plain.plan(x).peak_bytes
    thrifty = rg.grad(loss, memory=most // 8)
    np.testing.assert_array_equal(thrifty(x), plain(x))
    assert thrifty.plan(x).peak_bytes <= most // 8
    assert measured(thrifty, x) <= most // 8 * 1.01 + 50_000


@pytest.mark.parametrize("wrap", [rg.jit, rg.subgraph], ids=["jit", "subgraph"])
def test_what_called_functions_compute_may_be_computed_again(wrap: Any) -> None:
    """Calls of compiled functions are laid open; regions keep what is theirs to keep."""

    def block(w: Any, x: Any) -> Any:
        for i in range(4):
            x = np.tanh(x @ w[i]) + 0.1 * x * np.exp(-x * x)
        return x

    apart, region = wrap(block), rg.checkpoint(block, policy=rg.policies.save_matmuls)

    def loss(ws: Any, x: Any) -> Any:
        x = region(ws[1], apart(ws[0], x))
        for w in ws[2:]:
            x = apart(w, x)
        return np.sum(x * x)

    args = [R.normal(size=(4, 16, 16)) / 6 for _ in range(5)], R.normal(size=(400, 16))
    plain = rg.grad(loss)
    assert plain.source(*args).count("def block") > 2
    curve = plain.tradeoff(*args)
    assert len(curve.points) > 8
    assert curve.points[-1].peak_bytes < 0.5 * plain.plan(*args).peak_bytes
    for point in (curve.points[0], curve.points[len(curve.points) // 2], curve.points[-1]):
        thrifty = rg.grad(loss, memory=point.peak_bytes)
        for x, y in zip(thrifty(*args), plain(*args), strict=True):
            np.testing.assert_array_equal(x, y)
        assert thrifty.plan(*args).peak_bytes <= point.peak_bytes
        assert measured(thrifty, *args) <= point.peak_bytes * 1.01 + 200_000


def summed(x: Any) -> Any:
    for _ in range(5):
        x = np.sin(x) * np.cumsum(x)
    return np.sum(x)


def joined(x: Any) -> Any:
    n = len(x) // 2
    for _ in range(8):
        x = np.concatenate([np.sin(x[n:]), x[:n] * x[n:]])
        x = np.maximum(np.where(x > 0.3, x, x * x), 0.5 * x)
    return np.sum(x)


def sorted_too(x: Any) -> Any:
    for _ in range(6):
        x = np.sin(x) * np.cumsum(x) * 1e-3 + np.sort(x)
    return np.sum(x)


def in_blocks(x: Any) -> Any:
    """A loop that runs on blocks of its arrays as long as it has no plan."""
    for _ in range(4):
        x = np.tanh(x * np.cos(x))
    return np.sum(rg.scan(lambda c, _: (np.sin(c) * 1.1, None), x, None, 30)[0])


@pytest.mark.parametrize("loss", [summed, joined, sorted_too, in_blocks], ids=lambda f: f.__name__)
def test_the_budget_that_an_error_names_is_the_smallest_that_works(loss: Callable[..., Any]) -> None:
    x = np.linspace(0.1, 1.0, 40_000)
    with pytest.raises(rg.errors.MemoryBudgetError, match="allow at least") as caught:
        rg.grad(loss, memory=1)(x)
    minimum = caught.value.minimum
    thrifty = rg.grad(loss, memory=minimum)
    np.testing.assert_array_equal(thrifty(x), rg.grad(loss)(x))
    assert thrifty.plan(x).peak_bytes <= minimum <= rg.grad(loss).tradeoff(x).points[-1].peak_bytes
    with pytest.raises(rg.errors.MemoryBudgetError) as caught:
        rg.grad(loss, memory=minimum - 1)(x)
    assert caught.value.minimum == minimum
