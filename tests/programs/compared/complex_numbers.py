"""Programs with complex values; gradients of real results follow the convention that JAX and autograd share."""

import numpy as np

from tests.oracles.program import complex_normal, normal, number, program, uniform

MODES = np.exp(-2j * np.pi * np.outer(np.arange(6), np.arange(6)) / 6)


@program(complex_normal(4))
def squared_modulus_of_a_square(np, z):
    return np.sum(np.abs(z**2 + 1) ** 2)


@program(normal(6), complex_normal(6))
def fourier_misfit_by_a_matrix(np, signal, spectrum):
    return np.sum(np.abs(MODES @ signal - spectrum) ** 2)


@program(complex_normal(3), complex_normal(3, 3))
def expectation_of_a_hermitian_operator(np, state, A):
    operator = A + np.conj(A.T)
    return np.real(np.conj(state) @ operator @ state) / np.real(np.conj(state) @ state)


@program(number(0.5, 2), number(0.1, 1), uniform(0.5, 3, 5))
def response_of_an_oscillator(np, resonance, damping, frequency):
    response = 1 / (resonance**2 - frequency**2 + 1j * damping * frequency)
    return np.sum(np.abs(response)) + np.sum(np.angle(response))


@program(uniform(0.5, 2, 3), number(0.5, 2))
def impedance_of_a_circuit(np, parts, frequency):
    resistance, inductance, capacity = parts
    series = resistance + 1j * frequency * inductance
    return series / (1 + 1j * frequency * capacity * series)


@program(complex_normal(3), number(0.1, 0.5))
def iterates_of_a_julia_map(np, z, scale):
    c = 0.1 + 0.2j
    for _ in range(3):
        z = scale * z**2 + c
    return np.sum(np.real(z) ** 2 + np.imag(z))


@program(complex_normal(2), normal(2))
def phase_of_a_superposition(np, amplitudes, energies):
    evolved = amplitudes * np.exp(-1j * energies * 0.3)
    return np.log(np.abs(np.sum(evolved)) ** 2 + 1) + np.imag(evolved[0] * np.conj(evolved[1]))


@program(complex_normal(4), complex_normal(4))
def joukowski_map_and_a_quotient(np, z, w):
    shifted = z + 3.0
    return shifted + 1 / shifted + np.sin(w) / (2 + np.exp(-shifted))


@program(uniform(-1, 1, 4), uniform(-1, 1, 4))
def modulus_of_a_polynomial_in_real_parts(np, x, y):
    z = x + 1j * y
    return np.sum(np.abs(z**3 - 1) ** 2 + np.real(np.sqrt(z + 3)) + np.imag(np.log(z + 3)))
