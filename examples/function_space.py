"""Learn a function with a function as the only parameter, and see that there is no free lunch.

    python examples/function_space.py

The architecture is application itself: ``predict(f, x) = f(x)``, and the parameter is f, any function. Backpropagation
gives its gradient: not numbers, but the list of pairs (input, cotangent) of all its calls. What turns such a list into
another f is a choice, and this choice is where the lunch is paid for:

- a table adds the pairs to f as they are. It fits the training points after one step, and is unchanged elsewhere.
- an inner learner regards f as a network and runs supervised learning of its own on the pairs. With one inner step
  it is ordinary gradient descent on the network; with more steps it follows the pairs further.
- least squares does the same in one step for a function that is linear in what it captures, a sum of bumps.

So the architecture is back, in the shape of the learner: deep learning as usual, with extra steps.

At the end, `out/function_space.png` shows what was learned, on the training points and between them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import retrograd as rg

Floats = NDArray[np.float64]
Function = Callable[[Any], Any]

OUTER_STEPS = 300


def truth(x: Floats) -> Floats:
    """What is to be learned."""
    return np.sin(3.0 * x) * np.exp(-0.3 * x * x) + 0.3 * x


def data() -> tuple[Floats, Floats, Floats, Floats]:
    """Training points with a little noise, and held-out points between them without."""
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(-2.5, 2.5, 24))
    held_out = np.linspace(-2.4, 2.4, 97)
    return x, truth(x) + 0.05 * rng.normal(size=x.size), held_out, truth(held_out)


def network(seed: int = 0, width: int = 12) -> Function:
    """A small network, as a function that closes over its weights: these are its captures."""
    rng = np.random.default_rng(seed)
    weights = {
        "w1": 2.0 * rng.normal(size=width),
        "b1": rng.normal(size=width),
        "w2": rng.normal(size=(width, width)) / np.sqrt(width),
        "b2": np.zeros(width),
        "w3": rng.normal(size=width) / width,
    }

    def f(x: Any) -> Any:
        h = np.tanh(weights["w1"] * x + weights["b1"])
        h = np.tanh(weights["w2"] @ h + weights["b2"])
        return weights["w3"] @ h

    return f


def bumps(number: int = 10) -> Function:
    """A sum of Gaussian bumps: linear in the heights, which are all zero at the start."""
    heights = np.zeros(number)

    def f(x: Any) -> Any:
        return np.sum(heights * np.exp(-2.0 * (x - np.arange(number) * (5.6 / (number - 1)) + 2.8) ** 2))

    return f


def loss(f: Function, x: Floats, y: Floats) -> Any:
    """Half the sum of squared errors; f takes one point at a time."""
    return 0.5 * np.sum((rg.vmap(f)(x) - y) ** 2)


class Way(NamedTuple):
    """A way to learn: the first function, the number of outer steps, and options of ``rg.functions.fit_pairs``."""

    start: Function
    steps: int
    options: dict[str, Any]


WAYS = {
    "table": Way(network(), 1, {"learner": "table", "alpha": 1.0}),
    "gradient descent": Way(network(), OUTER_STEPS, {"learner": "sgd", "alpha": 0.5, "eta": 0.012}),
    "inner learner": Way(network(), OUTER_STEPS, {"learner": "targets", "alpha": 0.5, "eta": 0.008, "steps": 40}),
    "least squares": Way(bumps(), 1, {"learner": "least_squares", "alpha": 1.0}),
}


@dataclass
class Course:
    """What happened on one way: the function, and the mean squared errors after each step."""

    f: Function
    seen: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)

    def note(self, points: tuple[Floats, Floats, Floats, Floats]) -> None:
        """Add the present errors."""
        x, y, between, expected = points
        values = rg.vmap(self.f)
        self.seen.append(float(np.mean((values(x) - y) ** 2)))
        self.held_out.append(float(np.mean((values(between) - expected) ** 2)))


def learn(way: Way, steps: int, points: tuple[Floats, Floats, Floats, Floats]) -> Course:
    """Move the function against its gradient, by at most so many steps."""
    slope = rg.grad(loss, fns="pairs")
    course = Course(way.start)
    course.note(points)
    for _ in range(min(way.steps, steps)):
        course.f = rg.functions.fit_pairs(course.f, slope(course.f, *points[:2]), **way.options)
        course.note(points)
    return course


def picture(courses: dict[str, Course], points: tuple[Floats, Floats, Floats, Floats]) -> Figure:
    """Left what was learned, right the errors over the steps."""
    x, y, *_ = points
    fine = np.unique(np.concatenate([np.linspace(-2.6, 2.6, 801), x]))
    figure = Figure(figsize=(13, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(fine, truth(fine), color="0.75", linewidth=5, label="truth")
    for k, (name, course) in enumerate(courses.items()):
        color = f"C{k}"
        left.plot(fine, rg.vmap(course.f)(fine), color=color, linewidth=1.3, label=name)
        seen, unseen = np.maximum(course.seen, 1e-8), course.held_out
        if len(unseen) == 2:  # one step, after which another would change nothing
            seen, unseen = np.append(seen, [seen[-1]] * OUTER_STEPS), unseen + [unseen[-1]] * OUTER_STEPS
        right.semilogy(seen, color=color, linestyle="--", linewidth=1.2)
        right.semilogy(unseen, color=color, linewidth=1.8, label=name)
    left.plot(x, y, "k.", markersize=9, label="training points")
    left.set(xlabel="x", ylabel="f(x)", title="what was learned: the table is right at its points alone")
    left.legend(fontsize=9)
    right.set(
        xlabel="outer step",
        ylabel="mean squared error",
        xlim=(0, OUTER_STEPS),
        ylim=(3e-9, 3),
        title="solid: held-out points; dashed: training points (0 as 1e-8)",
    )
    right.legend(fontsize=9)
    return figure


def main(folder: Path = Path("out"), steps: int = OUTER_STEPS) -> int:
    """Learn in all ways, print a table, and write the picture."""
    points = data()
    pairs = rg.grad(loss, fns="pairs")(network(), *points[:2])
    print(f"the gradient of the loss with respect to f: {len(pairs.pairs)} pairs in {len(pairs.blocks)} block, as")
    print("   ", ", ".join(f"({float(x):.3f}, {float(ct):+.3f})" for x, ct in pairs.pairs[:4]), "...\n")
    courses = {name: learn(way, steps, points) for name, way in WAYS.items()}
    print(f"{'':18}{'training error':>16}{'held-out error':>16}   after")
    start = next(iter(courses.values()))
    print(f"{'the start':18}{start.seen[0]:16.2e}{start.held_out[0]:16.2e}")
    for name, course in courses.items():
        count = len(course.seen) - 1
        print(f"{name:18}{course.seen[-1]:16.2e}{course.held_out[-1]:16.2e}   {count} step{'s' * (count > 1)}")
    folder.mkdir(parents=True, exist_ok=True)
    picture(courses, points).savefig(folder / "function_space.png", dpi=110)
    print(f"\nwrote {folder / 'function_space.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
