"""Bundle adjustment: reprojection errors of points in cameras; the sum of squares, gradient in all that is adjusted.

A problem of the kind that ADBench collects (Šrajer, Kukelova, Fitzgibbon, "A benchmark of selected algorithmic
differentiation tools on some problems in computer vision and machine learning", 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Workload, over

CAMERAS, POINTS, SEEN = 49, 1000, 8000


def inputs() -> tuple[Any, ...]:
    """Cameras, points, weights; which camera sees which point, and where."""
    rng = np.random.default_rng(0)
    cameras = rng.standard_normal((CAMERAS, 11)) * 0.1
    cameras[:, 5] -= 5.0
    cameras[:, 6] += 500.0
    points, weights = rng.standard_normal((POINTS, 3)), rng.uniform(0.5, 1.0, SEEN)
    camera, point = rng.integers(CAMERAS, size=SEEN), rng.integers(POINTS, size=SEEN)
    return cameras, points, weights, camera, point, 100.0 * rng.standard_normal((SEEN, 2))


def rotated(axis: Any, x: Any) -> Any:
    """Vectors turned around axes by as many radians as the axes are long."""
    angle = np.sqrt(np.sum(axis**2, axis=1, keepdims=True))
    axis = axis / angle
    along = np.sum(axis * x, axis=1, keepdims=True)
    return x * np.cos(angle) + np.cross(axis, x) * np.sin(angle) + axis * along * (1.0 - np.cos(angle))


def bundle(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, seen: Any) -> Any:
    """A camera is an axis, a place, a focal length, a centre, and two coefficients of distortion."""
    seeing = cameras[camera]
    ahead = rotated(seeing[:, :3], points[point] - seeing[:, 3:6])
    flat = ahead[:, :2] / ahead[:, 2:]
    square = np.sum(flat**2, axis=1, keepdims=True)
    bent = 1.0 + seeing[:, 9:10] * square + seeing[:, 10:11] * square**2
    errors = weights[:, None] * (seeing[:, 6:7] * bent * flat + seeing[:, 7:9] - seen)
    return np.sum(errors**2) + np.sum((1.0 - weights**2) ** 2)


WORKLOADS = (
    Workload(
        name="bundle",
        title="bundle adjustment, 8,000 observations",
        dtype="float64",
        inputs=inputs,
        function=bundle,
        argnums=(0, 1, 2),
        in_jax=lambda jax: over(jax.numpy, bundle),
    ),
)
