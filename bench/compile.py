"""Time to compile the value and gradient of long programs: `python -m bench.compile`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from itertools import product
from math import isqrt
from statistics import median
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np

import retrograd as rg
from bench import table
from bench.environment import describe
from bench.workload import Function
from bench.workloads.kernels import lu_by_elements

X = np.linspace(-1.0, 1.0, 8)
LATER_CALLS = 3
MOST = 10  # operations that a program may trace for each one that its length counts: a write takes a few


def chain(xp: ModuleType, length: int, shift: float) -> Function:
    """A new function of `length` operations and a sum; another `shift` is another program to any cache."""
    steps: tuple[Function, ...] = (xp.sin, lambda x: x * 1.5, lambda x: x + shift, xp.tanh)

    def function(x: Any) -> Any:
        for i in range(length):
            x = steps[i % len(steps)](x)
        return xp.sum(x)

    return function


def mixed(xp: ModuleType, length: int, shift: float) -> Function:
    """The same of products, choices, slices, joins, broadcasts, means and divisions: twenty operations in a round."""

    def function(x: Any) -> Any:
        y = x
        for _ in range(length // 20):
            a = xp.sin(y) * 1.5 - y[::-1]
            b = xp.concatenate([a[4:] * x[:4], xp.cos(a[:4]) - a[4:]])
            c = xp.where(b > 0, b, 0.1 * b) + y[3]
            y = xp.tanh(c + y / 2.0) - (xp.mean(c) + shift)
        return xp.sum(y**2)

    return function


def irregular(xp: ModuleType, length: int, shift: float) -> Function:
    """The same without any two parts alike: what comes next, and of what, is drawn."""
    rng = np.random.default_rng(0)
    unary: tuple[Function, ...] = (xp.sin, xp.tanh, lambda x: x[::-1], lambda x: x * 0.75, lambda x: x + shift)
    binary: tuple[Function, ...] = (xp.arctan2, xp.minimum, xp.maximum, xp.hypot)
    drawn = rng.integers(0, 20, (length, 3)).tolist()

    def function(x: Any) -> Any:
        recent = [x, xp.cos(x)]
        for kind, a, b in drawn:
            x, y = recent[-1 - a % len(recent)], recent[-1 - b % len(recent)]
            found = unary[kind % 5](x) if kind < 12 else binary[kind % 4](x, y)
            recent = [*recent[-7:], found]
        return sum(xp.sum(x) for x in recent)

    return function


def scalars(xp: ModuleType, length: int, shift: float) -> Function:
    """The same of numbers only: formulas of a plant, each of two earlier ones, and squares of what goes over limits."""
    rng = np.random.default_rng(0)
    forms: tuple[Function, ...] = (
        lambda a, b, k: k * a - b,
        lambda a, b, k: a * b + k,
        lambda a, b, k: k / (1.0 + a * a),
        lambda a, b, k: xp.sqrt(1.0 + b**2) - k,
        lambda a, b, k: a - k * xp.exp(-b * b),
    )
    count = length // 3  # a formula has three operations on average
    drawn = rng.integers(0, (5, 20, 20), (count, 3)).tolist()
    numbers = (rng.random(count) + shift).tolist()

    def function(x: Any) -> Any:
        y = [x[i] for i in range(8)]
        loss = 0.0
        for i, ((form, a, b), k) in enumerate(zip(drawn, numbers, strict=True)):
            y.append(forms[form](xp.tanh(y[-1 - a % len(y)]) if i % 5 == 0 else y[-1 - a % len(y)], y[b % 8], k))
            if i % 10 == 0:
                loss = loss + xp.maximum(y[-1] - k, 0.0) ** 2
        return loss + y[-1]

    return function


def writes(xp: ModuleType, length: int, shift: float) -> Function:
    """A matrix that is filled number by number: `length` writes, each of a formula that is drawn."""
    rng = np.random.default_rng(0)
    forms: tuple[Function, ...] = (
        lambda a, b: a * b,
        lambda a, b: a + shift * b,
        lambda a, b: xp.sin(a),
        lambda a, b: a * xp.cos(b),
        lambda a, b: xp.exp(-a),
    )
    drawn = rng.integers(0, (5, 8, 8), (length, 3)).tolist()
    width = max(1, isqrt(length))

    def function(x: Any) -> Any:
        c = xp.zeros((-(-length // width), width))
        for k, (form, a, b) in enumerate(drawn):
            c[k // width, k % width] = forms[form](x[a], x[b])
        return xp.sum(c**2)

    return function


def lu(xp: ModuleType, length: int, shift: float) -> Function:
    """LU by elements of a matrix with about `length` updates of an element: 576 for 12 rows, 4,608 for 24."""
    n = max(1, round((3.0 * length) ** (1.0 / 3.0)))
    places = np.arange(n * n).reshape(n, n) * 5 % 8

    def function(x: Any) -> Any:
        return lu_by_elements(x[places] / n + (2.0 + shift) * xp.eye(n))

    return function


PROGRAMS = {"chain": chain, "mixed": mixed, "irregular": irregular, "scalars": scalars, "writes": writes, "lu": lu}
WRITING = frozenset({"writes", "lu"})  # programs that write into arrays


def with_retrograd(program: str, length: int, shift: float) -> Callable[[], Any]:
    """A call that compiles when it is made first."""
    rg = import_module("retrograd")
    compiled = rg.value_and_grad(PROGRAMS[program](np, length, shift))
    return lambda: compiled(X)


def with_jax(program: str, length: int, shift: float) -> Callable[[], Any]:
    """A call that compiles when it is made first."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(jax.value_and_grad(PROGRAMS[program](jax.numpy, length, shift)))
    return lambda: jax.block_until_ready(compiled(X))


COMPILERS = {"retrograd": with_retrograd, "jax": with_jax}


def ready(compiler: str, program: str, length: int, shift: float) -> float:
    """Processor seconds from a function to its first result, a later call taken off."""
    start = process_time()
    call = COMPILERS[compiler](program, length, shift)
    call()
    first = process_time() - start
    return first - min(_processor_time(call) for _ in range(LATER_CALLS))


def _processor_time(call: Callable[[], Any]) -> float:
    start = process_time()
    call()
    return process_time() - start


def main() -> None:
    """Print one row for each compiler and length."""
    parser = argparse.ArgumentParser(prog="python -m bench.compile", description=__doc__)
    parser.add_argument("lengths", nargs="*", type=int, default=[10, 100, 1_000, 10_000], help="numbers of operations")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=[*PROGRAMS])
    parser.add_argument("--contestants", nargs="+", choices=COMPILERS, default=["retrograd"])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()

    rows = []
    rg.config.cache_size = 0  # programs of one code are compiled each for itself
    rg.config.max_nodes = max(rg.config.max_nodes, MOST * max(options.lengths))
    for compiler in options.contestants:
        ready(compiler, "chain", 1, 0.0)  # what a first compilation imports and starts is not the program's
        for program, length in product(options.programs, options.lengths):
            if compiler == "jax" and program in WRITING:
                continue
            seconds = [ready(compiler, program, length, 0.01 * (i + 1)) for i in range(options.repetitions)]
            per_operation = f"{1e3 * median(seconds) / length:.3f}"
            rows.append([compiler, program, f"{length:,}", table.time(median(seconds), min(seconds)), per_operation])
    print(f"{describe()}\n")
    header = ["compiler", "program", "operations", "median [minimum]", "ms per operation"]
    print(table.render(header, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
