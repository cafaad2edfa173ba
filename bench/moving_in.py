"""Programs written for autograd, as they are, on retrograd and on autograd: `python -m bench.moving_in`.

Each runs in a fresh process, where `import autograd` is one or the other. What is timed is a run of some steps: the
first 20 in total, compilation included, and the median of the later ones; all on one thread.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench import table

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "programs" / "moving"
PROGRAMS = sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__", "conftest"})
FIRST, LATER = 20, 10  # steps
CLOSE, LESS_CLOSE = 1e-9, {"bayes_opt": 1e-5, "gmm": 1e-3}  # where line searches turn rounding into other steps


class Timed(NamedTuple):
    """One run: the first steps in seconds, a later one, and the numbers that the program told."""

    first: float
    later: float
    told: list[float]


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a program's numbers differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.moving_in", description=__doc__)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, help=f"some of {', '.join(PROGRAMS)}")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program, in turns")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--worker", choices=("compat", "autograd"), help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        print(json.dumps(run(chosen.programs[0], chosen.worker)))
        return 0
    rows, wrong = [], 0
    for program in chosen.programs:
        ours, theirs = [], []
        for _ in range(chosen.rounds):
            ours.append(timed(program, "compat"))
            theirs.append(timed(program, "autograd"))
        agree = agreeing(program, ours[0].told, theirs[0].told)
        wrong += not agree
        rows.append(_row(program, ours, theirs, agree))
    heads = ["", "first 20: retrograd", "autograd", "ratio", "later step: retrograd", "autograd", "ratio"]
    print(table.render(heads, rows, markdown=chosen.markdown))
    return 1 if wrong else 0


def agreeing(program: str, found: list[float], expected: list[float]) -> bool:
    """Whether the numbers of all steps agree."""
    close = LESS_CLOSE.get(program, CLOSE)
    return all(abs(a - b) <= close * max(1.0, abs(b)) for a, b in zip(found, expected, strict=True))


def _row(program: str, ours: list[Timed], theirs: list[Timed], agree: bool) -> list[str]:
    cells = [program if agree else f"{program} (numbers differ)"]
    for part in ("first", "later"):
        a, b = (min(getattr(run, part) for run in runs) for runs in (ours, theirs))
        cells += [table.time(a), table.time(b), f"{b / a:.2f}"]
    return cells


def timed(program: str, contestant: str) -> Timed:
    """A run in a process of its own."""
    command = [sys.executable, "-m", "bench.moving_in", program, "--worker", contestant]
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, cwd=ROOT, env=os.environ | one, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} on {contestant}:\n{done.stderr[-3000:]}")
    return Timed(*json.loads(done.stdout.splitlines()[-1]))


def run(program: str, contestant: str) -> Timed:
    """Run a program in this process."""
    if contestant == "compat":
        from retrograd.compat import autograd  # noqa: PLC0415 - this process runs one contestant

        autograd.install()
    module = importlib.import_module(f"tests.programs.moving.{program}")
    told: list[float] = []
    times = [time.perf_counter()]

    def tick(value: float) -> None:
        told.append(float(value))
        times.append(time.perf_counter())

    module.run(FIRST + LATER, tick)
    steps = sorted(b - a for a, b in zip(times[FIRST:], times[FIRST + 1 :], strict=False))
    return Timed(times[FIRST] - times[0], steps[len(steps) // 2], told)


if __name__ == "__main__":
    sys.exit(main())
