"""A mixture of Gaussians by SciPy's Newton-CG, with gradients and products with the Hessian of a flattened function."""

import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
from autograd import grad, hessian_vector_product
from autograd.misc.flatten import flatten_func
from autograd.scipy.special import logsumexp
from scipy.optimize import minimize

PARTS = 4


def run(steps, tick):
    """Fit three clusters that overlap."""
    rng = npr.RandomState(0)
    data = np.concatenate([rng.randn(60, 2) * 0.9 + centre for centre in ([2.0, 0.0], [-1.0, 1.5], [-1.0, -1.5])])
    start = {"weights": np.zeros(PARTS), "means": rng.randn(PARTS, 2), "roots": np.stack([np.eye(2)] * PARTS)}

    def objective(params):
        weights = params["weights"] - logsumexp(params["weights"])
        parts = [
            w + mvn.logpdf(data, m, np.dot(r.T, r))
            for w, m, r in zip(weights, params["means"], params["roots"], strict=True)
        ]
        return -np.sum(logsumexp(np.vstack(parts), axis=0))

    flat, _, x = flatten_func(objective, start)

    def value(v):
        return flat(v)[0]

    def told(v):
        tick(value(v))

    slope, product = grad(value), hessian_vector_product(value)
    for _ in range(steps):
        x = minimize(value, x, jac=slope, hessp=product, method="Newton-CG", options={"maxiter": 1}).x
        told(x)
