"""Time to compile a gradient within a budget of memory, and without: `python -m bench.budgets`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import retrograd as rg
from bench import table
from bench.environment import describe
from bench.workload import Function

SHARES = (0.9, 0.6)  # of the way from the least peak to that of keeping everything


def layers(shift: float) -> tuple[Function, tuple[Any, ...]]:
    """Sixty layers of tanh with their own weights; another `shift` is another program to any cache."""

    def loss(weights: Any, x: Any) -> Any:
        for k in range(60):
            x = np.tanh(x @ weights[k] + shift)
        return np.sum(x**2)

    rng = np.random.default_rng(0)
    return loss, (rng.standard_normal((60, 16, 16)) / 4.0, rng.standard_normal((64, 16)))


def transformer(shift: float) -> tuple[Function, tuple[Any, ...]]:
    """Six blocks of attention and two dense layers."""

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            q, k, v = x @ w[0], x @ w[1], x @ w[2]
            scores = q @ k.T / 4.0
            part = np.exp(scores - np.max(scores, axis=1, keepdims=True))
            x = x + (part / np.sum(part, axis=1, keepdims=True)) @ v
            x = x + np.tanh(x @ w[3] + shift) @ w[4]
        return np.mean(x**2)

    rng = np.random.default_rng(0)
    return loss, (
        [[rng.standard_normal((16, 16)) / 4.0 for _ in range(5)] for _ in range(6)],
        rng.normal(size=(64, 16)),
    )


def steps(shift: float) -> tuple[Function, tuple[Any, ...]]:
    """A loop of a thousand steps."""

    def loss(x: Any) -> Any:
        return np.sum(rg.fori_loop(0, 1000, lambda _, x: x + 0.01 * np.sin(x + shift), x) ** 2)

    return loss, (np.linspace(0.0, 1.0, 1000),)


PROGRAMS: dict[str, Callable[[float], tuple[Function, tuple[Any, ...]]]] = {
    "60 layers": layers,
    "transformer, 6 blocks": transformer,
    "1,000 steps": steps,
}


def budget(program: str, share: float) -> int:
    """Bytes between the least peak and that of keeping everything."""
    loss, args = PROGRAMS[program](0.5)
    most = rg.grad(loss).plan(*args).peak_bytes
    least = most
    try:
        rg.grad(loss, memory=1)(*args)
    except rg.errors.MemoryBudgetError as error:
        least = error.minimum or most
    return int(least + share * (most - least))


def first_call(program: str, memory: int | None, shift: float) -> float:
    """Processor seconds of the first call of a gradient."""
    loss, args = PROGRAMS[program](shift)
    compiled = rg.grad(loss, memory=memory) if memory is not None else rg.grad(loss)
    start = process_time()
    compiled(*args)
    return process_time() - start


def main() -> None:
    """Print one row for each program and budget."""
    parser = argparse.ArgumentParser(prog="python -m bench.budgets", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()

    rg.config.cache_size = 0  # programs of one code are compiled each for itself
    rows = []
    for program in PROGRAMS:
        choices = {"none": None, **{f"{share:.0%} of the way": budget(program, share) for share in SHARES}}
        found: dict[str, list[float]] = {name: [] for name in choices}
        for i in range(options.repetitions):
            for name, memory in choices.items():
                found[name].append(first_call(program, memory, 0.01 * (i + 1)))
        least = min(found["none"])
        for name, times in found.items():
            rows.append([program, name, table.time(median(times), min(times)), f"{min(times) / least:.2f}"])
    print(f"{describe()}\n")
    print(table.render(["program", "budget", "first call [minimum]", "/ none"], rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
