"""Physics and engineering: fields updated in place, orbits, rays, a robot, cameras, qubits."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .catalogue import Program

rng = np.random.default_rng(13)


def fluid_simulation(velocities, smoke, target, steps=4):
    """Smoke carried by a velocity field that is made free of divergence in place; distance to a target."""
    n = smoke.shape[0]
    vx, vy = velocities[: n * n].reshape(n, n).copy(), velocities[n * n :].reshape(n, n).copy()

    def project(vx, vy):
        p = np.zeros((n, n))
        div = (
            -0.5
            / n
            * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
        )
        for _ in range(6):
            p = (div + np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1)) / 4
        vx -= 0.5 * n * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0))
        vy -= 0.5 * n * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1))

    def advect(f, vx, vy):
        rows, cols = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        x, y = rows - vx, cols - vy
        left, top = np.floor(x).astype(int), np.floor(y).astype(int)
        rw, bw = x - left, y - top
        left, top = np.mod(left, n), np.mod(top, n)
        right, bottom = np.mod(left + 1, n), np.mod(top + 1, n)
        return (1 - rw) * ((1 - bw) * f[left, top] + bw * f[left, bottom]) + rw * (
            (1 - bw) * f[right, top] + bw * f[right, bottom]
        )

    for _ in range(steps):
        vx, vy = advect(vx, vx, vy), advect(vy, vx, vy)
        project(vx, vy)
        smoke = advect(smoke, vx, vy)
    return np.mean((smoke - target) ** 2)


N_FLUID = 8
SMOKE = np.zeros((N_FLUID, N_FLUID))
SMOKE[2:5, 2:5] = 1.0


def fdtd(amplitudes, wanted, steps=60):
    """Maxwell's equations in one dimension on Yee's grid: fields updated in place, a source, an absorbing end."""
    n = 40
    e, h = np.zeros(n), np.zeros(n - 1)
    eps = np.ones(n)
    eps[25:] = 2.25
    seen = np.zeros(steps)
    for t in range(steps):
        h += 0.5 * (e[1:] - e[:-1])
        left, right = e[1], e[-2]
        e[1:-1] += 0.5 / eps[1:-1] * (h[1:] - h[:-1])
        e[5] += amplitudes[t % len(amplitudes)] * np.exp(-(((t - 15) / 6) ** 2))
        e[0], e[-1] = left, right
        seen[t] = e[30]
    return np.sum((seen - wanted) ** 2)


def n_body(state, steps=40, dt=0.02):
    """Three bodies by leapfrog; the energy that went to the lightest one."""
    masses = np.array([1.0, 0.5, 0.1])
    x, v = state[:6].reshape(3, 2).copy(), state[6:].reshape(3, 2).copy()

    def forces(x):
        f = np.zeros_like(x)
        for i in range(3):
            for j in range(i):
                d = x[j] - x[i]
                pull = masses[i] * masses[j] * d / (d @ d + 0.01) ** 1.5
                f[i] += pull
                f[j] -= pull
        return f / masses[:, None]

    a = forces(x)
    for _ in range(steps):
        v += 0.5 * dt * a
        x += dt * v
        a = forces(x)
        v += 0.5 * dt * a
    return 0.5 * masses[2] * np.sum(v[2] ** 2)


def ray_optics(curvatures, heights):
    """The spot size of a two-lens system: Snell's law at each spherical surface, exactly."""
    surfaces = [(0.0, 1.0, 1.5), (0.3, 1.5, 1.0), (0.8, 1.0, 1.6), (1.1, 1.6, 1.0)]
    spots = []
    for height in heights:
        z, y, slope = -0.5, height, 0.0
        direction = np.array([1.0, slope])
        point = np.array([z, y])
        for (vertex, n1, n2), c in zip(surfaces, curvatures, strict=True):
            to_vertex = point - np.array([vertex, 0.0])
            if abs(c) > 1e-9:
                b = c * (to_vertex @ direction) - direction[0]
                under = b * b - c * (c * (to_vertex @ to_vertex) - 2 * to_vertex[0])
                if under < 0:
                    return 1e3 * np.sum(curvatures**2)
                length = (c * (to_vertex @ to_vertex) - 2 * to_vertex[0]) / (-b + np.sqrt(under))
            else:
                length = -to_vertex[0] / direction[0]
            point = point + length * direction
            normal = np.array([1.0 - c * (point[0] - vertex), -c * point[1]])
            cosine = normal @ direction
            ratio = n1 / n2
            direction = ratio * direction + (np.sqrt(1 - ratio**2 * (1 - cosine**2)) - ratio * cosine) * normal
            direction = direction / np.sqrt(direction @ direction)
        spots.append(point[1] + (2.5 - point[0]) / direction[0] * direction[1])
    return np.mean(np.square(spots))


