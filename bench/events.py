"""Programs that decide by values, called from many starts: `python -m bench.events`.

Each start goes another way through the program, but some of those that a minimiser asks for. The first calls, whose
total includes all that is compiled, meet all starts for the first time; the next calls go the same ways again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np

import retrograd as rg
from bench import table
from bench.environment import describe
from bench.workload import over
from retrograd.errors import TracerConversionError

Start = tuple[Any, ...]
ROUNDS = 2


def bouncing_ball(y: Any, v: Any) -> Any:
    """300 steps of a ball that loses a tenth of its speed at the floor."""
    for _ in range(300):
        v = v - 0.0981
        y = y + 0.01 * v
        if y < 0:
            y = -y
            v = -0.9 * v
    return y * y


@dataclass
class Queue:
    """The state of a server: time, work that waits, and what waiting has cost."""

    now: Any
    work: Any
    cost: Any


def queue(rate: Any, start: Any) -> Any:
    """Customers of one server; the mean cost of waiting."""
    s = Queue(0.0 * rate, start, 0.0 * rate)
    for k in range(60):
        gap = (1.0 + np.sin(7.0 * k)) / rate
        s = Queue(s.now + gap, s.work - gap, s.cost)
        if s.work < 0:
            s.work = 0.0 * rate
        s.cost = s.cost + s.work**2
        s.work = s.work + 0.4 + 0.3 * np.cos(3.0 * k)
    return s.cost / s.now


def adaptive(y: Any, k: Any) -> Any:
    """An oscillator by Heun's method with steps of a size that its error decides."""
    v, t, h = 0.0 * y, 0.0 * y, 0.05 + 0.0 * y
    while t < 2.0:
        a = -k * y
        y1, v1 = y + h * v, v + h * a
        y2, v2 = y + 0.5 * h * (v + v1), v + 0.5 * h * (a - k * y1)
        error = abs(y2 - y1) + abs(v2 - v1)
        if error < 1e-2:
            y, v, t = y2, v2, t + h
            h = 1.3 * h
        else:
            h = 0.5 * h
    return y * y


def walls(x: Any, v: Any) -> Any:
    """Three particles between two walls; a decision for each at each of 40 steps."""
    for _ in range(40):
        x = x + 0.05 * v
        parts = []
        for k in range(3):
            if x[k] > 1.0 or x[k] < -1.0:
                parts.append(-0.95 * v[k])
            else:
                parts.append(v[k] - 0.02 * x[k])
        v = np.array(parts)
    return np.sum(x * x)


def quicksort(x: Any, weight: Any) -> Any:
    """Sorting by recursion; a sum in which the order matters."""

    def ordered(values: list[Any]) -> list[Any]:
        if len(values) < 2:
            return values
        first, rest = values[0], values[1:]
        return [*ordered([v for v in rest if v < first]), first, *ordered([v for v in rest if not v < first])]

    return sum(weight * k * v * v for k, v in enumerate(ordered(list(x))))


def descended(x: Any, c: Any, steps: int) -> Any:
    """A function after steps of steepest descent, each halved until it descends."""

    def f(x: Any) -> Any:
        return np.sum(c * x**2 + 0.1 * x**4)

    for _ in range(steps):
        slope, size, before = 2.0 * c * x + 0.4 * x**3, 1.0, f(x)
        while f(x - size * slope) > before - 0.1 * size * np.sum(slope * slope):
            size = 0.5 * size
        x = x - size * slope
    return f(x)


def line_search(x: Any, c: Any) -> Any:
    """Eight steps from a start."""
    return descended(x, c, 8)


def objective(x: Any, c: Any) -> Any:
    """Three steps from where SciPy's minimiser looks."""
    return descended(x, c, 3)


def drawn(make: Callable[[np.random.Generator], Start]) -> Callable[[int], list[Start]]:
    """Random starts, the same at each call."""

    def starts(count: int) -> list[Start]:
        rng = np.random.default_rng(0)
        return [make(rng) for _ in range(count)]

    return starts


