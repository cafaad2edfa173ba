"""Energies, Lagrangians, Hamiltonians and steps of partial differential equations."""

import numpy as np

from tests.oracles.program import normal, number, program, uniform

PAIRS = np.triu_indices(4, 1)
CELLS = np.array([[x, y, z] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1.0) for z in (-1.0, 0.0, 1.0)])
SIGNS = (-1.0) ** np.sum(CELLS, axis=1)
BEFORE, AFTER = np.arange(-1, 7), np.arange(1, 9) % 8


@program(number(0.2, 1.4), number(-1, 1), number(0.5, 2))
def energy_of_a_pendulum(np, angle, momentum, length):
    return 0.5 * momentum**2 / length**2 - 9.81 * length * np.cos(angle)


@program(uniform(-1, 1, 2), uniform(-1, 1, 2), uniform(0.5, 2, 2), uniform(0.5, 2, 2))
def lagrangian_of_a_double_pendulum(np, angles, speeds, masses, lengths):
    first, second = lengths * speeds
    kinetic = 0.5 * masses[0] * first**2
    kinetic += 0.5 * masses[1] * (first**2 + second**2 + 2 * first * second * np.cos(angles[0] - angles[1]))
    heights = -lengths * np.cos(angles)
    return kinetic - 9.81 * (masses[0] * heights[0] + masses[1] * (heights[0] + heights[1]))


@program(uniform(0, 1, 4, 3), number(0.5, 1), number(0.5, 1))
def lennard_jones_energy(np, positions, depth, width):
    spread = positions + 1.5 * np.arange(4.0)[:, None]
    delta = spread[PAIRS[0]] - spread[PAIRS[1]]
    ratio = (width**2 / np.sum(delta**2, axis=1)) ** 3
    return 4 * depth * np.sum(ratio**2 - ratio)


@program(normal(4, 2), uniform(0.5, 2, 4))
def gravitational_energy_of_bodies(np, positions, masses):
    delta = positions[:, None, :] - positions[None, :, :]
    distance = np.sqrt(np.sum(delta**2, axis=-1) + 0.01)
    return -0.5 * np.sum(masses[:, None] * masses[None, :] * (1 - np.eye(4)) / distance)


@program(normal(4, 2), uniform(0.5, 2, 4))
def gravitational_energy_pair_by_pair(np, positions, masses):
    energy = 0.0
    for i in range(4):
        for j in range(i):
            energy = energy - masses[i] * masses[j] / np.hypot(*(positions[i] - positions[j]))
    return energy


@program(normal(5), number(0.5, 2))
def energy_of_a_ring_of_springs(np, x, stiffness):
    stretch = np.roll(x, -1) - x
    return 0.5 * stiffness * np.sum(stretch**2) + 0.25 * np.sum(stretch**4)


@program(normal(5), normal(5), number(0.1, 1))
def hamiltonian_of_fermi_pasta_ulam(np, q, p, alpha):
    ends = np.concatenate((np.zeros(1), q, np.zeros(1)))
    stretch = np.diff(ends)
    return np.sum(p**2) / 2 + np.sum(stretch**2 / 2 + alpha * stretch**3 / 3)


@program(uniform(-0.5, 0.5, 3), uniform(-0.5, 0.5, 3))
def hamiltonian_of_henon_heiles(np, q, p):
    x, y = q[0], q[1]
    return 0.5 * np.dot(p, p) + 0.5 * (x**2 + y**2) + x**2 * y - y**3 / 3 + q[2] ** 4


@program(uniform(-0.8, 0.8, 5), number(0.2, 1), normal(5))
def free_energy_of_an_ising_mean_field(np, m, beta, field):
    up, down = (1 + m) / 2, (1 - m) / 2
    entropy = -np.sum(up * np.log(up) + down * np.log(down))
    return -0.5 * np.mean(np.outer(m, m)) - np.dot(field, m) - entropy / beta


@program(number(0.2, 0.8), number(-0.5, 0.5))
def free_energy_of_an_ising_chain(np, coupling, field):
    root = np.sqrt(np.sinh(field) ** 2 + np.exp(-4 * coupling))
    return -np.log(np.exp(coupling) * (np.cosh(field) + root))


@program(uniform(0, 6, 4, 4), number(0.5, 1.5))
def energy_of_an_xy_lattice(np, angles, coupling):
    right = np.cos(angles - np.roll(angles, 1, axis=1))
    down = np.cos(angles - np.roll(angles, 1, axis=0))
    return -coupling * np.sum(right + down)


@program(normal(12), number(0.1, 0.4))
def heat_step(np, u, rate):
    inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.concatenate([u[:1], inner, u[-1:]])


@program(normal(8), normal(8), number(0.2, 0.9))
def energy_after_wave_steps(np, u, velocity, courant):
    for _ in range(3):
        force = courant**2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        velocity = velocity + np.pad(force, 1, mode="constant")
        u = u + velocity
    return np.sum(velocity**2) / 2 + courant**2 * np.sum((u[1:] - u[:-1]) ** 2) / 2


@program(normal(5, 5))
def dirichlet_energy_of_a_membrane(np, u):
    slope_x, slope_y = u[1:, :-1] - u[:-1, :-1], u[:-1, 1:] - u[:-1, :-1]
    return np.sum(np.sqrt(1 + slope_x**2 + slope_y**2))


