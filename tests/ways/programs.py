"""Programs whose loops decide by values, each with random starts. All arguments are numbers or small arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator
Start = tuple[Any, ...]


def ball(y: Any, v: Any) -> Any:
    for _ in range(120):
        v = v - 0.0981
        y = y + 0.025 * v
        if y < 0:
            y = -y
            v = -0.9 * v
    return y * y


def short_ball(y: Any, v: Any) -> Any:
    for _ in range(30):
        v = v - 0.0981
        y = y + 0.1 * v
        if y < 0:
            y = -y
            v = -0.9 * v
    return y * y


def counted_hits(y: Any, v: Any) -> Any:
    """A number that no trace sees decides: what was folded before the sixth hit is wrong after it."""
    hits = 0
    for _ in range(120):
        v = v - 0.1
        y = y + 0.025 * v
        if y < 0:
            y = -y
            v = -0.9 * v
            hits += 1
            if hits == 6:
                v = v * 0.5
    return y * y


def remembered_hits(y: Any, v: Any) -> Any:
    """The same, where the hits are in a list."""
    hits: list[int] = []
    for k in range(120):
        v = v - 0.1
        y = y + 0.025 * v
        if y < 0:
            y = -y
            v = -0.9 * v
            hits.append(k)
            if len(hits) > 3 and hits[-1] - hits[-2] < 9:
                v = v + 0.3
    return y * y + v


def slope_by_count(y: Any, v: Any) -> Any:
    """The count changes the derivative and not the value: both sides are 1.0 * y."""
    hits = 0
    for _ in range(80):
        v = v - 0.1
        y = y + 0.025 * v
        if y < 0:
            y = -y
            v = -0.9 * v
            hits += 1
    return y * v if hits % 2 else y * float(v)


def nested(x: Any, a: Any) -> Any:
    for _ in range(60):
        if x > 1.0:
            x = x - a
            if a > 0.5:
                a = 0.9 * a
            elif a > 0.2:
                a = 0.97 * a
            else:
                a = a + 0.1
        elif x < -1.0:
            x = 0.5 * x + 0.2
        else:
            x = x + 0.7 * a
    return x * x + a


def clipping(x: Any, r: Any) -> Any:
    for _ in range(60):
        x = r * x * (1.0 - x)
        if x > 0.9:
            x = 0.9 + 0.0 * x
        if x < 0.1:
            x = 0.1 + 0.1 * x
    return x


def metropolis(x: Any, width: Any) -> Any:
    draws = np.cos(np.arange(60.0) * 12.9898) * 1.7
    levels = 0.5 + 0.5 * np.sin(np.arange(60.0) * 78.233)
    total = 0.0 * x
    for k in range(60):
        y = x + width * draws[k]
        if np.exp(x * x - y * y) > levels[k]:
            x = y
        total = total + x
    return total / 60.0


def bisection(c: Any, scale: Any) -> Any:
    low, high = 0.0 * c, 4.0 + 0.0 * c
    for _ in range(40):
        middle = 0.5 * (low + high)
        if middle * middle * middle > c:
            high = middle
        else:
            low = middle
    return scale * middle


def bucket(level: Any, leak: Any) -> Any:
    lost = 0.0 * level
    for k in range(70):
        level = level + 0.3 + 0.2 * np.sin(1.7 * k) - leak * level
        if level > 1.0:
            lost = lost + (level - 1.0)
            level = 1.0 + 0.0 * level
    return lost + level


def regimes(y: Any, th: Any) -> Any:
    for _ in range(60):
        y = th[0] - th[1] * y if y > 0 else th[2] + th[3] * y * y
    return y


def chosen_parameter(y: Any, th: Any) -> Any:
    for _ in range(60):
        s = th[2] if y > 0 else th[3]
        y = th[0] * np.sin(3.0 * y) + s * 0.5
    return y * y


def matching(price: Any, weight: Any) -> Any:
    """Orders that are filled in part, from arrays of prices and sizes."""
    limits, sizes = 1.0 + 0.5 * np.sin(np.arange(50.0)), 0.5 + 0.3 * np.cos(np.arange(50.0) * 2.0)
    cash, stock = 0.0 * price, 2.0 + 0.0 * price
    for k in range(50):
        if limits[k] > price:
            if sizes[k] > stock:
                cash = cash + stock * limits[k]
                stock = 0.0 * stock
            else:
                cash = cash + sizes[k] * limits[k]
                stock = stock - sizes[k]
            price = price + 0.02
        else:
            stock = stock + 0.05 * weight
            price = price * 0.99
    return cash + stock * price


def stored(x: Any, a: Any) -> Any:
    """Writes into an array in both branches."""
    h = np.zeros(40)
    for t in range(40):
        if x > 0:
            h[t] = x
            x = x - a
        else:
            h[t] = 0.5 * x * x
            x = 0.8 * a - 0.3 * x
    return np.sum(h * h)


def appended(x: Any, a: Any) -> Any:
    states = []
    for _ in range(50):
        x = x - a if x > 1.0 else 1.2 * x + 0.1
        states.append(x)
    return np.sum(np.array(states) ** 2)


def appended_sometimes(x: Any, a: Any) -> Any:
    states = [x]
    for _ in range(50):
        if x > 1.0:
            x = x - a
            states.append(x)
        else:
            x = 1.2 * x + 0.1
    return sum(states)


def three_balls(y: Any, v: Any) -> Any:
    for _ in range(20):
        v = v - 0.0981
        y = y + 0.05 * v
        for k in range(3):
            if y[k] < 0:
                y = y * np.where(np.arange(3) == k, -1.0, 1.0)
                v = v * np.where(np.arange(3) == k, -0.9, 1.0)
    return np.sum(y * y)


def walls(x: Any, v: Any) -> Any:
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


def hysteresis(x: Any, gain: Any) -> Any:
    """A switch, a plain number of Python, that decisions change."""
    on = 0.0
    for k in range(80):
        x = 0.95 * x + gain * np.sin(0.3 * k) + 0.05 * on
        if x > 0.8:
            on = -1.0
        elif x < -0.8:
            on = 1.0
    return x * x


def adaptive(y: Any, k: Any) -> Any:
    v, t, h = 0.0 * y, 0.0 * y, 0.1 + 0.0 * y
    while t < 2.0:
        a = -k * y
        y1, v1 = y + h * v, v + h * a
        y2, v2 = y + 0.5 * h * (v + v1), v + 0.5 * h * (a - k * y1)
        if abs(y2 - y1) + abs(v2 - v1) < 3e-2:
            y, v, t = y2, v2, t + h
            h = 1.3 * h
        else:
            h = 0.5 * h
    return y * y


def until_small(x: Any, a: Any) -> Any:
    """A loop that ends when it has converged."""
    for _ in range(200):
        step = (x * x * x - a) / (3.0 * x * x)
        if step > 0.4:
            step = 0.4 + 0.0 * step
        x = x - 0.3 * step
        if step * step < 1e-6:
            break
    return x


def backtracking(x: Any, a: Any) -> Any:
    for _ in range(12):
        slope, size = 2.0 * a * x + 0.4 * x * x * x, 1.0
        while a * (x - size * slope) * (x - size * slope) > a * x * x - 0.1 * size * slope * slope:
            size = 0.5 * size
        x = x - size * slope
    return x * x + a


@dataclass
class Server:
    now: Any
    work: Any
    cost: Any


def queue(rate: Any, start: Any) -> Any:
    s = Server(0.0 * rate, start, 0.0 * rate)
    for k in range(50):
        gap = (1.0 + np.sin(7.0 * k)) / rate
        s = Server(s.now + gap, s.work - gap, s.cost)
        if s.work < 0:
            s.work = 0.0 * rate
        s.cost = s.cost + s.work**2
        s.work = s.work + 0.4 + 0.3 * np.cos(3.0 * k)
    return s.cost / s.now


class Switch:
    def __init__(self) -> None:
        self.flips, self.memory = 0, {}

    def flip(self, x: Any) -> Any:
        self.flips += 1
        self.memory["last"] = x
        return -0.8 * x if self.flips < 5 else -0.7 * x


def object_state(x: Any, a: Any) -> Any:
    """An object counts, and remembers in a dict."""
    switch = Switch()
    for _ in range(60):
        x = x + a
        if x > 1.0:
            x = switch.flip(x)
    return x + 0.1 * switch.memory.get("last", x)


def skipping(x: Any, a: Any) -> Any:
    total = 0.0 * x
    for _ in range(60):
        x = np.sin(3.0 * x) + 0.3 * a
        if x < 0.2:
            continue
        total = total + x
        if total > 2.0:
            total = total - 2.0 * a
    return total + x


def two_variables(x: Any, y: Any) -> Any:
    previous = x
    for _ in range(60):
        if x > y:
            x, y = y, 0.9 * x + 0.1
        elif x * y > 0.1 and previous < x:
            x = x - 0.4 * previous
        previous, y = x, 0.8 * y + 0.3 * x
        x = np.cos(2.0 * x) + 0.1 * previous
    return x + y


def raising(x: Any, a: Any) -> Any:
    """A side may raise."""
    for _ in range(60):
        x = 0.9 * x + a
        if x > 3.0:
            if x > 6.0:
                raise ValueError("too large")
            x = 0.4 * x
    return x


def late_numbers(x: Any, a: Any) -> Any:
    """The step number enters in one branch only."""
    for k in range(60):
        x = x - 0.02 * k * a if x > 0.5 else x + a
    return x


def two_loops(x: Any, a: Any) -> Any:
    for _ in range(40):
        x = x - a if x > 1.0 else 1.1 * x + 0.05
    for _ in range(40):
        a = 0.7 * a + 0.2 if a < x else a - 0.3
    return x * a


def numbers(low: float, high: float, below: float, above: float) -> Callable[[Rng], Start]:
    return lambda rng: (float(rng.uniform(low, high)), float(rng.uniform(below, above)))


def arrays(size: int) -> Callable[[Rng], Start]:
    return lambda rng: (rng.uniform(0.2, 2.0, size), rng.uniform(-2.0, 2.0, size))


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[Rng], Start]]] = {
    f.__name__: (f, starts)
    for f, starts in [
        (ball, numbers(0.5, 3.0, -1.0, 1.0)),
        (counted_hits, numbers(0.2, 3.0, -1.0, 1.0)),
        (remembered_hits, numbers(0.2, 3.0, -1.0, 1.0)),
        (slope_by_count, numbers(0.2, 3.0, -1.0, 1.0)),
        (nested, numbers(-2.0, 2.0, 0.1, 1.0)),
        (clipping, numbers(0.1, 0.9, 2.8, 3.99)),
        (metropolis, numbers(-1.0, 1.0, 0.2, 1.5)),
        (bisection, numbers(0.5, 50.0, 0.5, 2.0)),
        (bucket, numbers(0.0, 1.0, 0.1, 0.6)),
        (regimes, lambda rng: (float(rng.uniform(-1, 1)), rng.uniform(0.3, 1.2, 4))),
        (chosen_parameter, lambda rng: (float(rng.uniform(-1, 1)), rng.uniform(0.3, 1.2, 4))),
        (matching, numbers(0.8, 1.4, 0.5, 1.5)),
        (stored, numbers(-1.0, 1.0, 0.2, 0.9)),
        (appended, numbers(0.2, 2.0, 0.3, 0.9)),
        (appended_sometimes, numbers(0.2, 2.0, 0.3, 0.9)),
        (three_balls, arrays(3)),
        (walls, arrays(3)),
        (hysteresis, numbers(-1.0, 1.0, 0.1, 0.5)),
        (adaptive, numbers(0.5, 2.0, 1.0, 9.0)),
        (until_small, numbers(1.0, 3.0, 1.0, 9.0)),
        (backtracking, numbers(-2.0, 2.0, 0.2, 3.0)),
        (queue, numbers(0.5, 3.0, 0.0, 1.0)),
        (object_state, numbers(-1.0, 1.0, 0.1, 0.5)),
        (skipping, numbers(-1.0, 1.0, 0.2, 1.0)),
        (two_variables, numbers(-1.0, 1.0, -1.0, 1.0)),
        (raising, numbers(-1.0, 3.0, 0.1, 0.9)),
        (late_numbers, numbers(-1.0, 1.0, 0.1, 0.5)),
        (two_loops, numbers(0.2, 2.0, 0.1, 0.9)),
    ]
}
