"""The price of a gradient over its function, both compiled for one target: `python -m bench.compiled`."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median

import retrograd as rg
from bench import table
from bench.dispatch import seconds
from bench.environment import describe
from bench.workload import Workload
from bench.workloads import WORKLOADS

NAMES = ("bundle", "hand", "long-lstm", *(name for name in WORKLOADS if name.startswith("kernel-")))


def row(workload: Workload, backend: str, samples: int) -> list[str]:
    """Name, times of the function and of value and gradient, and their ratio; beside JAX's."""
    function = workload.in_retrograd(rg) if workload.in_retrograd else workload.function
    arguments, argnums = workload.inputs(), workload.argnums
    calls = [
        partial(rg.jit(function, backend=backend), *arguments),
        partial(rg.value_and_grad(function, argnums=argnums, backend=backend), *arguments),
    ]
    if workload.in_jax and find_spec("jax"):
        jax = import_module("jax")
        jax.config.update("jax_enable_x64", workload.dtype == "float64")
        theirs = jax.jit(jax.value_and_grad(workload.in_jax(jax), argnums=argnums))
        calls.append(lambda: jax.block_until_ready(theirs(*arguments)))
    alone, both, *others = seconds(calls, samples)
    ratio = median(b / a for a, b in zip(alone, both, strict=True))
    jax_column = f"{median(b / o for b, o in zip(both, others[0], strict=True)):.2f}" if others else "–"
    return [workload.title, table.time(median(alone)), table.time(median(both)), f"{ratio:.2f}", jax_column]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.compiled", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help="rows, by name")
    parser.add_argument("--backend", default="native", choices=("numpy", "native"))
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()

    rows = [row(WORKLOADS[name], options.backend, options.samples) for name in options.names]
    print(f"{describe()}\n")
    header = ["program", "function", "value and gradient", "gradient / function", f"{options.backend} / jax"]
    print(table.render(header, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
