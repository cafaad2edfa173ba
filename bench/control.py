"""Optimal control of a quantum system (GRAPE): 64 levels, 10 controls, 10,000 steps of constant amplitudes."""

from __future__ import annotations

import tracemalloc
from time import perf_counter
from typing import Any

import numpy as np

import retrograd as rg
from bench import table

LEVELS, CONTROLS, STEPS = 64, 10, 10_000
DURATION = 0.01  # of one step
ORDER = 4  # of the Taylor series of one step's propagator, which then is unitary up to 1e-8
BUDGET = "290 MB"
BUMP = 1e-5


def problem() -> tuple[Any, Any, Any, Any]:
    """The drift and the controls, random Hermitian matrices; the wanted unitary; amplitudes to start from."""
    rng = np.random.default_rng(0)

    def hermitian(*shape: int) -> Any:
        a = rng.standard_normal((*shape, LEVELS, LEVELS)) + 1j * rng.standard_normal((*shape, LEVELS, LEVELS))
        return (a + np.swapaxes(a.conj(), -1, -2)) / (4.0 * np.sqrt(LEVELS))

    wanted = np.linalg.qr(hermitian())[0]
    return hermitian(), hermitian(CONTROLS), wanted, 0.1 * rng.standard_normal((STEPS, CONTROLS))


def infidelity(amplitudes: Any, drift: Any, controls: Any, wanted: Any, memory: Any = BUDGET) -> Any:
    """One less the overlap of the wanted unitary with what the amplitudes do."""
    flat = controls.reshape(CONTROLS, -1)

    def step(u: Any, a: Any) -> Any:
        generator = -1j * DURATION * (drift + (a @ flat).reshape(LEVELS, LEVELS))
        term = u
        for k in range(1, ORDER + 1):
            term = generator @ term / k
            u = u + term
        return u, None

    reached, _ = rg.scan(step, np.eye(LEVELS, dtype=complex), amplitudes, memory=memory)
    return 1.0 - np.abs(np.sum(np.conj(wanted) * reached)) ** 2 / LEVELS**2


def report() -> list[list[str]]:
    """What the gradient in all amplitudes takes."""
    drift, controls, wanted, amplitudes = problem()
    arguments = amplitudes, drift, controls, wanted
    gradient = rg.value_and_grad(infidelity)
    everything = rg.value_and_grad(lambda *a: infidelity(*a, memory=None)).plan(*arguments).peak_bytes
    start = perf_counter()
    plan = gradient.plan(*arguments)
    compiled = perf_counter() - start
    forward = rg.jit(lambda *a: infidelity(*a, memory=None))
    forward(*arguments)
    start = perf_counter()
    forward(*arguments)
    once = perf_counter() - start
    start = perf_counter()
    _, slopes = gradient(*arguments)
    whole = perf_counter() - start

    rg.config.workspace = 0  # what a call keeps for the next one is counted, too
    tracemalloc.start()
    gradient(*arguments)
    measured = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bump = BUMP * np.random.default_rng(1).standard_normal(amplitudes.shape)
    ahead, behind = (float(forward(amplitudes + s * bump, *arguments[1:])) for s in (1, -1))
    error = abs((ahead - behind) / 2 / np.sum(slopes * bump) - 1)
    return [
        ["amplitudes", f"{amplitudes.size:,}"],
        ["budget", BUDGET],
        ["peak, predicted", f"{plan.peak_bytes / 1e6:,.1f} MB"],
        ["peak, measured by tracemalloc", f"{measured / 1e6:,.1f} MB"],
        ["peak if everything were kept, predicted", f"{everything / 1e6:,.1f} MB"],
        ["steps without residuals, of these repeated", f"{plan.advances:,}, {plan.recomputed:,}"],
        ["time of the function alone", table.time(once)],
        ["time of value and gradient", table.time(whole)],
        ["time to find the plan and compile", table.time(compiled)],
        ["slope along a random direction against central differences", f"{error:.1e}"],
    ]
