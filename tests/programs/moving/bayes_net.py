"""A Bayesian network by black-box variational inference: weights are drawn in the objective, anew at each step."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.optimizers import adam
from autograd.scipy.stats import norm

SIZES, SAMPLES, POINTS = (1, 20, 20, 1), 20, 60
SHAPES = [(SIZES[k], SIZES[k + 1]) for k in range(3)]
WEIGHTS = sum((m + 1) * n for m, n in SHAPES)


def layers(weights):
    """The weights and biases of each layer, for each sample."""
    for m, n in SHAPES:
        yield weights[:, : m * n].reshape((-1, m, n)), weights[:, m * n : m * n + n].reshape((-1, 1, n))
        weights = weights[:, (m + 1) * n :]


def predictions(weights, inputs):
    """The outputs of the networks of all samples."""
    found = np.expand_dims(inputs, 0)
    for w, b in layers(weights):
        outputs = np.einsum("mnd,mdo->mno", found, w) + b
        found = np.tanh(outputs)
    return outputs


def run(steps, tick):
    """Adam on the evidence's lower bound."""
    rng = npr.RandomState(0)
    inputs = np.concatenate([np.linspace(0, 2, POINTS // 2), np.linspace(6, 8, POINTS // 2)])
    targets = (np.cos(inputs) + 0.1 * rng.randn(POINTS)).reshape((POINTS, 1))
    inputs = ((inputs - 4.0) / 4.0).reshape((POINTS, 1))

    def log_joint(weights):
        prior = -np.sum(weights**2, axis=1) * 0.1
        return prior + np.sum(norm.logpdf(predictions(weights, inputs), targets, 0.1)[:, :, 0], axis=1)

    def loss(params, i):
        draws = npr.RandomState(7)
        mean, logs = params[:WEIGHTS], params[WEIGHTS:]
        samples = draws.randn(SAMPLES, WEIGHTS) * np.exp(logs) + mean
        entropy = 0.5 * WEIGHTS * (1.0 + np.log(2 * np.pi)) + np.sum(logs)
        return -(entropy + np.mean(log_joint(samples)))

    def told(params, i, g):
        tick(loss(params, i))

    start = np.concatenate([rng.randn(WEIGHTS) * 0.3, np.full(WEIGHTS, -5.0)])
    adam(grad(loss), start, callback=told, num_iters=steps, step_size=0.01)
