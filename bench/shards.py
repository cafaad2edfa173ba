"""What a step over shards costs on one and two workers, and a simulation of many: `python -m bench.shards`.

Steps of losses that compute next to nothing are timed, so that what remains is the cost of the distribution. A model is
fitted to the times. With what it says of tasks and bytes, clusters of 10 to 10,000 workers are simulated.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from bench import table
from bench.shards_at_scale import CLUSTERS, Costs, simulated

SIZES = (1_000, 100_000, 1_000_000)  # parameters, of 8 bytes
SHARDS = (2, 8, 32, 128)
WORKERS = (1, 2)
STEPS = 7  # of each kind, in turns; the median counts


class Kind(NamedTuple):
    """One kind of step, and what was measured of it."""

    workers: int
    shards: int
    size: int
    seconds: float
    tasks: int
    sent: int
    moved: int


def light(w: Any, x: Any) -> Any:
    """A loss whose gradient costs about a copy of the parameters."""
    return np.sum(w * x)


def moved_bytes(dask_worker: Any) -> int:
    """On a worker: all bytes that it got from other workers."""
    return sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def measured(workers: int, sizes: Sequence[int], counts: Sequence[int], steps: int) -> list[Kind]:
    """Steps of all kinds on so many workers, in turns."""
    found = []
    with rg.distributed.cluster(workers) as client:
        cases = [(n, size) for n in counts for size in sizes]
        steps_of = {
            (n, size): rg.distributed.value_and_grad(light, client, shards=[(float(k),) for k in range(n)])
            for n, size in cases
        }
        times: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
        moved: dict[tuple[int, int], int] = {}
        for turn in range(steps + 1):
            for n, size in cases:
                f, w = steps_of[n, size], np.full(size, float(turn))
                before = sum(client.run(moved_bytes).values())
                start = time.perf_counter()
                f(w)
                times[n, size].append(time.perf_counter() - start)
                moved[n, size] = sum(client.run(moved_bytes).values()) - before
        for n, size in cases:
            report = steps_of[n, size].report
            assert report is not None
            seconds = median(times[n, size][1:])  # the first one compiles
            found.append(Kind(workers, n, size, seconds, report.tasks + 2, report.sent, moved[n, size]))
    return found


def fitted(kinds: Sequence[Kind]) -> tuple[Costs, float]:
    """Seconds of a step, of a task, and of a byte, by least squares of relative errors; and the median such error."""
    seconds = np.array([k.seconds for k in kinds])
    touched = np.array([8.0 * k.size * (k.workers + k.tasks) for k in kinds])  # made, sent, or summed
    rows = np.stack([np.ones(len(kinds)), [k.tasks for k in kinds], touched], axis=1)
    weights, *_ = np.linalg.lstsq(rows / seconds[:, None], np.ones(len(kinds)), rcond=None)
    step, task, byte = np.maximum(weights, 1e-12).tolist()
    error = float(np.median(np.abs(rows @ weights - seconds) / seconds))
    return Costs(step=step, task=task, byte=byte), error


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, fit, simulate, and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--shards", type=int, nargs="*", default=SHARDS)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args(arguments)
    kinds = [k for n in WORKERS for k in measured(n, options.sizes, options.shards, options.steps)]
    costs, error = fitted(kinds)
    rows = [
        [*map(str, (k.workers, k.shards)), f"{8 * k.size:,}", str(k.tasks), table.time(k.seconds)]
        + [f"{n:,}" for n in (k.sent, k.moved)]
        for k in kinds
    ]
    head = ["workers", "shards", "bytes of parameters", "tasks", "a step", "bytes from the client", "between workers"]
    print(table.render(head, rows, markdown=options.markdown))
    print(f"\nfitted {', '.join(f'{k} {v:.3g} s' for k, v in asdict(costs).items() if k in ('step', 'task', 'byte'))}")
    print(f"median error of the model {error:.0%}\n")
    head = ["workers", "seconds of a shard", "shards", "in a task", "a step", "busy", "waits for", "computed again"]
    rows = []
    for plan in CLUSTERS:
        found = simulated(plan, costs)
        rows.append(
            [f"{plan.workers:,}", f"{plan.seconds:g}", f"{plan.shards:,}", f"{plan.group}", table.time(found.seconds),
             f"{found.busy:.0%}", found.waits_for, f"{found.again}"]
        )  # fmt: skip
    print(table.render(head, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
