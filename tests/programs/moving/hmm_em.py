"""A hidden Markov model by EM: expected counts are gradients of the log-likelihood, made anew at each step."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import value_and_grad as vgrad
from autograd.scipy.special import logsumexp

STATES, SYMBOLS, LENGTH = 4, 6, 60


def normalised(scores):
    """Log-probabilities along the last axis."""
    return scores - logsumexp(scores, axis=-1, keepdims=True)


def log_likelihood(params, data):
    """By the forward algorithm, in logarithms."""
    start, moves, emits = params
    alpha = start + emits[:, data[0]]
    for symbol in data[1:]:
        alpha = logsumexp(alpha[:, None] + moves, axis=0) + emits[:, symbol]
    return logsumexp(alpha)


def run(steps, tick):
    """Fit a random sequence with repetitions."""
    rng = npr.RandomState(0)
    data = list(np.repeat(rng.randint(SYMBOLS, size=LENGTH // 3), 3))
    shapes = (STATES,), (STATES, STATES), (STATES, SYMBOLS)
    params = tuple(normalised(rng.randn(*shape)) for shape in shapes)
    for _ in range(steps):
        value, counts = vgrad(lambda p: log_likelihood(p, data))(params)
        params = tuple(normalised(np.log(np.maximum(c, 1e-12))) for c in counts)
        tick(value)
