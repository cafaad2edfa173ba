"""No name from inside of a step, a branch or a condition keeps a large array for longer than it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.memory import measured, one_thread

X = np.random.default_rng(5).random((300, 300))  # 720 kB
BUFFERS = 96 * 1024  # bytes of Python's objects, and of what NumPy buffers of an operand in another order
Function = Callable[..., Any]


def tail(x: Any) -> Any:
    """What takes two arrays after a loop."""
    y = np.exp(x)
    return np.sum(np.cos(y) * y)


def carried(x: Any) -> Any:
    """Each step reads a view of the carry, and nothing reads the first carry later."""
    return np.sum(rg.fori_loop(4, lambda _, c: c.T * 1.5 + 0.1, np.sin(x))) + tail(x)


def begun(x: Any) -> Any:
    """The loop begins with a constant that nothing else reads."""
    return np.sum(rg.fori_loop(4, lambda _, c: c.T * x + 0.1, np.ones((300, 300)))) + tail(x)


def asked(x: Any) -> Any:
    """The condition reads views of the carry."""

    def going(c: Any) -> Any:
        return (np.sum(c.T[:5]) < 1e9) & (np.max(c.T) < 3.0)

    return np.sum(rg.while_loop(going, lambda c: c.T * 1.5 + 0.1, np.sin(x))) + tail(x)


def chosen(x: Any) -> Any:
    """Branches read views of an operand."""
    a = np.sin(x)
    return rg.cond(np.sum(x) > 0, lambda a: np.sum(a.T[:, ::2] ** 2), lambda a: np.sum(a.T * 3.0), a) + tail(x)


def by_rows(x: Any) -> Any:
    """Steps read large rows of an array that dies with the loop."""
    rows = np.sin(np.reshape(x, (3, 30_000)))
    c, _ = rg.scan(lambda c, r: (c + r * c + np.sum(c), None), np.ones(30_000), rows)
    return np.sum(c) + tail(x)


def in_storage(x: Any) -> Any:
    """Steps work in storage that is made before the loop."""
    return np.sum(rg.fori_loop(4, lambda _, c: np.exp(-c * c) @ np.cos(c), np.sin(x))) + tail(x)


# The arrays of the size of x that are live at once, beside x itself: what a person counts in the source.
ARRAYS = {carried: 2, begun: 2, asked: 2, chosen: 2, by_rows: 2, in_storage: 5}


@pytest.mark.parametrize("f", ARRAYS, ids=lambda f: f.__name__)
def test_a_call_holds_only_what_is_read_later(f: Function) -> None:
    compiled = rg.jit(f)
    with one_thread():
        assert measured(compiled, X) == pytest.approx(ARRAYS[f] * X.nbytes, abs=BUFFERS)
        assert compiled.plan(X).peak_bytes == pytest.approx(ARRAYS[f] * X.nbytes, abs=BUFFERS)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_a_sweep_holds_its_states_and_one_step(slots: int) -> None:
    def loss(x: Any) -> Any:
        y = np.exp(x)
        end = rg.fori_loop(9, lambda _, c: np.sin(c.T) * x + c, np.sin(x), memory=rg.Snapshots(slots))
        return np.sum(end) + np.sum(np.cos(y) * y)

    slope = rg.grad(loss)
    with one_thread():
        assert measured(slope, X) == pytest.approx((7 + slots) * X.nbytes, abs=BUFFERS)
        assert slope.plan(X).peak_bytes == pytest.approx((7 + slots) * X.nbytes, abs=BUFFERS)


def test_an_operand_that_is_a_first_carry_too_keeps_its_name() -> None:
    def loss(x: Any) -> Any:
        a = np.sin(x)
        return np.sum(rg.fori_loop(3, lambda _, c: c.T * a + c, a))

    rg.check_grads(loss, (X[:100, :100],), order=2)
    np.testing.assert_allclose(rg.jit(loss)(X), loss(X), rtol=1e-12)
