"""n-body: leapfrog steps of 500 masses that attract each other; the energy of motion at the end, all inputs."""

from __future__ import annotations

from ctypes import c_long
from typing import Any

import numpy as np

from bench import written_c
from bench.kept import kept
from bench.workload import Function, Workload, over

BODIES, STEPS, H, SOFTENING = 500, 5, 0.01, 0.1
ROWS = 64


def inputs() -> tuple[Any, ...]:
    """Places, speeds, and masses."""
    rng = np.random.default_rng(0)
    place, speed = rng.standard_normal((2, BODIES, 3))
    return place, speed, rng.uniform(0.5, 1.5, BODIES)


def n_body(place: Any, speed: Any, mass: Any) -> Any:
    """In plain NumPy."""
    for _ in range(STEPS):
        apart = place[None, :, :] - place[:, None, :]
        pull = mass[None, :, None] * apart / (np.sum(apart**2, axis=-1) + SOFTENING)[:, :, None] ** 1.5
        speed = speed + H * np.sum(pull, axis=1)
        place = place + H * speed
    return 0.5 * np.sum(mass * np.sum(speed**2, axis=1))


def in_torch(torch: Any) -> Function:
    """The same text."""

    def n_body(place: Any, speed: Any, mass: Any) -> Any:
        for _ in range(STEPS):
            apart = place[None, :, :] - place[:, None, :]
            pull = mass[None, :, None] * apart / ((apart**2).sum(dim=-1) + SOFTENING)[:, :, None] ** 1.5
            speed = speed + H * pull.sum(dim=1)
            place = place + H * speed
        return 0.5 * (mass * (speed**2).sum(dim=1)).sum()

    return n_body


def near(place: Any, rows: slice) -> tuple[Any, Any]:
    """1 / (d² + softening) of the rows' bodies to all, and its power 3/2."""
    shape = (rows.stop - rows.start, len(place))
    inverse, cubed = (kept(name, (ROWS, len(place)))[: shape[0]] for name in ("inverse", "cubed"))
    inverse[...] = SOFTENING
    for x in place.T:
        np.subtract(x, x[rows, None], out=cubed)
        cubed *= cubed
        inverse += cubed
    np.reciprocal(inverse, out=inverse)
    np.sqrt(inverse, out=cubed)
    cubed *= inverse
    return inverse, cubed


def blocks() -> list[slice]:
    """The bodies in groups whose distances to all stay in the cache."""
    return [slice(start, min(start + ROWS, BODIES)) for start in range(0, BODIES, ROWS)]


def by_hand(place: Any, speed: Any, mass: Any) -> tuple[Any, Any]:
    """Rows of the matrices of pairs, coordinate by coordinate; sums over bodies are products with these matrices.

    On the way back, with w = (d² + softening)^(-3/2) and a cotangent A of the accelerations, pairs have
    m_j w_ij A_i · (x_j - x_i); its derivative in d² is that times -3/2 / (d² + softening).
    """
    n = len(mass)
    ahead = kept("ahead", (n, 4))  # x_j, y_j, z_j and 1, times the mass
    places = []
    heavy = mass[:, None]
    for _ in range(STEPS):
        places.append(place)
        np.multiply(place, heavy, out=ahead[:, :3])
        ahead[:, 3] = mass
        gained = np.empty_like(speed)
        for rows in blocks():
            summed = near(place, rows)[1] @ ahead
            gained[rows] = summed[:, :3] - place[rows] * summed[:, 3:]
        speed = speed + H * gained
        place = place + H * speed
    squares = np.vecdot(speed, speed)
    value = 0.5 * np.vdot(mass, squares)

    d_place, d_speed, d_mass = np.zeros_like(place), heavy * speed, 0.5 * squares
    here, there = kept("here", (n, 4)), np.ones((n, 4))
    for place in reversed(places):
        d_speed += H * d_place
        np.multiply(d_speed, H, out=here[:, :3])
        np.negative(np.vecdot(here[:, :3], place), out=here[:, 3])
        there[:, :3] = place
        np.multiply(there, heavy, out=ahead)
        for rows in blocks():
            inverse, cubed = near(place, rows)
            start, count = here[rows], rows.stop - rows.start
            along = np.matmul(start, there.T, out=kept("along", (ROWS, n))[:count])
            reached = cubed.T @ start[:, :3]
            reached *= heavy
            d_place += reached
            d_place[rows] -= start[:, :3] * (cubed @ mass)[:, None]

            along *= cubed
            d_mass += along.sum(axis=0)
            along *= inverse
            summed = along @ ahead
            d_place[rows] -= 3.0 * (place[rows] * summed[:, 3:] - summed[:, :3])
            own = along.T @ there[rows]
            d_place -= (3.0 * heavy) * (place * own[:, 3:] - own[:, :3])
    return value, (d_place, d_speed, d_mass)


def in_c(place: Any, speed: Any, mass: Any) -> tuple[Any, Any]:
    """The C of `c/n_body.c`."""
    gradients = np.empty_like(place), np.empty_like(speed), np.empty_like(mass)
    pointers = map(written_c.place, (place, speed, mass, *gradients))
    return written_c.function("n_body")(*pointers, c_long(len(mass)), c_long(STEPS)), gradients


WORKLOADS = (
    Workload(
        name="n-body-500",
        title="n-body 500, 5 steps",
        dtype="float64",
        inputs=inputs,
        function=n_body,
        argnums=(0, 1, 2),
        in_jax=lambda jax: over(jax.numpy, n_body),
        in_torch=in_torch,
        by_hand=by_hand,
        in_c=in_c,
    ),
)
