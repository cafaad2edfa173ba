"""Rotations of cameras from those between pairs, some of them wrong: descent on a product of manifolds."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad

CAMERAS, PAIRS = 12, 40


def nearest(matrices):
    """The rotations that are nearest to matrices."""
    u, _, v = np.linalg.svd(matrices)
    signs = np.stack([np.ones(len(u)), np.ones(len(u)), np.linalg.det(u @ v)], axis=1)
    return (u * signs[:, None, :]) @ v


def tangent(rotations, slopes):
    """The part of matrices that is tangent to the rotations."""
    inner = np.swapaxes(rotations, 1, 2) @ slopes
    return rotations @ (inner - np.swapaxes(inner, 1, 2)) / 2


def observations(rng):
    """True rotations, and pairs with the rotation between them, of which every seventh is random."""
    true = nearest(rng.randn(CAMERAS, 3, 3))
    pairs = []
    for k in range(PAIRS):
        i, j = rng.choice(CAMERAS, size=2, replace=False)
        between = true[i] @ true[j].T + 0.05 * rng.randn(3, 3)
        pairs.append((i, j, nearest((rng.randn(3, 3) if k % 7 == 0 else between)[None])[0]))
    return true, pairs


def run(steps, tick):
    """Descent with momentum, which is carried along by projection."""
    rng = npr.RandomState(0)
    true, pairs = observations(rng)
    x = nearest(true + 0.4 * rng.randn(CAMERAS, 3, 3))

    def cost(x):
        total = 0.0
        for i, j, between in pairs:
            angle = np.sum((x[i] - np.dot(between, x[j])) ** 2)
            total = total + np.log1p(angle / 0.1)
        return total / len(pairs) + 0.1 * np.sum((x[0] - true[0]) ** 2)

    slope_of, speed = grad(cost), np.zeros_like(x)
    for _ in range(steps):
        slope = tangent(x, slope_of(x))
        speed = 0.5 * tangent(x, speed) - 0.3 * slope
        x = nearest(x + speed)
        tick(cost(x))
