"""Find a lens in the ground from echoes: full-waveform inversion through thousands of steps, within a budget of memory.

    python examples/wave.py                    2,000 steps of a 2-D wave equation, a gradient in at most 64 MiB
    python examples/wave.py --budget "24 MiB"  the same in less memory, and in more time

Three sources send a pulse from the surface; receivers there hear what comes back. The gradient of the misfit tells how
the ground must change, and goes back through all steps of the simulation, whose residuals fill a quarter of a gigabyte.
The loop has a budget instead: of the states it keeps only some, and computes the others again.

At the end, `out/` has

    wave.png    the ground, what was found of it, and what each budget costs
    wave.txt    the plan: what is kept in memory, why, and what less memory would cost
    wave.py     the gradient as NumPy source, which runs without retrograd
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import retrograd as rg

Floats = NDArray[np.float64]
Gradient = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]

DEPTH, WIDTH = 100, 160
SURFACE = 3  # the row of sources and receivers
SPONGE = 20  # cells at the borders that swallow waves
MIB = 2**20


# ---------------------------------------------------------------------------------------- physics, in plain NumPy


def pulse(steps: int) -> Floats:
    """The source over time: a Ricker wavelet, of about a hundred steps."""
    phase = (np.arange(steps) / 55.0 - 1.0) * np.pi
    return (1 - 2 * phase**2) * np.exp(-(phase**2))


def sponge() -> Floats:
    """One inside, a little less towards the borders other than the surface."""
    z, x = np.mgrid[:DEPTH, :WIDTH]
    inside = np.minimum(np.minimum(x, WIDTH - 1 - x), DEPTH - 1 - z)
    return np.exp(-((0.012 * np.maximum(SPONGE - inside, 0)) ** 2))


def echoes(ground: Floats, source: Floats, steps: int, memory: Any = None) -> Floats:
    """What the receivers hear, shape (steps, WIDTH): second-order differences of u_tt = c² ∇²u.

    ``ground`` is (c dt / h)² in each cell, below 1/2. ``source`` is one where the source is.
    """
    quiet = sponge()

    def step(waves: tuple[Floats, Floats], strength: Floats) -> tuple[tuple[Floats, Floats], Floats]:
        now, before = waves
        curvature = np.zeros((DEPTH, WIDTH))
        curvature[1:-1, 1:-1] = now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2] - 4 * now[1:-1, 1:-1]
        after = quiet * (2 * now - quiet * before + ground * curvature) + strength * source
        return (after, now), after[SURFACE]

    still = np.zeros((DEPTH, WIDTH))
    return rg.scan(step, (still, still), pulse(steps), memory=memory)[1]


def layers() -> Floats:
    """The ground as one believes it to be: faster with depth."""
    return np.repeat(np.linspace(0.12, 0.26, DEPTH)[:, None], WIDTH, axis=1)


def truth() -> Floats:
    """The ground as it is: with a slow lens in it."""
    z, x = np.mgrid[:DEPTH, :WIDTH]
    return layers() * (1 - 0.25 * np.exp(-(((z - 45) / 9.0) ** 2) - ((x - 85) / 22.0) ** 2))


def sources() -> list[Floats]:
    """Three shots, left, in the middle and right."""
    shots = [np.zeros((DEPTH, WIDTH)) for _ in range(3)]
    for shot, place in zip(shots, (35, WIDTH // 2, WIDTH - 35), strict=True):
        shot[SURFACE, place] = 1.0
    return shots


def misfit(steps: int, memory: Any) -> Gradient:
    """Half the squared difference between what is heard and what was heard, with its gradient by the ground."""

    def loss(ground: Floats, source: Floats, heard: Floats) -> Floats:
        return 0.5 * np.sum((echoes(ground, source, steps, memory) - heard) ** 2)

    gradient: Gradient = rg.value_and_grad(loss)
    return gradient


# ------------------------------------------------------------------------------------------------------ inversion


def invert(gradient: Gradient, recorded: Sequence[Floats], iterations: int) -> tuple[Floats, list[float]]:
    """Descend with a fixed largest change in each iteration. Returns the ground that was found, and all misfits."""
    ground, misfits = layers(), []
    depth = np.clip((np.arange(DEPTH) - 8) / 10.0, 0.0, 1.0)[:, None]  # the gradient peaks at the sources themselves
    velocity = np.zeros_like(ground)
    with tqdm(total=iterations * len(recorded), unit=" gradients", mininterval=0.5) as progress:
        for iteration in range(iterations):
            total, direction = 0.0, np.zeros_like(ground)
            for source, heard in zip(sources(), recorded, strict=True):
                value, slope = gradient(ground, source, heard)
                total, direction = total + float(value), direction + slope * depth
                progress.update()
            misfits.append(total)
            velocity = 0.6 * velocity - direction / np.max(np.abs(direction))
            ground = np.clip(ground + 0.006 * velocity, 0.05, 0.4)
            progress.write(f"iteration {iteration + 1:3}   misfit {total:.5f}")
    return ground, misfits


# ------------------------------------------------------------------------------------------------ what memory costs


@dataclass(frozen=True)
class Cost:
    """One gradient under one budget: predicted and measured bytes, further steps, seconds."""

    budget: str
    predicted: int
    measured: int
    advances: int
    seconds: float


def costs(steps: int, example: tuple[Floats, Floats, Floats], budgets: Sequence[str]) -> list[Cost]:
    """The cost of a gradient under each budget; they all give the same bits."""
    found, bits = [], set()
    for budget in tqdm(budgets, unit=" budgets"):
        gradient = misfit(steps, budget)
        value, slope = gradient(*example)
        bits.add((float(value), slope.tobytes()))
        start = time.perf_counter()
        gradient(*example)
        seconds = time.perf_counter() - start
        limit, rg.config.workspace = rg.config.workspace, 0  # what a call keeps for the next one is counted, too
        tracemalloc.start()
        gradient(*example)
        measured = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rg.config.workspace = limit
        plan = gradient.plan(*example)  # type: ignore[attr-defined]  # what value_and_grad returns is more than a function
        found.append(Cost(budget, plan.peak_bytes, measured, plan.advances, seconds))
    if len(bits) != 1:
        raise AssertionError("two budgets give two gradients")
    return found


def table(found: Sequence[Cost]) -> str:
    """The costs as text."""
    head = f"{'budget':>12} {'predicted MiB':>14} {'measured MiB':>13} {'further steps':>14} {'seconds':>8}"
    rows = [
        f"{c.budget:>12} {c.predicted / MIB:14.2f} {c.measured / MIB:13.2f} {c.advances:14,} {c.seconds:8.2f}"
        for c in found
    ]
    return "\n".join([head, *rows])


def picture(path: Path, ground: Floats, misfits: Sequence[float], found: Sequence[Cost], steps: int) -> None:
    """The ground, what was found, and the curve of memory and time."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import

    figure = Figure(figsize=(11, 6.5), layout="constrained")
    upper, lower = figure.subplots(2, 3)[0], figure.axes[3:]
    change = truth() - layers()
    limit = np.max(np.abs(change))
    for axes, title, shown in (
        (upper[0], "the lens: difference to the layers", change),
        (upper[1], f"found after {len(misfits)} iterations", ground - layers()),
    ):
        image = axes.imshow(shown, cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set(title=title, xlabel="x / h", ylabel="depth / h")
        figure.colorbar(image, ax=axes, shrink=0.8)
    upper[2].plot(range(1, len(misfits) + 1), misfits, "o-", color="#1f5fa8")
    upper[2].set(title="misfit", xlabel="iteration", ylim=(0, None))

    memory = [c.measured / MIB for c in found]
    lower[0].plot(memory, [c.advances for c in found], "o-", color="#1f5fa8")
    lower[0].set(title=f"steps beyond the {steps:,} of the simulation", xlabel="peak of memory / MiB", ylim=(0, None))
    lower[1].plot(memory, [c.seconds for c in found], "o-", color="#b5452c")
    lower[1].set(title="seconds for one gradient", xlabel="peak of memory / MiB", ylim=(0, None))
    for axes in lower[:2]:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
    lower[2].plot(memory, [c.predicted / MIB for c in found], "o-", color="#2f7d4f")
    lower[2].set(title="predicted peak / MiB", xlabel="measured peak / MiB", xlim=(0, None), ylim=(0, None))
    for axes in (upper[2], *lower):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


# ------------------------------------------------------------------------------------------------- command line


def main(arguments: Sequence[str] | None = None) -> str | None:
    """Invert, draw, and return what went wrong, if anything did."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    recorded = [echoes(truth(), source, options.steps) for source in sources()]
    gradient = misfit(options.steps, options.budget)
    try:
        ground, misfits = invert(gradient, recorded, options.iterations)
        example = layers(), sources()[1], recorded[1]
        found = costs(options.steps, example, [*options.compare, options.budget])
    except rg.errors.MemoryBudgetError as error:
        return f"wave: {error}"
    found = sorted(found, key=lambda c: c.predicted)
    print(table(found))
    text = f"{gradient.plan(*example)}\n\n{gradient.tradeoff(*example)}\n\n{table(found)}\n"  # type: ignore[attr-defined]  # see above
    (options.out / "wave.txt").write_text(text, encoding="utf-8")
    (options.out / "wave.py").write_text(gradient.source(*example), encoding="utf-8")  # type: ignore[attr-defined]  # see above
    picture(options.out / "wave.png", ground, misfits, found, options.steps)
    print(f"wrote wave.png, wave.txt and wave.py into {options.out}")
    if misfits[-1] > options.require * misfits[0]:
        return f"wave: the misfit fell from {misfits[0]:.4f} to {misfits[-1]:.4f} only (--require)"
    return None


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; --help lists them."""
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=2000, help="steps of the simulation (2000)")
    parser.add_argument("--iterations", type=int, default=12, help="steps of the descent (12)")
    parser.add_argument("--budget", default="64 MiB", help="the most memory that a gradient may take (64 MiB)")
    compare = ["8 MiB", "16 MiB", "24 MiB", "40 MiB", "128 MiB", "2 GiB"]
    parser.add_argument("--compare", nargs="*", default=compare, help=f"further budgets to time ({', '.join(compare)})")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the files go (out)")
    parser.add_argument("--require", type=float, default=0.5, help="share of the misfit that may be left (0.5)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
