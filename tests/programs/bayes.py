"""Statistics: densities, latent variables, filters, survival."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import digamma, gammaln

from .catalogue import Program

rng = np.random.default_rng(11)


# ------------------------------------------------------------------------------------- Gaussian process regression


def gp_regression(theta, x, y):
    """Negative log marginal likelihood; theta: log amplitude, log length scale, log noise."""
    amplitude, scale, noise = np.exp(theta)
    distance = (x[:, None] - x[None, :]) ** 2
    k = amplitude**2 * np.exp(-0.5 * distance / scale**2)
    k[np.diag_indices(len(x))] += noise**2 + 1e-8
    chol = np.linalg.cholesky(k)
    alpha = np.linalg.solve(chol.T, np.linalg.solve(chol, y))
    return 0.5 * y @ alpha + np.sum(np.log(np.diag(chol))) + 0.5 * len(x) * np.log(2 * np.pi)


X_GP = np.sort(rng.uniform(-3, 3, 25))
Y_GP = np.sin(2 * X_GP) + 0.1 * rng.standard_normal(25)


def gp_latent_variables(z, y, q=2):
    """GP-LVM: latent points z of a linear-plus-rbf process that gives the columns of y."""
    n, d = y.shape
    z = z.reshape(n, q)
    squares = np.sum(z * z, axis=1)
    distance = squares[:, None] + squares[None, :] - 2.0 * z @ z.T
    k = np.exp(-0.5 * distance) + 0.1 * np.eye(n)
    _, logdet = np.linalg.slogdet(k)
    inverse = np.linalg.inv(k)
    return 0.5 * d * logdet + 0.5 * np.trace(inverse @ (y @ y.T)) + 0.5 * np.sum(squares)


Y_LVM = rng.standard_normal((8, 3))


# --------------------------------------------------------------------------------------------- logistic regression


def logistic_regression(w, x, labels):
    margins = labels * (x @ w)
    loss = 0.0
    for m in np.array_split(margins, 4):
        loss = loss + np.sum(np.logaddexp(0.0, -m))
    return loss / len(labels) + 0.05 * w @ w


X_LR = rng.standard_normal((60, 4))
LABELS = np.where(X_LR @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * rng.standard_normal(60) > 0, 1.0, -1.0)


# ---------------------------------------------------------------------------------------------------- mixtures, EM


def mixture_after_em(start, x, steps=8):
    """Negative log likelihood of a mixture of two normals after some steps of EM from means, log scales, a logit."""
    means = start[:2].copy()
    scales = np.exp(start[2:4])
    weight = 1.0 / (1.0 + np.exp(-start[4]))
    weights = np.array([weight, 1.0 - weight])
    for _ in range(steps):
        logs = np.empty((2, len(x)))
        for k in range(2):
            logs[k] = np.log(weights[k]) - np.log(scales[k]) - 0.5 * ((x - means[k]) / scales[k]) ** 2
        total = np.logaddexp(logs[0], logs[1])
        resp = np.exp(logs - total)
        mass = resp.sum(axis=1)
        means = resp @ x / mass
        for k in range(2):
            scales[k] = np.sqrt(np.sum(resp[k] * (x - means[k]) ** 2) / mass[k])
        weights = mass / len(x)
    return -np.sum(total)


X_EM = np.concatenate([rng.normal(-2, 0.6, 20), rng.normal(1.5, 1.0, 30)])


# ------------------------------------------------------------------------------------------------ HMM, Kalman filter


def hidden_markov_model(theta, observed, states=3):
    """Negative log likelihood by the scaled forward algorithm; theta: logits of transitions and emissions."""
    t_logits = theta[: states * states].reshape(states, states)
    e_logits = theta[states * states :].reshape(states, -1)
    transition = np.exp(t_logits)
    transition /= transition.sum(axis=1, keepdims=True)
    emission = np.exp(e_logits)
    emission /= emission.sum(axis=1, keepdims=True)
    alpha = np.ones(states) / states
    loglik = 0.0
    for symbol in observed:
        alpha = (alpha @ transition) * emission[:, symbol]
        norm = alpha.sum()
        if norm < 1e-300:
            return np.inf
        loglik += np.log(norm)
        alpha /= norm
    return -loglik


OBSERVED = rng.integers(0, 4, 30)


def kalman_filter(theta, ys):
    """Negative log likelihood of a damped oscillator seen with noise; theta: damping, logs of the noises' sizes."""
    a = np.array([[1.0, 0.1], [-0.3, 1.0]])
    a[1, 1] -= theta[0]
    q = np.exp(theta[1]) * np.eye(2)
    r = np.exp(theta[2])
    h = np.array([[1.0, 0.0]])
    m, p = np.zeros(2), np.eye(2)
    total = 0.0
    for y in ys:
        if not np.isnan(y):
            s = (h @ p @ h.T)[0, 0] + r
            gain = p @ h[0] / s
            error = y - h[0] @ m
            total += 0.5 * (np.log(2 * np.pi * s) + error**2 / s)
            m = m + gain * error
            p = p - np.outer(gain, h[0] @ p)
        m = a @ m
        p = a @ p @ a.T + q
    return total


Y_KF = np.sin(0.17 * np.arange(40)) + 0.2 * rng.standard_normal(40)
Y_KF[[7, 8, 21]] = np.nan


# -------------------------------------------------------------------------------------------------- variational Bayes


