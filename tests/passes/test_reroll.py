"""Loops that Python unrolled while it was traced become loops again: the same bits, and about one body to compile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.rolled import rolled_from
from retrograd.ir import evaluate, verify
from retrograd.passes.reroll import prove_loops
from retrograd.passes.reroll.reroll import reroll
from retrograd.passes.simplify import simplify

T = 150


def recurrent(w, u, xs, start):
    h = np.zeros((T + 1, 3))
    h[0] = start
    loss = 0.0
    for t in range(T):
        h[t + 1] = np.tanh(w @ h[t] + u @ xs[t])
        loss = loss + np.sum(h[t + 1] ** 2)
    return loss, h


def lorenz(s, p):
    def slope(x, y, z):
        return p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z

    x = tuple(s)
    for _ in range(T):
        a = slope(*x)
        b = slope(*(v + 0.005 * k for v, k in zip(x, a, strict=True)))
        x = tuple(v + 0.01 * k for v, k in zip(x, b, strict=True))
    return x[0] * x[1] + x[2]


def jacobi(u, f):
    for _ in range(T):
        v = u.copy()
        v[1:-1] = 0.5 * (u[:-2] + u[2:] - f[1:-1])
        u = v
    return np.sum(u * u)


def sum_of_elements(x):
    return sum((x[i] * 1.5 + np.sin(x[i])) ** 2 for i in range(T))


def with_time(x):
    for t in range(T):
        x = x + 0.1 * t * np.sin(x) * np.exp(-x * x) - x / 7.0
    return x


def with_irregular_numbers(x):
    for t in range(T):
        x = x * np.cos(float(t)) + np.sin(x) * 0.3 + 1.0 / (t + 1.0)
    return x


def leapfrog(start):
    u = np.zeros((T + 2, 4))
    u[0] = start
    u[1] = start * 0.9
    for t in range(1, T + 1):
        u[t + 1] = 2.0 * u[t] - u[t - 1] - 0.1 * np.sin(u[t])
    return np.sum(u**2), u[T // 2]


def backwards(xs):
    c = np.zeros(3)
    for t in range(T):
        c = np.tanh(0.5 * c + xs[T - 1 - t] * c + 0.1)
    return c


def every_state(x):
    states = []
    for _ in range(T):
        x = np.sin(x) + 0.1 * x * x * x
        states.append(x)
    return np.stack(states)


def loops_in_loops(x):
    for _ in range(T // 3):
        for _ in range(20):
            x = np.sin(x) * 0.9 + 0.1 * x * x
        x = x / (1.0 + np.sum(x * x))
    return x


def two_loops(x):
    for _ in range(T):
        x = np.sin(x) * 0.9 + 0.2 + x * 0.01
    y = np.sum(x)
    for _ in range(T):
        x = np.cos(x) * 0.1 * y + np.tanh(x) - 0.1 * x
    return x


def swapped(a, b):
    for _ in range(T):
        a, b = 0.9 * b, np.sin(a) + 0.1 * b * a
    return a + b


def columns(m):
    total = np.zeros(3)
    for j in range(T):
        total = total + np.sin(m[:, j]) * m[1, j] + total * 0.01
    return total


def filled_columns(x):
    out = np.zeros((3, T))
    for j in range(T):
        x = np.sin(x) * 1.1 + 0.01 * x * x
        out[:, j] = x
    return out


def filled_backwards(x):
    out = np.zeros(T)
    s = 0.0
    for j in range(T):
        s = s * 0.5 + x[j] * x[j] + np.sin(s)
        out[-1 - j] = s
    return out


def added_into(x, y):
    out = y * 2.0
    for i in range(T):
        out[i] += np.sin(x[i]) * x[i] + 0.25 * x[i]
    return out


def every_third(x):
    total = 0.0
    for i in range(T):
        total = total + x[3 * i] * np.cos(x[3 * i]) * 0.3 + total * total * 0.01
    return total


def a_different_first_step(x):
    y = x
    for t in range(T):
        y = np.sin(x) if t == 0 else np.sin(y) * 0.5 + y * y * 0.1
    return y


def one_irregular_step(x):
    for t in range(2 * T):
        x = np.sin(x) * 0.5 + x * x * 0.1
        if t == T:
            x = x * 3.0
    return x


def alternating_bodies(x):
    for t in range(2 * T):
        if t % 3 == 0:
            x = np.sin(x) + 0.1 * x
        elif t % 3 == 1:
            x = np.cos(x) * 0.9 + 0.05
        else:
            x = x / (1.0 + x * x)
    return x


def red_black(u, f):
    u = u.copy()
    for _ in range(T // 2):
        u[1:-1:2] = 0.5 * (u[:-2:2] + u[2::2] - f[1:-1:2])
        u[2:-1:2] = 0.5 * (u[1:-2:2] + u[3::2] - f[2:-1:2])
    return u


def half_steps_at_both_ends(q, p):
    p = p - 0.025 * np.sin(q)
    for t in range(2 * T):
        q = q + 0.05 * p
        if t < 2 * T - 1:
            p = p - 0.05 * np.sin(q)
    return q, p - 0.025 * np.sin(q)


def three_buffers(x):
    a, b, c = x.copy(), np.zeros_like(x), x * 0.5
    for _ in range(2 * T):
        c[:] = a + 0.1 * np.sin(b)
        c[0] = b[-1]
        a, b, c = b, c, a
    return a, b, c


def ring_of_arrays(x):
    ring = np.zeros((4, 3))
    ring[0] = x
    for t in range(1, 2 * T):
        ring[t % 4] = np.sin(ring[(t - 1) % 4]) + 0.2 * ring[(t - 3) % 4]
    return ring


def both_ends_of_a_queue(xs):
    queue = deque(list(xs))
    total = 0.0
    while queue:
        first = queue.popleft()
        total = np.sin(total) + first * first
        if queue:
            total = total * 0.5 + queue.pop()
    return total


def reversed_list(xs):
    total = 0.0
    for k, v in enumerate(reversed(list(xs))):
        total = total * 0.9 + v * v * (k + 1) * 0.01
    return total


def all_pairs(xs):
    total = 0.0
    for u, v in product(xs[:20], xs[-19:]):
        total = total + np.sin(u * v)
    return total


def moving_means(xs):
    window: deque[Any] = deque(maxlen=3)
    means = []
    for v in xs:
        window.append(v * v)
        means.append(sum(window) / len(window))
    return np.array(means)


def around_the_corner(x, m):
    total = np.zeros(3)
    for t in range(T):
        total = total * 0.9 + np.sin(x[(t + 1) % T] * x[t - 1]) * m[t * t % T] + x[t // 2]
    return total


ORDER = np.random.default_rng(3).permutation(T).tolist()


def in_a_given_order(x):
    total = 0.0
    for i in ORDER:
        total = np.sin(total) + x[i] * 0.5 + x[-i] * total
    return total


def a_long_lag(x):
    y = [x[t] * 0.5 for t in range(12)]
    for t in range(12, T):
        y.append(np.tanh(x[t]) + 0.3 * x[t - 12] + 0.5 * y[-1] - 0.1 * y[-2] * x[t - 1])
    return np.stack(y)


def halves_of_a_table(x):
    table = np.zeros(T)
    table[0], table[1] = x[0], x[1]
    for t in range(2, T):
        table[t] = np.sin(table[t // 2]) * 0.9 + table[t - 1] * 0.5 + x[t]
    return table


def joined_states(x):
    states, norms = [x * 2.0], []
    for _ in range(2 * T):
        x = np.sin(x) * 1.05 + 0.01
        norms.append(np.sum(x * x))
        states.append(x)
    return np.concatenate(states), np.array(norms), np.stack(states), np.sum(np.array(states), axis=1)


def batches(w, x, y):
    for k in range(0, len(x), 4):
        part = x[k : k + 4]
        w = w - 0.05 * (np.tanh(part @ w) - y[k : k + 4]) @ part
    return w


def filled_in_parts(x, m):
    out, total = np.zeros(4 * T), m[:, :4] * 0.5
    added = m * 0.25
    for k in range(0, 4 * T, 4):
        out[k : k + 4] = x[k : k + 4] * np.sum(total) + np.sin(x[k])
        total = np.tanh(total * 0.5 + m[:, k : k + 4])
        added[:, k : k + 4] += total
    return out, added, total


def windows(x, kernel):
    out = np.zeros(T)
    for t in range(T):
        out[t] = np.sum(x[t : t + 3] * kernel) * np.sin(x[t])
    return out


def two_parts(x, a, b):
    for _ in range(T):
        for m in (a, b):
            x = np.tanh(m @ x) + 0.1 * x
    return x


def seven_parts_and_a_rest(x, *factors):
    for t in range(7 * T // 3 + 4):
        x = np.sin(x * factors[t % 7]) + 0.3 * x
    return x


def two_layers(w, v, xs):
    def cell(x, h, c, w):
        i, f, o = w @ np.concatenate([x, h])
        c = np.tanh(f) * c + np.tanh(i)
        return np.sin(o * c) * h, c

    h = g = xs[0]
    c = d = np.zeros(3)
    for t in range(T):
        h, c = cell(xs[t], h, c, w)
        g, d = cell(h, g, d, v)
    return np.sum(g * g)


def lorenz_of_floats(x, y, z):
    def slope(x, y, z):
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.5 * z

    s = x, y, z
    for _ in range(T):
        a = slope(*s)
        b = slope(*(v + 0.005 * k for v, k in zip(s, a, strict=True)))
        s = tuple(v + 0.01 * k for v, k in zip(s, b, strict=True))
    return s


def lorenz_of_an_array(s, p):
    def slope(s):
        x, y, z = s[0], s[1], s[2]
        return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])

    for _ in range(T):
        s = s + 0.01 * slope(s + 0.005 * slope(s))
    return s


def rolls_of_three(x, y, z):
    for _ in range(T):
        x, y, z = y + 0.1 * np.sin(z), z + 0.1 * np.sin(x), x + 0.1 * np.sin(y)
        x, y, z = y * 0.99, z * 0.99, x * 0.99
    return x - y * z


R = np.random.default_rng(7)
PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (recurrent, (R.normal(size=(3, 3)), R.normal(size=(3, 2)), R.normal(size=(T, 2)), R.normal(size=3)), 12),
    (lorenz, (np.array([1.0, 2.0, 3.0]), np.array([10.0, 28.0, 8.0 / 3.0])), 60),
    (jacobi, (R.normal(size=12), R.normal(size=12)), 25),
    (sum_of_elements, (R.normal(size=T),), 12),
    (with_time, (R.normal(size=3),), 120),  # 0.1 * 10 is 1, and a factor 1 is dropped: the loop begins after it
    (with_irregular_numbers, (R.normal(size=3),), 30),
    (leapfrog, (R.normal(size=4),), 40),
    (backwards, (R.normal(size=(T, 3)),), 25),
    (every_state, (R.normal(size=3),), 3 * T),
    (loops_in_loops, (R.normal(size=3),), 40),
    (two_loops, (R.normal(size=3),), 40),
    (swapped, (R.normal(size=3), R.normal(size=3)), 20),
    (columns, (R.normal(size=(3, T)),), 20),
    (filled_columns, (R.normal(size=3),), 20),
    (filled_backwards, (R.normal(size=T),), 30),
    (added_into, (R.normal(size=T), R.normal(size=T)), 20),
    (every_third, (0.1 * R.normal(size=3 * T),), 30),
    (a_different_first_step, (R.normal(size=3),), 30),
    (one_irregular_step, (R.normal(size=3),), 60),
    (alternating_bodies, (R.normal(size=3),), 20),
    (red_black, (R.normal(size=21), R.normal(size=21)), 30),
    (half_steps_at_both_ends, (R.normal(size=3), R.normal(size=3)), 30),
    (three_buffers, (R.normal(size=4),), 30),
    (ring_of_arrays, (R.normal(size=3),), 30),
    (both_ends_of_a_queue, (0.3 * R.normal(size=2 * T),), 30),
    (reversed_list, (R.normal(size=T),), 30),
    (all_pairs, (R.normal(size=20),), 20),
    (moving_means, (R.normal(size=T),), 40),
    (around_the_corner, (R.normal(size=T), R.normal(size=(T, 3))), 60),
    (in_a_given_order, (0.3 * R.normal(size=T),), 60),
    (a_long_lag, (R.normal(size=T),), 130),
    (halves_of_a_table, (R.normal(size=T),), 90),
    (joined_states, (R.normal(size=3),), 30),
    (batches, (R.normal(size=3), R.normal(size=(4 * T, 3)), R.normal(size=4 * T)), 30),
    (filled_in_parts, (R.normal(size=4 * T), R.normal(size=(2, 4 * T))), 40),
    (windows, (R.normal(size=T + 2), R.normal(size=3)), 20),
    (two_parts, (R.normal(size=3), R.normal(size=(3, 3)), R.normal(size=(3, 3))), 15),
    (seven_parts_and_a_rest, (R.normal(size=3), *R.normal(size=(7, 3))), 60),
    (two_layers, (R.normal(size=(3, 3, 6)), R.normal(size=(3, 3, 6)), R.normal(size=(T, 3))), 60),
    (lorenz_of_floats, (1.0, 2.0, 3.0), 12),
    (lorenz_of_an_array, (R.normal(size=3), np.array([10.0, 28.0, 8.0 / 3.0])), 9),
    (rolls_of_three, (R.normal(size=3), R.normal(size=3), R.normal(size=3)), 12),
]
every_program = pytest.mark.parametrize(("program", "args", "most"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])


@every_program
def test_the_graph_is_small_and_keeps_every_bit(
    program: Callable[..., Any], args: tuple[Any, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrograd.compiler.rolled.LONG", 10**9)
    monkeypatch.setattr("retrograd.tracer.repeats.comparing.UNWATCHED", 10**9)
    traced = simplify(rg.trace(program)(*args))
    rolled, arrays = reroll(traced)
    verify(rolled)
    assert len(rolled.nodes) <= most < len(traced.nodes)
    before, after = evaluate(traced, args), evaluate(rolled, [*args, *arrays])
    for x, y in zip(before, after, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
    assert [v.aval for v in traced.outputs] == [v.aval for v in rolled.outputs]


@every_program
def test_compiled_values_are_plain_numpys(program: Callable[..., Any], args: tuple[Any, ...], most: int) -> None:
    compiled = rg.jit(program)
    np.testing.assert_equal(_leaves(compiled(*args)), _leaves(program(*args)))


@pytest.mark.sampled(2)
@every_program
def test_gradients_agree_with_those_of_the_unrolled_graph(
    program: Callable[..., Any], args: tuple[Any, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loss(*args: Any) -> Any:
        return sum(np.sum(y * 0.7 + y * y) for y in _leaves(program(*args)))

    gradient = rg.grad(loss, argnums=tuple(range(len(args))))
    rolled = gradient(*args)
    rg.check_grads(loss, args, order=1, modes=("fwd", "rev"))
    monkeypatch.setattr("retrograd.compiler.rolled.LONG", 10**9)
    unrolled = rg.grad(loss, argnums=tuple(range(len(args))))(*args)
    for x, y in zip(rolled, unrolled, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


@every_program
def test_the_last_copies_tell_no_more_than_all(
    program: Callable[..., Any], args: tuple[Any, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked at first refuses no loop that all copies prove."""
    monkeypatch.setattr("retrograd.tracer.repeats.comparing.UNWATCHED", 10**9)
    with rolled_from(10**9):
        traced = rg.trace(program)(*args)
    rolled, arrays = reroll(traced)
    monkeypatch.setattr(prove_loops, "LAST", 10**9)
    plainly, others = reroll(replace(traced))  # a copy, of which nothing is remembered
    assert str(rolled) == str(plainly)
    assert [x.tobytes() for x in arrays] == [x.tobytes() for x in others]


