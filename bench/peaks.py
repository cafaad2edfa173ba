"""The most memory that a value and its gradient take at once, beside code by hand: `python -m bench.peaks`."""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from typing import Any

import retrograd as rg
from bench import table
from bench.kept import kept
from bench.workload import Workload
from bench.workloads import WORKLOADS

ROWS = [name for name, workload in WORKLOADS.items() if workload.by_hand and not workload.in_retrograd]
CALLS = 3


def peak(call: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    """Bytes beyond the arguments, by tracemalloc: the least of some calls, after one that may compile."""
    call(*arguments)
    return min(_once(call, arguments) for _ in range(CALLS))


def _once(call: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
    kept.cache_clear()  # what a call keeps for the next one is memory that it takes
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call(*arguments)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def peaks(workload: Workload) -> tuple[int, int]:
    """Of the compiled gradient, on one thread and with nothing kept between calls, and of the gradient by hand."""
    assert workload.by_hand
    arguments = workload.inputs()
    gradient = rg.value_and_grad(workload.function, argnums=workload.argnums)
    before = rg.config.workspace, rg.config.threads
    rg.config.workspace, rg.config.threads = 0, 1
    try:
        return peak(gradient, arguments), peak(workload.by_hand, arguments)
    finally:
        rg.config.workspace, rg.config.threads = before


def main() -> None:
    """Print one row for each workload that has no loop of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.peaks", description=__doc__)
    parser.add_argument("rows", nargs="*", help="the start of their names; default: all")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()
    names = [name for name in ROWS if name.startswith(tuple(options.rows) or "")]
    found = {name: peaks(WORKLOADS[name]) for name in names}
    rows = [[name, f"{a / 1e6:.3f} MB", f"{b / 1e6:.3f} MB", f"{a / b:.2f}"] for name, (a, b) in found.items()]
    print(table.render(["peak", "retrograd", "hand", "ratio"], rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
