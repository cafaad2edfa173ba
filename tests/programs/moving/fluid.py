"""A velocity that carries smoke into the shape of a disk, by SciPy's CG through the steps of a fluid."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import value_and_grad
from scipy.optimize import minimize

N, STEPS = 24, 6


def project(vx, vy):
    """The velocity without its divergence, by Jacobi's steps."""
    p = np.zeros(vx.shape)
    h = 1.0 / vx.shape[0]
    div = (
        -0.5 * h * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
    )
    for _ in range(10):
        p = (div + np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4.0
    vx = vx - 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)) / h
    vy = vy - 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)) / h
    return vx, vy


def advect(f, vx, vy):
    """What stood where the velocity comes from, read between four neighbours."""
    rows, cols = f.shape
    ys, xs = np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij")
    from_x, from_y = (xs - vx).ravel(), (ys - vy).ravel()
    left, top = np.floor(from_x).astype(int), np.floor(from_y).astype(int)
    rx, ry = from_x - left, from_y - top
    right, left = np.mod(left + 1, cols), np.mod(left, cols)
    below, top = np.mod(top + 1, rows), np.mod(top, rows)
    upper = (1 - rx) * f[top, left] + rx * f[top, right]
    lower = (1 - rx) * f[below, left] + rx * f[below, right]
    return np.reshape((1 - ry) * upper + ry * lower, (rows, cols))


def simulate(vx, vy, smoke):
    """Some steps of the fluid."""
    for _ in range(STEPS):
        moved_x, moved_y = advect(vx, vx, vy), advect(vy, vx, vy)
        vx, vy = project(moved_x, moved_y)
        smoke = advect(smoke, vx, vy)
    return smoke


def run(steps, tick):
    """Fit the velocity at the start."""
    rng = npr.RandomState(0)
    ys, xs = np.meshgrid(np.linspace(-1, 1, N), np.linspace(-1, 1, N))
    smoke, target = np.exp(-8 * (xs + 0.3) ** 2 - 8 * ys**2), np.exp(-8 * (xs - 0.2) ** 2 - 8 * (ys - 0.1) ** 2)
    x = rng.randn(2 * N * N) * 0.01

    def distance(params):
        vx, vy = np.reshape(params, (2, N, N))
        return np.mean((simulate(vx, vy, smoke) - target) ** 2)

    fun = value_and_grad(distance)
    for _ in range(steps):
        found = minimize(fun, x, jac=True, method="CG", options={"maxiter": 1})
        x = found.x
        tick(found.fun)
