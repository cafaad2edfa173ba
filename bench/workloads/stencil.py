"""A stencil by slices: heat in a plate whose conductivity varies and whose rim is held; gradient in both fields."""

from __future__ import annotations

from ctypes import c_long
from typing import Any

import numpy as np

from bench.kept import kept
from bench.workload import Function, Workload
from bench.written_c import function, place

SIZE, STEPS, ROWS = 512, 50, 64


def inputs() -> tuple[Any, ...]:
    """The plate at the start, and the conductivity of its inner points."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((SIZE, SIZE)), rng.uniform(0.05, 0.2, (SIZE - 2, SIZE - 2))


def step(u: Any, conductivity: Any) -> Any:
    """One step, in plain NumPy: the new plate is written into a copy."""
    u = u.copy()
    u[1:-1, 1:-1] += conductivity * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return u


def stencil(u: Any, conductivity: Any) -> Any:
    """In plain NumPy."""
    for _ in range(STEPS):
        u = step(u, conductivity)
    return np.sum(u**2)


def in_retrograd(rg: Any) -> Function:
    """With a counted loop, the step as it is."""
    return lambda u, conductivity: np.sum(rg.fori_loop(STEPS, lambda _, v: step(v, conductivity), u) ** 2)


def in_jax(jax: Any) -> Function:
    """With lax.scan and .at."""
    jnp = jax.numpy

    def run(u: Any, conductivity: Any) -> Any:
        def one(u: Any, _: Any) -> Any:
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
            return u.at[1:-1, 1:-1].add(conductivity * around), None

        return jnp.sum(jax.lax.scan(one, u, None, STEPS)[0] ** 2)

    return run


def curve(u: Any, out: Any) -> None:
    """The five points at each inner point of a band of rows."""
    inner = u[1:-1, 1:-1]
    np.multiply(inner, -4.0, out=out)
    out += u[2:, 1:-1]
    out += u[:-2, 1:-1]
    out += u[1:-1, 2:]
    out += u[1:-1, :-2]


def by_hand(u: Any, conductivity: Any) -> tuple[Any, Any]:
    """Bands of rows that stay in the cache, between two plates; each step keeps the five points and not the plate.

    On the way back what a point hands to its neighbours stands in a frame of zeros, so that one stencil collects it.
    """
    inner = SIZE - 2
    bands = [slice(start, min(start + ROWS, inner)) for start in range(0, inner, ROWS)]
    curves = kept("curves", (STEPS, inner, inner))
    spare = kept("spare", (ROWS, SIZE))
    now, after = kept("plates", (2, SIZE, SIZE))
    now[...] = after[...] = u
    for t in range(STEPS):
        for band in bands:
            curved, change = curves[t, band], spare[: band.stop - band.start, :inner]
            curve(now[band.start : band.stop + 2], curved)
            np.multiply(conductivity[band], curved, out=change)
            np.add(now[band.start + 1 : band.stop + 1, 1:-1], change, out=after[band.start + 1 : band.stop + 1, 1:-1])
        now, after = after, now
    value = np.vdot(now, now)

    slope = 2.0 * now
    d_conductivity = np.zeros_like(conductivity)
    handed = kept("handed", (SIZE + 2, SIZE + 2))
    handed[...] = 0.0
    for t in reversed(range(STEPS)):
        for band in bands:
            at = slope[band.start + 1 : band.stop + 1, 1:-1]
            here = spare[: band.stop - band.start, :inner]
            np.multiply(at, curves[t, band], out=here)
            d_conductivity[band] += here
            np.multiply(at, conductivity[band], out=handed[band.start + 2 : band.stop + 2, 2:-2])
        for start in range(0, SIZE, ROWS):
            stop = min(start + ROWS, SIZE)
            collected = spare[: stop - start]
            curve(handed[start : stop + 2], collected)
            slope[start:stop] += collected
    return value, (slope, d_conductivity)


def in_c(u: Any, conductivity: Any) -> tuple[Any, Any]:
    """The C of `c/stencil.c`."""
    gradients = np.empty_like(u), np.empty_like(conductivity)
    pointers = map(place, (u, conductivity, *gradients))
    return function("stencil")(*pointers, c_long(SIZE), c_long(STEPS)), gradients


WORKLOADS = (
    Workload(
        name="stencil",
        title="stencil by slices 512², 50 steps",
        dtype="float64",
        inputs=inputs,
        function=stencil,
        argnums=(0, 1),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
        by_hand=by_hand,
        in_c=in_c,
        writes=True,
    ),
)