def robot_arm(angles, target, lengths=(1.0, 0.8, 0.6, 0.4)):
    """Inverse kinematics of a planar arm that shall not bend too far nor pass through a post."""
    position, heading, penalty = np.zeros(2), 0.0, 0.0
    post = np.array([0.7, 0.9])
    for angle, length in zip(angles, lengths, strict=True):
        heading = heading + angle
        position = position + length * np.array([np.cos(heading), np.sin(heading)])
        gap = np.sqrt(np.sum((position - post) ** 2))
        if gap < 0.4:
            penalty += (0.4 - gap) ** 2
        if abs(angle) > 2.0:
            penalty += (abs(angle) - 2.0) ** 2
    return np.sum((position - target) ** 2) + penalty


def rotation(r):
    """Rodrigues' formula."""
    angle = np.sqrt(r @ r)
    if angle < 1e-12:
        return np.eye(3)
    axis = r / angle
    k = np.zeros((3, 3))
    k[0, 1], k[0, 2], k[1, 2] = -axis[2], axis[1], -axis[0]
    k -= k.T
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def bundle_adjustment(parameters, seen, cameras=2, points=5):
    """The sum of squared residuals of points seen by cameras with radial distortion."""
    poses = parameters[: 6 * cameras].reshape(cameras, 6)
    world = parameters[6 * cameras :].reshape(points, 3)
    residuals = np.zeros((cameras, points, 2))
    for c in range(cameras):
        turn, shift = rotation(poses[c, :3]), poses[c, 3:]
        for p in range(points):
            local = turn @ world[p] + shift
            image = local[:2] / local[2]
            r2 = image @ image
            residuals[c, p] = 500.0 * (1 + 0.1 * r2 + 0.01 * r2**2) * image - seen[c, p]
    return 0.5 * np.sum(residuals**2) / 500.0**2


def quantum_control(amplitudes, dt=0.15):
    """1 - fidelity of a qubit pair's evolution under piecewise constant controls with a wanted gate."""
    sx = np.array([[0, 1], [1, 0]], dtype=complex)
    sz = np.diag([1.0, -1.0]).astype(complex)
    one = np.eye(2)
    drift = np.kron(sz, sz)
    controls = [np.kron(sx, one), np.kron(one, sx)]
    u = np.eye(4, dtype=complex)
    for step in amplitudes.reshape(-1, 2):
        h = drift + step[0] * controls[0] + step[1] * controls[1]
        u = scipy.linalg.expm(-1j * dt * h) @ u
    gate = np.diag([1, 1, 1, -1]).astype(complex)
    overlap = np.trace(gate.conj().T @ u) / 4
    return 1.0 - np.abs(overlap) ** 2


def binomial_option(parameters, strike=100.0, maturity=1.0, steps=30):
    """An American put by a tree, rolled back in place; parameters: spot / 100, volatility, rate."""
    spot, volatility, rate = 100.0 * parameters[0], parameters[1], parameters[2]
    dt = maturity / steps
    up = np.exp(volatility * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = np.exp(-rate * dt)
    prices = spot * up ** (2.0 * np.arange(steps + 1) - steps)
    values = np.maximum(strike - prices, 0.0)
    for t in range(steps, 0, -1):
        values[:t] = discount * (p * values[1 : t + 1] + (1 - p) * values[:t])
        prices = prices[1 : t + 1] / up
        early = strike - prices
        exercised = early > values[:t]
        values[:t][exercised] = early[exercised]
    return values[0]


def gauss_elimination(entries, n=4):
    """A linear system solved by elimination with pivots, written as in a textbook."""
    a = entries[: n * n].reshape(n, n).copy()
    b = entries[n * n :].copy()
    for k in range(n):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[[k, pivot]] = b[[pivot, k]]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return np.sum(x**2)


PROGRAMS = [
    Program(
        fluid_simulation,
        0.4 * rng.standard_normal(2 * N_FLUID**2),
        (SMOKE, np.roll(SMOKE, 2, 0)),
        minimise=0.08,
        rtol=1e-4,
    ),
    Program(fdtd, np.array([1.0, 0.5, -0.3, 0.2]), (0.1 * rng.standard_normal(60),), minimise=0.857),
    Program(n_body, np.array([0, 0, 1, 0, -1, 0.5, 0, 0.1, 0, 0.9, 0.5, -0.5])),
    Program(ray_optics, np.array([0.8, -0.7, 0.3, -0.4]), (np.array([0.05, 0.1, 0.17]),), minimise=1e-5),
    Program(robot_arm, np.array([0.5, 0.4, 0.3, 0.2]), (np.array([0.3, 1.7]),), minimise=1e-6),
    Program(
        bundle_adjustment,
        np.concatenate(
            [
                0.1 * rng.standard_normal(3),
                [0, 0, 5.0],
                0.1 * rng.standard_normal(3),
                [0.5, 0, 5.0],
                rng.standard_normal(15),
            ]
        ),
        (100 * rng.standard_normal((2, 5, 2)),),
    ),
    Program(quantum_control, rng.standard_normal(16), minimise=0.76),
    Program(binomial_option, np.array([0.95, 0.3, 0.05]), rtol=1e-4),
    Program(
        gauss_elimination,
        np.concatenate([[0.1, 2, 0, 1, 3, 0.2, 1, 0, 1, 1, 0.1, 4, 0, 1, 5, 1], rng.standard_normal(4)]),
    ),
]
