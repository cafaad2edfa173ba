"""A long short-term memory predicts the next symbol; adam, with the number of the step in the loss."""

import autograd.numpy as np

from .rnn import SYMBOLS, affine, train

STATES = 16
GATES = ("change", "forget", "ingate", "outgate")


def sigmoid(x):
    """The logistic function."""
    return 0.5 * (np.tanh(x) + 1.0)


def start(rng):
    """The parameters."""
    params = {name: rng.randn(SYMBOLS + STATES + 1, STATES) * 0.1 for name in GATES}
    return params | {
        "state": rng.randn(1, STATES) * 0.1,
        "cell": rng.randn(1, STATES) * 0.1,
        "predict": rng.randn(STATES + 1, SYMBOLS) * 0.1,
    }


def predictions(params, inputs):
    """Log-probabilities of the next symbol after each one."""
    state = np.repeat(params["state"], inputs.shape[1], axis=0)
    cell = np.repeat(params["cell"], inputs.shape[1], axis=0)
    found = []
    for symbol in inputs:
        change = np.tanh(affine(params["change"], symbol, state))
        forget, ingate, outgate = (sigmoid(affine(params[name], symbol, state)) for name in GATES[1:])
        cell = cell * forget + ingate * change
        state = outgate * np.tanh(cell)
        scores = affine(params["predict"], state)
        found.append(scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True)))
    return found


def run(steps, tick):
    """Train the network."""
    train(start, predictions, steps, tick)
