"""Scalar chain: z = x, then ten times z = sin(z) y + x exp(-z), at (0.5, 1.2), in Python floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.workload import Function, Workload

LENGTH = 10


def inputs() -> tuple[Any, ...]:
    """x and y."""
    return 0.5, 1.2


def chain(x: Any, y: Any) -> Any:
    """In plain NumPy."""
    z = x
    for _ in range(LENGTH):
        z = np.sin(z) * y + x * np.exp(-z)
    return z


def in_jax(jax: Any) -> Function:
    """In jax.numpy."""
    jnp = jax.numpy

    def chain(x: Any, y: Any) -> Any:
        z = x
        for _ in range(LENGTH):
            z = jnp.sin(z) * y + x * jnp.exp(-z)
        return z

    return chain


def in_torch(torch: Any) -> Function:
    """In torch."""

    def chain(x: Any, y: Any) -> Any:
        z = x
        for _ in range(LENGTH):
            z = torch.sin(z) * y + x * torch.exp(-z)
        return z

    return chain


def by_hand(x: float, y: float) -> tuple[float, tuple[float, float]]:
    """In floats and `math`, as a person would; sin z, exp -z and the slope of each step are kept for the way back."""
    z = x
    steps = []
    for _ in range(LENGTH):
        sine, decay = math.sin(z), math.exp(-z)
        steps.append((sine, decay, math.cos(z) * y - x * decay))
        z = sine * y + x * decay
    dx = dy = 0.0
    dz = 1.0
    for sine, decay, slope in reversed(steps):
        dx += dz * decay
        dy += dz * sine
        dz *= slope
    return z, (dx + dz, dy)


WORKLOADS = (
    Workload(
        name="scalar-chain",
        title="scalar chain, 10 steps",
        dtype="float64",
        inputs=inputs,
        function=chain,
        argnums=(0, 1),
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
    ),
)
