"""A thousand pendulums: leapfrog steps, sum of the energies at the end; gradient in angles, speeds and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Function, Workload

H, G = 0.01, 9.81
STEPS = 1000


def inputs() -> tuple[Any, ...]:
    """Angles and speeds at the start, and lengths."""
    rng = np.random.default_rng(0)
    return rng.uniform(-2.0, 2.0, 1000), rng.standard_normal(1000), rng.uniform(0.5, 2.0, 1000)


def step(xp: Any, q: Any, v: Any, length: Any) -> tuple[Any, Any]:
    """Half a kick, a drift, half a kick."""
    v = v - H / 2 * G / length * xp.sin(q)
    q = q + H * v
    return q, v - H / 2 * G / length * xp.sin(q)


def energy(xp: Any, q: Any, v: Any, length: Any) -> Any:
    """The sum of the energies, per mass and squared length."""
    return xp.sum(v**2 / 2 - G / length * xp.cos(q))


def swinging(q: Any, v: Any, length: Any) -> Any:
    """In plain NumPy."""
    for _ in range(STEPS):
        q, v = step(np, q, v, length)
    return energy(np, q, v, length)


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(q: Any, v: Any, length: Any) -> Any:
        (q, v), _ = rg.scan(lambda s, _: (step(np, *s, length), None), (q, v), None, STEPS)
        return energy(np, q, v, length)

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(q: Any, v: Any, length: Any) -> Any:
        (q, v), _ = jax.lax.scan(lambda s, _: (step(jnp, *s, length), None), (q, v), None, STEPS)
        return energy(jnp, q, v, length)

    return run


WORKLOADS = (
    Workload(
        name="pendulums",
        title="1,000 pendulums, 1,000 steps",
        dtype="float64",
        inputs=inputs,
        function=swinging,
        argnums=(0, 1, 2),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
    ),
)
