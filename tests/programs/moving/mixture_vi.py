"""A mixture of Gaussians by variational inference: natural gradients of a bound in which the labels are summed out."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.flatten import flatten
from autograd.misc.optimizers import adam
from autograd.scipy import special

PARTS, POINTS = 6, 200
PRIOR = (np.full(PARTS, 0.5), np.full((PARTS, 2), 0.0), np.full((PARTS, 2), 0.1), np.full((PARTS, 2), 2.0))


def unpack(params):
    """Dirichlet counts; means, their weights, shapes and rates of normal-gamma distributions."""
    counts, means, weights, shapes, rates = params
    return np.exp(counts), means, np.exp(weights), np.exp(shapes), np.exp(rates)


def expected_score(mean, weight, shape, rate, data):
    """The expectation of the logarithm of a part's density at each point."""
    log_precision = special.psi(shape) - np.log(rate)
    squares = shape / rate * (data - mean) ** 2 + 1.0 / weight
    return 0.5 * np.sum(log_precision - np.log(2 * np.pi) - squares, axis=1)


def expected_scores(q, data):
    """The expectation of the logarithm of each weight times its density, for each point."""
    counts, *others = q
    logs = special.psi(counts) - special.psi(np.sum(counts))
    parts = [log + expected_score(*part, data) for log, *part in zip(logs, *others, strict=True)]
    return np.vstack(parts)


def dirichlet_divergence(a, b):
    """From a Dirichlet distribution to another."""
    total = np.sum(a)
    logs = special.psi(a) - special.psi(total)
    normalised = special.gammaln(total) - np.sum(special.gammaln(a))
    return normalised - special.gammaln(np.sum(b)) + np.sum(special.gammaln(b)) + np.sum((a - b) * logs)


def gamma_divergence(q):
    """From the normal-gamma distributions to the prior."""
    _, means, weights, shapes, rates = q
    _, mean, weight, rate = PRIOR
    shape = 2.0
    ratio = weight / weights
    normal = 0.5 * (ratio - np.log(ratio) - 1.0 + weight * (means - mean) ** 2 * shapes / rates)
    gamma = (shapes - shape) * special.psi(shapes) - special.gammaln(shapes) + special.gammaln(shape)
    return np.sum(normal + gamma + shape * (np.log(rates) - np.log(rate)) + shapes * (rate - rates) / rates)


def run(steps, tick):
    """Fit more parts than there are."""
    rng = npr.RandomState(0)
    centres = np.array([[2.0, 0.0], [-1.0, 1.5], [-1.0, -1.5], [0.5, 3.0]])
    data = np.concatenate([rng.randn(POINTS // 4, 2) * 0.4 + centre for centre in centres])
    start = (
        np.log(np.full(PARTS, POINTS / PARTS)),
        rng.randn(PARTS, 2),
        np.full((PARTS, 2), 2.0),
        np.full((PARTS, 2), 2.0),
        np.full((PARTS, 2), 1.0),
    )

    def bound(params, i):
        q = unpack(params)
        warm = np.minimum(1.0, 0.2 + 0.1 * i)  # the bound's second part comes in slowly
        divergence = dirichlet_divergence(q[0], PRIOR[0]) + gamma_divergence(q)
        return np.sum(special.logsumexp(expected_scores(q, data), axis=0)) - warm * divergence

    x, unflatten = flatten(start)

    def objective(x, i):
        return -bound(unflatten(x), i) / POINTS

    def told(x, i, g):
        tick(objective(x, i))

    adam(grad(objective), x, callback=told, num_iters=steps, step_size=0.05)