def asked(count: int) -> list[Start]:
    """The points at which ``scipy.optimize.minimize`` asks for the objective and its gradient, from random starts."""
    minimize = import_module("scipy.optimize").minimize
    rng, found = np.random.default_rng(0), list[Start]()

    def same(x: Any, c: Any) -> Any:  # so that nothing is known of the objective later
        return objective(x, c)

    value_and_grad = rg.value_and_grad(same)

    def told(x: Any, c: Any) -> Any:
        found.append((x.copy(), c))
        return value_and_grad(x, c)

    while len(found) < count:
        minimize(told, rng.uniform(-2, 2, 5), (rng.uniform(0.2, 3.0, 5),), jac=True)
    return found[:count]


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], list[Start]]]] = {
    "bouncing ball, 300 steps": (bouncing_ball, drawn(lambda rng: (rng.uniform(0.5, 3.0), 0.0))),
    "queue, dataclass state": (queue, drawn(lambda rng: (rng.uniform(0.5, 3.0), rng.uniform(0.0, 1.0)))),
    "adaptive integrator": (adaptive, drawn(lambda rng: (rng.uniform(0.5, 2.0), rng.uniform(1.0, 9.0)))),
    "3 particles and walls": (walls, drawn(lambda rng: (rng.uniform(-1, 1, 3), rng.uniform(-2, 2, 3)))),
    "quicksort of 12": (quicksort, drawn(lambda rng: (rng.uniform(-1, 1, 12), 1.5))),
    "line search, 8 steps": (line_search, drawn(lambda rng: (rng.uniform(-2, 2, 5), rng.uniform(0.2, 3.0, 5)))),
    "line search under scipy.optimize": (objective, asked),
}


def with_autograd(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient by HIPS autograd, of the same text."""
    autograd, numpy = import_module("autograd"), import_module("autograd.numpy")

    return autograd.value_and_grad(over(numpy, function))  # type: ignore[no-any-return]


def with_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient by eager tensors, which trace no paths."""

    def value_and_grad(x: Any, *rest: Any) -> Any:
        tensor = rg.eager.Tensor(x, requires_grad=True)
        value = function(tensor, *rest)
        value.backward()
        return value.data, tensor.grad.data

    return value_and_grad


CONTESTANTS = {"retrograd": rg.value_and_grad, "tensors": with_tensors, "autograd": with_autograd}


def main() -> None:
    """Print a row for each program and round: the total processor time of a call from each start."""
    parser = argparse.ArgumentParser(prog="python -m bench.events", description=__doc__)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=[*CONTESTANTS])
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()
    names = [name for name in options.contestants if name != "autograd" or find_spec("autograd")]

    rows = []
    for title, (function, starts) in PROGRAMS.items():
        if starts is asked and not find_spec("scipy"):
            continue
        calls = {name: CONTESTANTS[name](function) for name in names}
        given = starts(options.starts)
        for k in range(ROUNDS):
            spent, found = {}, {}
            for name, call in calls.items():
                begin = process_time()
                with suppress(TracerConversionError):  # tensors cannot be parts of new arrays
                    found[name] = [call(*start) for start in given]
                    spent[name] = process_time() - begin
            for results in found.values():
                for (value, gradient), (other, slope) in zip(results, found[names[0]], strict=True):
                    np.testing.assert_allclose(value, other, rtol=1e-9)
                    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-9)
            ratio = [f"{spent[names[0]] / spent[name]:.2f}" if name in spent else "–" for name in names[1:]]
            rows.append(
                [
                    title if not k else "",
                    f"{'next' if k else 'first'} {len(given)}",
                    *(table.time(spent[name]) if name in spent else "–" for name in names),
                    *ratio,
                ]
            )
    print(f"{describe()}\n")
    header = ["program", "calls", *names, *(f"{names[0]} / {name}" for name in names[1:])]
    print(table.render(header, rows, markdown=options.markdown))


if __name__ == "__main__":
    main()
