"""Random programs of products, factorisations, loops, branches, views and writes, for laws of budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import retrograd as rg

N = 12
OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda v, u: np.sin(v) * u,
    lambda v, u: v @ u,
    lambda v, u: np.linalg.qr(v + 4 * np.eye(N))[0] + u,
    lambda v, u: np.tanh(v).T + u,
    lambda v, u: rg.scan(lambda c, _: (np.sin(c) * 1.1 + v * 0.1, None), u, None, 5)[0],
    lambda v, u: rg.cond(np.sum(v) > 0, lambda t: np.cos(t) * t, lambda t: np.sin(t) * t * t, u),
    lambda v, u: np.linalg.solve(v @ v.T * 0.01 + 5 * np.eye(N), u),
    lambda v, u: np.cumsum(v, axis=0) * 0.1 + np.max(u, axis=1, keepdims=True),
    lambda v, u: np.concatenate([v[:6], u[6:]]) * np.exp(-u * u),
    lambda v, u: v * np.mean(u),
    lambda v, u: np.sort(v, axis=0) * u,
    lambda v, u: np.where(v > u, v * v, u),
]


def arguments() -> list[Any]:
    """Two matrices for such a program."""
    random = np.random.default_rng(0)
    return [random.normal(size=(N, N)), random.normal(size=(N, N))]


def mixed(seed: int, length: int = 12) -> Callable[[Any, Any], Any]:
    """A function of two matrices of N rows and columns that gives one."""
    random = np.random.default_rng(seed)
    steps = [(random.choice(len(OPERATIONS)), *random.integers(k + 2, size=2)) for k in range(length)]

    def program(x: Any, y: Any) -> Any:
        values = [x, y]
        for operation, i, j in steps:
            values.append(np.tanh(OPERATIONS[operation](values[i], values[j])))
        return values[-1] + 0.1 * values[-3]

    return program
