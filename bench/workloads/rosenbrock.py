"""Rosenbrock: the sum of 100 (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2, at 2, 100 and 10,000 standard normals."""

from __future__ import annotations

from ctypes import c_long
from functools import partial
from typing import Any

import numpy as np

from bench.workload import Function, Workload
from bench.written_c import function, place


def inputs(n: int) -> tuple[Any, ...]:
    """The point."""
    return (np.random.default_rng(0).standard_normal(n),)


def rosenbrock(x: Any) -> Any:
    """In plain NumPy."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def in_jax(jax: Any) -> Function:
    """In jax.numpy."""
    jnp = jax.numpy

    def rosenbrock(x: Any) -> Any:
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    return rosenbrock


def in_torch(_: Any) -> Function:
    """In methods of tensors."""

    def rosenbrock(x: Any) -> Any:
        return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()

    return rosenbrock


def by_hand(x: Any) -> tuple[Any, Any]:
    """With r = x[1:] - x[:-1]**2 and s = 1 - x[:-1]: 200 r goes to x[1:], -2 (200 r x[:-1] + s) to x[:-1]."""
    head = x[:-1]
    r = head * head
    np.subtract(x[1:], r, out=r)
    s = 1.0 - head
    value = 100.0 * r.dot(r) + s.dot(s)
    gradient = np.empty_like(x)
    r *= 200.0
    gradient[0] = 0.0
    gradient[1:] = r
    r *= head
    r += s
    r += r
    gradient[:-1] -= r
    return value, gradient


def in_c(x: Any) -> tuple[Any, Any]:
    """The C of `c/rosenbrock.c`."""
    gradient = np.empty_like(x)
    return function("rosenbrock")(place(x), place(gradient), c_long(len(x))), gradient


WORKLOADS = tuple(
    Workload(
        name=f"rosenbrock-{n}",
        title=f"Rosenbrock, n={n:,}",
        dtype="float64",
        inputs=partial(inputs, n),
        function=rosenbrock,
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
        in_c=in_c,
    )
    for n in (2, 100, 10_000)
)