@pytest.mark.parametrize("other", [0, 20, 75, T - 1])
def test_one_copy_with_another_operand_is_no_step(other: int) -> None:
    def almost(x, y):
        for t in range(T):
            x = np.sin(x) * 0.5 + (y if t == other else x) * y - 0.1 * x
        return x

    args = R.normal(size=3), 0.4 * np.cos(R.normal(size=3))
    assert rg.jit(almost)(*args).tobytes() == almost(*args).tobytes()


def _leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(
    ("steps", "size", "folds"),
    [(24, 3, False), (25, 3, True), (30, 64, True), (30, 65, False), (127, 65, False), (128, 65, True)],
)
def test_short_loops_fold_where_they_compute_small_arrays(steps: int, size: int, folds: bool) -> None:
    def f(x, y):
        for _ in range(steps):
            x = np.sin(x) * 0.5 + x * y
        return x

    args = R.normal(size=size), 0.4 * np.cos(R.normal(size=size))
    assert ("for " in rg.jit(f).source(*args)) == folds
    with rg.config(exact=True):
        np.testing.assert_array_equal(rg.jit(f)(*args), f(*args))
    rg.check_grads(f, args, order=1, modes=("fwd", "rev"))


@pytest.mark.parametrize(("steps", "folds"), [(7, False), (8, True)])
def test_short_loops_fold_from_eight_copies(steps: int, folds: bool) -> None:
    def f(x):
        for _ in range(steps):
            x = np.sin(x) * 0.5 + np.cos(x) * np.exp(-x) - np.tanh(x * 0.3) / (x * x + 1.0) + np.sqrt(x * x + 2.0) * 0.1
        return x

    assert ("for " in rg.jit(f).source(np.ones(3))) == folds


