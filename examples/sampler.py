"""Sample a hierarchical model by Hamiltonian Monte Carlo: eight schools, thirty-two chains at once.

    python examples/sampler.py                  2,000 draws of each chain, after as many to adapt
    python examples/sampler.py --draws 500      fewer

The sampler is forty lines of NumPy. It needs the logarithm of a density and its gradient: ``rg.value_and_grad`` of a
function that takes the parameters as a dict, under ``rg.vmap`` for all chains together. The same function, compiled,
goes into other samplers, such as emcee, which take it as it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import retrograd as rg

Floats = NDArray[np.float64]

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])  # of coaching, in each school
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])  # their standard errors
START = {"mean": 0.0, "log_spread": 0.0, "offsets": np.zeros(8)}
LENGTH = 1.5  # of a trajectory, in units of the parameters' standard deviations
WANTED = 0.8  # rate of acceptance that the step is adapted to


def log_density(p: dict[str, Any]) -> Any:
    """The logarithm of the posterior density, up to a constant; effects are mean + spread * offsets."""
    effects = p["mean"] + np.exp(p["log_spread"]) * p["offsets"]
    prior = -0.5 * (p["mean"] / 5.0) ** 2 - 0.5 * np.sum(p["offsets"] ** 2)
    spread = p["log_spread"] - np.log1p((np.exp(p["log_spread"]) / 5.0) ** 2)  # half of a Cauchy density
    return prior + spread - 0.5 * np.sum(((EFFECTS - effects) / ERRORS) ** 2)


FLAT, UNRAVEL = rg.tree.ravel(START)
Density = Callable[[Floats], tuple[Floats, Floats]]


def flat_log_density(x: Floats) -> Any:
    """The same of a flat array of parameters, as samplers want it."""
    return log_density(UNRAVEL(x))


class Draws(NamedTuple):
    """What a run has drawn: parameters by draw and chain, and the mean rate of acceptance."""

    points: Floats
    accepted: float


def trajectory(density: Density, x: Floats, v: Floats, step: Floats, steps: int) -> tuple[Floats, Floats, Floats]:
    """Follow Hamilton's equations by leapfrog steps: the new points, velocities and log densities of all chains."""
    value, slope = density(x)
    for _ in range(steps):
        v = v + 0.5 * step * slope
        x = x + step * v
        value, slope = density(x)
        v = v + 0.5 * step * slope
    return x, v, value


def sample(density: Density, x: Floats, draws: int, rng: np.random.Generator) -> Draws:
    """Draw from each chain, after as many draws in which the step is adapted to the wanted rate of acceptance."""
    log_step, rates, points = np.log(0.1), [], []
    value = density(x)[0]
    for i in range(2 * draws):
        step = np.exp(log_step) * rng.uniform(0.8, 1.2)  # so that no trajectory closes upon itself
        v = rng.normal(size=x.shape)
        there, moved, found = trajectory(density, x, v, step, min(64, int(np.ceil(LENGTH / step))))
        gain = found - value - 0.5 * np.sum(moved**2 - v**2, axis=1)
        rate = np.exp(np.minimum(np.nan_to_num(gain, nan=-np.inf), 0.0))
        taken = rng.uniform(size=len(x)) < rate
        x, value = np.where(taken[:, None], there, x), np.where(taken, found, value)
        if i < draws:
            log_step += (np.mean(rate) - WANTED) / np.sqrt(i + 1.0)
        else:
            rates.append(np.mean(rate))
            points.append(x)
    return Draws(np.array(points), float(np.mean(rates)))


def spread_of_chains(points: Floats) -> Floats:
    """Gelman's and Rubin's measure of each parameter, of half chains: near one where chains agree."""
    halves = np.concatenate(np.split(points[: len(points) // 2 * 2], 2), axis=1)
    within, between = np.mean(np.var(halves, axis=0, ddof=1), axis=0), np.var(np.mean(halves, axis=0), axis=0, ddof=1)
    return np.sqrt(1.0 + between / within)


def run(draws: int, chains: int = 32, seed: int = 0) -> Draws:
    """Sample the eight schools."""
    rng = np.random.default_rng(seed)
    density = rg.vmap(rg.value_and_grad(flat_log_density))
    return sample(density, FLAT + 0.5 * rng.normal(size=(chains, FLAT.size)), draws, rng)


def main(arguments: Sequence[str]) -> None:
    """Sample, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="of each chain")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    drawn = run(options.draws)
    print(f"{drawn.points.shape[0] * drawn.points.shape[1]:,} draws in {time.perf_counter() - begin:.1f} s")
    print(f"accepted {drawn.accepted:.0%}, chains agree to {np.max(spread_of_chains(drawn.points)):.3f}")
    found = [UNRAVEL(x) for x in drawn.points.reshape(-1, FLAT.size)]
    for name, values in {
        "mean of schools": np.array([p["mean"] for p in found]),
        "spread of schools": np.exp([p["log_spread"] for p in found]),
        "effect in school A": np.array([p["mean"] + np.exp(p["log_spread"]) * p["offsets"][0] for p in found]),
    }.items():
        print(f"{name:20} {np.mean(values):6.2f} ± {np.std(values):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
