"""A convolution network on small pictures, in batches that the number of the step chooses."""

import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.signal
from autograd import grad

convolve = autograd.scipy.signal.convolve
BATCH, BATCHES, SIDE = 32, 5, 16


def predictions(params, pictures):
    """Log-probabilities of two classes."""
    filters, bias, weights, last = params
    inner = convolve(pictures, filters, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid") + bias
    n, channels, rows, cols = inner.shape
    pooled = np.max(np.max(np.reshape(inner, (n, channels, rows // 2, 2, cols // 2, 2)), axis=3), axis=4)
    scores = np.dot(np.tanh(np.reshape(pooled, (n, -1))), weights) + last
    return scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True))


def run(steps, tick):
    """Gradient descent with momentum."""
    rng = npr.RandomState(0)
    labels = rng.randint(2, size=BATCH * BATCHES)
    pictures = rng.randn(BATCH * BATCHES, 1, SIDE, SIDE)
    pictures[labels == 1, :, 5:10, 5:10] += 1.0
    targets = np.eye(2)[labels]
    params = [
        rng.randn(1, 6, 3, 3) * 0.1,
        rng.randn(1, 6, 1, 1) * 0.1,
        rng.randn(6 * 7 * 7, 2) * 0.1,
        rng.randn(2) * 0.1,
    ]

    def batch(i):
        k = i % BATCHES
        return slice(k * BATCH, (k + 1) * BATCH)

    def objective(params, i):
        chosen = batch(i)
        return -np.mean(np.sum(predictions(params, pictures[chosen]) * targets[chosen], axis=1))

    slope = grad(objective)
    speed = [np.zeros(p.shape) for p in params]
    for i in range(steps):
        found = slope(params, i)
        speed = [0.9 * s - 0.1 * g for s, g in zip(speed, found, strict=True)]
        params = [p + 0.5 * s for p, s in zip(params, speed, strict=True)]
        tick(objective(params, i))
