"""Black–Scholes: the sum of prices of many calls; gradient in spots and volatilities."""

from __future__ import annotations

from ctypes import c_long
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from bench.kept import kept
from bench.workload import Function, Workload
from bench.written_c import function, place

RATE, BLOCK = 0.03, 8192


def inputs(size: int) -> tuple[Any, ...]:
    """Spots, strikes, times to maturity and volatilities, each uniform."""
    rng = np.random.default_rng(0)
    return tuple(rng.uniform(low, high, size) for low, high in ((50, 150), (50, 150), (0.1, 2), (0.1, 0.5)))


def chance(x: Any) -> Any:
    """The distribution function of a standard normal."""
    return 0.5 * (1.0 + special.erf(x / np.sqrt(2.0)))


def prices(spot: Any, strike: Any, time: Any, volatility: Any) -> Any:
    """In plain NumPy, with SciPy's erf."""
    spread = volatility * np.sqrt(time)
    up = (np.log(spot / strike) + (RATE + 0.5 * volatility**2) * time) / spread
    return np.sum(spot * chance(up) - strike * np.exp(-RATE * time) * chance(up - spread))


def in_jax(jax: Any) -> Function:
    """With jax.scipy.stats."""
    jnp = jax.numpy

    def prices(spot: Any, strike: Any, time: Any, volatility: Any) -> Any:
        chance = jax.scipy.stats.norm.cdf
        spread = volatility * jnp.sqrt(time)
        up = (jnp.log(spot / strike) + (RATE + 0.5 * volatility**2) * time) / spread
        return jnp.sum(spot * chance(up) - strike * jnp.exp(-RATE * time) * chance(up - spread))

    return prices


def in_torch(torch: Any) -> Function:
    """With torch.special."""

    def prices(spot: Any, strike: Any, time: Any, volatility: Any) -> Any:
        chance = torch.special.ndtr
        spread = volatility * torch.sqrt(time)
        up = (torch.log(spot / strike) + (RATE + 0.5 * volatility**2) * time) / spread
        return (spot * chance(up) - strike * torch.exp(-RATE * time) * chance(up - spread)).sum()

    return prices


def by_hand(spot: Any, strike: Any, time: Any, volatility: Any) -> tuple[Any, Any]:
    """The textbook's delta and vega, in blocks that stay in the cache; whole arrays where they fit."""
    size = len(spot)
    block = min(size, BLOCK) if size > 2 * BLOCK else size
    delta, vega = np.empty(size), np.empty(size)
    value = 0.0
    for start in range(0, size, block):
        part = slice(start, min(start + block, size))
        s, k, t, v = spot[part], strike[part], time[part], volatility[part]
        root, spread, up, other = kept("option", (4, block))[:, : len(s)]
        np.sqrt(t, out=root)
        np.multiply(v, root, out=spread)
        np.multiply(v, v, out=other)
        other *= 0.5
        other += RATE
        other *= t
        np.divide(s, k, out=up)
        np.log(up, out=up)
        up += other
        up /= spread
        np.subtract(up, spread, out=spread)

        n = special.ndtr(up, out=delta[part])
        special.ndtr(spread, out=spread)
        np.multiply(t, -RATE, out=other)
        np.exp(other, out=other)
        other *= k
        value += np.vdot(s, n) - np.vdot(other, spread)

        slope = vega[part]
        np.multiply(up, up, out=slope)
        slope *= -0.5
        np.exp(slope, out=slope)
        slope *= s
        root *= 1.0 / np.sqrt(2.0 * np.pi)
        slope *= root
    return value, (delta, vega)


def in_c(*args: Any) -> tuple[Any, Any]:
    """The same in C."""
    delta, vega = (np.empty_like(args[0]) for _ in range(2))
    return function("options")(*map(place, (*args, delta, vega)), c_long(len(delta))), (delta, vega)


WORKLOADS = tuple(
    Workload(
        name=f"black-scholes-{size}",
        title=f"Black–Scholes, {size:,} options",
        dtype="float64",
        inputs=partial(inputs, size),
        function=prices,
        argnums=(0, 3),
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
        in_c=in_c,
    )
    for size in (10_000, 100_000, 1_000_000)
)
