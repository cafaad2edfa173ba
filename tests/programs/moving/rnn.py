"""A recurrent network predicts the next symbol; adam, with the number of the step in the loss."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.misc.optimizers import adam

SYMBOLS, STATES, LENGTH, BATCH = 8, 20, 25, 12


def start(rng):
    """The parameters."""
    return {
        "start": rng.randn(1, STATES) * 0.1,
        "change": rng.randn(SYMBOLS + STATES + 1, STATES) * 0.1,
        "predict": rng.randn(STATES + 1, SYMBOLS) * 0.1,
    }


def affine(weights, *inputs):
    """Inputs side by side, and a one, times weights."""
    together = np.hstack(inputs)
    return np.dot(np.hstack((together, np.ones((together.shape[0], 1)))), weights)


def predictions(params, inputs):
    """Log-probabilities of the next symbol after each one."""
    state = np.repeat(params["start"], inputs.shape[1], axis=0)
    found = []
    for symbol in inputs:
        state = np.tanh(affine(params["change"], symbol, state))
        scores = affine(params["predict"], state)
        found.append(scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True)))
    return found


def train(start, predictions, steps, tick):
    """Train a model on sequences that count upwards."""
    rng = npr.RandomState(0)
    data = np.eye(SYMBOLS)[(np.arange(LENGTH)[:, None] + rng.randint(SYMBOLS, size=BATCH)) % SYMBOLS]

    def loss(params, i):
        logs = predictions(params, data)
        return -sum(np.sum(logs[t] * data[t + 1]) for t in range(LENGTH - 1)) / (LENGTH * BATCH)

    def told(params, i, g):
        tick(loss(params, i))

    adam(grad(loss), start(rng), callback=told, num_iters=steps, step_size=0.05)


def run(steps, tick):
    """Train the network."""
    train(start, predictions, steps, tick)
