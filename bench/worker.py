"""One contestant on one workload, in a process of its own that the benchmark starts."""

from __future__ import annotations

import argparse
import json
from time import perf_counter

import numpy as np

from bench.contestants import CONTESTANTS
from bench.timing import measure
from bench.workload import leaves
from bench.workloads import WORKLOADS


def main() -> None:
    """Save the results, or print the times."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker", description=__doc__)
    parser.add_argument("row", choices=WORKLOADS)
    parser.add_argument("contestant", choices=CONTESTANTS)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--save", help="write the value and the gradient's arrays to this .npz file")
    task.add_argument("--seconds", type=float, help="measure for so long and print the times as JSON")
    options = parser.parse_args()

    call = CONTESTANTS[options.contestant](WORKLOADS[options.row])
    if options.save:
        np.savez(options.save, *map(np.asarray, leaves(call())))
        return
    start = perf_counter()
    call()
    first = perf_counter() - start
    timing = measure(call, options.seconds)
    print(json.dumps({"median": timing.median, "minimum": timing.minimum, "ready": first - timing.median}))


if __name__ == "__main__":
    main()
