"""Value and gradient of each workload by each contestant: times, ratios, time to compile."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench.contestants import CONTESTANTS
from bench.environment import describe, limit_threads
from bench.report import report
from bench.turns import take_turns
from bench.workload import Workload
from bench.workloads import WORKLOADS


def chosen(rows: Sequence[str]) -> list[Workload]:
    """The workloads of these names, or whose names begin so; all for none."""
    for row in rows:
        if not any(named(name, row) for name in WORKLOADS):
            raise SystemExit(f"no row is named {row}; there are {', '.join(WORKLOADS)}")
    return [workload for name, workload in WORKLOADS.items() if not rows or any(named(name, row) for row in rows)]


def named(name: str, row: str) -> bool:
    """Whether the name is this, or begins so."""
    return name == row or name.startswith(f"{row}-")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a contestant failed or disagreed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("rows", nargs="*", help=f"{', '.join(WORKLOADS)}, or how names begin, as mlp; default: all")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument(
        "--rounds", type=int, default=5, help="processes per contestant and row; 0: only check agreement"
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="time to measure in each process")
    parser.add_argument("--threads", type=int, help="keep everything on so many processors (Linux)")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    options = parser.parse_args(arguments)

    workloads = chosen(options.rows)
    if options.threads:
        limit_threads(options.threads)
    results = {
        workload.name: take_turns(workload, options.contestants, options.rounds, options.seconds)
        for workload in workloads
    }
    if options.rounds:
        print(f"{describe()}\n\n{report(results, options.contestants, markdown=options.markdown)}")
    return int(any(turns is None for times in results.values() for turns in times.values()))
