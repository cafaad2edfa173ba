"""Steps of loops compute into the rows of arrays: where they may, and that no array changes later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy import workspaces
from tests.support.memory import measured

N = 96  # 73,728 bytes each


def steps() -> Any:
    return np.random.default_rng(3).standard_normal((5, N, N))


def collected(step: Callable[..., Any], reverse: bool = False) -> Callable[..., Any]:
    """A loop with a carry that collects what each step gives."""

    def f(xs: Any) -> Any:
        return rg.scan(step, np.ones((N, N)), xs, reverse=reverse)

    return f


def plainly(step: Callable[..., Any], xs: Any, reverse: bool = False) -> Any:
    """The same by Python."""
    carry, rows = np.ones((N, N)), []
    for x in xs[::-1] if reverse else xs:
        carry, y = step(carry, x)
        rows.append(y)
    rows = rows[::-1] if reverse else rows
    several = isinstance(rows[0], tuple)
    return carry, tuple(map(np.stack, zip(*rows, strict=True))) if several else np.stack(rows)


def leaves(tree: Any) -> list[Any]:
    return [leaf for branch in tree for leaf in leaves(branch)] if isinstance(tree, tuple | list) else [tree]


def written(c: Any, x: Any) -> Any:
    y = np.exp(x)
    y[3] = 1.0
    return c, y


def turned_in_place(c: Any, x: Any) -> Any:
    y = np.sin(x).T
    return c, np.cos(y)


def both(c: Any, x: Any) -> Any:
    c = np.tanh(c + x)
    return c, c


STEPS: dict[str, Callable[..., Any]] = {
    "one": lambda c, x: (c, np.exp(x)),
    "several in one storage": lambda c, x: (c, np.tanh(np.sin(x) * 2.0) + 1.0),
    "a product": lambda c, x: (c, x @ x),
    "one from another": lambda c, x: (c, (np.exp(x), np.exp(x) * 2.0)),
    "the same twice": lambda c, x: (c, 2 * (np.exp(x),)),
    "a transpose": lambda c, x: (c, np.exp(x).T),
    "a part": lambda c, x: (c, np.exp(x)[1:]),
    "another shape": lambda c, x: (c, np.exp(x).reshape(-1)),
    "another type": lambda c, x: (c, x > 0),
    "turned in place": turned_in_place,
    "an operand": lambda c, x: (c, x),
    "the carry": lambda c, x: (c * 2.0, c),
    "the next carry": both,
    "written": written,
    "sums": lambda c, x: (c + x, np.exp(c) * x),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_rows_have_the_values_of_their_steps(name: str, reverse: bool) -> None:
    xs = steps()
    step = STEPS[name]
    f = rg.jit(collected(step, reverse))
    expected = leaves(plainly(step, xs, reverse))
    first = leaves(f(xs))
    for a, b in zip(first, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
    copies = [np.array(a) for a in first]
    f(xs[::-1] + 1.0)
    for a, b in zip(first, copies, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["one", "several in one storage", "a product", "sums"])
def test_a_step_computes_into_its_row(name: str) -> None:
    source = rg.jit(collected(STEPS[name])).source(steps())
    assert "[t])" in source  # the end of ``out=rows[t])``
    assert "[t] = " not in source


@pytest.mark.parametrize("name", ["a transpose", "the same twice", "the next carry", "a part"])
def test_a_step_copies_what_has_no_row_of_its_own(name: str) -> None:
    assert "[t] = " in rg.jit(collected(STEPS[name])).source(steps())


def sums(xs: Any) -> Any:
    """Rows that only the function itself needs."""
    rows = rg.scan(lambda c, x: (c, np.exp(x)), 0.0, xs)[1]
    return np.sum(rows * rows[::-1])


def last(xs: Any) -> Any:
    """A loop whose carry is a row of another loop's array."""
    rows = rg.scan(lambda c, x: (c, np.exp(x)), 0.0, xs)[1]
    return rg.scan(lambda c, row: (row, None), np.zeros((N, N)), rows)[0]


def view(xs: Any) -> Any:
    return rg.scan(lambda c, x: (c, np.exp(x)), 0.0, xs)[1][1:3].T


def test_arrays_that_nothing_needs_later_lie_in_the_workspace() -> None:
    xs = steps()
    assert "= work" in rg.jit(sums).source(xs)
    np.testing.assert_allclose(rg.jit(sums)(xs), np.sum(np.exp(xs) * np.exp(xs[::-1])), rtol=1e-13)
    for f, expected in ((last, np.exp(xs[-1])), (view, np.exp(xs)[1:3].T)):
        jitted = rg.jit(f)
        found = jitted(xs)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        kept = found.copy()
        jitted(xs - 1.0)
        np.testing.assert_array_equal(found, kept)


@pytest.mark.parametrize("f", [sums, last, view, collected(STEPS["a product"]), collected(both)])
def test_memory_is_foretold(f: Callable[..., Any]) -> None:
    xs = np.repeat(steps(), 4, axis=0)
    found = measured(rg.jit(f), xs)
    assert abs(found - rg.jit(f).plan(xs).peak_bytes) <= 0.01 * found + 4096


def test_small_rows_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    xs = steps()

    def step(c: Any, x: Any) -> Any:
        return c, np.cosh(x)

    for limit, copied in ((N * N * 8, False), (N * N * 8 + 1, True)):
        monkeypatch.setattr(workspaces, "LARGE", limit)
        k = float(limit)
        f = rg.jit(collected(lambda c, x, k=k: (c, np.cosh(x) * k)))
        assert ("[t] = " in f.source(xs)) == copied
        np.testing.assert_allclose(f(xs)[1], np.cosh(xs) * k, rtol=1e-13)
