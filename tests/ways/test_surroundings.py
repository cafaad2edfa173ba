"""What is folded follows the state of the function, its transforms, and what else happens to it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.folding import Folding
from tests.ways.programs import short_ball as ball
from tests.ways.programs import three_balls

HEIGHTS = [0.3, 0.7, 1.1, 1.6, 2.3]
Plainly = Callable[[Any], Callable[..., Any]]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def folded(folds: list[Folding]) -> list[Folding]:
    return [each for each in folds if each.fold is not None]


def test_a_number_that_the_function_reads_changes(folds: list[Folding]) -> None:
    loss = 0.9

    def program(y: Any, v: Any) -> Any:
        for _ in range(24):
            v = v - 0.1
            y = y + 0.15 * v
            if y < 0:
                y = -y
                v = -loss * v
        return y * y

    compiled = rg.jit(program)
    for change in (0.9, 0.9, 0.7, 0.9, 0.5, 0.7):
        loss = change
        for y in HEIGHTS:
            assert compiled(y, 0.0) == program(y, 0.0)
    assert folded(folds)


def test_a_captured_array_changes(folds: list[Folding]) -> None:
    weights = np.array([0.9, 0.15])

    def program(y: Any, v: Any) -> Any:
        for _ in range(24):
            v = v - 0.1
            y = y + weights[1] * v
            if y < 0:
                y = -y
                v = -weights[0] * v
        return y * y

    with rg.config(exact=True):
        compiled = rg.jit(program)
        for change in range(4):
            for y in HEIGHTS:
                assert compiled(y, 0.0) == program(y, 0.0)
            weights[0] -= 0.1
            if change == 2:
                weights = np.array([0.6, 0.16])
        assert folded(folds)


def test_a_side_that_was_not_seen_reads_what_then_changes() -> None:
    table = {"loss": 0.9}

    def program(y: Any, v: Any) -> Any:
        for _ in range(24):
            v = v - 0.1
            y = y + 0.15 * v
            if y < 0:
                y = -y
                v = -table["loss"] * v if v < -1.0 else -0.5 * v
        return y * y

    compiled = rg.jit(program)
    for change in (0.9, 0.7, 0.9, 0.4):
        table["loss"] = change
        for y in HEIGHTS:
            assert compiled(y, 0.0) == program(y, 0.0)


def test_a_function_that_counts_its_calls() -> None:
    calls = [0]

    def program(y: Any, v: Any) -> Any:
        calls[0] += 1
        return calls[0] * ball(y, v)

    compiled = rg.jit(program)
    with pytest.warns() as _:
        found = [compiled(y, 0.0) for y in HEIGHTS]
    assert found == [(k + 1) * ball(y, 0.0) for k, y in enumerate(HEIGHTS)]


def test_a_static_argument_selects_the_loop(folds: list[Folding]) -> None:
    def program(y: Any, v: Any, bouncy: bool) -> Any:
        return ball(y, v) if bouncy else y * v

    compiled = rg.jit(program)
    for y in HEIGHTS:
        assert compiled(y, 0.5, True) == ball(y, 0.5)
        assert compiled(y, 0.5, False) == y * 0.5
    assert folded(folds)


def test_arguments_that_are_written() -> None:
    def program(x: Any, v: Any) -> Any:
        for k in range(40):
            if x[k % 3] > v:
                x[k % 3] = 0.5 * x[k % 3]
            else:
                x[k % 3] = x[k % 3] + 0.3
        return np.sum(x)

    compiled = rg.jit(program)
    for y in HEIGHTS:
        x, same = np.array([y, 1.0, 0.5]), np.array([y, 1.0, 0.5])
        assert compiled(x, y) == program(same.copy(), y)
        np.testing.assert_array_equal(x, same)


def test_second_derivatives() -> None:
    hessian = rg.hessian(ball)
    for y in HEIGHTS[:3]:
        h = 1e-4
        slopes = [rg.grad(ball)(y + e, 0.0) for e in (-h, h)]
        np.testing.assert_allclose(hessian(y, 0.0), (slopes[1] - slopes[0]) / (2 * h), rtol=1e-5, atol=1e-5)


def test_derivatives_in_a_direction_and_pullbacks(unfolded: Plainly) -> None:
    gradient = unfolded(rg.grad(ball, (0, 1)))
    for _ in range(2):
        for y in HEIGHTS[:3]:
            expected = gradient(y, 0.3)
            close(rg.jvp(ball, (y, 0.3), (1.0, 2.0))[1], expected[0] + 2.0 * expected[1])
            value, pull = rg.vjp(ball, y, 0.3)
            close(value, ball(y, 0.3))
            close(pull(1.0), expected)
            close(rg.value_and_grad(ball)(y, 0.3)[1], expected[0])


def test_inside_of_other_transforms(unfolded: Plainly) -> None:
    inner = rg.jit(ball)
    outer = rg.grad(lambda y, v: 2.0 * inner(y, v) + y)
    saved = rg.grad(rg.checkpoint(ball))
    gradient = unfolded(rg.grad(ball))
    for _ in range(2):
        for y in HEIGHTS[:3]:
            expected = gradient(y, 0.3)
            close(outer(y, 0.3), 2.0 * expected + 1.0)
            close(saved(y, 0.3), expected)


def test_lanes_that_decide_alike_and_lanes_that_do_not() -> None:
    mapped = rg.vmap(three_balls)
    for y in HEIGHTS[:2]:
        x = np.array([y, 0.5 + y, 2.0])
        lanes = np.stack([x, x])
        close(mapped(lanes, 0.0 * lanes), [three_balls(x, 0.0 * x)] * 2)
        with pytest.raises(rg.errors.ControlFlowError):
            mapped(np.stack([x, 3.0 * x[::-1]]), 0.0 * lanes)


def test_a_memory_budget(unfolded: Plainly) -> None:
    gradient, thrifty = unfolded(rg.grad(ball)), rg.grad(ball, memory="1 MiB")
    for y in HEIGHTS:
        close(thrifty(y, 0.3), gradient(y, 0.3))


def test_code_that_someone_looked_at_serves_no_longer(folds: list[Folding]) -> None:
    compiled = rg.jit(lambda y, v: 1.0 * ball(y, v))
    for y in HEIGHTS:
        compiled(y, 0.0)
    assert "def " in compiled.source(HEIGHTS[0], 0.0)
    for y in HEIGHTS:
        assert compiled(y, 0.0) == ball(y, 0.0)
    (folding,) = folded(folds)
    assert folding.fold is not None
    assert folding.paths.call is folding.fold.call


def test_it_keeps_nothing_of_the_users(folds: list[Folding]) -> None:
    class Array(np.ndarray):
        pass

    compiled, kept = rg.grad(lambda y, v: 1.0 * three_balls(y, v)), []
    for y in HEIGHTS[:3]:
        x, v = np.array([y, 1.0, 2.0]), np.zeros(3)
        kept += [weakref.ref(x.view(Array)), weakref.ref(compiled(x, v).view(Array))]
        owner = x.view(Array)
        kept.append(weakref.ref(owner))
        compiled(owner.view(np.ndarray), v)
        del owner, x
    gc.collect()
    assert folded(folds)
    assert not any(ref() is not None for ref in kept)


def test_proofs_are_bounded(folds: list[Folding], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrograd.compiler.folding.MOST_PROVED", 3)
    compiled = rg.jit(lambda y, v: 1.0 * ball(y, v))
    for y in [*HEIGHTS, *HEIGHTS]:
        assert compiled(y, 0.0) == ball(y, 0.0)
    (folding,) = folded(folds)
    assert folding.fold is not None
    assert len(folding.fold.proved) == 3


def test_many_threads(folds: list[Folding]) -> None:
    compiled, found = rg.jit(lambda y, v: 1.0 * ball(y, v)), {}

    def work(k: int) -> None:
        for y in HEIGHTS:
            found[k, y] = compiled(y + 0.01 * k, 0.0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {(k, y): ball(y + 0.01 * k, 0.0) for k in range(4) for y in HEIGHTS}


def test_errors_are_those_of_plain_python() -> None:
    def program(x: float, a: float) -> float:
        for _ in range(40):
            x = 1.0 / (x - a) if x > 1.0 else x + 0.25
        return x

    compiled = rg.jit(program)
    for x, a in [(0.0, 0.5), (0.25, 0.5), (0.0, 1.25), (0.1, 0.5), (0.0, 1.25), (0.1, 1.35), (0.2, 0.7)]:
        try:
            expected: Any = program(x, a)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                compiled(x, a)
        else:
            assert compiled(x, a) == expected


def test_a_function_runs_once_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    def program(y: Any, v: Any) -> Any:
        print("once")  # noqa: T201 - it is counted
        return ball(y, v)

    compiled = rg.jit(program)
    for y in HEIGHTS:
        compiled(y, 0.0)
        compiled(y, 0.0)
    assert capsys.readouterr().out.count("once") <= len(HEIGHTS)
