"""Log-likelihoods, divergences, filters and regressions."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

COUNTS = np.array([0.0, 2.0, 1.0, 4.0, 3.0])
LABELS = np.array([0, 2, 1, 2, 0])
OUTCOMES = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
SERIES = np.array([0.3, -0.2, 0.5, 0.9, 0.4, -0.1, 0.2, 0.6])
CENSORED = np.array([False, True, False, False, True])


def logsumexp(np, x, axis):
    peak = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - peak), axis=axis)) + np.squeeze(peak, axis)


@program(normal(6), number(-0.5, 0.5), number(0.5, 2))
def log_likelihood_of_a_normal(np, x, mean, deviation):
    return np.sum(-0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation) - 0.5 * np.log(2 * np.pi))


@program(normal(6), number(-0.5, 0.5), number(0.5, 2), number(2, 6))
def log_likelihood_of_a_student(np, x, mean, scale, freedom):
    z = (x - mean) / scale
    return -np.sum((freedom + 1) / 2 * np.log1p(z**2 / freedom) + np.log(scale) + 0.5 * np.log(freedom))


@program(uniform(0.5, 3, 6), number(2, 4), number(0.5, 2))
def log_likelihood_of_a_gamma_by_stirling(np, x, shape, rate):
    shifted = shape + 2
    log_gamma = (shifted - 0.5) * np.log(shifted) - shifted + 0.5 * np.log(2 * np.pi) + 1 / (12 * shifted)
    log_gamma = log_gamma - np.log(shape * (shape + 1))
    return np.sum(shape * np.log(rate) - log_gamma + (shape - 1) * np.log(x) - rate * x)


@program(uniform(0.2, 2, 5), number(0.8, 2), number(0.5, 2))
def censored_weibull_likelihood(np, times, shape, scale):
    hazard = (times / scale) ** shape
    density = np.log(shape / scale) + (shape - 1) * np.log(times / scale) - hazard
    return np.sum(np.where(CENSORED, -hazard, density))


@program(uniform(0.1, 0.9, 5), number(1, 3), number(1, 3))
def log_odds_of_a_beta_kernel(np, p, a, b):
    return np.sum((a - 1) * np.log(p) + (b - 1) * np.log1p(-p) - 0.5 * a * b)


@program(normal(5), normal(3), normal(3), uniform(0.5, 1.5, 3))
def log_likelihood_of_a_mixture(np, x, logits, means, deviations):
    weights = logits - logsumexp(np, logits, 0)
    densities = -0.5 * ((x[:, None] - means) / deviations) ** 2 - np.log(deviations)
    return np.sum(logsumexp(np, weights + densities, 1))


@program(normal(5), normal(5), number(0.1, 0.9))
def contaminated_normal_by_logaddexp(np, x, centre, share):
    narrow = np.log(1 - share) - 0.5 * (x - centre) ** 2
    wide = np.log(share) - 0.5 * (x - centre) ** 2 / 25 - np.log(5.0)
    return np.sum(np.logaddexp(narrow, wide))


@program(normal(5, 3), normal(3), number(-0.5, 0.5))
def loss_of_a_logistic_regression(np, features, weights, bias):
    z = features @ weights + bias
    return np.mean(np.logaddexp(0.0, z) - OUTCOMES * z)


@program(normal(5, 3), normal(3, scale=0.5), uniform(-0.3, 0.3, 5))
def loss_of_a_poisson_regression(np, features, weights, exposure):
    rate = np.exp(np.dot(features, weights) + exposure)
    return np.sum(rate - COUNTS * np.log(rate))


@program(normal(5, 3), normal(3, 3), normal(3))
def loss_of_a_softmax_regression(np, features, weights, bias):
    logits = features @ weights + bias
    return np.mean(logsumexp(np, logits, 1) - logits[np.arange(5), LABELS])


@program(normal(5, 2), normal(2), number(0.5, 2))
def loss_of_a_negative_binomial_regression(np, features, weights, dispersion):
    mean = np.exp(features @ weights)
    kernel = (COUNTS + dispersion) * np.log(dispersion + mean) - COUNTS * np.log(mean)
    return np.sum(kernel - dispersion * np.log(dispersion))


@program(normal(6, 2), normal(2), number(0.5, 1.5))
def loss_of_a_huber_regression(np, features, weights, threshold):
    residual = np.abs(features @ weights - SERIES[:6])
    return np.sum(np.where(residual < threshold, 0.5 * residual**2, threshold * (residual - 0.5 * threshold)))


@program(normal(6, 2), normal(2))
def pinball_loss_of_a_quantile_regression(np, features, weights):
    residual = SERIES[:6] - features @ weights
    return np.mean(np.maximum(0.9 * residual, -0.1 * residual)) + np.sum(weights**2)


@program(normal(2), uniform(0.5, 1, 3), number(0.1, 1), number(0.2, 1))
def log_evidence_of_a_kalman_step(np, mean, factors, process_noise, noise):
    root = np.array([[factors[0], 0.0], [factors[1], factors[2]]])
    transition = np.array([[1.0, 0.1], [0.0, 1.0]])
    mean = transition @ mean
    covariance = transition @ root @ root.T @ transition.T + process_noise * np.eye(2)
    innovation = 0.7 - mean[0]
    variance = covariance[0, 0] + noise
    gain = covariance[:, 0] / variance
    posterior = covariance - np.outer(gain, covariance[0])
    mean = mean + gain * innovation
    return -0.5 * (innovation**2 / variance + np.log(variance)) + np.sum(mean) + np.trace(posterior)


@program(number(-0.8, 0.8), number(-0.3, 0.3), number(0.2, 1))
def likelihood_of_an_autoregression(np, phi, drift, deviation):
    residual = SERIES[1:] - phi * SERIES[:-1] - drift
    stationary = 0.5 * np.log(1 - phi**2) - 0.5 * (1 - phi**2) * (SERIES[0] / deviation) ** 2
    return stationary - 0.5 * np.sum(residual**2) / deviation**2 - len(SERIES) * np.log(deviation)


@program(uniform(-0.5, 0.5, 2), uniform(-0.5, 0.5, 2))
def squared_innovations_of_an_arma(np, phi, theta):
    shocks = [0.0, 0.0]
    for t in range(2, 8):
        forecast = phi[0] * SERIES[t - 1] + phi[1] * SERIES[t - 2] + theta[0] * shocks[-1] + theta[1] * shocks[-2]
        shocks.append(SERIES[t] - forecast)
    return sum(shock**2 for shock in shocks)


@program(number(0.05, 0.2), number(0.1, 0.3), number(0.3, 0.6))
def likelihood_of_a_garch(np, base, reaction, memory):
    variance, total = 0.3, 0.0
    for value in SERIES:
        total = total + np.log(variance) + value**2 / variance
        variance = base + reaction * value**2 + memory * variance
    return 0.5 * total


@program(uniform(0.3, 1, 3), normal(3))
def evidence_of_a_gaussian_process_by_elimination(np, hyper, y):
    points = np.array([0.0, 0.4, 1.0])
    gap = points[:, None] - points
    kernel = hyper[0] ** 2 * np.exp(-0.5 * (gap / hyper[1]) ** 2) + hyper[2] ** 2 * np.eye(3)
    log_det, fit = 0.0, 0.0
    for _ in range(3):
        pivot = kernel[0, 0]
        log_det = log_det + np.log(pivot)
        fit = fit + y[0] ** 2 / pivot
        y = y[1:] - kernel[1:, 0] * (y[0] / pivot)
        kernel = kernel[1:, 1:] - np.outer(kernel[1:, 0], kernel[0, 1:]) / pivot
    return -0.5 * (fit + log_det)


@program(normal(4), normal(4), normal(4))
def evidence_bound_of_a_diagonal_gaussian(np, mean, log_deviation, noise):
    sample = mean + np.exp(log_deviation) * noise
    divergence = 0.5 * np.sum(np.exp(2 * log_deviation) + mean**2 - 1 - 2 * log_deviation)
    return -0.5 * np.sum((sample - 1) ** 2) - divergence


@program(normal(5), normal(5))
def divergence_of_two_softmaxes(np, a, b):
    log_p, log_q = a - logsumexp(np, a, 0), b - logsumexp(np, b, 0)
    return np.sum(np.exp(log_p) * (log_p - log_q))


@program(normal(7), normal(7))
def correlation_of_two_samples(np, x, y):
    dx, dy = x - np.mean(x), y - np.mean(y)
    return np.sum(dx * dy) / np.sqrt(np.sum(dx**2) * np.sum(dy**2))


@program(normal(7))
def skewness_and_kurtosis(np, x):
    z = (x - np.mean(x)) / np.std(x)
    return np.mean(z**3) + np.mean(z**4)


@program(normal(6), normal(6))
def welch_statistic(np, x, y):
    return (np.mean(x) - np.mean(y)) / np.sqrt(np.var(x, ddof=1) / 6 + np.var(y, ddof=1) / 6)


@program(uniform(0.1, 3, 7))
def gini_index_of_sorted_incomes(np, incomes):
    ranked = np.sort(incomes)
    share = np.cumsum(ranked) / np.sum(ranked)
    return 1 - 2 * np.mean(share) + 1 / 7


@program(normal(7), number(0.2, 1))
def trimmed_mean_of_a_sample(np, x, scale):
    ranked = np.sort(x * scale)
    return np.mean(ranked[2:-2]) ** 2 + ranked[-1] - ranked[0]


@program(normal(5), normal(5), uniform(0.1, 1, 5))
def cox_partial_likelihood(np, covariate, beta, times):
    risk = covariate * beta
    later = times[None, :] >= times[:, None]
    return np.sum(risk - np.log(np.sum(later * np.exp(risk), axis=1)))


@program(normal(6, 2), normal(3, 2))
def soft_assignment_to_centres(np, points, centres):
    squared = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=2)
    return -np.sum(logsumexp(np, -squared, 1))


@program(normal(3), normal(3, 3), normal(4, 3))
def forward_algorithm_of_a_hidden_markov_model(np, start, transition, emission):
    moves = transition - logsumexp(np, transition, 1)[:, None]
    alpha = start - logsumexp(np, start, 0) + emission[0]
    for t in range(1, 4):
        alpha = logsumexp(np, alpha[:, None] + moves, 0) + emission[t]
    return logsumexp(np, alpha, 0)
