"""SDE: 200,000 paths of a short rate, 50 steps with given draws; gradient of a bond's price in all parameters.

The rate is that of Cox, Ingersoll and Ross, by Euler's steps with |x| under the root, as Higham and Mao have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.kept import kept
from bench.workload import Function, Workload

PATHS, STEPS, H = 200_000, 50, 0.1
LANES = 8192


def inputs() -> tuple[Any, ...]:
    """The rate at the start, its speed of return, its mean, its volatility, and the draws of each step."""
    draws = np.random.default_rng(0).standard_normal((STEPS, PATHS))
    return 0.03, 0.8, 0.05, 0.08, draws


def step(np: Any, s: Any, parameters: Any, draw: Any) -> Any:
    """The rates and their integrals a step later."""
    x, area = s
    speed, mean, volatility = parameters
    moved = x + speed * (mean - x) * H + volatility * np.sqrt(H * np.abs(x)) * draw
    return moved, area + H * x


def price(start: Any, speed: Any, mean: Any, volatility: Any, draws: Any) -> Any:
    """In plain NumPy."""
    s = (start + np.zeros(PATHS), np.zeros(PATHS))
    for t in range(STEPS):
        s = step(np, s, (speed, mean, volatility), draws[t])
    return np.mean(np.exp(-s[1]))


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def price(start: Any, speed: Any, mean: Any, volatility: Any, draws: Any) -> Any:
        s = (start + np.zeros(PATHS), np.zeros(PATHS))
        (_, area), _ = rg.scan(lambda s, z: (step(np, s, (speed, mean, volatility), z), None), s, draws)
        return np.mean(np.exp(-area))

    return price


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def price(start: Any, speed: Any, mean: Any, volatility: Any, draws: Any) -> Any:
        s = (start + jnp.zeros(PATHS), jnp.zeros(PATHS))
        (_, area), _ = jax.lax.scan(lambda s, z: (step(jnp, s, (speed, mean, volatility), z), None), s, draws)
        return jnp.mean(jnp.exp(-area))

    return price


def in_torch(torch: Any) -> Function:
    """The same loop."""

    def price(start: Any, speed: Any, mean: Any, volatility: Any, draws: Any) -> Any:
        zeros = torch.zeros(PATHS, dtype=draws.dtype)
        s = (start + zeros, zeros)
        for draw in draws:
            s = step(torch, s, (speed, mean, volatility), draw)
        return torch.exp(-s[1]).mean()

    return price


def by_hand(start: float, speed: float, mean: float, volatility: float, draws: Any) -> tuple[Any, Any]:
    """All steps of so many paths as the cache holds, forward and back; rates and the draws' parts are kept.

    With g = sqrt(|x|) z the derivative of g in x is g / 2x, and the parameters' gradients are inner products of the
    rates' cotangents with g, x and 1.
    """
    steps, paths = draws.shape
    scale = volatility * np.sqrt(H)
    d_start = d_speed = d_mean = d_volatility = value = 0.0
    for first in range(0, paths, LANES):
        lanes = draws[:, first : first + LANES]
        width = lanes.shape[1]
        xs, shocks = kept("paths", (2, steps + 1, LANES))[:, :, :width]
        area, slope, spare = kept("lanes", (3, LANES))[:, :width]
        xs[0] = start
        area[...] = 0.0
        for t in range(steps):
            x, shock, after = xs[t], shocks[t], xs[t + 1]
            area += x
            np.abs(x, out=shock)
            np.sqrt(shock, out=shock)
            shock *= lanes[t]
            np.multiply(x, 1.0 - speed * H, out=after)
            after += speed * mean * H
            np.multiply(shock, scale, out=spare)
            after += spare
        area *= -H
        np.exp(area, out=area)
        value += area.sum()

        area *= -H
        slope[...] = 0.0
        for t in reversed(range(steps)):
            x, shock = xs[t], shocks[t]
            total = slope.sum()
            d_mean += total
            d_speed += mean * total - slope @ x
            d_volatility += slope @ shock
            np.divide(shock, x, out=spare)
            spare *= 0.5 * scale
            spare += 1.0 - speed * H
            slope *= spare
            slope += area
        d_start += slope.sum()
    gradient = (d_start, H * d_speed, H * speed * d_mean, np.sqrt(H) * d_volatility)
    return value / paths, tuple(part / paths for part in gradient)


WORKLOADS = (
    Workload(
        name="sde",
        title="SDE, 200,000 paths, 50 steps",
        dtype="float64",
        inputs=inputs,
        function=price,
        argnums=(0, 1, 2, 3),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
    ),
)
