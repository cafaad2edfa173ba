"""Programs that take a function: what is computed with it, the function over its captures, and what else is passed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import retrograd as rg

rng = np.random.default_rng(0)


class Program(NamedTuple):
    """``run(f, *args)`` with the function ``make(*captures)``; ``direction`` has the arguments and results of f."""

    run: Callable[..., Any]
    make: Callable[..., Callable[..., Any]]
    captures: tuple[Any, ...]
    args: tuple[Any, ...]
    direction: Callable[..., Any]


PROGRAMS: dict[str, Program] = {}


def program(
    make: Callable[..., Any], captures: tuple[Any, ...], *args: Any, along: Callable[..., Any] = np.cos
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        assert run.__name__ not in PROGRAMS
        PROGRAMS[run.__name__] = Program(run, make, captures, args, along)
        return run

    return add


# --- functions over what they capture ---------------------------------------------------------------------


def wave(a, b):
    return lambda x: a * np.sin(b * x) + x


def square(a):
    return lambda x: a * x**2


def linear(w, b):
    return lambda x: np.tanh(w @ x + b)


def bilinear(w):
    return lambda x, y: np.sum(x * w * y) + np.sum(x**2)


def pair_of(a):
    return lambda x: (a * np.sin(x), {"square": a * x**2})


def network(params):
    def f(x):
        for w, b in params:
            x = np.tanh(w @ x + b)
        return x

    return f


def decay(rate):
    return lambda t, y: -rate * y + np.sin(t)


X = np.array([0.3, -1.2, 0.7])
M = rng.normal(size=(3, 3))
LONG = np.linspace(-1.0, 2.0, 3000)
WAVE = (1.3, 0.8)


# --- straight lines of calls ------------------------------------------------------------------------------


@program(wave, WAVE, 0.5)
def product_of_calls(f, a):
    return f(a) * f(2 * a) + f(a)


@program(square, (0.7,), 1.1)
def call_of_a_call(f, x):
    return f(f(x))


@program(square, (0.7,), 0.9)
def power_of_a_function(f, x):
    for _ in range(5):
        x = f(x)
    return x


@program(wave, WAVE, 0.5)
def call_at_a_constant(f, a):
    return a * f(3.0)


@program(wave, WAVE, 0.5)
def unused_function(f, a):
    return a**3


@program(wave, WAVE, 0.5)
def unused_call(f, a):
    f(a)
    return a**2


@program(wave, WAVE, X)
def elementwise_on_an_array(f, x):
    return np.sum(f(x) ** 2)


@program(wave, WAVE, X)
def several_results(f, x):
    return {"value": f(x), "other": (f(x[::-1]) * x, x)}


@program(linear, (M, X), X)
def layer(f, x):
    return np.sum(f(f(x)) * x)


@program(network, ([(M, X), (M.T, -X)],), X)
def network_over_a_tree_of_captures(f, x):
    return f(x) @ f(-x)


@program(bilinear, (X,), X, X + 1.0, along=lambda x, y: np.sum(np.cos(x) * y))
def two_arguments(f, x, y):
    return f(x, y) * f(y, y) + f(x, x)


@program(pair_of, (0.7,), 1.2, along=lambda x: (np.cos(x), {"square": np.exp(-x)}))
def results_in_containers(f, x):
    value, more = f(x)
    return value * more["square"] + f(value)[0]


# --- Python's own control flow and functional style -------------------------------------------------------


@program(wave, WAVE, X)
def map_of_python(f, x):
    return sum(map(f, x))


@program(wave, WAVE, X)
def filter_of_python(f, x):
    return sum(y * y for y in filter(lambda v: f(v) > 0.0, x)) + f(x[0])


@program(wave, WAVE, X)
def filter_of_results(f, x):
    return sum(filter(lambda y: y > 0.0, map(f, x)))


@program(bilinear, (np.array(0.4),), X, along=lambda x, y: np.cos(x + y))
def fold_of_python(f, x):
    return functools.reduce(f, list(x), 0.1)


@program(wave, WAVE, 0.4)
def branch_on_a_result(f, x):
    y = f(x)
    return f(y) if y > 0.0 else y**3


@program(square, (0.5,), 1.4)
def while_with_a_count_that_depends_on_data(f, x):
    while f(x) > 0.05:
        x = f(x)
    return x + f(x)


@program(square, (0.9,), 0.8)
def recursion(f, x):
    def down(n, y):
        return y if n == 0 else down(n - 1, f(y)) + y

    return down(4, x)


@program(wave, WAVE, 0.7)
def function_passed_on(f, x):
    def twice(g):
        return lambda y: g(g(y))

    return twice(twice(f))(x)


@program(wave, WAVE, 0.6)
def derivative_by_differences(f, x):
    return (f(x + 1e-2) - f(x - 1e-2)) / 2e-2


@program(wave, WAVE, 0.6)
def newton_with_a_given_slope(f, x):
    for _ in range(4):
        x = x - (f(x) - 0.5) / 2.0
    return x


@program(wave, WAVE, X)
def writes_into_an_array(f, x):
    y = np.zeros(5)
    y[1:4] = f(x)
    y[2:] += f(y[:3])
    y[0] = f(x[1])
    return np.sum(y * np.arange(5.0))


@program(wave, WAVE, X)
def arrays_that_are_written_after_the_call(f, x):
    y = x * 1.0
    total = np.sum(f(y))
    y[0] = 2.0
    total += np.sum(f(y) * y)
    y *= 0.5
    return total + np.sum(f(y))


@program(wave, WAVE, X)
def views(f, x):
    m = np.outer(x, x)
    return np.sum(f(m[1:, ::2].T) * 2.0) + np.sum(f(m.reshape(-1)[::4]))


# --- numerical methods ------------------------------------------------------------------------------------


@program(wave, WAVE, 0.0, 1.5)
def simpsons_rule(f, a, b):
    x = np.linspace(0.0, 1.0, 11) * (b - a) + a
    w = np.ones(11)
    w[1:-1:2], w[2:-1:2] = 4.0, 2.0
    return (b - a) / 30.0 * np.sum(w * f(x))


@program(decay, (0.8,), 1.2, along=lambda t, y: np.cos(t) * y)
def eulers_method(f, y):
    for k in range(6):
        y = y + 0.1 * f(0.1 * k, y)
    return y


@program(decay, (0.8,), X, along=lambda t, y: np.cos(t) * y)
def runge_kutta(f, y):
    h = 0.2
    for k in range(3):
        t = k * h
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + h / 2, y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(t + h, y + h * k3))
    return np.sum(y**2)


@program(wave, WAVE, 0.3)
def fixed_point(f, x):
    while True:
        new = 0.3 * f(x)
        if abs(new - x) < 1e-13:
            return new
        x = new


@program(wave, WAVE, np.array([0.0, 0.5, 1.5]), np.array([0.1, 0.8, 1.0]))
def least_squares_loss(f, x, y):
    return 0.5 * np.sum((f(x) - y) ** 2)


@program(bilinear, (X,), rng.normal(size=(4, 3)), along=lambda x, y: np.sum(np.cos(x) * y))
def kernel_matrix(f, x):
    gram = rg.vmap(lambda a: rg.vmap(lambda b: f(a, b))(x))(x)
    return np.sum(gram**2) + gram[0, 1]


@program(wave, WAVE, 2.0)
def continuation_with_several_shots(k, x):
    return k(x) + k(2 * x)


# --- loops and lanes of retrograd -------------------------------------------------------------------------


@program(wave, WAVE, X)
def map_of_retrograd(f, x):
    return np.sum(rg.map(f, x) * x)


@program(wave, WAVE, rng.normal(size=(4, 3)))
def lanes(f, x):
    return np.sum(rg.vmap(f)(x) * x) + np.sum(f(x[0]))


@program(wave, WAVE, rng.normal(size=(4, 3)))
def lanes_of_some_arguments(f, x):
    return np.sum(rg.vmap(lambda row, s: f(row) * f(s), in_axes=(0, None))(x, x[0, 0]))


@program(bilinear, (np.array(0.4),), 0.3, X, along=lambda x, y: np.cos(x + y))
def scan_with_two_calls(f, c, x):
    last, ys = rg.scan(lambda c, t: (f(c, t), f(t, c) * c), c, x)
    return last + np.sum(ys**2)


@program(wave, WAVE, X)
def scan_backwards(f, x):
    last, ys = rg.scan(lambda c, t: (np.sin(c + f(t)), c * f(c)), 0.2, x, reverse=True)
    return last * np.sum(ys)


@program(wave, WAVE, rng.normal(size=(2, 3)))
def scan_in_scan(f, x):
    def outer(c, row):
        inner, ys = rg.scan(lambda d, t: (d + f(t * d), f(d)), c, row)
        return np.sin(inner), np.sum(ys) + f(c)

    last, ys = rg.scan(outer, 0.5, x)
    return last + np.sum(ys)


@program(wave, WAVE, rng.normal(size=(2, 3)))
def lanes_in_a_scan(f, x):
    def body(c, row):
        return c + np.mean(rg.vmap(f)(row)), np.sum(rg.vmap(lambda t: f(t * c))(row))

    last, ys = rg.scan(body, 0.5, x)
    return last * np.sum(ys)


@program(wave, WAVE, rng.normal(size=(2, 3)))
def scan_in_lanes(f, x):
    return np.sum(rg.vmap(lambda row: rg.scan(lambda c, t: (f(c * t), f(c)), 0.5, row)[0])(x))


@program(wave, WAVE, 0.4)
def counted_loop(f, x):
    return rg.fori_loop(3, lambda i, c: 0.5 * f(c) + x, x)


@program(wave, WAVE, X)
def inside_a_small_compiled_function(f, x):
    inner = rg.jit(lambda y: f(y) * 2.0)
    return np.sum(inner(x) * inner(-x))


@program(wave, WAVE, X)
def inside_a_large_compiled_function(f, x):
    @rg.jit
    def inner(y):
        for k in range(8):
            y = np.sin(y * k) + np.cos(y) * 0.5
        return f(y) * y + f(np.sum(y))

    return np.sum(inner(x) * inner(inner(x)))


@program(wave, WAVE, X)
def beside_an_inner_gradient(f, x):
    slope = rg.grad(lambda y: np.sum(y**2) * f(x[0]))(x)
    return np.sum(slope * f(x))


# --- large arrays, other dtypes ---------------------------------------------------------------------------


@program(wave, WAVE, LONG)
def large_arrays(f, x):
    y = f(x)
    y = f(y * 0.5) + y
    y[::2] *= f(y[1::2])
    return np.mean(y)


@program(wave, WAVE, LONG)
def large_lanes(f, x):
    return np.mean(rg.vmap(lambda t: f(t) * f(t * t))(x) * x)


@program(wave, WAVE, LONG.reshape(10, 300))
def large_steps(f, x):
    last, ys = rg.scan(lambda c, row: (np.tanh(f(c) + row), f(row) * c), x[0], x)
    return np.sum(last) + np.sum(ys**2)


@program(wave, (np.float32(1.3), np.float32(0.8)), X.astype(np.float32))
def single_precision(f, x):
    return np.sum(f(x) * f(f(x)))


@program(lambda w: lambda z: w * z**2, (0.5 + 0.3j,), X + 1j * X[::-1], along=lambda z: np.exp(1j * z))
def complex_numbers(f, z):
    return np.sum(np.real(f(z) * f(z[::-1]) * z))


# --- calls in branches ------------------------------------------------------------------------------------


@program(wave, WAVE, 0.4)
def branch_that_is_taken(f, x):
    return rg.cond(x > 0.0, lambda: f(f(x)) * x, lambda: np.sin(x)) + f(x)


@program(wave, WAVE, -0.4)
def branches_that_both_call(f, x):
    return rg.cond(x > 0.0, lambda y: f(y) * x, lambda y: f(y * 3.0) + f(2.0), x) ** 2


@program(wave, WAVE, np.array([0.3, -1.2, 0.7, -0.1]))
def choices_in_a_scan(f, x):
    def body(c, t):
        y = rg.cond(t > 0.0, lambda: f(t * c), lambda: rg.cond(c > 0.5, lambda: f(c) * t, lambda: t))
        return c + np.sin(y), y

    last, ys = rg.scan(body, 0.4, x)
    return last * np.sum(ys)


@program(lambda a: lambda x: a * np.log(x), (0.7,), np.array([0.3, -1.2, 0.7, -0.1]), along=lambda x: x**2)
def calls_outside_the_domain_are_not_made(f, x):
    return np.sum(rg.map(lambda t: rg.cond(t > 0.0, lambda: f(t), lambda: t * 2.0), x))


@program(wave, WAVE, np.array([0.3, -1.2, 0.7, -0.1]))
def choices_of_lanes(f, x):
    return np.sum(rg.vmap(lambda t: rg.cond(t > 0.0, lambda: f(t), lambda: f(2.0 * t) * t))(x) ** 2)


@program(wave, WAVE, 0.5)
def thrown_past(f, x):
    def body():
        y = f(x)
        rg.throw_if(y > 0.5, y)
        return f(y)

    return rg.try_catch(body, lambda y: f(3.0 * y)) * x


# --- handed to others as it is ----------------------------------------------------------------------------


@program(lambda a: lambda c, t: (np.sin(a * c) + t, c * t), (0.7,), X, along=lambda c, t: (c * t, np.cos(t)))
def body_of_a_scan(f, x):
    last, ys = rg.scan(f, 0.1, x)
    return last * np.sum(ys)


@program(lambda a: lambda i, c: np.sin(a * c) + 0.1 * i, (0.7,), 0.3, along=lambda i, c: c * c - i)
def body_of_a_counted_loop(f, x):
    return rg.fori_loop(4, f, x) * x


@program(lambda a: lambda x, y: a * x * y + x, (0.7,), X, along=lambda x, y: x + y * y)
def operation_of_a_prefix_sum(f, x):
    return np.sum(rg.associative_scan(f, x) * x)


@program(wave, WAVE, 0.3)
def one_of_several_branches(f, x):
    return rg.switch(1, [f, lambda y: f(f(y)), lambda y: y], x) + rg.cond(x > 0.0, f, lambda y: y, 2.0 * x)


@program(wave, WAVE, X)
def along_an_axis(f, x):
    return np.sum(np.apply_along_axis(f, 0, np.outer(x, x)) ** 2) + np.sum(np.fromfunction(f, (3,)) * x)


@program(wave, WAVE, 0.4)
def inside_subgraphs(f, x):
    inner = rg.subgraph(lambda y: f(y) * f(y + 1.0))
    return inner(x) * inner(2.0 * x)


@program(wave, WAVE, LONG)
def inside_regions_that_keep_nothing(f, x):
    region = rg.checkpoint(lambda y: np.sin(f(y)) * f(2.0 * y))
    return np.mean(region(region(x)))


@program(wave, WAVE, 0.4)
def composed_as_a_lens(f, x):
    return (rg.lens.of(f) >> rg.lens.of(np.sin) >> rg.lens.of(f))(x)
