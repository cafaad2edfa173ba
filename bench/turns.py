"""Contestants in fresh processes: first their agreement, then their turns at the clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.contestants import takes_part
from bench.workload import Workload

PAUSE_SECONDS = 0.05  # BLAS workers spin for a while after their last product
OURS = ("retrograd", "function", "native", "buffered")
REFERENCES = ("hand", "jax", "torch", "autograd", *OURS, "c", "casadi", "pytensor", "drjit")

Arrays = list[NDArray[Any]]


class ContestantError(Exception):
    """A contestant raised, or its value or gradient is not the others'."""


@dataclass(frozen=True)
class Turn:
    """What one process measured, in seconds; `ready` is what the first call took beyond a later one."""

    median: float
    minimum: float
    ready: float


Times = dict[str, list[Turn] | None]  # by contestant, one turn per round; None: it failed


def take_turns(workload: Workload, contestants: Iterable[str], rounds: int, seconds: float) -> Times:
    """Check those that take part, then time the agreeing ones in the order A B C A B C."""
    times: Times = {contestant: None for contestant in contestants if takes_part(contestant, workload)}
    for contestant in agreeing(workload, times):
        times[contestant] = []
    for number in range(rounds):
        for contestant, turns in times.items():
            if turns is None:
                continue
            announce(f"{workload.name}: round {number + 1}, {contestant}")
            try:
                turns.append(Turn(**json.loads(work(workload, contestant, "--seconds", str(seconds)))))
            except ContestantError as error:
                complain(workload, contestant, error)
                times[contestant] = None
    announce("")
    return times


def agreeing(workload: Workload, contestants: Iterable[str]) -> list[str]:
    """Those that agree with the first of `REFERENCES` among them; what is wrong with the others goes to stderr."""
    good = []
    reference: Arrays = []
    with tempfile.TemporaryDirectory() as directory:
        for contestant in sorted(contestants, key=REFERENCES.index):
            announce(f"{workload.name}: check, {contestant}")
            file = Path(directory) / f"{contestant}.npz"
            try:
                work(workload, contestant, "--save", str(file))
                with np.load(file) as archive:
                    found = [archive[name] for name in archive.files]
                reference = reference or found
                compare(workload, found, reference[:1] if contestant == "function" else reference)
            except ContestantError as error:
                complain(workload, contestant, error)
            else:
                good.append(contestant)
    return good


def compare(workload: Workload, found: Arrays, expected: Arrays) -> None:
    """Raise unless value and gradient agree with the reference, each array relative to its norm."""
    if [array.shape for array in found] != [array.shape for array in expected]:
        raise ContestantError("returns arrays of other shapes than the reference")
    for position, (array, reference) in enumerate(zip(found, expected, strict=True)):
        error = np.linalg.norm(array - reference) / max(np.linalg.norm(reference), np.finfo(workload.dtype).tiny)
        if not error <= workload.rtol:
            place = f"array {position} of the gradient" if position else "the value"
            raise ContestantError(f"differs from the reference by {error:.1e} in {place}")


def work(workload: Workload, contestant: str, *task: str) -> str:
    """Start a fresh process for one contestant and return what it prints."""
    sleep(PAUSE_SECONDS)
    root = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "bench.worker", workload.name, contestant, *task],
        env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ContestantError(f"raised\n{done.stderr}")
    return done.stdout


def announce(line: str) -> None:
    """Show on a terminal what is running, in place of the line before."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def complain(workload: Workload, contestant: str, error: ContestantError) -> None:
    """Say on a line of its own what is wrong."""
    announce("")
    print(f"{workload.name}: {contestant} {error}", file=sys.stderr)
