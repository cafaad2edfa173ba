"""Hand tracking: bones that turn a skin of vertices; the squared distance to what is seen, gradient in the pose.

A problem of the kind that ADBench collects; see `bundle.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Workload, over

VERTICES = 544
PARENTS = (-1, *(0 if k % 4 == 0 else k for k in range(20)))  # the palm, and five fingers of four bones
BONES = len(PARENTS)


def inputs() -> tuple[Any, ...]:
    """Angles and place; where bones begin on their parents, the skin as each bone has it, weights, what is seen."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(size=(BONES, VERTICES)) ** 8
    skin, seen = rng.standard_normal((BONES, VERTICES, 3)), rng.standard_normal((VERTICES, 3))
    angles, place, starts = rng.standard_normal((BONES, 3)), rng.standard_normal(3), rng.standard_normal((BONES, 3))
    return angles, place, starts, skin, weights / weights.sum(axis=0), seen


def turns(angles: Any) -> Any:
    """The rotations around three axes, one after the other."""
    c, s = np.cos(angles), np.sin(angles)
    (a, b, g), (x, y, z) = c.T, s.T
    rows = (
        (b * g, x * y * g - a * z, a * y * g + x * z),
        (b * z, x * y * z + a * g, a * y * z - x * g),
        (-y, x * b, a * b),
    )
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)


def hand(angles: Any, place: Any, starts: Any, skin: Any, weights: Any, seen: Any) -> Any:
    """Each vertex is the mean, by its weights, of where the bones put it."""
    turn, to, at = turns(angles), [], []
    for bone, parent in enumerate(PARENTS):
        if parent < 0:
            to.append(turn[bone])
            at.append(place)
        else:
            to.append(to[parent] @ turn[bone])
            at.append(at[parent] + to[parent] @ starts[bone])
    moved = skin @ np.stack(to).transpose(0, 2, 1) + np.stack(at)[:, None, :]
    return np.sum((np.sum(weights[:, :, None] * moved, axis=0) - seen) ** 2)


WORKLOADS = (
    Workload(
        name="hand",
        title="hand, 21 bones, 544 vertices",
        dtype="float64",
        inputs=inputs,
        function=hand,
        argnums=(0, 1),
        in_jax=lambda jax: over(jax.numpy, hand),
    ),
)
