"""FDTD: Maxwell's equations in two dimensions, by differences in time and space; gradient in the permittivity.

A pulse enters at a spot of a periodic domain. The result is the energy of the electric field in a window, summed over
all steps: lenses and wave guides are designed with such programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Function, Workload

STEPS, SIZE, COURANT = 200, 96, 0.5
ROWS, COLUMNS = np.indices((SIZE, SIZE), dtype=float)
SPOT = np.exp(-((ROWS - SIZE / 4) ** 2 + (COLUMNS - SIZE / 4) ** 2) / 4.0)
State = tuple[Any, Any, Any, Any]


def inputs() -> tuple[Any, ...]:
    """The permittivity, a block with noise in a vacuum, and the pulse."""
    rng = np.random.default_rng(0)
    block = (abs(ROWS - SIZE / 2) < SIZE / 6) & (abs(COLUMNS - SIZE / 2) < SIZE / 6)
    permittivity = 1.0 + block * (1.5 + 0.1 * rng.standard_normal((SIZE, SIZE)))
    time = np.arange(STEPS, dtype=float)
    return permittivity, np.exp(-(((time - 30.0) / 10.0) ** 2)) * np.sin(0.4 * time)


def step(np: Any, speed: Any, s: State, pulse: Any) -> State:
    """The magnetic field by half a step, then the electric field."""
    e, hx, hy, energy = s
    hx = hx - COURANT * (np.roll(e, -1, 1) - e)
    hy = hy + COURANT * (np.roll(e, -1, 0) - e)
    e = e + speed * ((hy - np.roll(hy, 1, 0)) - (hx - np.roll(hx, 1, 1))) + pulse * SPOT
    return e, hx, hy, energy + np.sum(e[60:84, 60:84] ** 2)


def fdtd(permittivity: Any, pulses: Any) -> Any:
    """In plain NumPy."""
    speed = COURANT / permittivity
    zeros = np.zeros((SIZE, SIZE))
    s: State = (zeros, zeros, zeros, 0.0)
    for t in range(STEPS):
        s = step(np, speed, s, pulses[t])
    return s[3]


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(permittivity: Any, pulses: Any) -> Any:
        speed = COURANT / permittivity
        zeros = np.zeros((SIZE, SIZE))
        return rg.scan(lambda s, x: (step(np, speed, s, x), None), (zeros, zeros, zeros, 0.0), pulses)[0][3]

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(permittivity: Any, pulses: Any) -> Any:
        speed = COURANT / permittivity
        zeros = jnp.zeros((SIZE, SIZE))
        return jax.lax.scan(lambda s, x: (step(jnp, speed, s, x), None), (zeros, zeros, zeros, 0.0), pulses)[0][3]

    return run


WORKLOADS = (
    Workload(
        name="fdtd",
        title="FDTD 96², 200 steps",
        dtype="float64",
        inputs=inputs,
        function=fdtd,
        in_retrograd=in_retrograd,
        in_jax=in_jax,
    ),
)
