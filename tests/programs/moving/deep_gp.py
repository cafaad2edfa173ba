"""A Gaussian process on the values of another one, fitted by its likelihood with SciPy's BFGS."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import value_and_grad
from autograd.scipy.stats import multivariate_normal as mvn
from scipy.optimize import minimize

POINTS = 20


def covariance(params, x, y):
    """The kernel of squared distances."""
    scale, lengths = np.exp(params[0]), np.exp(params[1:])
    differences = np.expand_dims(x / lengths, 1) - np.expand_dims(y / lengths, 0)
    return scale * np.exp(-0.5 * np.sum(differences**2, axis=2))


def log_likelihood(params, x, y):
    """Of values, given points, noise and the kernel."""
    mean, noise = params[0], np.exp(params[1]) + 1e-3
    cov = covariance(params[2:], x, x) + noise * np.eye(len(y))
    return mvn.logpdf(y, mean * np.ones(len(y)), cov)


def run(steps, tick):
    """Fit both layers, and the values between them."""
    rng = npr.RandomState(0)
    x = np.linspace(-3.0, 3.0, POINTS)[:, None]
    y = np.sign(x[:, 0]) + 0.1 * rng.randn(POINTS)

    def objective(params):
        first, second, hidden = params[:4], params[4:8], params[8:]
        return -log_likelihood(first, x, hidden) - log_likelihood(second, hidden[:, None], y)

    fun = value_and_grad(objective)
    params = 0.1 * rng.randn(8 + POINTS)
    for _ in range(steps):
        found = minimize(fun, params, jac=True, method="BFGS", options={"maxiter": 1})
        params = found.x
        tick(found.fun)
