"""What less memory costs: the gradients of a U-Net, a transformer and a deep perceptron, from all memory to the least.

    python examples/memory_curves.py            three curves, in less than a minute
    python examples/memory_curves.py --quick    the same for small nets, in seconds

The nets are plain NumPy. `tradeoff` predicts for each gradient how much is computed again within a budget of bytes.
Some points of these curves are then run with that budget, timed, and their memory is measured.

At the end, `out/` has

    memory_curves.png    the peak of memory against predicted work and against measured time
    memory_curves.txt    the curves, and what the gradient in the middle of each keeps and computes again
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

import retrograd as rg

Floats = NDArray[np.float64]
MB = 1e6


@dataclass(frozen=True)
class Case:
    """A loss, the arguments of one call, and what it is; the gradient is by the first argument."""

    title: str
    loss: Callable[..., Any]
    args: tuple[Any, ...]


# ----------------------------------------------------------------------------------------------- nets, in plain NumPy


def convolved(x: Floats, kernel: Floats) -> Floats:
    """Channels (c, h, w) through a kernel (o, c, 3, 3), zeros beyond the border."""
    height, width = x.shape[1:]
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    shifts = [(i, j) for i in range(3) for j in range(3)]
    return sum(np.tensordot(kernel[:, :, i, j], padded[:, i : i + height, j : j + width], 1) for i, j in shifts)


def stage(x: Floats, weights: dict[str, Floats]) -> Floats:
    """Two convolutions, each followed by a bias and the positive part."""
    for k in (1, 2):
        x = np.maximum(convolved(x, weights[f"kernel{k}"]) + weights[f"bias{k}"], 0)
    return x


def halved(x: Floats) -> Floats:
    """The largest of each 2 × 2 pixels."""
    channels, height, width = x.shape
    return x.reshape(channels, height // 2, 2, width // 2, 2).max(axis=(2, 4))


def doubled(x: Floats) -> Floats:
    """Each pixel as 2 × 2."""
    return np.repeat(np.repeat(x, 2, axis=1), 2, axis=2)


def u_net(size: int, channels: int, levels: int) -> Case:
    """An image of size² pixels down to ever smaller ones and up again, with a path across at each level."""
    random = np.random.default_rng(0)

    def stage_of(before: int, after: int) -> dict[str, Floats]:
        kernels = [random.normal(size=(after, n, 3, 3)) * np.sqrt(2 / (9 * n)) for n in (before, after)]
        biases = {f"bias{k}": np.zeros((after, 1, 1)) for k in (1, 2)}
        return {"kernel1": kernels[0], "kernel2": kernels[1], **biases}

    wide = [channels * 2**k for k in range(levels)]
    weights = {
        "down": [stage_of(before, after) for before, after in zip([1, *wide], wide, strict=False)],
        "up": [stage_of(3 * n, n) for n in wide[-2::-1]],
        "last": random.normal(size=channels) / np.sqrt(channels),
    }

    def loss(weights: dict[str, Any], image: Floats, target: Floats) -> Floats:
        x, across = image[None], []
        for k, down in enumerate(weights["down"]):
            x = stage(halved(x) if k else x, down)
            across.append(x)
        for up, skipped in zip(weights["up"], across[-2::-1], strict=True):
            x = stage(np.concatenate([doubled(x), skipped]), up)
        return np.mean((np.tensordot(weights["last"], x, 1) - target) ** 2)

    title = f"U-Net, {size}² pixels, {levels} levels"
    return Case(title, loss, (weights, random.normal(size=(size, size)), random.normal(size=(size, size))))


def normalised(x: Floats, scale: Floats) -> Floats:
    """Each row with mean zero and variance one, times a scale."""
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return scale * centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def attention(x: Floats, weights: dict[str, Floats], heads: int) -> Floats:
    """What each row takes from the ones before it, through several heads."""
    rows, width = x.shape
    q, k, v = (np.transpose((x @ weights[name]).reshape(rows, heads, -1), (1, 0, 2)) for name in "qkv")
    scores = q @ np.transpose(k, (0, 2, 1)) / np.sqrt(width / heads)
    scores = np.where(np.tri(rows, dtype=bool), scores, -np.inf)
    shares = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    shares = shares / np.sum(shares, axis=-1, keepdims=True)
    return np.transpose(shares @ v, (1, 0, 2)).reshape(rows, width) @ weights["o"]


def gelu(x: Floats) -> Floats:
    """The Gaussian error linear unit, by its approximation with tanh (D. Hendrycks, K. Gimpel, arXiv 1606.08415)."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def transformer(rows: int, width: int, heads: int, blocks: int) -> Case:
    """Blocks of attention to earlier rows and a perceptron, each normalised before and added to what it got."""
    random = np.random.default_rng(0)

    def matrix(n: int, m: int) -> Floats:
        return random.normal(size=(n, m)) / np.sqrt(n)

    weights = [
        {
            **{name: matrix(width, width) for name in "qkvo"},
            "scale1": np.ones(width),
            "scale2": np.ones(width),
            "in": matrix(width, 4 * width),
            "out": matrix(4 * width, width),
        }
        for _ in range(blocks)
    ]

    def loss(weights: list[dict[str, Floats]], x: Floats, target: Floats) -> Floats:
        for block in weights:
            x = x + attention(normalised(x, block["scale1"]), block, heads)
            x = x + gelu(normalised(x, block["scale2"]) @ block["in"]) @ block["out"]
        return np.mean((x - target) ** 2)

    title = f"transformer, {blocks} blocks of {heads} heads, {rows} × {width}"
    return Case(title, loss, (weights, random.normal(size=(rows, width)), random.normal(size=(rows, width))))


