"""Three jobs over shards, on processes of this machine or on any dask cluster, with the same bits as in one process.

    python examples/many_shards.py digits               a network on digits, each step compared with threads bit by bit
    python examples/many_shards.py paths                ten million paths of an option and its sensitivities
    python examples/many_shards.py survey               many shots of a seismic survey, with a budget for each worker
    python examples/many_shards.py survey --scheduler tcp://10.0.0.1:8786      on the workers of that cluster
    python examples/many_shards.py survey --workers 0                          in threads of this process

A job goes on from ``--checkpoint FILE`` where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import digits
import numpy as np
from digits_data import load_sklearn
from numpy.typing import NDArray
from scipy.stats import norm

import retrograd as rg

Floats = NDArray[np.float64]


# ------------------------------------------------------------------------------------------------- digits, in lockstep


def train_digits(client: Any, options: argparse.Namespace) -> str | None:
    """Train by momentum on batches of shards; threads of this process take each step, too."""
    data = load_sklearn()
    size = 32
    starts = range(0, len(data.train_images) - size + 1, size)
    shards = [(data.train_images[k : k + size], data.train_labels[k : k + size]) for k in starts]
    loss = digits.loss.__wrapped__  # the plain function
    rng = np.random.default_rng(0)
    params = digits.random_weights(rng, data.train_images.shape[1], 32)
    optimiser = rg.optim.momentum(0.2)
    state = optimiser.init(params)
    alone = rg.distributed.value_and_grad(loss, shards=shards, reduce="mean")
    with rg.distributed.value_and_grad(loss, client, shards=shards, reduce="mean") as together:
        for step in range(options.steps or 200):
            batch = rng.choice(len(shards), 4, replace=False).tolist()
            value, slope = together(params, only=batch)
            if bits((value, slope)) != bits(alone(params, only=batch)):
                return f"many_shards: step {step} has other bits in other processes"
            params, state = optimiser.update(slope, state, params)
        print(together.report)
    right = digits.accuracy(params, data.test_images, data.test_labels)
    print(f"{step + 1} steps in lockstep, held-out accuracy {right:.2%}")
    return None if right >= options.require else f"many_shards: the accuracy is below {options.require:.2%}"


def bits(tree: Any) -> list[bytes]:
    """All numbers of a tree, as bytes."""
    return [np.asarray(x).tobytes() for x in rg.tree.leaves(tree)]


# ------------------------------------------------------------------------------------------- paths of an Asian option


class Market(NamedTuple):
    """What the price depends on."""

    spot: Any
    rate: Any
    volatility: Any


MARKET, STRIKE, YEARS, DATES = Market(100.0, 0.03, 0.25), 105.0, 1.0, 12


def payoffs(market: Market, draws: Floats) -> Floats:
    """The sum of what a call on the geometric mean of the prices pays; draws have the shape (paths, DATES)."""
    step = YEARS / DATES
    moves = (market.rate - 0.5 * market.volatility**2) * step + market.volatility * np.sqrt(step) * draws
    mean = market.spot * np.exp(np.mean(np.cumsum(moves, axis=1), axis=1))
    return np.sum(np.exp(-market.rate * YEARS) * np.maximum(mean - STRIKE, 0.0))


def draw(seed: int, paths: int) -> tuple[Floats]:
    """The normal numbers of one shard, from a stream of its own."""
    return (np.random.default_rng([2024, seed]).standard_normal((paths, DATES)),)


def exact(market: Market) -> Floats:
    """The price in closed form (Kemna and Vorst, 1990)."""
    variance = market.volatility**2 * YEARS * (DATES + 1) * (2 * DATES + 1) / (6 * DATES**2)
    drift = (market.rate - 0.5 * market.volatility**2) * YEARS * (DATES + 1) / (2 * DATES)
    root = np.sqrt(variance)
    d2 = (np.log(market.spot / STRIKE) + drift) / root
    forward = market.spot * np.exp(drift + 0.5 * variance)
    return np.exp(-market.rate * YEARS) * (forward * norm.cdf(d2 + root) - STRIKE * norm.cdf(d2))


def price_paths(client: Any, options: argparse.Namespace) -> str | None:
    """The price and its derivatives by all market data, from paths that workers draw where they need them."""
    size = min(options.paths, 50_000)
    count = options.paths // size
    load = partial(draw, paths=size)
    f = rg.distributed.value_and_grad(
        payoffs, client, shards=range(count), load=load, keep=False, progress=True, time_limit=600
    )
    value, slope = f(MARKET)
    print(f.report)
    expected = rg.value_and_grad(exact)(MARKET)
    worst = 0.0
    for name, found, right in zip(
        ("price", *Market._fields), (value, *slope), (expected[0], *expected[1]), strict=True
    ):
        mean = found / (count * size)
        off = abs(mean - right) / abs(right)
        worst = max(worst, off)
        print(f"{name:>10} {mean:12.6f}   exactly {right:12.6f}   off by {off:.1e}")
    most = 10.0 / np.sqrt(count * size)
    return None if worst <= most else f"many_shards: {worst:.1e} is more than the {most:.1e} that chance explains"


# --------------------------------------------------------------------------------------------------- a seismic survey


def ground(change: Floats) -> Floats:
    """The layers with a change, which fades out towards the sources: there, the gradient is largest and says least."""
    fade = np.clip((np.arange(wave.DEPTH) - 8) / 10.0, 0.0, 1.0)[:, None]
    return wave.layers() + fade * change


def misfit(change: Floats, source: Floats, heard: Floats) -> Floats:
    """Half the squared difference between what one shot lets the receivers hear and what they heard."""
    return 0.5 * np.sum((wave.echoes(ground(change), source, len(heard)) - heard) ** 2)


def shot(place: int, steps: int) -> tuple[Floats, Floats]:
    """One shot of the survey, as a worker makes it: where the source is, and what the receivers heard."""
    source = np.zeros((wave.DEPTH, wave.WIDTH))
    source[wave.SURFACE, place] = 1.0
    return source, wave.echoes(wave.truth(), source, steps)


def invert_survey(client: Any, options: argparse.Namespace) -> str | None:
    """Find the ground from all shots by L-BFGS; each worker keeps within its budget."""
    places = np.linspace(20, wave.WIDTH - 20, options.shots).astype(int).tolist()
    found = rg.distributed.minimize(
        misfit,
        np.zeros((wave.DEPTH, wave.WIDTH)),
        shards=places,
        client=client,
        load=partial(shot, steps=options.length),
        memory=options.budget,
        steps=options.steps or 8,
        checkpoint=options.checkpoint,
        every=1,
        resume=options.checkpoint is not None,
        tolerance=0.0,
        callback=lambda step, value, change: print(f"step {step:3}   misfit {value:.5f}"),
    )
    print(found.report or "nothing is left to do")
    change, lens = (x - wave.layers() for x in (ground(found.params), wave.truth()))
    print(f"the change has the correlation {np.corrcoef(lens.ravel(), change.ravel())[0, 1]:.2f} with the lens")
    fell = found.values[-1] / found.values[0]
    return None if fell < 1.0 or found.steps < 2 else "many_shards: the misfit did not fall"


# ------------------------------------------------------------------------------------------------------- command line

JOBS = {"digits": train_digits, "paths": price_paths, "survey": invert_survey}


@contextmanager
def client_of(options: argparse.Namespace) -> Iterator[Any]:
    """A client of a cluster that is there, or of new processes; None for threads."""
    if options.scheduler:
        from distributed import Client  # noqa: PLC0415 - optional

        with Client(options.scheduler) as client:
            yield client
    elif options.workers:
        with rg.distributed.cluster(options.workers) as client:
            yield client
    else:
        yield None


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Do a job, and return what went wrong, if anything did."""
    options = parse(arguments)
    with client_of(options) as client:
        return JOBS[options.job](client, options)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; --help lists them."""
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--workers", type=int, default=2, help="processes on this machine, or 0 for threads (2)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="the scheduler of a dask cluster that is there")
    parser.add_argument("--steps", type=int, help="steps of the digits (200) and the survey (8)")
    parser.add_argument("--require", type=float, default=0.9, help="accuracy that the digits must reach (0.9)")
    parser.add_argument("--paths", type=int, default=10_000_000, help="paths of the option (10,000,000)")
    parser.add_argument("--shots", type=int, default=12, help="shots of the survey (12)")
    parser.add_argument("--length", type=int, default=900, help="time steps of a shot (900)")
    parser.add_argument("--budget", default="32 MiB", help="the most that gradients in one worker take (32 MiB)")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="the survey goes on from here if it is there")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
