"""Logistic regression and k-means: one pass over many rows of data."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.kept import kept
from bench.workload import Function, Workload, over

ROWS = 2048  # of 50 columns, which the cache holds between the two products of a block
NEAR = 512


def regression_inputs() -> tuple[Any, ...]:
    """Weights, bias, 100,000 rows of 50 features, and labels 0 and 1."""
    rng = np.random.default_rng(0)
    w, x = 0.3 * rng.standard_normal(50), rng.standard_normal((100_000, 50))
    return w, 0.1, x, (rng.random(100_000) < 0.5).astype(float)


def regression(w: Any, b: Any, x: Any, labels: Any) -> Any:
    """The mean cross-entropy, in plain NumPy."""
    scores = x @ w + b
    return np.mean(np.logaddexp(0.0, scores) - labels * scores)


def regression_in_torch(torch: Any) -> Function:
    """With the loss that torch has."""
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    return lambda w, b, x, labels: loss(x @ w + b, labels)


def regression_by_hand(w: Any, b: float, x: Any, labels: Any) -> tuple[Any, Any]:
    """Blocks of rows. One exponential, of -|z|, gives r = 1 / (1 + exp(-|z|)).

    The chance is r or 1 - r, by the sign of z, and log(1 + exp(z)) is max(z, 0) - log(r).
    """
    n = len(x)
    d_w, d_b, value = np.zeros_like(w), 0.0, 0.0
    for start in range(0, n, ROWS):
        rows = slice(start, min(start + ROWS, n))
        z, r, spare = kept("regression", (3, ROWS))[:, : rows.stop - start]
        np.matmul(x[rows], w, out=z)
        z += b
        np.abs(z, out=r)
        np.negative(r, out=r)
        np.exp(r, out=r)
        r += 1.0
        np.reciprocal(r, out=r)
        np.maximum(z, 0.0, out=spare)
        value += spare.sum() - np.vdot(labels[rows], z)
        np.log(r, out=spare)
        value -= spare.sum()
        r -= 0.5
        np.copysign(r, z, out=r)
        r += 0.5
        r -= labels[rows]
        d_w += r @ x[rows]
        d_b += r.sum()
    d_w /= n
    return value / n, (d_w, d_b / n)


def clusters_inputs() -> tuple[Any, ...]:
    """16 centres and 20,000 points in 50 dimensions."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((16, 50)), rng.standard_normal((20_000, 50))


def clusters(centres: Any, x: Any) -> Any:
    """The sum of squared distances to the nearest centres, from inner products, in plain NumPy."""
    apart = np.sum(x**2, axis=1)[:, None] - 2.0 * (x @ centres.T) + np.sum(centres**2, axis=1)
    return np.sum(np.min(apart, axis=1))


def clusters_in_torch(torch: Any) -> Function:
    """With amin."""

    def clusters(centres: Any, x: Any) -> Any:
        apart = (x**2).sum(dim=1)[:, None] - 2.0 * (x @ centres.T) + (centres**2).sum(dim=1)
        return torch.amin(apart, dim=1).sum()

    return clusters


def clusters_by_hand(centres: Any, x: Any) -> tuple[Any, Any]:
    """Blocks of points as columns; a second product sums the points that each centre is nearest to.

    Where centres are equally near, they share.
    """
    doubled = -2.0 * centres
    own = np.vecdot(centres, centres)[:, None]
    sums, counts = np.zeros_like(centres), np.zeros(len(centres))
    value = np.vdot(x, x)
    for start in range(0, len(x), NEAR):
        points = x[start : start + NEAR]
        scores, share = kept("scores", (2, len(centres), NEAR))[:, :, : len(points)]
        np.matmul(doubled, points.T, out=scores)
        scores += own
        nearest = scores.min(axis=0)
        value += nearest.sum()
        np.copyto(share, scores == nearest)
        each = share.sum(axis=1)
        if each.sum() > len(points):
            share /= share.sum(axis=0)
            each = share.sum(axis=1)
        counts += each
        sums += share @ points
    return value, 2.0 * (counts[:, None] * centres - sums)


WORKLOADS = (
    Workload(
        name="logistic",
        title="logistic regression 100,000 × 50",
        dtype="float64",
        inputs=regression_inputs,
        function=regression,
        argnums=(0, 1),
        in_jax=lambda jax: over(jax.numpy, regression),
        in_torch=regression_in_torch,
        by_hand=regression_by_hand,
    ),
    Workload(
        name="k-means",
        title="k-means 20,000 × 50, 16 centres",
        dtype="float64",
        inputs=clusters_inputs,
        function=clusters,
        in_jax=lambda jax: over(jax.numpy, clusters),
        in_torch=clusters_in_torch,
        by_hand=clusters_by_hand,
    ),
)