def black_box_variational(theta, noise, x, y):
    """Negative ELBO of Bayesian linear regression with a diagonal normal, by reparameterised draws."""
    d = x.shape[1]
    mean, logstd = theta[:d], theta[d:]
    samples = mean + np.exp(logstd) * noise
    loglik = -0.5 * np.sum((y[None, :] - samples @ x.T) ** 2, axis=1) / 0.25
    logprior = -0.5 * np.sum(samples**2, axis=1)
    entropy = np.sum(logstd) + 0.5 * d * (1 + np.log(2 * np.pi))
    return -(np.mean(loglik + logprior) + entropy)


X_BB = rng.standard_normal((20, 3))
Y_BB = X_BB @ np.array([1.0, -1.0, 0.5]) + 0.5 * rng.standard_normal(20)
NOISE = rng.standard_normal((16, 3))


def unpack(weights, sizes):
    at = 0
    for m, n in pairwise(sizes):
        yield weights[at : at + m * n].reshape(m, n), weights[at + m * n : at + m * n + n]
        at += m * n + n


def bayesian_network(weights, x, y, sizes=(1, 6, 6, 1)):
    """Negative log posterior of a small regression network."""
    h = x
    layers = list(unpack(weights, sizes))
    for i, (w, b) in enumerate(layers):
        h = h @ w + b
        if i < len(layers) - 1:
            h = np.tanh(h)
    return np.sum((h[:, 0] - y) ** 2) / (2 * 0.01) + 0.5 * np.sum(weights**2)


X_BN = np.linspace(-1, 1, 15)[:, None]
Y_BN = np.cos(3 * X_BN[:, 0])


# --------------------------------------------------------------------------------------------- ICA, natural gradient


def independent_components(w, x):
    """Negative log likelihood of ICA with a logistic-like source density."""
    w = w.reshape(3, 3)
    sources = x @ w.T
    sign, logdet = np.linalg.slogdet(w)
    if sign == 0:
        raise ValueError("a singular unmixing matrix")
    return np.mean(np.sum(np.log(np.cosh(sources)), axis=1)) - logdet


X_ICA = rng.laplace(size=(80, 3)) @ rng.standard_normal((3, 3))


def natural_gradient_step(theta, x):
    """The log likelihood of a gamma density after a step of its natural gradient."""

    def loglik(a, b):
        return np.mean((a - 1) * np.log(x) - b * x) + a * np.log(b) - gammaln(a)

    a, b = np.exp(theta)
    score = np.array([np.mean(np.log(x)) + np.log(b) - digamma(a), a / b - np.mean(x)])
    h = 1e-3
    trigamma = (digamma(a + h) - digamma(a - h)) / (2 * h)
    fisher = np.empty((2, 2))
    fisher[0, 0], fisher[1, 1] = trigamma, a / b**2
    fisher[0, 1] = fisher[1, 0] = -1.0 / b
    step = np.linalg.solve(fisher, score)
    return -loglik(a + 0.5 * step[0], b + 0.5 * step[1])


X_NG = rng.gamma(2.0, 1.5, 50)


# ------------------------------------------------------------------------------------------------------- survival


def weibull_survival(theta, x, times, dead):
    """Negative log likelihood of Weibull proportional hazards with censored times; theta: log shape, coefficients."""
    shape = np.exp(theta[0])
    risk = np.exp(x @ theta[1:])
    total = 0.0
    for t, r, d in zip(times, risk, dead, strict=True):
        total -= r * t**shape
        if d:
            total += np.log(shape) + (shape - 1) * np.log(t) + np.log(r)
    return -total


X_SV = rng.standard_normal((25, 2))
TIMES = rng.weibull(1.4, 25) + 0.05
DEAD = rng.random(25) < 0.7


def cox_partial_likelihood(beta, x, times, dead):
    """Breslow's partial likelihood: at each death, against all who are still at risk."""
    order = np.argsort(-times)
    eta = (x @ beta)[order]
    at_risk = np.logaddexp.accumulate(eta)
    return -np.sum((eta - at_risk)[dead[order]])


PROGRAMS = [
    Program(gp_regression, np.array([0.1, -0.2, -1.0]), (X_GP, Y_GP), minimise=8.0),
    Program(gp_latent_variables, rng.standard_normal(16), (Y_LVM,), minimise=20.0),
    Program(logistic_regression, np.zeros(4), (X_LR, LABELS), minimise=0.55, autograd=True),
    Program(mixture_after_em, np.array([-1.0, 1.0, 0.0, 0.3, 0.2]), (X_EM,), rtol=1e-4),
    Program(hidden_markov_model, 0.3 * rng.standard_normal(9 + 12), (OBSERVED,), minimise=40.5),
    Program(kalman_filter, np.array([0.1, -3.0, -2.0]), (Y_KF,), minimise=12.0),
    Program(
        black_box_variational,
        np.concatenate([np.zeros(3), -np.ones(3)]),
        (NOISE, X_BB, Y_BB),
        minimise=34.0,
        autograd=True,
    ),
    Program(bayesian_network, 0.5 * rng.standard_normal(61), (X_BN, Y_BN), minimise=40.0, autograd=True),
    Program(independent_components, np.eye(3).ravel() + 0.1 * rng.standard_normal(9), (X_ICA,), minimise=2.88),
    Program(natural_gradient_step, np.array([0.3, -0.3]), (X_NG,)),
    Program(weibull_survival, np.array([0.2, 0.1, -0.1]), (X_SV, TIMES, DEAD), minimise=17.8),
    Program(cox_partial_likelihood, np.array([0.1, -0.2]), (X_SV, TIMES, DEAD), minimise=37.8),
]
