"""What a softmax subtracts from its scores has no derivative, and everything else that looks like it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes import jvp
from retrograd.passes.free_shifts import free_shifts

X = np.random.default_rng(0).normal(size=(4, 4))
CUBE = np.random.default_rng(1).normal(size=(3, 3, 3))
W = np.random.default_rng(2).normal(size=(4, 4))


def softmax(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return W * (raised / np.sum(raised, axis=-1, keepdims=True))


def softmax_of_columns(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=0))
    return W * (raised / raised.sum(axis=0))


def log_softmax(x: Any) -> Any:
    shifted = x - np.max(x, axis=1, keepdims=True)
    return W * (shifted - np.log(np.sum(np.exp(shifted), axis=1))[:, None])


def log_sum_exp(x: Any) -> Any:
    top = np.max(x, axis=0)
    return np.log(np.sum(np.exp(x - top), axis=0)) + top


def log_sum_exp_with_kept_axes(x: Any) -> Any:
    top = np.max(x, axis=1, keepdims=True)
    return top[:, 0] + np.log(np.sum(np.exp(x - top), axis=1))


def shifted_by_one_number(x: Any) -> Any:
    top = np.max(x)
    return np.log(np.sum(np.exp(x - top), axis=1)) + top


def shifted_by_a_mean(x: Any) -> Any:
    raised = np.exp(x - np.mean(x, axis=1, keepdims=True))
    return W * (raised / np.sum(raised, axis=1, keepdims=True))


def all_of_them(x: Any) -> Any:
    top = np.max(x, axis=1, keepdims=True)
    shifted = x - top
    raised = np.exp(shifted)
    total = np.sum(raised, axis=1, keepdims=True)
    return raised / total * W + (shifted - np.log(total)) * W**2 + (np.log(total) + top)


def over_two_axes(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=(0, 2), keepdims=True))
    return raised / np.sum(raised, axis=(0, 2), keepdims=True) * CUBE**2


FREE = [
    (softmax, X),
    (softmax_of_columns, X),
    (log_softmax, X),
    (log_sum_exp, X),
    (log_sum_exp_with_kept_axes, X),
    (shifted_by_one_number, X),
    (shifted_by_a_mean, X),
    (all_of_them, X),
    (over_two_axes, CUBE),
]


def divided_across(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=1, keepdims=True))
    return raised / np.sum(raised, axis=1)  # columns, by the sums of rows


def added_across(x: Any) -> Any:
    top = np.max(x, axis=1)
    return np.log(np.sum(np.exp(x - top[:, None]), axis=1)) + top[:, None]


def subtracted_across(x: Any) -> Any:
    shifted = x - np.max(x, axis=1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=1))


def summed_along_the_shift(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=1, keepdims=True))
    return raised / np.sum(raised, axis=0)


def another_shift(x: Any) -> Any:
    return np.log(np.sum(np.exp(x - np.max(x, axis=1)[:, None]), axis=1)) + np.max(x, axis=0)


def guarded_sum(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=1, keepdims=True))
    return raised / (np.sum(raised, axis=1, keepdims=True) + 1e-3)


def the_shift_alone(x: Any) -> Any:
    top = np.max(x, axis=1)
    return np.log(np.sum(np.exp(x - top[:, None]), axis=1))


def the_shift_twice(x: Any) -> Any:
    top = np.max(x, axis=1)
    return np.log(np.sum(np.exp(x - top[:, None]), axis=1)) + top + top


def scores_that_are_the_shift(x: Any) -> Any:
    top = np.max(x, axis=1)
    return np.log(np.sum(np.exp(np.broadcast_to(top[:, None], (4, 4)) - top[:, None]), axis=1)) + top


def with_the_exponentials(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=1, keepdims=True))
    return raised / np.sum(raised, axis=1, keepdims=True) + raised


def with_the_shift_as_result(x: Any) -> Any:
    top = np.max(x, axis=1, keepdims=True)
    raised = np.exp(x - top)
    return raised / np.sum(raised, axis=1, keepdims=True), np.broadcast_to(top, (4, 4))


def cube_divided_across(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=1, keepdims=True))
    return raised / np.sum(raised, axis=1)


def square_of_the_exponentials(x: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=1, keepdims=True))
    return raised * raised / np.sum(raised, axis=1, keepdims=True)


BOUND = [
    (divided_across, X),
    (added_across, X),
    (subtracted_across, X),
    (summed_along_the_shift, X),
    (another_shift, X),
    (guarded_sum, X),
    (the_shift_alone, X),
    (the_shift_twice, X),
    (scores_that_are_the_shift, X),
    (with_the_exponentials, X),
    (with_the_shift_as_result, X),
    (cube_divided_across, CUBE),
    (square_of_the_exponentials, X),
]


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    def summed(x: Any) -> Any:
        found = f(x)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(np.sin(part * (k + 1.3))) for k, part in enumerate(parts))

    return summed


def ids(value: Any) -> str:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("f", "x"), FREE, ids=ids)
def test_a_shift_that_cancels_is_found(f: Callable[..., Any], x: Any) -> None:
    graph = rg.trace(f)(x)
    assert len(free_shifts(graph)) == 1
    derivative = rg.grad(total(f)).graph(x)
    assert not {"eq", "count"} & {node.prim.name for node in derivative.nodes}


@pytest.mark.parametrize(("f", "x"), BOUND, ids=ids)
def test_a_shift_that_does_not_cancel_keeps_its_derivative(f: Callable[..., Any], x: Any) -> None:
    assert free_shifts(rg.trace(f)(x)) == set()


@pytest.mark.parametrize(("f", "x"), [*FREE, *BOUND], ids=ids)
def test_derivatives_are_those_with_the_shift(f: Callable[..., Any], x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rg.check_grads(total(f), (x,), order=2)
    without = rg.grad(total(f))(x)
    monkeypatch.setattr(jvp, "STILL", [])
    np.testing.assert_allclose(rg.grad(lambda x: total(f)(x) * 1.0)(x), without, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that belong to a softmax, and others, in any order."""
    choices = np.random.default_rng(seed).integers(0, 2**31, 40)

    def program(x: Any) -> Any:
        left = iter(choices)

        def pick(*options: Any) -> Any:
            return options[next(left) % len(options)]

        axis, keep = pick(0, 1), pick(True, False)
        top = pick(np.max, np.mean, np.min)(x, axis=pick(axis, axis, 1 - axis, None), keepdims=keep)
        if np.ndim(top) == 1:
            top = pick(lambda t: t[:, None], lambda t: t, lambda t: t[None, :])(top)
        shifted = pick(x, x, x, 2 * x, top + 0 * x) - top
        raised = np.exp(shifted)
        sums = np.sum(raised, axis=pick(axis, axis, 1 - axis), keepdims=pick(True, False))
        if sums.ndim == 1:
            sums = pick(lambda t: t[:, None], lambda t: t, lambda t: t[None, :])(sums)
        found = []
        for _ in range(pick(1, 1, 2, 3)):
            level = pick(lambda t: t, lambda t: t, np.squeeze)(top)
            found.append(
                pick(
                    lambda: raised / sums,
                    lambda: shifted - np.log(sums),
                    lambda level=level: np.log(sums) + level,
                    lambda level=level: level + np.log(np.squeeze(sums)),
                    lambda: raised / sums * x,
                    lambda: np.log(sums) - 0.5 * top,
                    lambda: raised,
                )()
            )
        return sum(np.sum(np.cos(part) * (k + 1)) for k, part in enumerate(found))

    without = rg.grad(program)(X)
    monkeypatch.setattr(jvp, "STILL", [])
    np.testing.assert_allclose(without, rg.grad(lambda x: program(x) * 1.0)(X), rtol=1e-11, atol=1e-12)


def test_in_loops_and_lanes() -> None:
    def forward(x: Any) -> Any:
        def step(alpha: Any, row: Any) -> Any:
            scores = alpha[:, None] + row
            top = np.max(scores, axis=0)
            return np.log(np.sum(np.exp(scores - top), axis=0)) + top, None

        return np.sum(rg.scan(step, x[0], np.stack([x, x * x, x.T]))[0] ** 2)

    rg.check_grads(forward, (X,), order=2)
    lanes = rg.vmap(rg.grad(lambda row: np.sum(W * softmax(row[None] * np.ones((4, 1))))))(X)
    for row, lane in zip(X, lanes, strict=True):
        np.testing.assert_allclose(rg.grad(lambda row: np.sum(W * softmax(row[None] * np.ones((4, 1)))))(row), lane)


def test_scores_of_minus_infinity_have_no_weight() -> None:
    x = X.copy()
    x[0, 1] = -np.inf
    gradient = rg.grad(total(softmax))(x)
    assert gradient[0, 1] == 0
    assert np.isfinite(gradient).all()
