"""Kernel matrices of squared exponentials: a quadratic form of one, and a Gaussian process's likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from bench.kept import kept
from bench.workload import Function, Workload, over

ROWS = 64  # of the kernel matrix in a block


def kernel(x: Any, length: Any, amplitude: Any) -> Any:
    """The matrix, its squared distances from inner products."""
    squares = np.sum(x**2, axis=1)
    apart = squares[:, None] + squares - 2.0 * (x @ x.T)
    return amplitude**2 * np.exp(-0.5 * apart / length**2)


def form_inputs() -> tuple[Any, ...]:
    """1,500 points in eight dimensions, length scale, amplitude, and the vector on both sides."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((1500, 8)), 2.0, 1.2, rng.standard_normal(1500)


def form(x: Any, length: Any, amplitude: Any, y: Any) -> Any:
    """The quadratic form, in plain NumPy."""
    return y @ kernel(x, length, amplitude) @ y


def form_in_torch(torch: Any) -> Function:
    """The same text."""

    def form(x: Any, length: Any, amplitude: Any, y: Any) -> Any:
        squares = (x**2).sum(dim=1)
        apart = squares[:, None] + squares - 2.0 * (x @ x.T)
        return y @ (amplitude**2 * torch.exp(-0.5 * apart / length**2)) @ y

    return form


def form_by_hand(x: Any, length: float, amplitude: float, y: Any) -> tuple[Any, Any]:
    """Blocks of rows right of the diagonal: a product gives the exponents, another all sums over columns.

    Of points in units of the length scale, u, the exponent is u·u' - |u|²/2 - |u'|²/2. What value and gradient take
    from the matrix of exponentials E are E y, E (y |u|²/2) and E (y u).
    """
    n, d = x.shape
    left, right, summed = kept("left", (n, d + 2)), kept("right", (n, d + 2)), kept("summed", (n, d + 2))
    u = np.divide(x, length, out=left[:, 2:])
    half = 0.5 * np.vecdot(u, u)
    left[:, 0], left[:, 1] = -half, -1.0
    right[:, 0], right[:, 1], right[:, 2:] = 1.0, half, u
    weighted = np.multiply(right, y[:, None], out=kept("weighted", (n, d + 2)))

    summed[...] = 0.0
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        block = kept("block", (ROWS * n,))[: (min(start + ROWS, n) - start) * (n - start)].reshape(-1, n - start)
        np.matmul(left[rows], right[start:].T, out=block)
        np.exp(block, out=block)
        summed[rows] += block @ weighted[start:]
        below = block[:, ROWS:]
        summed[start + ROWS :] += below.T @ weighted[rows]

    by_y, by_half, by_u = summed[:, 0], summed[:, 1], summed[:, 2:]
    scale = amplitude**2
    total = y @ by_y
    stretch = 2.0 * (np.vdot(y, half * by_y + by_half) - np.vdot(weighted[:, 2:], by_u))
    pull = by_u - u * by_y[:, None]
    pull *= (2.0 * scale / length) * y[:, None]
    return scale * total, (pull, scale * stretch / length, 2.0 * amplitude * total)


def process_inputs() -> tuple[Any, ...]:
    """Length scale, amplitude and noise; 400 points in four dimensions and what is observed there."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 4))
    return 1.5, 1.2, 0.3, x, np.sin(x[:, 0]) + 0.3 * rng.standard_normal(400)


def likelihood(length: Any, amplitude: Any, noise: Any, x: Any, y: Any) -> Any:
    """Minus the logarithm, in plain NumPy, which has no solver for triangles."""
    factor = np.linalg.cholesky(kernel(x, length, amplitude) + noise**2 * np.eye(len(x)))
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, y))
    return 0.5 * (y @ weights) + np.sum(np.log(np.diag(factor))) + 0.5 * len(x) * np.log(2.0 * np.pi)


def process_in_jax(jax: Any) -> Function:
    """With cho_solve."""
    jnp = jax.numpy
    matrix = over(jnp, kernel)

    def likelihood(length: Any, amplitude: Any, noise: Any, x: Any, y: Any) -> Any:
        factor = jnp.linalg.cholesky(matrix(x, length, amplitude) + noise**2 * jnp.eye(len(x)))
        weights = jax.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * (y @ weights) + jnp.sum(jnp.log(jnp.diag(factor))) + 0.5 * len(x) * jnp.log(2.0 * jnp.pi)

    return likelihood


def process_in_torch(torch: Any) -> Function:
    """With cholesky_solve."""

    def likelihood(length: Any, amplitude: Any, noise: Any, x: Any, y: Any) -> Any:
        squares = (x**2).sum(dim=1)
        apart = squares[:, None] + squares - 2.0 * (x @ x.T)
        noises = noise**2 * torch.eye(len(x), dtype=x.dtype)
        factor = torch.linalg.cholesky(amplitude**2 * torch.exp(-0.5 * apart / length**2) + noises)
        weights = torch.cholesky_solve(y[:, None], factor)[:, 0]
        return 0.5 * (y @ weights) + torch.log(torch.diag(factor)).sum() + 0.5 * len(x) * np.log(2.0 * np.pi)

    return likelihood


def process_by_hand(length: float, amplitude: float, noise: float, x: Any, y: Any) -> tuple[Any, Any]:
    """The inverse from the Cholesky factor, by LAPACK, in its place; both are of one triangle.

    The gradient in the covariance is half of the inverse less the outer product of the weights, and each parameter
    moves the covariance along the kernel, the kernel times distances, or the diagonal.
    """
    n = len(x)
    squares = np.vecdot(x, x)
    apart = np.matmul(x, x.T, out=kept("apart", (n, n)))
    apart *= -2.0
    apart += squares
    apart += squares[:, None]
    matrix = np.multiply(apart, -0.5 / length**2, out=kept("matrix", (n, n)))
    np.exp(matrix, out=matrix)
    matrix *= amplitude**2
    apart *= matrix

    factor = kept("factor", (n, n))
    factor[...] = matrix
    factor.flat[:: n + 1] += noise**2
    upper, _ = lapack.dpotrf(factor.T, lower=0, clean=1, overwrite_a=1)
    weights, _ = lapack.dpotrs(upper, y, lower=0)
    value = 0.5 * (y @ weights) + np.log(np.diag(upper)).sum() + 0.5 * n * np.log(2.0 * np.pi)
    inverse, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)

    diagonal = np.diag(inverse)
    on_kernel = 2.0 * np.vdot(inverse.T, matrix) - amplitude**2 * diagonal.sum() - weights @ matrix @ weights
    on_distances = 2.0 * np.vdot(inverse.T, apart) - weights @ apart @ weights
    on_noise = diagonal.sum() - weights @ weights
    return value, (0.5 * on_distances / length**3, on_kernel / amplitude, noise * on_noise)


WORKLOADS = (
    Workload(
        name="rbf-1500",
        title="kernel matrix 1500², quadratic form",
        dtype="float64",
        inputs=form_inputs,
        function=form,
        argnums=(0, 1, 2),
        in_jax=lambda jax: over(jax.numpy, form),
        in_torch=form_in_torch,
        by_hand=form_by_hand,
    ),
    Workload(
        name="gp-400",
        title="Gaussian process, 400 points",
        dtype="float64",
        inputs=process_inputs,
        function=likelihood,
        argnums=(0, 1, 2),
        in_jax=process_in_jax,
        in_torch=process_in_torch,
        by_hand=process_by_hand,
    ),
)
