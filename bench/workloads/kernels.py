"""Kernels as people write them with loops and writes: no scan, no compiler in mind. Gradient in the first argument.

The programs are of the kinds that NPBench collects (Ziogas, Schneider, Ben-Nun, Calotoiu, De Matteis, de Fine Licht,
Lavarini, Hoefler, "Productivity, portability, performance: data-centric Python", SC 2021).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Workload


def draws(*shapes: tuple[int, ...]) -> list[Any]:
    """Normal numbers, the same at each call."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


def regular(n: int) -> Any:
    """A matrix that needs no pivots."""
    return draws((n, n))[0] / n + 2.0 * np.eye(n)


def positive(n: int) -> Any:
    """A symmetric matrix with positive eigenvalues."""
    a = regular(n)
    return a @ a.T


def lu(a: Any) -> Any:
    """The factors in place, by rank-one updates; the logarithm of the determinant."""
    a = a.copy()
    for k in range(a.shape[0] - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(np.log(np.abs(np.diag(a))))


def lu_factors(a: Any) -> Any:
    """The same factors, element by element."""
    a = a.copy()
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def lu_by_elements(a: Any) -> Any:
    """The logarithm of the determinant of these."""
    return np.sum(np.log(np.abs(np.diag(lu_factors(a)))))


def cholesky(a: Any) -> Any:
    """The lower factor in place, element by element; the logarithm of the determinant's root."""
    a = a.copy()
    for j in range(a.shape[0]):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = np.sqrt(a[j, j])
        for i in range(j + 1, a.shape[0]):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
    return np.sum(np.log(np.diag(a)))


def cholesky_by_rows(a: Any) -> Any:
    """The same by products of rows, into a new matrix."""
    lower = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(i):
            lower[i, j] = (a[i, j] - lower[i, :j] @ lower[j, :j]) / lower[j, j]
        lower[i, i] = np.sqrt(a[i, i] - lower[i, :i] @ lower[i, :i])
    return np.sum(np.log(np.diag(lower)))


def triangular(lower: Any, b: Any) -> Any:
    """Forward substitution."""
    x = np.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return np.sum(x * x)


def gauss_seidel(a: Any) -> Any:
    """Sweeps over a grid, each point from its new and old neighbours."""
    a = a.copy()
    n = a.shape[0]
    for _ in range(4):
        for i in range(1, n - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:]
            a[i, 1:-1] += a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0
    return np.sum(a * a)


def seidel_in_jax(jax: Any) -> Any:
    """The same with lax.fori_loop."""
    each = jax.lax.fori_loop

    def run(a: Any) -> Any:
        n = a.shape[0]

        def point(j: Any, state: Any) -> Any:
            a, i = state
            return a.at[i, j].set((a[i, j] + a[i, j - 1]) / 9.0), i

        def line(k: Any, a: Any) -> Any:
            i = 1 + k % (n - 2)
            above, here, below = a[i - 1], a[i], a[i + 1]
            a = a.at[i, 1:-1].add(
                above[:-2] + above[1:-1] + above[2:] + here[2:] + below[:-2] + below[1:-1] + below[2:]
            )
            return each(1, n - 1, point, (a, i))[0]

        return jax.numpy.sum(each(0, 4 * (n - 2), line, a) ** 2)

    return run


POINTERS = np.cumsum([0, *(np.arange(200) * 7 % 11)])
PLACES = np.arange(POINTERS[-1]) * 31 % 200


def sparse_rows(values: Any, x: Any) -> Any:
    """A sparse matrix by rows times a vector."""
    y = np.empty(POINTERS.size - 1)
    for i in range(y.size):
        row = slice(POINTERS[i], POINTERS[i + 1])
        y[i] = values[row] @ x[PLACES[row]]
    return np.sum(np.sin(y))


def channel_flow(u: Any, nu: Any) -> Any:
    """Burgers' equation in a channel, until the flow hardly changes."""
    change = 1.0
    while change > 2e-3:
        old = u.copy()
        u = u.copy()
        u[1:-1, 1:-1] = (
            old[1:-1, 1:-1]
            - 0.05 * old[1:-1, 1:-1] * (old[1:-1, 1:-1] - old[1:-1, :-2])
            + nu * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2] - 4.0 * old[1:-1, 1:-1])
            + 0.01
        )
        u[:, 0], u[:, -1] = u[:, -2], u[:, 1]
        u[0], u[-1] = 0.0, 0.0
        change = (np.sum(u) - np.sum(old)) / np.sum(np.abs(u))
    return np.sum(u)


def correlation(data: Any) -> Any:
    """Correlations, column by column."""
    data = (data - np.mean(data, axis=0)) / (np.std(data, axis=0) * np.sqrt(data.shape[0]))
    n = data.shape[1]
    corr = np.eye(n)
    for i in range(n - 1):
        corr[i + 1 :, i] = corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return np.sum(corr**2)


def durbin(r: Any) -> Any:
    """The Toeplitz system of Yule and Walker."""
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.flip(r[:k]) @ y[:k]) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return np.sum(y * y)


def n_body(place: Any, speed: Any, mass: Any) -> Any:
    """Leapfrog steps of masses that attract each other; the energy of motion at the end."""
    for _ in range(20):
        apart = place[None, :, :] - place[:, None, :]
        pull = mass[None, :, None] * apart / (np.sum(apart**2, axis=-1) + 0.1)[:, :, None] ** 1.5
        speed = speed + 0.01 * np.sum(pull, axis=1)
        place = place + 0.01 * speed
    return 0.5 * np.sum(mass * np.sum(speed**2, axis=1))


def row(name: str, title: str, function: Any, inputs: Any, writes: bool = True, in_jax: Any = None) -> Workload:
    """A row of the benchmark."""
    return Workload(
        name=f"kernel-{name}",
        title=title,
        dtype="float64",
        inputs=inputs,
        function=function,
        in_jax=in_jax,
        writes=writes,
    )


WORKLOADS = (
    row("lu", "LU 64, by rank-one updates", lu, lambda: (regular(64),)),
    row("lu-elements", "LU 16, by elements", lu_by_elements, lambda: (regular(16),)),
    row("lu-elements-24", "LU 24, by elements", lu_by_elements, lambda: (regular(24),)),
    row("cholesky", "Cholesky 16, by elements", cholesky, lambda: (positive(16),)),
    row("cholesky-rows", "Cholesky 32, by rows", cholesky_by_rows, lambda: (positive(32),)),
    row("triangular", "triangular solve 128", triangular, lambda: (np.tril(regular(128)), draws((128,))[0])),
    row("seidel", "Gauss–Seidel 24², 4 sweeps", gauss_seidel, lambda: (draws((24, 24))[0],), in_jax=seidel_in_jax),
    row("sparse", "sparse rows, 200", sparse_rows, lambda: tuple(draws((int(POINTERS[-1]),), (200,)))),
    row("channel", "channel flow 41², while", channel_flow, lambda: (np.zeros((41, 41)), 0.1)),
    row("correlation", "correlation 100 × 40", correlation, lambda: (draws((100, 40))[0],)),
    row("durbin", "Durbin 64", durbin, lambda: (0.5 ** np.arange(1.0, 65.0),)),
    row("n-body", "n-body 50, 20 steps", n_body, lambda: (*draws((50, 3), (50, 3)), np.ones(50)), writes=False),
)