def perceptron(layers: int, width: int, batch: int) -> Case:
    """Layers of tanh."""
    random = np.random.default_rng(0)
    weights = [random.normal(size=(width, width)) / np.sqrt(width) for _ in range(layers)]

    def loss(weights: list[Floats], x: Floats) -> Floats:
        for w in weights:
            x = np.tanh(x @ w)
        return np.mean(x**2)

    return Case(f"perceptron, {layers} layers, {batch} × {width}", loss, (weights, random.normal(size=(batch, width))))


def cases(quick: bool) -> list[Case]:
    """The three nets; small ones if it is to be ``quick``."""
    if quick:
        return [u_net(32, 4, 2), transformer(48, 32, 4, 2), perceptron(12, 32, 64)]
    return [u_net(256, 8, 4), transformer(384, 128, 8, 6), perceptron(100, 128, 1024)]


# ------------------------------------------------------------------------------------------------ what memory costs


@dataclass(frozen=True)
class Run:
    """One gradient within a budget: predicted and measured bytes, work again as a part of the forward pass, seconds."""

    budget: int
    measured: int
    share: float
    seconds: float


def spread(points: Sequence[Any], count: int) -> list[Any]:
    """So many of the points or fewer, evenly along the axis of memory, the first and the last among them."""
    peaks = np.array([point.peak_bytes for point in points])
    wanted = np.linspace(peaks[0], peaks[-1], count)
    return [points[k] for k in dict.fromkeys(int(np.argmin(np.abs(peaks - w))) for w in wanted)]


def run(case: Case, points: Sequence[Any], gradients: Sequence[Any], repetitions: int) -> list[Run]:
    """Each point's gradient; they all give the same bits. The time is the least of some interleaved calls."""
    if len({bits(gradient(*case.args)) for gradient in gradients}) != 1:
        raise AssertionError("two budgets give two gradients")
    seconds = [float("inf")] * len(points)
    for _ in range(repetitions):
        for k, gradient in enumerate(gradients):
            start = time.perf_counter()
            gradient(*case.args)
            seconds[k] = min(seconds[k], time.perf_counter() - start)
    measured = [peak_of(gradient, case.args) for gradient in gradients]
    return [Run(p.peak_bytes, m, p.share, s) for p, m, s in zip(points, measured, seconds, strict=True)]


def bits(tree: Any) -> bytes:
    """All numbers of a tree, one after the other."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    return b"".join(map(bits, tree)) if isinstance(tree, list) else tree.tobytes()


def peak_of(gradient: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """The most bytes that a call takes, with what it would keep for the next one."""
    limit, rg.config.workspace = rg.config.workspace, 0
    tracemalloc.start()
    gradient(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    rg.config.workspace = limit
    return peak


def table(found: Sequence[Run]) -> str:
    """The runs as text."""
    head = f"{'budget MB':>10} {'measured MB':>12} {'of all':>7} {'computed again':>15} {'seconds':>8} {'slower':>7}"
    rows = [
        f"{r.budget / MB:10.2f} {r.measured / MB:12.2f} {r.budget / found[0].budget:7.0%} {r.share:15.1%} "
        f"{r.seconds:8.3f} {r.seconds / found[0].seconds - 1:+7.0%}"
        for r in found
    ]
    return "\n".join([head, *rows])


def picture(path: Path, curves: dict[str, tuple[Sequence[Any], Sequence[Run]]]) -> None:
    """Predicted work and measured time against the peak of memory, for each net."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    work, seconds = figure.subplots(1, 2)
    for (title, (points, found)), color in zip(curves.items(), ("#1f5fa8", "#b5452c", "#2f7d4f"), strict=True):
        share = [100 * p.peak_bytes / points[0].peak_bytes for p in points]
        work.plot(share, [100 * p.share for p in points], "o-", color=color, markersize=4, label=title)
        share = [100 * r.measured / found[0].measured for r in found]
        times = [100 * r.seconds / found[0].seconds for r in found]
        seconds.plot(share, times, "o-", color=color, markersize=5, label=title)
    work.set(title="predicted: what is computed again", ylabel="operations / % of a forward pass", ylim=(0, None))
    seconds.set(title="measured: the time of a gradient", ylabel="time / % of that without a budget", ylim=(0, None))
    for axes in (work, seconds):
        axes.set(xlabel="peak of memory / % of that without a budget", xlim=(0, 104))
        axes.grid(axis="y", color="#e4e4e4")
        axes.spines[["top", "right"]].set_visible(False)
    work.legend(frameon=False, loc="upper right")
    figure.savefig(path, dpi=110)


# ------------------------------------------------------------------------------------------------- command line


def main(arguments: Sequence[str] | None = None) -> None:
    """Predict, run, draw."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    text, curves = [], {}
    for case in cases(options.quick):
        curve = rg.grad(case.loss).tradeoff(*case.args)
        points = spread(curve.points, options.points)
        gradients = [rg.grad(case.loss, memory=point.peak_bytes) for point in points]
        found = run(case, points, gradients, 1 if options.quick else 3)
        print(f"{case.title}\n{table(found)}\n")
        middle = gradients[len(gradients) // 2].plan(*case.args)
        text.append(f"{case.title}\n\n{curve}\n\n{table(found)}\n\n{middle}\n")
        curves[case.title] = (curve.points, found)
    (options.out / "memory_curves.txt").write_text("\n\n".join(text), encoding="utf-8")
    picture(options.out / "memory_curves.png", curves)
    print(f"wrote memory_curves.png and memory_curves.txt into {options.out}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; --help lists them."""
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small nets")
    parser.add_argument("--points", type=int, default=6, help="points of each curve that are run (6)")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR", help="where the files go (out)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
