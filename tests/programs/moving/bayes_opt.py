"""Bayesian optimisation: a Gaussian process is fitted to all points so far, one more at each step."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import value_and_grad
from autograd.scipy.stats import multivariate_normal as mvn
from autograd.scipy.stats import norm
from scipy.optimize import minimize

FIRST, STARTS = 6, 15


def target(x):
    """What is to be lowered."""
    return np.sin(3.0 * x[0]) + x[0] ** 2 - 0.7 * x[0] + 0.5 * np.cos(2.0 * x[1]) + 0.3 * x[1] ** 2


def covariance(params, x, y):
    """The kernel of squared distances."""
    differences = np.expand_dims(x / np.exp(params[1:]), 1) - np.expand_dims(y / np.exp(params[1:]), 0)
    return np.exp(params[0]) * np.exp(-0.5 * np.sum(differences**2, axis=2))


def unpack(params):
    """Mean, noise, and the parameters of the kernel."""
    return params[0], np.exp(params[1]) + 1e-3, params[2:]


def predict(params, x, y, at):
    """The means and variances of the process at new points."""
    mean, noise, kernel = unpack(params)
    between = covariance(kernel, x, at)
    inside = covariance(kernel, x, x) + noise * np.eye(len(y))
    found = mean + np.dot(np.linalg.solve(inside, between).T, y - mean)
    spread = covariance(kernel, at, at) - np.dot(between.T, np.linalg.solve(inside, between))
    return found, np.diag(spread)


def run(steps, tick):
    """Choose the next point by the expected improvement."""
    rng = npr.RandomState(0)
    points = rng.uniform(-2.0, 2.0, size=(FIRST, 2))
    values = np.array([target(p) for p in points])
    params = np.zeros(5)

    def likelihood(params, x, y):
        mean, noise, kernel = unpack(params)
        cov = covariance(kernel, x, x) + noise * np.eye(len(y))
        return -mvn.logpdf(y, mean * np.ones(len(y)), cov) + 0.05 * np.sum(params**2)

    def fitted(points, values, params):
        return minimize(value_and_grad(lambda p: likelihood(p, points, values)), params, jac=True, method="CG")

    def chosen(points, values, params):
        def improvement(at):
            mean, variance = predict(params, points, values, np.expand_dims(at, 0))
            spread = np.sqrt(np.maximum(variance, 1e-8))
            z = (np.min(values) - mean) / spread
            return -np.sum(spread * (z * norm.cdf(z) + norm.pdf(z)))

        starts = rng.uniform(-2.0, 2.0, size=(STARTS, 2))
        tried = [minimize(value_and_grad(improvement), at, jac=True, bounds=[(-2, 2)] * 2) for at in starts]
        return min(tried, key=lambda found: found.fun).x

    for _ in range(steps):
        fit = fitted(points, values, params)
        params = fit.x
        new = chosen(points, values, params)
        points = np.vstack([points, new])
        values = np.append(values, target(new))
        tick(fit.fun + values[-1])