@program(uniform(0.1, 0.9, 10), number(0.05, 0.3), number(0.1, 0.5))
def burgers_step(np, u, dt, viscosity):
    left, right = np.roll(u, 1), np.roll(u, -1)
    return u - dt * u * (right - left) / 2 + dt * viscosity * (right - 2 * u + left)


@program(normal(8), normal(8), number(0.01, 0.1), number(0.5, 2))
def reaction_diffusion_step(np, a, b, dt, feed):
    def spread(u):
        return u[BEFORE] - 2 * u + u[AFTER]

    reaction = a * b**2
    new_a = a + dt * (spread(a) - reaction + feed * (1 - a))
    new_b = b + dt * (0.5 * spread(b) + reaction - (feed + 0.06) * b)
    return np.stack([new_a, new_b])


@program(uniform(-0.4, 0.4, 3), uniform(0.5, 1.5, 3))
def madelung_sum_of_a_cell(np, offset, charges):
    distance = np.sqrt(np.sum((CELLS + offset + 0.5) ** 2, axis=1))
    return np.sum(charges) * np.sum(SIGNS * np.exp(-distance) / distance)


@program(uniform(1.3, 1.8, 2), uniform(0.5, 2, 2), number(0.1, 1))
def focal_length_of_a_lens(np, indices, radii, thickness):
    n = indices[1] / indices[0]
    power = (n - 1) * (1 / radii[0] + 1 / radii[1] - (n - 1) * thickness / (n * radii[0] * radii[1]))
    return 1 / power


@program(uniform(0.5, 1.5, 2), uniform(-0.3, 0.3, 2), number(0.5, 1.5))
def time_delay_of_a_gravitational_lens(np, image, source, einstein_radius):
    return 0.5 * np.sum((image - source) ** 2) - einstein_radius**2 * np.log(np.hypot(image[0], image[1]))


@program(uniform(0.05, 0.5, 4), uniform(1.2, 2, 4))
def snell_path_through_layers(np, thickness, index):
    sine = 0.6 / index
    return np.sum(thickness * np.tan(np.arcsin(sine))) + np.sum(thickness * index / np.cos(np.arcsin(sine)))


@program(number(0.5, 2), number(1, 3), uniform(0.5, 3, 6))
def planck_spectrum(np, temperature, scale, frequency):
    return np.sum(scale * frequency**3 / np.expm1(frequency / temperature))


@program(number(0.1, 0.8), number(0.2, 3))
def kepler_equation_by_newton(np, eccentricity, anomaly):
    angle = anomaly
    for _ in range(5):
        angle = angle - (angle - eccentricity * np.sin(angle) - anomaly) / (1 - eccentricity * np.cos(angle))
    return angle


@program(uniform(0.5, 1.5, 2), uniform(-0.2, 0.2, 2), number(0.05, 0.1))
def energy_along_a_leapfrog_orbit(np, position, momentum, dt):
    def force(q):
        return -q / np.sum(q**2) ** 1.5

    for _ in range(4):
        momentum = momentum + 0.5 * dt * force(position)
        position = position + dt * momentum
        momentum = momentum + 0.5 * dt * force(position)
    return 0.5 * np.sum(momentum**2) - 1 / np.sqrt(np.sum(position**2)) + position[0] * momentum[1]


@program(uniform(0.5, 2, 2), number(0.02, 0.1), uniform(0.5, 1.5, 4))
def lotka_volterra_by_runge_kutta(np, populations, dt, rates):
    def slope(y):
        prey, hunters = y
        growth = prey * (rates[0] - rates[1] * hunters)
        return np.array([growth, hunters * (rates[2] * prey - rates[3])])

    y = populations
    for _ in range(2):
        k1 = slope(y)
        k2 = slope(y + dt / 2 * k1)
        k3 = slope(y + dt / 2 * k2)
        k4 = slope(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@program(uniform(0.5, 2, 3), uniform(0.1, 1, 3), number(280, 320), single=1e-3)
def van_der_waals_pressure(np, volume, amount, temperature):
    repulsion = amount * 8.314 * temperature / (volume - 0.04 * amount)
    return np.sum(repulsion - 1.4 * amount**2 / volume**2)


@program(normal(5, 3), bits=False)
def bending_energy_of_a_chain(np, points):
    bonds = points[1:] - points[:-1]
    unit = bonds / np.sqrt(np.sum(bonds**2, axis=1, keepdims=True))
    return np.sum(1 - np.einsum("ij,ij->i", unit[1:], unit[:-1]))


@program(uniform(0.5, 3, 4), number(0.5, 2), number(0.5, 2), number(1, 2))
def morse_potential(np, distance, depth, width, rest):
    return np.sum(depth * (1 - np.exp(-width * (distance - rest))) ** 2)


@program(normal(3), normal(3), number(0.5, 2))
def magnetic_energy_of_a_dipole(np, moment, position, strength):
    r = np.sqrt(np.sum(position**2))
    unit = position / r
    field = strength * (3 * unit * np.sum(unit * np.array([0.0, 0.0, 1.0])) - np.array([0.0, 0.0, 1.0])) / r**3
    return -np.sum(moment * field)
