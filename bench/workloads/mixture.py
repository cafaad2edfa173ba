"""GMM: log-likelihood of 1,000 points under 25 Gaussians with a prior; gradient in weights, means and factors.

The objective is that of ADBench (Šrajer, Kukelova, Fitzgibbon, "A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning", 2018), with parameters of the prior that drop out.
"""

from __future__ import annotations

from ctypes import c_long
from functools import partial
from typing import Any

import numpy as np

from bench.kept import kept
from bench.workload import Function, Workload
from bench.written_c import function, place

COMPONENTS, POINTS = 25, 1000


def inputs(d: int) -> tuple[Any, ...]:
    """Scores of the weights, means, logarithms of diagonals, what stands below the diagonals row by row, points."""
    rng = np.random.default_rng(0)
    below = d * (d - 1) // 2
    alpha, mu = rng.standard_normal(COMPONENTS), rng.standard_normal((COMPONENTS, d))
    q, l = (0.1 * rng.standard_normal((COMPONENTS, size)) for size in (d, below))
    return alpha, mu, q, l, rng.standard_normal((POINTS, d))


def places(d: int) -> Any:
    """Where each entry of a factor stands in a row of its diagonal, what is below it, and a zero."""
    rows, columns = np.indices((d, d))
    below = d + rows * (rows - 1) // 2 + columns
    return np.where(rows > columns, below, np.where(rows == columns, rows, d + d * (d - 1) // 2))


PLACES = {d: places(d) for d in (10, 32)}


def log_sum_exp(x: Any) -> Any:
    """Over the first axis, without overflow."""
    top = np.max(x, axis=0)
    return np.log(np.sum(np.exp(x - top), axis=0)) + top


def likelihood(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:
    """In plain NumPy; factors by places and not by writes, so that all packages take the text."""
    diagonals = np.exp(q)
    entries = np.concatenate((diagonals, l, np.zeros((COMPONENTS, 1))), axis=1)
    factors = entries[:, PLACES[mu.shape[1]]]
    scaled = (x - mu[:, None, :]) @ np.swapaxes(factors, 1, 2)
    scores = (alpha + np.sum(q, axis=1))[:, None] - 0.5 * np.sum(scaled**2, axis=2)
    prior = 0.5 * (np.sum(diagonals**2) + np.sum(l**2)) - np.sum(q)
    return np.sum(log_sum_exp(scores)) - len(x) * log_sum_exp(alpha) + prior


def in_jax(jax: Any) -> Function:
    """With jax.nn.logsumexp and a write."""
    jnp = jax.numpy

    def likelihood(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:
        d = mu.shape[1]
        rows, columns = np.tril_indices(d, -1)
        diagonals = jnp.exp(q)
        factors = jnp.zeros((COMPONENTS, d, d)).at[:, rows, columns].set(l) + diagonals[:, :, None] * jnp.eye(d)
        scaled = jnp.einsum("kij,knj->kni", factors, x - mu[:, None, :])
        scores = (alpha + jnp.sum(q, axis=1))[:, None] - 0.5 * jnp.sum(scaled**2, axis=2)
        prior = 0.5 * (jnp.sum(diagonals**2) + jnp.sum(l**2)) - jnp.sum(q)
        each = jax.nn.logsumexp(scores, axis=0)
        return jnp.sum(each) - len(x) * jax.nn.logsumexp(alpha) + prior

    return likelihood


def in_torch(torch: Any) -> Function:
    """With torch.logsumexp and a write."""

    def likelihood(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> Any:
        d = mu.shape[1]
        rows, columns = np.tril_indices(d, -1)
        diagonals = torch.exp(q)
        factors = torch.diag_embed(diagonals)
        factors[:, rows, columns] = l
        scaled = (x - mu[:, None, :]) @ factors.transpose(1, 2)
        scores = (alpha + q.sum(dim=1))[:, None] - 0.5 * (scaled**2).sum(dim=2)
        prior = 0.5 * ((diagonals**2).sum() + (l**2).sum()) - q.sum()
        return torch.logsumexp(scores, 0).sum() - len(x) * torch.logsumexp(alpha, 0) + prior

    return likelihood


def by_hand(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> tuple[Any, Any]:
    """Component by component, so that its arrays stay in the cache; points are columns, along which all runs."""
    n, d = x.shape
    rows, columns = np.tril_indices(d, -1)
    corner = np.arange(d)
    diagonals = np.exp(q)
    factors = np.zeros((COMPONENTS, d, d))
    factors[:, rows, columns] = l
    factors[:, corner, corner] = diagonals

    points = np.ascontiguousarray(x.T)
    scaled = kept("scaled", (COMPONENTS, d, n))
    apart, squares = kept("apart", (d, n)), kept("squares", (d, n))
    chances = kept("chances", (COMPONENTS, n))
    for k in range(COMPONENTS):
        np.subtract(points, mu[k, :, None], out=apart)
        np.matmul(factors[k], apart, out=scaled[k])
        np.multiply(scaled[k], scaled[k], out=squares)
        np.add.reduce(squares, axis=0, out=chances[k])
    chances *= -0.5
    chances += (alpha + q.sum(axis=1))[:, None]
    top = chances.max(axis=0)
    chances -= top
    np.exp(chances, out=chances)
    total = chances.sum(axis=0)
    chances /= total

    highest = alpha.max()
    weights = np.exp(alpha - highest)
    mass = weights.sum()
    prior = 0.5 * (np.vdot(diagonals, diagonals) + np.vdot(l, l)) - q.sum()
    value = np.log(total).sum() + top.sum() - n * (np.log(mass) + highest) + prior

    counts = chances.sum(axis=1)
    moments = kept("moments", (COMPONENTS, d, d))
    d_mu = np.empty_like(mu)
    for k in range(COMPONENTS):
        pull = scaled[k]
        pull *= chances[k]
        np.subtract(points, mu[k, :, None], out=apart)
        np.matmul(pull, apart.T, out=moments[k])
        np.matmul(pull.sum(axis=1), factors[k], out=d_mu[k])
    d_alpha = counts - weights * (n / mass)
    d_q = counts[:, None] - 1.0 + diagonals * (diagonals - moments[:, corner, corner])
    return value, (d_alpha, d_mu, d_q, l - moments[:, rows, columns])


def in_c(alpha: Any, mu: Any, q: Any, l: Any, x: Any) -> tuple[Any, Any]:
    """The C of `c/mixture.c`."""
    gradients = tuple(map(np.empty_like, (alpha, mu, q, l)))
    pointers = map(place, (alpha, mu, q, l, x, *gradients))
    return function("mixture")(*pointers, *map(c_long, (*mu.shape, len(x)))), gradients


WORKLOADS = tuple(
    Workload(
        name=f"gmm-{d}",
        title=f"GMM d={d}, 25 components, 1,000 points",
        dtype="float64",
        inputs=partial(inputs, d),
        function=likelihood,
        argnums=(0, 1, 2, 3),
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
        in_c=in_c,
    )
    for d in (10, 32)
)
