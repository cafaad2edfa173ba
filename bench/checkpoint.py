"""What checkpointing takes: steps, time beyond the recomputation, a control problem: `python -m bench.checkpoint`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from math import comb
from statistics import median
from typing import Any

import numpy as np

import retrograd as rg
from bench import control, table
from bench.environment import describe, limit_threads
from bench.loops import LOOPS, Loop, in_jax, in_retrograd
from bench.timing import sample, warm_up
from bench.workload import leaves

WARM_UP_SECONDS = 0.2
FEW = {
    "Snapshots(5)": rg.Snapshots(5),
    "Snapshots(14)": rg.Snapshots(14),
    "Snapshots(28)": rg.Snapshots(28),
    "Snapshots(28, mixed=True)": rg.Snapshots(28, mixed=True),
    "Periodic()": rg.Periodic(),
}
MANY = {"Snapshots(10)": rg.Snapshots(10), "Snapshots(100)": rg.Snapshots(100), "Periodic()": rg.Periodic()}
PLANS: dict[str, dict[str, Any]] = {"heat": FEW, "rnn": FEW, "lorenz": MANY}
Rows = Sequence[Sequence[str]]


def slope(n: int, plan: Any, *, known: bool) -> Callable[[float], Any]:
    """The derivative of n sines of sines, in a loop of known or of unknown length."""

    def known_length(x: Any) -> Any:
        return rg.scan(lambda c, _: (np.sin(c), None), x, None, n, memory=plan)[0]

    def unknown_length(x: Any) -> Any:
        return rg.while_loop(lambda c: c[1] < n, lambda c: (np.sin(c[0]), c[1] + 1.0), (x, 0.0), memory=plan)[0]

    return rg.grad(known_length if known else unknown_length)


def closed_form(n: int, slots: int) -> int:
    """The least number of advances that reverses n steps: r n − β(slots + 1, r − 1)."""
    r = next(r for r in range(n) if comb(slots + r, slots) >= n)
    return r * n - comb(slots + r, slots + 1)


# Repeated steps. The public ones: checkpoint-schedules and others place binomially, replay by trailing zeros as on the
# way there, or place online.
TRAILING_ZEROS = {100: 221, 1000: 3780, 1024: 3842, 10_000: 52_830}
BINOMIAL_AFTER = {100: 187, 1000: 2945, 1024: 2997, 10_000: 37_874}
ONLINE = {(1000, 10): (3597, 4469), (1000, 20): (1967, 2801), (10_000, 100): (14_950, 25_272)}
MIXED = {(10, 3): 19, (100, 5): 352, (100, 10): 237, (250, 25): 486}
BINOMIAL = [(10, 3), (100, 5), (100, 10), (1000, 10), (1000, 20), (10_000, 10), (10_000, 100)]


def counted() -> Iterator[list[str]]:
    """Plan, steps, slots, repeated steps as executed, as expected, and of the best public schedule."""

    def run(n: int, plan: Any, *, known: bool) -> tuple[int, int]:
        with rg.debug_counters() as counters:
            slope(n, plan, known=known)(0.5)
        first = max(n - 1, 0) if known else n
        forward = counters.advances + counters.taped if getattr(plan, "mixed", False) else counters.advances - first
        return forward, counters.snapshots_peak

    def row(name: str, n: int, found: tuple[int, int], expected: str, public: int) -> list[str]:
        return [name, f"{n:,}", f"{found[1]:,}", f"{found[0]:,}", expected, f"{public:,}"]

    for n, slots in BINOMIAL:
        best = closed_form(n, slots) - (n - 1)
        yield row("Snapshots, length known", n, run(n, rg.Snapshots(slots), known=True), f"{best:,}", best)
    for n, public in TRAILING_ZEROS.items():
        yield row('Log(reverse="ctz")', n, run(n, rg.Log("ctz"), known=True), f"{public:,}", public)
    for n, best in BINOMIAL_AFTER.items():
        yield row("Log()", n, run(n, rg.Log(), known=False), f"{best:,}", TRAILING_ZEROS[n])
    for (n, slots), (bound, public) in ONLINE.items():
        yield row("Snapshots, length unknown", n, run(n, rg.Snapshots(slots), known=False), f"≤ {bound:,}", public)
    for (n, slots), best in MIXED.items():
        plan = rg.Snapshots(slots, mixed=True)
        yield row("mixed: all forward steps", n, run(n, plan, known=True), f"{best:,}", closed_form(n, slots) + n)


def timed(loop: Loop, plans: dict[str, Any], rounds: int) -> Rows:
    """Peak, time, its ratio to keeping everything, steps that run without being reversed at once, and time beyond."""
    inputs = loop.inputs()
    forward = rg.jit(in_retrograd(loop))
    calls: dict[str, Callable[[], Any]] = {"function": lambda: forward(*inputs)}
    peaks, advances = {"function": forward.plan(*inputs).peak_bytes}, {}
    for name, plan in {"everything kept": None, **plans}.items():
        gradient = rg.value_and_grad(in_retrograd(loop, plan), argnums=(0, 1))
        with rg.debug_counters() as counters:
            gradient(*inputs)
        calls[name] = lambda gradient=gradient: gradient(*inputs)
        peaks[name] = gradient.plan(*inputs).peak_bytes
        advances[name] = counters.advances + counters.taped - loop.length if plan else 0
    if find_spec("jax"):
        for how in ("everything", "states", "nested"):
            calls[f"jax, {how}"], peaks[f"jax, {how}"] = with_jax(loop, how, inputs)
    agree(calls)
    numbers = {name: warm_up(call, WARM_UP_SECONDS) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds[name].append(sample(call, numbers[name]))
    base = seconds["everything kept"]

    def row(name: str) -> list[str]:
        own = seconds[name]
        cells = [name, f"{(peaks[name] or 0) / 1e6:,.2f} MB", table.time(median(own), min(own)), ratio(own, base)]
        if name not in advances:
            return [*cells, table.MISSING, table.MISSING, table.MISSING]
        times = advances[name] / loop.length
        expected = [kept + times * once for kept, once in zip(base, seconds["function"], strict=True)]
        least = min(base) + times * min(seconds["function"])
        beyond = table.ratio(median(a / b for a, b in zip(own, expected, strict=True)), min(own) / least)
        return [*cells, f"{advances[name]:,}", ratio(expected, base), beyond]

    return [row(name) for name in calls]


def ratio(above: Sequence[float], below: Sequence[float]) -> str:
    """The median of the ratios in each round, and the ratio of the minima."""
    return table.ratio(median(a / b for a, b in zip(above, below, strict=True)), min(above) / min(below))


def with_jax(loop: Loop, how: str, inputs: Any) -> tuple[Callable[[], Any], int]:
    """A compiled value and gradient on arrays of JAX's own, and the bytes that it takes beside its results."""
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    given = jax.tree_util.tree_map(jax.numpy.asarray, inputs)
    compiled = jax.jit(jax.value_and_grad(in_jax(loop, how), argnums=(0, 1))).lower(*given).compile()
    return lambda: jax.block_until_ready(compiled(*given)), int(compiled.memory_analysis().temp_size_in_bytes)


