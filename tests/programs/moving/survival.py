"""Regression of survival times, some of them censored: the hazard is the derivative of its integral."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import elementwise_grad, hessian, value_and_grad
from autograd.misc.flatten import flatten
from scipy.optimize import minimize

PEOPLE, FACTORS = 150, 3


def cumulative_hazard(params, times, factors):
    """A generalised gamma-like family: Weibull's, bent by a third parameter."""
    scale = np.exp(np.dot(factors, params["scale"]) + params["base"])
    power = np.exp(params["shape"] + np.dot(factors, params["power"]))
    return np.log1p(np.exp(params["bend"]) * (times / scale) ** power) / np.exp(params["bend"])


def run(steps, tick):
    """Maximise the likelihood by L-BFGS-B, an iteration at a time; the last numbers are the standard errors."""
    rng = npr.RandomState(0)
    factors = rng.randn(PEOPLE, FACTORS)
    true = 2.0 * np.exp(np.dot(factors, np.array([0.5, -0.3, 0.0]))) * rng.weibull(1.5, size=PEOPLE)
    ends = rng.uniform(1.0, 6.0, size=PEOPLE)
    times, seen = np.minimum(true, ends), true <= ends
    start = {"scale": np.zeros(FACTORS), "power": np.zeros(FACTORS), "base": 0.5, "shape": 0.1, "bend": -2.0}
    x, unflatten = flatten(start)
    hazard = elementwise_grad(cumulative_hazard, argnum=1)

    def loss(x):
        params = unflatten(x)
        logs = np.log(hazard(params, times[seen], factors[seen]))
        penalty = 0.01 * (np.sum(params["scale"] ** 2) + np.sum(params["power"] ** 2) + params["bend"] ** 2)
        return (np.sum(cumulative_hazard(params, times, factors)) - np.sum(logs)) / PEOPLE + penalty

    for _ in range(steps):
        found = minimize(value_and_grad(loss), x, jac=True, method="L-BFGS-B", options={"maxiter": 2})
        x = found.x
        errors = np.sqrt(np.diag(np.linalg.inv(hessian(loss)(x) + 1e-3 * np.eye(len(x)))))
        tick(found.fun + np.sum(errors))