def _step(s, x, y, z):
    return np.sin(s) * x + y * s - z / (1.0 + s * s) + np.cos(x) + s * y - x * z + np.tanh(s)


def _zipped(n, s, a, b, c):
    for x, y, z in zip(a[:n], b[:n], c[:n], strict=True):
        s = _step(s, x, y, z)
    return np.sum(s)


def _enumerated(n, s, a, b, c):
    for k, (x, y) in enumerate(zip(a[:n], b[::-1], strict=False)):
        s = _step(s, x, y, c[k])
    return np.sum(s)


SEEN = np.random.default_rng(1).integers(0, 12, (12, 2))  # which rows go together


def _chosen(n, s, a, b, c):
    for i in range(n):
        s = _step(s, a[SEEN[i, 0]], b[SEEN[i, 1]], c[i])
    return np.sum(s)


def _lists_of_rows(n, s, a, b, c):
    for i in range(n):
        s = _step(s, np.sum(a[SEEN[i]], axis=0), b[[SEEN[i, 1], SEEN[i, 0]]][1], c[i])
    return np.sum(s)


@pytest.mark.parametrize("program", [_zipped, _enumerated, _chosen, _lists_of_rows])
@pytest.mark.parametrize(("steps", "folds"), [(7, False), (8, True), (12, True)])
def test_rows_that_zip_or_known_integers_choose_fold_from_eight_copies(
    program: Callable[..., Any], steps: int, folds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(*args: Any) -> Any:
        return program(steps, *args)

    args = np.linspace(0.1, 0.3, 3), *np.random.default_rng(0).standard_normal((3, 12, 3))
    compiled, slope = rg.jit(f), rg.grad(f, argnums=(0, 1, 2, 3))
    assert ("for " in compiled.source(*args)) == folds
    assert compiled(*args) == f(*args)
    found, lanes = slope(*args), rg.vmap(slope)(*(np.stack([x, x[::-1]]) for x in args))
    monkeypatch.setattr("retrograd.compiler.rolled.LONG", 10**9)
    for x, y, z in zip(found, rg.grad(f, argnums=(0, 1, 2, 3))(*args), lanes, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(x, z[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("steps", "folds"), [(127, False), (128, True)])
def test_short_loops_of_numbers_stay_unrolled(steps: int, folds: bool) -> None:
    def f(x, y):
        for _ in range(steps):
            x = np.sin(x) * 0.5 + x * y
        return x

    args = np.float64(0.3), np.float64(0.2)
    assert ("for " in rg.jit(f).source(*args)) == folds
    with rg.config(exact=True):
        assert rg.jit(f)(*args) == f(*args)


def test_short_recordings_in_which_nothing_folds_stay_as_they_are() -> None:
    def f(x, *ws):
        for k, w in enumerate(ws):
            for _ in range(6 - k % 2):
                x = np.tanh(x) + w
                x = x * w
        return x

    args = R.normal(size=(9, 3))
    assert len(rg.trace(f)(*args).nodes) == 3 * (4 * 6 + 4 * 5)


@pytest.mark.parametrize(("parts", "steps", "folds"), [(2, 7, False), (2, 8, True), (64, 8, True), (65, 8, False)])
def test_iterations_of_several_parts_fold(parts: int, steps: int, folds: bool) -> None:
    def f(x, *factors):
        for _ in range(steps):
            for factor in factors:
                for _ in range(max(40 // parts, 1)):
                    x = np.sin(x * factor) + 0.1 * x
                    x = np.cos(x) - 0.2 * x
        return x

    args = R.normal(size=3), *R.normal(size=(parts, 3))
    np.testing.assert_array_equal(rg.jit(f)(*args), f(*args))
    assert (len(rg.trace(f)(*args).nodes) == 1) == folds


def test_elements_of_an_array_from_before_and_of_one_from_inside_are_told_apart() -> None:
    def f(a, n):  # the first copies read elements of the argument, later ones those of a state of it
        a = a.copy()
        for k in range(n):
            for i in range(k + 1, n):
                a[i, k] = a[i, k] / a[k, k]
                for j in range(k + 1, n):
                    a[i, j] = a[i, j] - a[i, k] * a[k, j]
        return a

    a = R.normal(size=(16, 16)) + 9.0 * np.eye(16)
    np.testing.assert_array_equal(rg.jit(f, static_argnums=1)(a, 16), f(a, 16))


def test_folded_numbers_of_python_stay_numbers_of_python() -> None:
    def f(x, n):
        for _ in range(T):
            x, last, n = x * 0.5 + 1.0 / (x + 2.0), x, 3 * n % 1000003
        return x, last, n

    found, expected = rg.jit(f)(0.3, 12345), f(0.3, 12345)
    assert "for " in rg.jit(f).source(0.3, 12345)
    assert found == expected
    assert [type(y) for y in found] == [float, float, int]


def test_the_last_iteration_is_a_step_like_the_others() -> None:
    source = rg.jit(lorenz_of_an_array).source(np.ones(3), np.ones(3))
    assert f"range({T})" in source
    assert source.count("np.array") == 1  # the result


def test_the_source_is_a_loop() -> None:
    source = rg.jit(recurrent).source(*PROGRAMS[0][1])
    assert source.count("np.tanh") == 1
    assert f"range({T})" in source


def test_second_derivatives_and_lanes_go_through_the_loop() -> None:
    def f(x):
        for _ in range(200):
            x = x + 0.01 * np.sin(x) * x
        return np.sum(x)

    x = np.array([0.3, 0.7])
    second = rg.hessian(f)(x)
    slope = rg.grad(f)
    h = 1e-5
    for i in range(2):
        step = h * np.eye(2)[i]
        np.testing.assert_allclose(second[i], (slope(x + step) - slope(x - step)) / (2 * h), rtol=1e-6, atol=1e-7)
    lanes = rg.vmap(rg.grad(f))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(lanes[1], slope(2 * x), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 2048, 10_000])
def test_large_states_are_not_overwritten(n: int) -> None:
    def f(x):
        y = x * 0.5
        for _ in range(120):
            z = y * 0.9
            z += 0.1 * x
            y = z * 0.99 + y * 0.001
            y[0] = z[1] * x[0]
        return y

    x = np.random.default_rng(0).standard_normal(n)
    with rg.config(exact=True):
        np.testing.assert_array_equal(rg.jit(f)(x), f(x))
    g = rg.grad(lambda x: np.sum(f(x) ** 2))(x)
    h = 1e-6
    for i in (0, 1, n - 1):
        e = np.zeros(n)
        e[i] = h
        numeric = (np.sum(f(x + e) ** 2) - np.sum(f(x - e) ** 2)) / (2 * h)
        np.testing.assert_allclose(g[i], numeric, rtol=1e-5, atol=1e-6)


def transposed_states(x):
    for _ in range(2 * T):
        x = np.sin(x.T * 1.1) * 0.9 + 0.1 * x
        yield x.T * 0.5


def strided_views(x):
    for _ in range(2 * T):
        x = np.sin(x * 1.1) * 0.9 + 0.1
        yield x[::2, ::2]


def reversed_views(x):
    for _ in range(2 * T):
        x = np.sin(x * 1.1) * 0.9 + 0.1
        yield x[0, ::-1]


@pytest.mark.parametrize("n", [4, 8, 12])
@pytest.mark.parametrize("states", [transposed_states, strided_views, reversed_views])
def test_collected_states_keep_their_layout_in_memory(states: Callable[[Any], Any], n: int) -> None:
    """Sums and products of another layout differ in the last bits."""

    def program(x, w):
        kept = list(states(x))
        return sum(y @ w[: y.shape[-1]] for y in kept[::3]), sum(np.sum(y) for y in kept[::7])

    x, w = R.normal(size=(n, n)), R.normal(size=n)
    with rg.config(exact=True):
        np.testing.assert_equal(rg.jit(program)(x, w), program(x, w))


@pytest.mark.slow
@pytest.mark.parametrize("program", [lorenz, recurrent, jacobi])
def test_ten_thousand_iterations(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "T", 10_000)
    args = next(args for f, args, _ in PROGRAMS if f is program)
    if program is recurrent:
        args = (*args[:2], np.random.default_rng(0).normal(size=(10_000, 2)), args[3])
    with rg.config(max_nodes=1_000_000):
        compiled = rg.jit(program)
        np.testing.assert_equal(_leaves(compiled(*args)), _leaves(program(*args)))
        assert len(compiled.graph(*args).nodes) < 100


def test_steps_that_are_read_one_by_one_are_rolled_once():
    """The results of a loop as single numbers are as many nodes as the loop had: rolling these again ends nowhere."""
    f = rg.jit(lambda x: np.sum(np.array([3.0 * np.sin(v) for v in x])))
    x = np.linspace(0.0, 1.0, 700)
    np.testing.assert_allclose(f(x), np.sum(3.0 * np.sin(x)), rtol=1e-13)
    np.testing.assert_allclose(rg.grad(f)(x), 3.0 * np.cos(x), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["d", "f"])
def test_a_loop_that_divides_by_its_counter_is_one_loop(dtype: str) -> None:
    def f(x):
        total = np.zeros_like(x)
        for k in range(200):
            total = np.sin(total + x * 0.5 / (k + 1)) / -(k + 1.0)
        return total

    x = np.linspace(-1.0, 3.0, 5).astype(dtype)
    compiled = rg.jit(f)
    with rg.config(exact=True):
        np.testing.assert_array_equal(compiled(x), f(x))
    assert str(compiled.graph(x, stage="traced")).count(" scan ") == 1


@pytest.mark.parametrize("traced", [False, True])
def test_rows_that_an_array_of_integers_chooses(traced: bool) -> None:
    seen = np.random.default_rng(0).integers(0, 30, (60, 2))

    def f(cameras, points, scale, *chosen):
        total = 0.0
        for (i, j), weight in zip(chosen[0] if chosen else seen, points, strict=True):
            total = total + np.sum((np.tanh(cameras[i]) * scale - weight * cameras[j]) ** 2)
        return total

    rng = np.random.default_rng(1)
    args = rng.standard_normal((30, 3)), rng.standard_normal((60, 3)), rng.standard_normal(3)
    chosen = (seen,) if traced else ()
    compiled, slope = rg.jit(f), rg.grad(f, argnums=(0, 1, 2))
    assert compiled(*args, *chosen) == f(*args, *chosen)
    assert str(compiled.graph(*args, *chosen, stage="traced")).count(" scan ") == 1
    other = [seen[::-1].copy()] if traced else []
    assert compiled(*args, *other) == f(*args, *other)
    found = slope(*args, *chosen)

    def unrolled(*args):
        return f(*args)

    with rolled_from(10**9):
        for a, b in zip(found, rg.grad(unrolled, argnums=(0, 1, 2))(*args, *chosen), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def relaxed(x, b):
    x = x.copy()
    for i in range(1, len(b) - 1):
        x[i] = 0.25 * (b[i] + np.sin(x[i - 1]) + x[i + 1])
    return x


def transformed(x, b):
    x, h = x.copy(), 1
    while h < len(x):
        for i in range(0, len(x), 2 * h):
            for j in range(i, i + h):
                x[j], x[j + h] = x[j] + x[j + h], x[j] - x[j + h]
        h *= 2
    return x * b


@pytest.mark.costly
@pytest.mark.parametrize("n", [511, 512, 513, 700])  # from 513 elements on, a vector has more than 4 KiB
def test_steps_that_follow_each_other_write_into_vectors_of_any_size(n):
    x, b = np.cos(np.arange(float(n))), np.sin(np.arange(float(n)))
    assert str(rg.jit(relaxed).graph(x, b, stage="traced")).count("scan") == 1
    np.testing.assert_array_equal(rg.jit(relaxed)(x, b), relaxed(x, b))
    folded = rg.grad(lambda x, b: np.sum(relaxed(x, b) ** 2), argnums=(0, 1))(x, b)
    with rolled_from(10**9):
        unrolled = rg.grad(lambda x, b: np.sum(relaxed(x, b) ** 2), argnums=(0, 1))(x, b)
    for got, want in zip(folded, unrolled, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)


def test_steps_that_do_not_follow_each_other_stay_unrolled_in_large_vectors():
    x, b = np.cos(np.arange(1024.0)), np.sin(np.arange(1024.0))
    assert "scan" not in str(rg.jit(transformed).graph(x, b, stage="traced"))
    np.testing.assert_array_equal(rg.jit(transformed)(x, b), transformed(x, b))
