"""What it takes to record a Python loop of many iterations and to fold it into a loop: `python -m bench.recording`."""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg
from bench import table
from bench.environment import describe
from bench.workload import Function
from retrograd.compiler.garbage import paused, unhurried
from retrograd.passes.reroll.reroll import reroll
from retrograd.passes.simplify import simplify
from retrograd.tracer.record import Recorded
from retrograd.tracer.record import record as record_graph

MEASURED = 1_000  # iterations of which the memory is taken


class Program(NamedTuple):
    """A function with a Python loop, and its arguments."""

    function: Function
    arguments: tuple[Any, ...]


def lorenz(n: int) -> Program:
    """Midpoint steps on numbers."""

    def slope(p: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any, Any]:
        return p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z

    def function(s: Any, p: Any) -> Any:
        x: Any = tuple(s)
        for _ in range(n):
            a = slope(p, *x)
            b = slope(p, *(v + 0.005 * k for v, k in zip(x, a, strict=True)))
            x = tuple(v + 0.01 * k for v, k in zip(x, b, strict=True))
        return x[0] * x[1] + x[2]

    return Program(function, (np.array([1.0, 2.0, 3.0]), np.array([10.0, 28.0, 8.0 / 3.0])))


def jacobi(n: int) -> Program:
    """Sweeps over one dimension, in slices."""

    def function(u: Any, f: Any) -> Any:
        for _ in range(n):
            v = u.copy()
            v[1:-1] = 0.5 * (u[:-2] + u[2:] - f[1:-1])
            u = v
        return np.sum(u * u)

    rng = np.random.default_rng(0)
    return Program(function, (rng.standard_normal(64), rng.standard_normal(64)))


def recurrent(n: int) -> Program:
    """A recurrent network that fills an array of its states."""

    def function(w: Any, u: Any, xs: Any, start: Any) -> Any:
        h = np.zeros((n + 1, 3))
        h[0] = start
        loss = 0.0
        for t in range(n):
            h[t + 1] = np.tanh(w @ h[t] + u @ xs[t])
            loss = loss + np.sum(h[t + 1] ** 2)
        return loss

    rng = np.random.default_rng(0)
    shapes = [(3, 3), (3, 2), (n, 2), (3,)]
    return Program(function, tuple(0.5 * rng.standard_normal(shape) for shape in shapes))


PROGRAMS = {"lorenz": lorenz, "jacobi": jacobi, "recurrent": recurrent}


def recording(program: Program) -> Recorded:
    """What the function records, all iterations one after the other."""
    names = [f"x{i}" for i in range(len(program.arguments))]
    with unhurried:  # as a compiled function does
        return record_graph(lambda tracers: program.function(*tracers), "function", program.arguments, names)


def bytes_of(program: Program) -> int:
    """The most memory that recording holds at once."""
    tracemalloc.start()
    recording(program)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def operations(name: str, n: int) -> int:
    """The operations of a program, which grow by as many with each iteration; long recordings may not hold them."""
    few, more = (len(recording(PROGRAMS[name](k)).graph.nodes) for k in (10, 20))
    return few + (more - few) * (n - 10) // 10


class Taken(NamedTuple):
    """Operations after folding; seconds to record, to fold, and to the first result in all."""

    after: int
    record: float
    fold: float
    first: float


def taken(program: Program) -> Taken:
    """One measurement, from a cold start."""
    gc.collect()  # what the one before has left
    start = perf_counter()
    graph = recording(program).graph
    recorded = perf_counter()
    with paused:  # so does it here
        folded, _ = reroll(simplify(graph))
    ended = perf_counter()
    after = len(folded.nodes)
    del graph, folded
    gc.collect()
    again = perf_counter()
    with rg.config(cache_size=0):  # else functions of the same code share what was compiled
        rg.jit(program.function)(*program.arguments)
    first = perf_counter() - again
    return Taken(after, recorded - start, ended - recorded, first)


def row(name: str, n: int, found: Sequence[Taken]) -> list[str]:
    """A row of the table."""
    before, after = operations(name, n), found[0].after
    held = bytes_of(PROGRAMS[name](MEASURED)) / operations(name, MEASURED)
    record, fold, first = zip(*((t.record / before, t.fold / before, t.first) for t in found), strict=True)
    times = [table.time(median(seconds), min(seconds)) for seconds in (record, fold, first)]
    return [name, f"{before:,}", f"{after:,}", *times[:2], f"{held:,.0f}", times[2]]


def endless(merging: bool) -> Function:
    """A Python loop of ten million steps, whose operations are new ones or always the same."""

    def function(x: Any) -> Any:
        y = x
        for _ in range(10**7):
            y = np.sin(x if merging else y)
        return np.sum(y)

    return function


def refused(function: Function) -> float:
    """Seconds until a recording is refused as too long."""
    start = perf_counter()
    try:
        rg.grad(function)(np.ones(3))
    except rg.errors.TraceLengthError:
        return perf_counter() - start
    raise AssertionError("a recording of ten million operations was not refused")


def main() -> None:
    """Print one row for each program, or say how long a loop of ten million steps takes to be refused."""
    parser = argparse.ArgumentParser(prog="python -m bench.recording", description=__doc__)
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=[*PROGRAMS])
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--refusal", action="store_true", help="how long it takes to refuse an endless loop")
    options = parser.parse_args()

    if options.refusal:
        for merging in (False, True):
            what = "the same operation" if merging else "a new operation"
            print(f"ten million steps with {what} each: refused after {refused(endless(merging)):.1f} s")
        return
    rows = []
    for name in options.programs:
        taken(PROGRAMS[name](20))  # what is made only once
        found = [taken(PROGRAMS[name](options.iterations)) for _ in range(options.repetitions)]
        rows.append(row(name, options.iterations, found))
    print(f"{describe()}\n")
    header = ["program", "operations", "folded", "to record one", "to fold one", "bytes of one", "first result"]
    print(table.render(header, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
