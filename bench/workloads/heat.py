"""Heat: many steps of u += 0.1 (periodic Laplacian of u + 0.01 u (1 - u²)), written with np.roll; sum of squares."""

from __future__ import annotations

from ctypes import c_long
from functools import partial
from typing import Any

import numpy as np

from bench.workload import Function, Workload
from bench.written_c import function, place


def inputs(size: int) -> tuple[Any, ...]:
    """The state at the start: standard normals."""
    return (np.random.default_rng(0).standard_normal((size, size)),)


def step(u: Any) -> Any:
    """One step, in plain NumPy."""
    laplacian = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4.0 * u
    return u + 0.1 * (laplacian + 0.01 * u * (1.0 - u**2))


def heat(steps: int) -> Function:
    """In plain NumPy."""

    def run(u: Any) -> Any:
        for _ in range(steps):
            u = step(u)
        return np.sum(u**2)

    return run


def in_retrograd(rg: Any, steps: int) -> Function:
    """With a counted loop, the step as it is."""
    return lambda u: np.sum(rg.fori_loop(steps, lambda _, v: step(v), u) ** 2)


def in_jax(jax: Any, steps: int) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def one(u: Any, _: Any) -> Any:
        laplacian = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4.0 * u
        return u + 0.1 * (laplacian + 0.01 * u * (1.0 - u**2)), None

    def run(u: Any) -> Any:
        return jnp.sum(jax.lax.scan(one, u, None, steps)[0] ** 2)

    return run


def by_hand(u: Any, steps: int) -> tuple[Any, Any]:
    """The states are kept for the way back, on which the Laplacian is its own transpose."""
    states = []
    for _ in range(steps):
        states.append(u)
        u = step(u)
    slope = 2.0 * u
    for v in reversed(states):
        spread = np.roll(slope, 1, 0) + np.roll(slope, -1, 0) + np.roll(slope, 1, 1) + np.roll(slope, -1, 1)
        slope = slope + 0.1 * (spread - 4.0 * slope + 0.01 * slope * (1.0 - 3.0 * v**2))
    return np.sum(u**2), slope


def in_c(u: Any, steps: int) -> tuple[Any, Any]:
    """The same in C."""
    slope = np.empty_like(u)
    return function("heat")(place(u), place(slope), c_long(len(u)), c_long(steps)), slope


WORKLOADS = tuple(
    Workload(
        name=f"heat-{size}",
        title=f"heat {size}², {steps} steps",
        dtype="float64",
        inputs=partial(inputs, size),
        function=heat(steps),
        in_retrograd=partial(in_retrograd, steps=steps),
        in_jax=partial(in_jax, steps=steps),
        by_hand=partial(by_hand, steps=steps),
        in_c=partial(in_c, steps=steps),
    )
    for size, steps in ((64, 500), (512, 200))
)
