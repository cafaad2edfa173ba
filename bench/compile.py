"""Time to compile the value and gradient of a chain of elementwise operations: `python -m bench.compile`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from bench import table
from bench.environment import describe
from bench.timing import sample
from bench.workload import Function

X = np.linspace(-1.0, 1.0, 8)
LATER_CALLS = 3


def chain(xp: ModuleType, length: int, shift: float) -> Function:
    """A new function of `length` operations and a sum; another `shift` is another program to any cache."""
    steps: tuple[Function, ...] = (xp.sin, lambda x: x * 1.5, lambda x: x + shift, xp.tanh)

    def function(x: Any) -> Any:
        for i in range(length):
            x = steps[i % len(steps)](x)
        return xp.sum(x)

    return function


def with_retrograd(length: int, shift: float) -> Callable[[], Any]:
    """A call that compiles when it is made first."""
    rg = import_module("retrograd")
    compiled = rg.value_and_grad(chain(np, length, shift))
    return lambda: compiled(X)


def with_jax(length: int, shift: float) -> Callable[[], Any]:
    """A call that compiles when it is made first."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(jax.value_and_grad(chain(jax.numpy, length, shift)))
    return lambda: jax.block_until_ready(compiled(X))


COMPILERS = {"retrograd": with_retrograd, "jax": with_jax}


def ready(compiler: str, length: int, shift: float) -> float:
    """Seconds from a function to its first result, a later call taken off."""
    start = perf_counter()
    call = COMPILERS[compiler](length, shift)
    call()
    first = perf_counter() - start
    return first - min(sample(call, 1) for _ in range(LATER_CALLS))


def main() -> None:
    """Print one row for each compiler and length."""
    parser = argparse.ArgumentParser(prog="python -m bench.compile", description=__doc__)
    parser.add_argument("lengths", nargs="*", type=int, default=[10, 100, 1_000, 10_000], help="numbers of operations")
    parser.add_argument("--contestants", nargs="+", choices=COMPILERS, default=["retrograd"])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()

    rows = []
    for compiler in options.contestants:
        ready(compiler, 1, 0.0)  # what a first compilation imports and starts is not the program's
        for length in options.lengths:
            seconds = [ready(compiler, length, 0.01 * (i + 1)) for i in range(options.repetitions)]
            per_operation = f"{1e3 * median(seconds) / length:.3f}"
            rows.append([compiler, f"{length:,}", table.time(median(seconds), min(seconds)), per_operation])
    print(f"{describe()}\n")
    header = ["compiler", "operations", "median [minimum]", "ms per operation"]
    print(table.render(header, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
