"""No plan changes a bit of a gradient whose products read parts of arrays that the function overwrites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

N = 24
B = np.random.default_rng(0).normal(size=(N, N))
A = B @ B.T / N + 2 * np.eye(N)

Part = Callable[[Any, int], Any]
PARTS: dict[str, Part] = {
    "columns": lambda q, k: q[:, k] @ q[:, k],
    "backwards": lambda q, k: (q[::-1, k] @ q[:, k]) ** 2,
    "few columns": lambda q, k: np.sum((q[:, N - 2 :].T @ q[:, k]) ** 2),
    "fewer and fewer columns": lambda q, k: np.sum((q[:, k:] @ q[k, k:]) ** 2),
    "every other row": lambda q, k: np.sum((q[::2, k // 2 :] @ q[k, k // 2 :]) ** 2),
    "einsum": lambda q, k: np.einsum("ij,ij->", q[:, k:], q[:, k:]),
    "norm": lambda q, k: np.linalg.norm(q[:, k]) ** 2,
}


def orthogonal(part: Part) -> Callable[[Any], Any]:
    """A Gram–Schmidt process by columns of a copy; ``part`` is the square of a length."""

    def f(a: Any) -> Any:
        q = a.copy()
        for k in range(N):
            v = q[:, k] / np.sqrt(part(q, k))
            q[:, k] = v
            q[:, k + 1 :] -= np.outer(v, v[k] * q[k, k + 1 :])
        return np.sum(q**3)

    return f


@pytest.mark.costly
@pytest.mark.parametrize("name", PARTS)
def test_no_budget_changes_a_bit(name: str) -> None:
    f = orthogonal(PARTS[name])
    plain = rg.grad(f)
    expected = plain(A)
    with pytest.raises(rg.errors.MemoryBudgetError) as refused:
        rg.grad(f, memory=1)(A)
    least, most = refused.value.minimum or 0, plain.plan(A).peak_bytes
    for budget in (least, (3 * least + most) // 4, 2 * least, most):
        assert np.array_equal(rg.grad(f, memory=budget)(A), expected)


def in_the_step(k: Any, q: Any) -> Any:
    p = q[:, 3]
    q = q.copy()
    q[:, 3] = p / np.sqrt(p @ p + 1) + 0.1 * np.tanh(np.sin(p) @ p)
    q[1, :] += 0.1 * np.sin(q[2])
    return q


def in_its_adjoint(k: Any, q: Any) -> Any:
    h = np.sin(q[0]) @ q[:, 2:4]
    q = q.copy()
    q[:, 5] = 0.5 * np.tanh(q[:, 2:4] @ h)
    q[:, 2:4] = np.cos(np.outer(q[:, 7], h))
    return q


@pytest.mark.parametrize("step", [in_the_step, in_its_adjoint])
def test_no_plan_of_a_loop_changes_a_bit(step: Callable[[Any, Any], Any]) -> None:
    def derivative(plan: Any) -> Any:
        return rg.grad(lambda a: np.sum(rg.fori_loop(12, step, a, memory=plan) ** 3))(A)

    expected = derivative(None)
    for plan in (rg.Everything(), rg.Snapshots(1), rg.Snapshots(3), rg.Log(), rg.Periodic(5)):
        assert np.array_equal(derivative(plan), expected)
