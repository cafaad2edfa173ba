"""Fluid: smoke and velocity on a torus are carried along and made free of divergence; gradient in the velocity.

The program is of the kind that finds a first velocity for which the smoke forms a picture. Each step reads where the
fluid came from, between four points of the grid, and takes ten of Jacobi's steps for the pressure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Function, Workload

STEPS, SIZE, SWEEPS = 40, 64, 10
ROWS, COLUMNS = np.indices((SIZE, SIZE), dtype=float)
TARGET = ((ROWS - SIZE / 2) ** 2 + (COLUMNS - SIZE / 2) ** 2 < (SIZE / 4) ** 2).astype(float)
State = tuple[Any, Any, Any]


def inputs() -> tuple[Any, ...]:
    """A smooth velocity with noise, and a stripe of smoke."""
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.standard_normal((2, SIZE, SIZE))
    vx = np.sin(2 * np.pi * COLUMNS / SIZE) + noise[0]
    vy = np.cos(2 * np.pi * ROWS / SIZE) + noise[1]
    return vx, vy, np.exp(-(((ROWS - SIZE / 3) / 6) ** 2))


def carried(np: Any, field: Any, vx: Any, vy: Any) -> Any:
    """The field where the fluid came from, bilinear between the points of the grid."""
    x, y = ROWS - vx, COLUMNS - vy
    top, left = np.floor(x), np.floor(y)
    down, right = x - top, y - left
    i, j = top.astype(int) % SIZE, left.astype(int) % SIZE
    k, l = (i + 1) % SIZE, (j + 1) % SIZE
    upper = (1.0 - right) * field[i, j] + right * field[i, l]
    lower = (1.0 - right) * field[k, j] + right * field[k, l]
    return (1.0 - down) * upper + down * lower


def across(np: Any, field: Any, axis: int) -> Any:
    """The central difference."""
    return 0.5 * (np.roll(field, -1, axis) - np.roll(field, 1, axis))


def projected(np: Any, vx: Any, vy: Any) -> tuple[Any, Any]:
    """The velocity less the gradient of the pressure."""
    source = -(across(np, vx, 0) + across(np, vy, 1))
    p = source / 4.0
    for _ in range(SWEEPS):
        p = (source + np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4.0
    return vx - across(np, p, 0), vy - across(np, p, 1)


def step(np: Any, s: State) -> State:
    """One step of time."""
    vx, vy, smoke = s
    vx, vy = projected(np, carried(np, vx, vx, vy), carried(np, vy, vx, vy))
    return vx, vy, carried(np, smoke, vx, vy)


def fluid(vx: Any, vy: Any, smoke: Any) -> Any:
    """In plain NumPy."""
    s = vx, vy, smoke
    for _ in range(STEPS):
        s = step(np, s)
    return np.mean((s[2] - TARGET) ** 2)


def in_retrograd(rg: Any) -> Function:
    """With a counted loop, the step as it is."""

    def run(vx: Any, vy: Any, smoke: Any) -> Any:
        s = rg.fori_loop(STEPS, lambda _, s: step(np, s), (vx, vy, smoke))
        return np.mean((s[2] - TARGET) ** 2)

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(vx: Any, vy: Any, smoke: Any) -> Any:
        s, _ = jax.lax.scan(lambda s, _: (step(jnp, s), None), (vx, vy, smoke), None, STEPS)
        return jnp.mean((s[2] - TARGET) ** 2)

    return run


WORKLOADS = (
    Workload(
        name="fluid",
        title="fluid 64², 40 steps",
        dtype="float64",
        inputs=inputs,
        function=fluid,
        argnums=(0, 1),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
    ),
)
