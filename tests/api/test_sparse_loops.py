"""Sparse Hessians through loops are the dense ones: their adjoint loops read what the steps saved, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

pytest.importorskip("scipy")

Body = Callable[[Any], Any]
X = np.linspace(0.1, 1.2, 6) ** 2
PLACES = np.array([0, 0, 1, 2, 3, 4])


def folded(body: Body) -> Body:
    def run(x: Any) -> Any:
        for _ in range(7):
            x = body(x)
        return x

    return run


LOOPS: dict[str, Callable[[Body], Body]] = {  # of bodies
    "no step": lambda f: lambda x: rg.fori_loop(0, lambda i, c: f(c), x) ** 2,
    "one step": lambda f: lambda x: rg.fori_loop(1, lambda i, c: f(c), x),
    "two steps": lambda f: lambda x: rg.fori_loop(2, lambda i, c: f(c), x) ** 2,
    "rows": lambda f: lambda x: rg.scan(lambda c, r: (f(c) * r, c[:2] * r), x, x[:3])[1],
    "reversed": lambda f: lambda x: rg.scan(lambda c, r: (f(c) * r, c * r), x, x[:4], reverse=True)[1],
    "unknown number": lambda f: lambda x: rg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, x))[1],
    "no step at run time": lambda f: lambda x: rg.while_loop(lambda c: c[0] > 9.0, f, x) ** 2,
    "nested": lambda f: lambda x: rg.scan(lambda c, r: (rg.fori_loop(3, lambda i, c: f(c) * r, c), None), x, x[:2])[0],
    "of growing length": lambda f: lambda x: rg.fori_loop(3, lambda j, c: rg.fori_loop(j, lambda i, c: f(c) * x, c), x),
    "with few states": lambda f: lambda x: rg.fori_loop(4, lambda i, c: f(c), x, memory=rg.Snapshots(2)),
    "with few tapes": lambda f: lambda x: rg.fori_loop(5, lambda i, c: f(c), x, memory=rg.Snapshots(3, mixed=True)),
    "in Python": folded,
}
BODIES: dict[str, Body] = {
    "alone": np.sin,
    "neighbours": lambda c: np.sin(c) * np.roll(c, 1),
    "places": lambda c: c * np.cos(c[PLACES]),
    "branches": lambda c: rg.cond(c[0] > 0.2, np.sin, lambda c: c * c[::-1], c),
    "matrix": lambda c: np.tanh((np.eye(6) + np.eye(6, k=1)) @ c),
    "loop": lambda c: rg.scan(lambda k, r: (k * r, k + r), 1.0, c)[1],
    "lanes": lambda c: rg.vmap(lambda r: rg.fori_loop(2, lambda i, r: r * np.cos(r[::-1]), r))(c.reshape(3, 2)).ravel(),
    "gradient": lambda c: 0.1 * rg.grad(lambda c: np.sum(rg.fori_loop(2, lambda i, c: c**2 + c, c)))(c),
    "region": rg.checkpoint(lambda c: np.sin(c) * np.roll(c, 2)),
}


def total(loop: str, body: str) -> Body:
    function = LOOPS[loop](BODIES[body])
    return lambda x: np.sum(function(x))


def agree(function: Body, x: Any) -> Any:
    """The sparse Hessian, which must be the dense one."""
    found, dense = rg.hessian(function, sparse=True)(x), rg.hessian(function)(x)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-11, atol=1e-12)
    return found


@pytest.mark.sampled(8)
@pytest.mark.parametrize("most", [20_000, 20, 0])  # nodes of the steps; of loops with more, all steps count as one
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_sparse_hessian_is_the_dense_one(loop: str, body: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrograd.passes.find_sparsity.MOST_NODES", most)
    agree(total(loop, body), X)


@pytest.mark.parametrize(
    ("loop", "body"),
    [
        ("two steps", "alone"),
        ("in Python", "alone"),
        ("unknown number", "alone"),
        ("with few states", "alone"),
        ("with few tapes", "alone"),
        ("no step", "matrix"),
        ("one step", "neighbours"),
        ("two steps", "lanes"),
        ("nested", "alone"),
        ("reversed", "alone"),
        ("of growing length", "alone"),
    ],
)
def test_it_has_only_entries_that_it_needs(loop: str, body: str) -> None:
    found = agree(total(loop, body), X)
    assert found.nnz == np.count_nonzero(found.toarray())


@pytest.mark.parametrize("steps", [128, 256, 300])
def test_no_entry_is_lost_among_many_steps(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop goes step by step, its adjoint has too many nodes for that and reads all steps at once."""
    monkeypatch.setattr("retrograd.passes.find_sparsity.MOST_NODES", steps)
    assert agree(lambda x: np.sum(rg.fori_loop(steps, lambda i, c: np.sin(c), x)), X).nnz == 6


def test_a_jacobian_of_a_gradient_is_the_hessian() -> None:
    function = total("nested", "neighbours")
    found = rg.jacobian(rg.grad(function), sparse=True)(X)
    np.testing.assert_allclose(found.toarray(), rg.hessian(function)(X), rtol=1e-11, atol=1e-12)
