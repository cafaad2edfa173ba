"""Adjoint loops read the last state of a matrix where no later step writes: with which bits, how little memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.loop_node import loop_of
from tests.support.growing import again, short_loops_fold
from tests.support.memory import measured

N = 12


def left_looking(a: Any) -> Any:
    """Cholesky's factor by columns, each from those before it."""
    lower = np.zeros_like(a)
    for j in range(len(a)):
        lower[j, j] = np.sqrt(a[j, j] - lower[j, :j] @ lower[j, :j])
        lower[j + 1 :, j] = (a[j + 1 :, j] - lower[j + 1 :, :j] @ lower[j, :j]) / lower[j, j]
    return lower


def rows_above(a: Any) -> Any:
    """Each row is made of those above."""
    out = np.zeros_like(a)
    for i in range(len(a)):
        out[i] = np.tanh(a[i] + np.sum(np.sin(out[:i]), axis=0))
    return out


def reads_itself(a: Any) -> Any:
    """A step reads the row before it writes there."""
    out = a.copy()
    for i in range(len(a) - 1):
        out[i] = np.sin(np.sum(out[: i + 1] * out[: i + 1], axis=0))
    return out


def reads_the_next(a: Any) -> Any:
    """A step reads the row that the next one writes."""
    out = a.copy()
    for i in range(len(a) - 2):
        out[i] = np.sin(np.sum(out[: i + 2] * out[: i + 2], axis=0))
    return out


STAY = [left_looking, rows_above]
CHANGE = [reads_itself, reads_the_next]


def matrix(dtype: str = "f8", n: int = N) -> Any:
    b = np.random.default_rng(n).standard_normal((n, n))
    return (b @ b.T / n + 2.0 * np.eye(n)).astype(dtype)


def loss(program: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a: np.sum(np.sin(program(a)))


def lists(f: Any, *args: Any) -> int:
    """The lists of matrices that the loops of a compiled function save."""
    loops = [loop for node in f.at(*args).graph.nodes if (loop := loop_of(node)) is not None]
    assert loops
    return sum(len(v.aval.shape) == 2 for loop in loops for v in loop.stacks)


def all_states() -> Any:
    """A context in which no part counts as one that stays."""
    return mock.patch("retrograd.passes.final_states._apart", return_value=False)


@pytest.mark.parametrize("program", STAY + CHANGE)
@pytest.mark.parametrize(("backend", "dtype"), [("numpy", "f4"), ("numpy", "f8"), ("native", "f8")])
def test_derivatives_are_those_of_all_states(program: Callable[..., Any], backend: str, dtype: str) -> None:
    a = matrix(dtype)
    stack = np.stack([a, 0.9 * a])

    def derivatives() -> list[Any]:
        f = loss(again(program))
        slope = rg.grad(f, backend=backend)
        second = rg.jvp(slope, (a,), (np.cos(a),))[1]
        found = [slope(a), second, rg.vmap(rg.grad(f, backend=backend))(stack)]
        assert backend == "native" or lists(slope, a) == (program in CHANGE)
        return found

    with short_loops_fold():
        found = derivatives()
        with all_states():
            f = rg.grad(loss(again(program)), backend=backend)
            expected = [f(a), rg.jvp(f, (a,), (np.cos(a),))[1], rg.vmap(f)(stack)]
    for x, y in zip(found, expected, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("program", STAY + CHANGE)
def test_gradients_are_those_of_unrolled_programs(program: Callable[..., Any]) -> None:
    a = matrix()
    expected = rg.grad(loss(again(program)))(a)
    with short_loops_fold():
        np.testing.assert_allclose(rg.grad(loss(again(program)))(a), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("program", STAY)
def test_budgets_keep_the_bits(program: Callable[..., Any]) -> None:
    a = matrix(n=40)
    with short_loops_fold():
        expected = rg.grad(loss(again(program)))(a)
        for memory in (110_000, 140_000):
            assert rg.grad(loss(again(program)), memory=memory)(a).tobytes() == expected.tobytes()


def test_no_matrix_is_kept_for_a_step() -> None:
    a = matrix(n=120)
    with short_loops_fold():
        slope = rg.grad(loss(again(left_looking)))
        assert measured(slope, a) < 12 * a.nbytes  # two vectors for each step are two matrices
        with all_states():
            assert measured(rg.grad(loss(again(left_looking))), a) > 100 * a.nbytes


def substitution(a: Any) -> Any:
    """Each number is made of those above."""
    x = np.zeros(len(a))
    for i in range(len(a)):
        x[i] = (1.0 - a[i, :i] @ x[:i]) / (3.0 + a[i, i])
    return x


def backwards(a: Any) -> Any:
    """Each number is made of those below, with a slice that begins elsewhere in each step."""
    x, n = np.zeros(len(a)), len(a)
    for k in range(n):
        i = n - 1 - k
        x[i] = (1.0 - a[i, i + 1 :] @ x[i + 1 :]) / (3.0 + a[i, i])
    return x


def reads_its_number(a: Any) -> Any:
    """A step reads the number that it writes."""
    x = a[0].copy()
    for i in range(len(a)):
        x[i] = np.tanh(a[i, : i + 1] @ x[: i + 1])
    return x


@pytest.mark.parametrize(("program", "kept"), [(substitution, 0), (backwards, 0), (reads_its_number, 1)])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_products_of_slices_read_the_last_vector(program: Callable[..., Any], kept: int, backend: str) -> None:
    a = matrix()

    def derivatives() -> list[Any]:
        f = loss(again(program))
        slope = rg.grad(f, backend=backend)
        loops = [loop for node in slope.at(a).graph.nodes if (loop := loop_of(node)) is not None]
        vectors.append(sum(v.aval.shape == (N,) for loop in loops for v in loop.stacks))
        second = rg.jvp(slope, (a,), (np.cos(a),))[1]
        return [slope(a), second, rg.vmap(rg.grad(f, backend=backend))(np.stack([a, 0.9 * a]))]

    vectors: list[int] = []
    with short_loops_fold():
        found = derivatives()
        with all_states():
            expected = derivatives()
    assert vectors[0] == kept
    assert vectors[1] > 0
    for x, y in zip(found, expected, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize(
    ("ellipsis", "plain"),
    [("c[..., -1]", "c[-1]"), ("c[-1, ...]", "c[-1]"), ("c[..., 1:]", "c[1:]"), ("c[None, -1]", "c[-1]")],
)
@pytest.mark.parametrize("operator", ["=", "+="])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_an_ellipsis_in_what_is_written(ellipsis: str, plain: str, operator: str, backend: str) -> None:
    def slope(target: str) -> Any:
        scope: dict[str, Any] = {}
        exec(f"def write(c, v):\n    {target} {operator} v\n    return c", scope)

        def f(p: Any) -> Any:
            def step(_: Any, c: Any) -> Any:
                v = c * p
                return scope["write"](c.copy(), v[:2] if "1:" in target else v[0])

            return np.sum(rg.fori_loop(0, 3, step, x) ** 2)

        return rg.grad(f, backend=backend)(x + 1.0)

    x = np.array([1.0, 2.0, 3.0])
    assert slope(ellipsis).tobytes() == slope(plain).tobytes()
