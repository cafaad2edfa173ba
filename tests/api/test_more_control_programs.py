"""Python's own containers, iterators and exceptions around traced values: the same bits and derivatives, either way.

Each program gets inputs that go different ways, in random order, twice.
"""

# ruff: noqa: TRY301 - programs as people write them

from __future__ import annotations

import bisect
import dataclasses
import functools
import heapq
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import retrograd as rg
from tests.compiler.test_guards import differences

R = np.random.default_rng(11)


class Particle(NamedTuple):
    place: Any
    speed: Any


@dataclasses.dataclass
class Ball:
    height: Any
    speed: Any
    bounces: int = 0
    path: list[Any] = dataclasses.field(default_factory=list)

    def step(self, dt):
        self.speed = self.speed - dt
        self.height = self.height + dt * self.speed
        if self.height < 0:
            self.height, self.speed, self.bounces = -self.height, -0.8 * self.speed, self.bounces + 1
        self.path.append(self.height)


def bouncing(x):
    ball = Ball(np.abs(x[0]) + 0.1, x[1])
    for _ in range(12):
        ball.step(0.1)
    return sum(ball.path) * (ball.bounces + 1) + ball.speed


def named_tuples(x):
    p = Particle(x[:2], x[2:])
    for _ in range(5):
        p = p._replace(place=p.place + 0.1 * p.speed, speed=p.speed - 0.1 * np.sin(p.place))
        if p.place[0] > p.place[1]:
            p = Particle(p.place[::-1], p.speed)
    return p.place[0] * p.speed[1] + p.place[1] ** 2


def keys_appear_midway(x):
    state = {"x": x[0]}
    for k in range(5):
        state["x"] = np.sin(state["x"]) + 0.1 * x[k % 4]
        if state["x"] > 0.5:
            state.setdefault("large", []).append(state["x"])
        if k == 2:
            state["y"] = state["x"] * 2.0
    return state["x"] * state["y"] + sum(state.get("large", ())) * len(state)


def huffman(x):
    heap = [(abs(v), k) for k, v in enumerate(x)]
    heapq.heapify(heap)
    cost = 0.0
    while len(heap) > 1:
        a, i = heapq.heappop(heap)
        b, _ = heapq.heappop(heap)
        cost = cost + (a + b) ** 2 * (i + 1)
        heapq.heappush(heap, (a + b, i))
    return cost


def sorted_by_key(x):
    return sum(v * (k + 1) * (i + 2) for k, (i, v) in enumerate(sorted(enumerate(x), key=lambda pair: -(pair[1] ** 2))))


def ordered_by_a_comparison(x):
    def compare(a, b):
        return -1 if a * a < b * b else 1

    return sum(v * 2.0**k for k, v in enumerate(sorted(x, key=functools.cmp_to_key(compare))))


def reduced(x):
    return functools.reduce(lambda c, v: c * 0.5 + v if v > 0 else c - v * v, x, 0.0)


def accumulated(x):
    return sum(itertools.takewhile(lambda s: s < 2.0, itertools.accumulate(abs(v) for v in x))) + x[0]


def grouped(x):
    total = 0.0
    for positive, group in itertools.groupby(x, key=lambda v: bool(v > 0)):
        part = sum(group)
        total = total + (part**2 if positive else -part)
    return total


def sent(x):
    def averager() -> Iterator[Any]:
        total, count = 0.0, 0
        value = yield 0.0
        while value is not None:
            if value > 0:
                total, count = total + value, count + 1
            value = yield total / max(count, 1)

    g = averager()
    next(g)
    return sum(g.send(v) * (k + 1) for k, v in enumerate(x))


def closures_over_the_loop_variable(x):
    late = [lambda v: v * k + x[k] for k in range(3)]  # noqa: B023 - that is what is tested
    early = [lambda v, k=k: v * k + x[k] for k in range(3)]
    return sum(f(x[0]) * g(x[1]) for f, g in zip(late, early, strict=True))


def breadth_first(x):
    queue, leaves = deque([x]), []
    while queue:
        part = queue.popleft()
        if len(part) == 1:
            leaves.append(part[0])
            continue
        half = len(part) // 2
        queue.extend((part[:half], part[half:]) if part[0] < part[-1] else (part[half:], part[:half]))
    return sum(v * 3.0**k for k, v in enumerate(leaves))


def bad_at_some_place(x):
    total, bad = 0.0, 0
    for k, v in enumerate(x):
        try:
            if v > 1.0:
                raise ValueError(k)
            total = total * 0.9 + np.sin(v)
        except ValueError as fault:
            bad += fault.args[0]
            total = total - 0.1 * v * v
        else:
            total = total + 0.01
        finally:
            total = total * 1.1
    return total + bad


def running_argmax(x):
    best, at = x[0] - 1.0, -1
    for k, v in enumerate(x):
        if v > best:
            best, at = v, k
    return best * (at + 1)


def compound_conditions(x):
    a, b, k = abs(x[0]) + 0.5, x[1], 0
    while (a > 0.2 and b < 1.5) or k < 2:
        a, b, k = a * 0.6, b * 1.1 + 0.1 * a, k + 1
    return a * b + k * x[2]


def searching_with_else(x):
    for i in range(4):
        for j in range(i):
            if x[i] * x[j] < -0.3:
                found = x[i] - x[j] ** 2
                break
        else:
            continue
        break
    else:
        found = np.prod(x)
    return found


def interpolation_by_bisection(x):
    at = bisect.bisect([-1.0, 0.0, 0.5, 2.0], x[0])
    return x[at % 4] * (at + 1) + x[0]


