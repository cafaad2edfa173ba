"""What a call costs beyond the generated body, for one small array and each further one: `python -m bench.dispatch`."""

from __future__ import annotations

import argparse
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import retrograd as rg
from bench import table
from bench.environment import describe
from bench.timing import sample, warm_up
from bench.workload import Function

WARM_UP_SECONDS = 0.1


def one(a: Any) -> Any:
    """A function of one array."""
    return a + 1.0


def two(a: Any, b: Any) -> Any:
    """A function of two arrays."""
    return a + b


def four(a: Any, b: Any, c: Any, d: Any) -> Any:
    """A function of four arrays."""
    return a + b + c + d


def eight(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """A function of eight arrays."""
    return a + b + c + d + e + f + g + h


ARITIES: dict[int, Function] = {1: one, 2: two, 4: four, 8: eight}


def overhead(function: Function, arity: int, samples: int) -> tuple[float, float, float]:
    """Median seconds of a compiled call, of the bare generated function, and of their difference, taken in turns."""
    arguments = np.random.default_rng(0).standard_normal((arity, 3))
    compiled = rg.jit(function)
    call = partial(compiled, *arguments)
    bare = partial(compiled.executable(*arguments).function, *arguments)
    number = warm_up(call, WARM_UP_SECONDS)
    warm_up(bare, WARM_UP_SECONDS)
    pairs = [(sample(call, number), sample(bare, number)) for _ in range(samples)]
    whole, body = zip(*pairs, strict=True)
    return median(whole), median(body), median(a - b for a, b in pairs)


def main() -> None:
    """Print the table and the line fitted to it."""
    parser = argparse.ArgumentParser(prog="python -m bench.dispatch", description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()

    found = {arity: overhead(function, arity, options.samples) for arity, function in ARITIES.items()}
    print(f"{describe()}\n")
    print(
        table.render(
            ["arrays", "call", "body", "overhead"],
            [[str(arity), *map(table.time, seconds)] for arity, seconds in found.items()],
            markdown=options.markdown,
        )
    )
    further, _ = np.polyfit(list(found), [beyond for _, _, beyond in found.values()], 1)
    print(f"\none array: {table.time(found[1][2])}; each further array: {table.time(further)}")


if __name__ == "__main__":
    main()
