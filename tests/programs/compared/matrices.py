"""Programs of solutions, factorizations, spectra and Fourier transforms, as statisticians and engineers write them."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

POINTS = np.linspace(-1.0, 1.0, 5)
SEEN = np.sin(3 * POINTS)
NOISE = np.random.default_rng(0).normal(size=(4, 3))


@program(number(0.3, 1), number(0.5, 2), number(0.1, 0.5), bits=False, autograd=1, single=5e-3)
def likelihood_of_a_gaussian_process(np, length, scale, noise):
    gaps = POINTS[:, None] - POINTS[None, :]
    kernel = scale**2 * np.exp(-0.5 * (gaps / length) ** 2) + noise**2 * np.eye(5)
    root = np.linalg.cholesky(kernel)
    alpha = np.linalg.solve(root.T, np.linalg.solve(root, SEEN))
    return 0.5 * SEEN @ alpha + np.sum(np.log(np.diag(root)))


@program(normal(3, 3), normal(3), bits=False, autograd=1, single=5e-3)
def density_of_a_normal_distribution(np, factor, mean):
    precision = np.linalg.inv(factor @ factor.T + np.eye(3))
    gap = NOISE - mean
    return 0.5 * np.sum((gap @ precision) * gap) - 2 * np.linalg.slogdet(precision)[1]


@program(normal(4, 3), normal(4), number(0.1, 1), bits=False, autograd=1, single=1e-3)
def ridge_regression_in_closed_form(np, X, y, penalty):
    weights = np.linalg.solve(X.T @ X + penalty * np.eye(3), X.T @ y)
    return np.sum((X @ weights - y) ** 2)


@program(normal(5, 3), normal(5), bits=False, autograd=0, single=1e-2)
def least_squares_by_lstsq_and_pinv(np, X, y):
    return np.sum((X @ np.linalg.lstsq(X, y)[0] - y) ** 2) + np.sum(np.linalg.pinv(X) @ y)


@program(normal(5, 3), bits=False, autograd=1, single=1e-2)
def explained_variance_of_principal_components(np, X):
    centred = X - np.mean(X, axis=0)
    values = np.linalg.svd(centred, full_matrices=False)[1] ** 2
    return np.sum(values[:2]) / np.sum(values)


@program(normal(3, 3), bits=False, autograd=0, single=1e-2)
def entropy_of_a_spectrum(np, A):
    values = np.linalg.eigvalsh(A @ A.T + np.eye(3))
    share = values / np.sum(values)
    return -np.sum(share * np.log(share))


@program(normal(3, 3), bits=False, autograd=1, single=1e-2)
def square_root_of_a_matrix(np, A):
    values, vectors = np.linalg.eigh(A @ A.T + np.eye(3))
    return np.sum(np.tril((vectors * np.sqrt(values)) @ vectors.T))


@program(normal(4, 3), bits=False, autograd=0, single=1e-2)
def projection_by_qr(np, A):
    q, r = np.linalg.qr(A)
    return np.sum((q @ q.T)[0] * POINTS[:4]) + np.sum(np.log(np.abs(np.diag(r))))


@program(normal(2, 2), normal(2), bits=False, autograd=1, single=1e-2)
def kalman_filter(np, A, start):
    state, covariance = start, np.eye(2)
    total = 0.0
    for seen in SEEN[:3]:
        state, covariance = A @ state, A @ covariance @ A.T + 0.5 * np.eye(2)
        spread = covariance[0, 0] + 0.1
        gain = covariance[:, 0] / spread
        error = seen - state[0]
        state, covariance = state + gain * error, covariance - np.outer(gain, covariance[0])
        total = total + error**2 / spread + np.log(spread)
    return total + np.linalg.det(covariance)


@program(normal(3, 3), bits=False, autograd=0, single=5e-3)
def powers_and_norms(np, A):
    cube = np.linalg.matrix_power(A, 3)
    return np.linalg.norm(cube) + np.linalg.norm(A, "nuc") + np.linalg.norm(A, 2) + np.linalg.norm(A, 1)


@program(uniform(0.5, 1.5, 6), normal(6), bits=False, autograd=1, single=1e-3)
def filter_in_frequencies(np, gains, signal):
    spectrum = np.fft.fft(signal) * gains
    return np.sum(np.abs(np.fft.ifft(spectrum)) ** 2)


@program(normal(4, 6), bits=False, autograd=1, single=1e-3)
def poisson_equation_on_a_torus(np, source):
    k, l = np.fft.fftfreq(4)[:, None], np.fft.rfftfreq(6)[None, :]
    symbol = 1.0 + 4 * np.sin(np.pi * k) ** 2 + 4 * np.sin(np.pi * l) ** 2
    solution = np.fft.irfft2(np.fft.rfft2(source) / symbol, s=(4, 6))
    return np.sum(solution**4)


@program(normal(8), normal(8), bits=False, autograd=1, single=1e-3)
def circular_correlation(np, x, y):
    product = np.fft.irfft(np.conj(np.fft.rfft(x)) * np.fft.rfft(y), 8)
    return np.sum(np.fft.fftshift(product) * np.arange(8.0))


@program(normal(4, 4), normal(4), bits=False, autograd=0, single=1e-2)
def resolvent_at_a_complex_point(np, A, b):
    x = np.linalg.solve(A + 2j * np.eye(4), b + 0j)
    return np.real(np.vdot(x, x)) + np.real(np.linalg.det(A + 1j * np.eye(4)))
