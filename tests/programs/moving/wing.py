"""The shape of a wing in a wind tunnel: lift less drag, by gradient ascent through a flow around it."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import value_and_grad

from .fluid import advect

ROWS, COLS, STEPS = 20, 30, 5


def occlude(f, wing):
    """What is not inside of the wing."""
    return f * (1 - wing)


def project(vx, vy, wing):
    """The velocity without its divergence around the wing."""
    p = np.zeros(vx.shape)
    div = -0.5 * (np.roll(vx, -1, axis=1) - np.roll(vx, 1, axis=1) + np.roll(vy, -1, axis=0) - np.roll(vy, 1, axis=0))
    for _ in range(8):
        p = (div + np.roll(p, 1, 1) + np.roll(p, -1, 1) + np.roll(p, 1, 0) + np.roll(p, -1, 0)) / 4.0
    vx = vx - 0.5 * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1))
    vy = vy - 0.5 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0))
    return occlude(vx, wing), occlude(vy, wing)


def forces(params):
    """Lift and drag of a wing, from scores of its cells."""
    wing = 1.0 / (1.0 + np.exp(-params))
    vx, vy = occlude(np.ones((ROWS, COLS)), wing), np.zeros((ROWS, COLS))
    vx, vy = project(vx, vy, wing)
    for _ in range(STEPS):
        moved_x, moved_y = advect(vx, vx, vy), advect(vy, vx, vy)
        vx, vy = project(moved_x, moved_y, wing)
    return -np.mean(vy), np.mean(1.0 - vx)


def run(steps, tick):
    """Improve the ratio."""
    rng = npr.RandomState(0)
    ys, xs = np.meshgrid(np.linspace(-1, 1, ROWS), np.linspace(-1, 1, COLS), indexing="ij")
    params = 1.0 - 12 * xs**2 - 40 * (ys + 0.2 * xs) ** 2 + 0.01 * rng.randn(ROWS, COLS)

    def objective(params):
        lift, drag = forces(params)
        return lift / drag

    for _ in range(steps):
        value, slope = value_and_grad(objective)(params)
        params = params + 10.0 * slope
        tick(value)