def groups_of_a_dict(x):
    groups = defaultdict(list)
    for v in x:
        groups[math.floor(v)].append(v)
    return sum(k * np.sum(np.array(group) ** 2) for k, group in sorted(groups.items()))


def split_at_jumps(x):
    y = np.sort(x)
    parts = np.split(y, [int(k) + 1 for k in np.flatnonzero(np.diff(y) > 0.5)])
    return sum(np.mean(part) ** 2 * len(part) for part in parts)


def mask_written_and_read(x):
    y, m = x * 1.0, x > 0
    y[m] = np.sqrt(y[m])
    y[~m] *= -2.0
    return np.sum(y[m]) * y[~m].size + np.sum(y)


PROGRAMS: list[Callable[[Any], Any]] = [
    bouncing,
    named_tuples,
    keys_appear_midway,
    huffman,
    sorted_by_key,
    ordered_by_a_comparison,
    reduced,
    accumulated,
    grouped,
    sent,
    closures_over_the_loop_variable,
    breadth_first,
    bad_at_some_place,
    running_argmax,
    compound_conditions,
    searching_with_else,
    interpolation_by_bisection,
    groups_of_a_dict,
    split_at_jumps,
    mask_written_and_read,
]
WAYS = [R.normal(size=4) for _ in range(4)]
ORDER = R.permutation([0, 1, 2, 3, 0, 1, 2, 3])
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])


@every_program
def test_every_way_keeps_every_bit(program: Callable[[Any], Any]) -> None:
    with rg.config(exact=True):
        compiled = rg.jit(program)
        for k in ORDER:
            assert compiled(WAYS[k]) == program(WAYS[k])


@every_program
def test_both_modes_give_the_limits_of_differences(program: Callable[[Any], Any]) -> None:
    gradient = rg.grad(program)
    forward = rg.jacfwd(program)
    for k in ORDER:
        found = gradient(WAYS[k])
        np.testing.assert_allclose(found, differences(program, WAYS[k]), rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(forward(WAYS[k]), found, rtol=1e-10, atol=1e-12)


@every_program
def test_second_derivatives_are_differences_of_the_first(program: Callable[[Any], Any]) -> None:
    gradient = rg.grad(program)
    along = R.normal(size=4)
    for x in WAYS[:2]:
        steps = (gradient(x + 1e-6 * along) - gradient(x - 1e-6 * along)) / 2e-6
        np.testing.assert_allclose(rg.jvp(gradient, (x,), (along,))[1], steps, rtol=1e-5, atol=1e-5)


def states(x):
    found = []
    for _ in range(200):
        x = np.sin(x) * 1.1 + 0.01
        found.append(x)
    return found


def test_what_is_thrown_after_a_long_loop_is_thrown_once_on_every_way():
    """The loop is another one where more of its steps is read later; what it throws into is the same."""

    def program(x):
        found = states(x)
        total = rg.scan(lambda c, z: (rg.throw_if(c > 4.0, {"at": c}) or c + z, None), 0.0, found[-1])[0]
        return found[-1] * total if total > 0.5 else sum(found[::7])

    g = rg.jit(program)
    gradient = rg.grad(lambda x: np.sum(program(x)))
    x = np.array([0.4, -0.3, 0.2])
    for v in (x, -x, 2 * x, x, -x):
        found, last = states(v), states(v)[-1]
        expected = last * np.sum(last) if np.sum(last) > 0.5 else sum(found[::7])
        np.testing.assert_allclose(g(v), expected, rtol=1e-13)
        numeric = differences(lambda v: np.sum(program(v)), v)
        np.testing.assert_allclose(gradient(v), numeric, rtol=1e-5, atol=1e-6)


def test_a_way_may_read_more_steps_of_a_loop_than_another():
    def program(x):
        found = states(x)
        if np.sum(found[-1]) > 0.5:
            return found[-1] * 2.0
        return sum(found[::7]) if found[10][0] > 0 else found[5] - x

    x = np.array([0.4, -0.3, 0.2])
    with rg.config(exact=True):
        g = rg.jit(program)
        for v in (x, -x, abs(x), -abs(x), x, abs(x), -x):
            np.testing.assert_array_equal(g(v), program(v))


def test_the_thirty_seventh_step_may_fail():
    def program(xs):
        total = 0.0
        for k, v in enumerate(xs):
            if v > 5.0:
                raise ValueError(f"bad at {k}")
            total = total * 0.9 + v * np.sin(v)
        return total

    good = 0.3 * R.normal(size=200)
    bad = good.copy()
    bad[37] = 6.0
    for transform in (rg.jit, rg.grad):
        f = transform(program)
        first = f(good)
        for _ in range(2):
            with pytest.raises(ValueError, match="bad at 37"):
                f(bad)
            np.testing.assert_array_equal(f(good), first)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 127, 128, 129, 170, 171])
def test_a_loop_of_any_length_is_the_same(steps: int) -> None:
    """On both sides of 512 operations."""

    def program(x):
        for k in range(steps):
            x = x + 0.01 * (k + 0.5) * np.sin(x) / (1.5 + k)
        return x

    x = R.normal(size=3)
    with rg.config(exact=True):
        np.testing.assert_array_equal(rg.jit(program)(x), program(x))
    g = rg.grad(lambda x: np.sum(program(x) ** 2))(x)
    np.testing.assert_allclose(g, differences(lambda x: np.sum(program(x) ** 2), x), rtol=1e-6)