def agree(calls: dict[str, Callable[[], Any]]) -> None:
    """Raise unless all gradients are the same; retrograd's, bit for bit."""
    reference = leaves(calls["everything kept"]())
    for name, call in calls.items():
        found = leaves(call())[: 1 if name == "function" else None]
        for a, b in zip(found, reference, strict=name != "function"):
            exact = not name.startswith("jax") and name != "function"
            np.testing.assert_allclose(np.asarray(a), b, rtol=0 if exact else 1e-6, atol=0 if exact else 1e-9)


def main() -> None:
    """Print the tables of the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.checkpoint", description=__doc__)
    parts = ["steps", *LOOPS, "control"]
    parser.add_argument("parts", nargs="*", default=parts, help=f"{', '.join(parts)}; default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1, help="keep everything on so many processors (Linux)")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    options = parser.parse_args()
    limit_threads(options.threads)

    def show(title: str, header: Sequence[str], rows: Rows) -> None:
        print(f"{title}\n\n{table.render(header, rows, markdown=options.markdown)}\n", flush=True)

    print(f"{describe()}\n")
    for part in options.parts:
        if part == "steps":
            header = ["repeated steps", "n", "kept", "executed", "formula", "best public"]
            show("Steps that run again", header, list(counted()))
        elif part == "control":
            show("Control of a quantum system", ["", ""], control.report())
        else:
            loop = LOOPS[part]
            header = ["", "peak", "median [minimum]", "/ everything", "further steps", "expected", "beyond"]
            show(f"{loop.title}, {loop.length:,} steps", header, timed(loop, PLANS[part], options.rounds))


if __name__ == "__main__":
    main()
