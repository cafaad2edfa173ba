"""A network as the right side of a differential equation, fitted to a spiral through SciPy's solver."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad
from autograd.builtins import tuple
from autograd.misc.optimizers import adam
from autograd.scipy.integrate import odeint

TIMES = np.linspace(0.0, 4.0, 12)


def network(y, t, params):
    """One hidden layer on the cubes."""
    (w1, b1), (w2, b2) = params
    return np.dot(np.tanh(np.dot(y**3, w1) + b1), w2) + b2


def spiral(y, t):
    """The true right side."""
    return np.dot(y**3, np.array([[-0.1, 2.0], [-2.0, -0.1]]))


def run(steps, tick):
    """Fit the network to the true path."""
    rng = npr.RandomState(0)
    y0 = np.array([2.0, 0.0])
    true = odeint(spiral, y0, TIMES, rtol=1e-7, atol=1e-7)
    sizes = (2, 15), (15, 2)
    start = [(rng.randn(m, n) * 0.1, rng.randn(n) * 0.1) for m, n in sizes]

    def loss(params, i):
        path = odeint(network, y0, TIMES, tuple((params,)), rtol=1e-7, atol=1e-7)
        return np.mean(np.sum(np.abs(path - true), axis=1))

    def told(params, i, g):
        tick(loss(params, i))

    adam(grad(loss), start, callback=told, num_iters=steps, step_size=0.01)
