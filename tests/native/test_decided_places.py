"""Reads and writes at positions that data decide: values, errors, and loops that write into one array."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.native import needs_compiler

pytestmark = needs_compiler
X = np.linspace(0.1, 1.0, 16)
AT = np.array([0, 3, 5, -5, 2, 1, 0, 7, 8, 15])


def read(x: Any, at: Any) -> Any:
    return np.sum(np.sin(x)[at] ** 2)


def added(x: Any, at: Any) -> Any:
    y = np.zeros(16)
    np.add.at(y, at, x[:10] ** 2)
    return np.sum(y * x)


def written(x: Any, at: Any) -> Any:
    y = x * 1.0
    y[at] = np.sin(x[:10])
    y[at] += 2 * x[3:13]
    return np.sum(y * y)


def rows(x: Any, at: Any) -> Any:
    m = np.sin(x.reshape(4, 4))
    return np.sum(m[at // 5, :2] * m[2:, at // 4].T)


def steps(x: Any, at: Any) -> Any:
    return rg.fori_loop(10, lambda k, s: s * 0.9 + x[at[k]], 0.0)


def recurrence(x: Any, at: Any) -> Any:
    def step(k: Any, y: Any) -> Any:
        y[k + 1] = 0.9 * y[k] + x[k + 1] + y[at[k]]
        return y

    return np.sum(rg.fori_loop(10, step, np.zeros(16)) ** 2)


CASES = [read, added, written, rows, steps, recurrence]


@pytest.mark.parametrize("function", CASES)
def test_values_and_slopes(function: Any) -> None:
    f, g = rg.value_and_grad(function, backend="native"), rg.value_and_grad(function)
    for shift in (0, 1, 0):
        at = np.roll(AT, shift)
        (value, slope), (expected, other) = f(X, at), g(X, at)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(slope, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("function", [read, added, written, steps])
@pytest.mark.parametrize("bad", [16, -17, 2**62, -(2**63)])
def test_positions_out_of_bounds_raise_numpys_error_with_the_line(function: Any, bad: int) -> None:
    told = []
    for backend in ("native", "numpy"):
        f = rg.value_and_grad(function, backend=backend)
        f(X, AT)
        with pytest.raises(IndexError) as fault:
            f(X, np.where(np.arange(10) == 6, bad, AT))
        lines = [(entry.name, entry.line) for entry in traceback.extract_tb(fault.value.__traceback__)]
        told.append((str(fault.value), [line for line in lines if line[0] == function.__name__]))
        np.testing.assert_allclose(f(X, AT)[0], rg.jit(function)(X, AT), rtol=1e-13)
    assert told[0] == told[1]


def test_a_loop_that_writes_into_an_array_copies_none() -> None:
    f = rg.value_and_grad(lambda x: recurrence(x, AT), backend="native")
    f(X)
    source = f.source(X, language="c")
    kernel = source[source.index("static int kernel0") : source.index("static PyObject *call0")]
    assert "memcpy" not in kernel
    assert type(f.executable(X).function).__name__ == "builtin_function_or_method"


def test_what_reads_an_array_before_a_write_sees_what_was_there() -> None:
    def turned(x: Any, at: Any) -> Any:
        def step(k: Any, y: Any) -> Any:
            a, b, whole = y[at[k]], y[k], np.sum(y)
            y[k] = a
            y[at[k]] = b + 0.1 * whole
            y[k] += y[at[k]] * b
            return y

        return rg.fori_loop(10, step, x * 1.0)

    for function in (turned, lambda x, at: rg.grad(lambda x: np.sum(turned(x, at) ** 2))(x)):
        expected = rg.jit(function)(X, AT)
        np.testing.assert_allclose(rg.jit(function, backend="native")(X, AT), expected, rtol=1e-12)


def test_lanes_have_the_bits_of_single_calls() -> None:
    xs, ats = np.stack([X, X[::-1], 2 * X]), np.stack([AT, AT[::-1], np.roll(AT, 2)])
    for function in (read, added, written):
        one = rg.grad(function, backend="native")
        many = rg.vmap(one, backend="native")(xs, ats)
        for k in range(3):
            np.testing.assert_allclose(many[k], one(xs[k], ats[k]), rtol=1e-14)


WIDE = np.linspace(-1.0, 1.0, 20)
Reader = Callable[..., Any]


def alone(x: Any, old: Any, other: Any) -> Any:
    return np.sin(x + other) - 0.5 * old


def beside_a_long_vector(x: Any, old: Any, other: Any) -> Any:
    return x * np.sum(np.sin(np.outer(old, WIDE)))


def in_a_product(x: Any, old: Any, other: Any) -> Any:
    return np.sum(np.reshape(old, (1, -1))[:, :1] @ WIDE.reshape(1, 20)[:, 3:]) * x


def joined_to_another(x: Any, old: Any, other: Any) -> Any:
    both = np.concatenate([np.ravel(old), np.ravel(other), np.ravel(old)])
    return x + both[::-1][0] - 0.3 * np.max(both)


def in_an_inner_loop(x: Any, old: Any, other: Any) -> Any:
    return rg.fori_loop(5, lambda k, s: 0.5 * np.cos(s + old), x * 0.5)


def as_a_choice(x: Any, old: Any, other: Any) -> Any:
    return np.where(old > other, np.sin(old) + x, other * 0.5)


def steps_of_a_ring(reader: Reader, period: int) -> Reader:
    """A step of a ring buffer. What it reads first is used after its row, and the one behind it, are overwritten."""

    def step(t: Any, r: Any, x: Any) -> Any:
        old, other = r[t % period], r[(t + 1) % period]
        r[t % period] = np.cos(x) * other + 0.1
        r[(t + 1) % period] += np.tanh(reader(x, old, other))
        return r

    return step


def ring(reader: Reader, shape: tuple[int, ...], period: int, unrolled: bool) -> Reader:
    """The sum of such a ring after 50 steps, by a loop of Python's or of this library."""
    step, start = steps_of_a_ring(reader, period), np.linspace(0.2, 0.6, period)

    def program(x: Any) -> Any:
        r = np.zeros((period, *shape)) + start.reshape(-1, *(1,) * len(shape))
        if unrolled:
            for t in range(50):
                r = step(t, r, x)
        else:
            r = rg.fori_loop(50, lambda t, r: step(t, r, x), r)
        return np.sum(np.sin(r))

    return program


READERS = [alone, beside_a_long_vector, in_a_product, joined_to_another, in_an_inner_loop, as_a_choice]
ROWS = [(), (1,), (1, 1), (1, 1, 1), (2,), (2, 1), (1, 2)]  # of one element, and of two
RINGS = [(reader, shape) for reader in READERS for shape in ROWS[:3]] + [(alone, shape) for shape in ROWS[3:]]


def checked_gradient(program: Reader, plain: Reader, x: Any) -> None:
    """Compare value and gradient with NumPy, with differences, and with those of all budgets bit by bit."""
    f = rg.value_and_grad(program, backend="native")
    value, slope = f(x)
    again = rg.jit(program, backend="native")(x)
    expected = plain(x)
    np.testing.assert_allclose([value, again], [expected, expected], rtol=1e-12)
    np.testing.assert_allclose(slope, rg.grad(program)(x), rtol=1e-11, atol=1e-13)
    assert np.shape(slope) == np.shape(x)
    way, h = np.cos(np.arange(np.size(x))).reshape(np.shape(x)), 1e-6
    difference = (plain(x + h * way) - plain(x - h * way)) / (2 * h)
    np.testing.assert_allclose(np.sum(slope * way), difference, rtol=1e-6, atol=1e-8)
    most = f.plan(x).peak_bytes
    for budget in filter(None, (most, most // 2, most // 8)):
        try:
            found = rg.value_and_grad(program, backend="native", memory=budget)(x)
        except rg.errors.MemoryBudgetError as error:
            found = rg.value_and_grad(program, backend="native", memory=int(error.minimum))(x)
        assert [np.asarray(a).tobytes() for a in found] == [np.asarray(a).tobytes() for a in (value, slope)]


@pytest.mark.costly
@pytest.mark.parametrize("period", [1, 5])
@pytest.mark.parametrize(("reader", "shape"), RINGS)
def test_what_a_ring_held_is_read_after_it_is_overwritten(reader: Reader, shape: tuple[int, ...], period: int) -> None:
    x = 0.3 + 0.1 * np.arange(np.prod(shape, dtype=int)).reshape(shape)
    checked_gradient(ring(reader, shape, period, False), ring(reader, shape, period, True), x)


@pytest.mark.costly
@pytest.mark.parametrize("steps", [8, 16, 17, 130])
@pytest.mark.parametrize("shape", ROWS)
def test_rings_of_pythons_loops_with_a_gradient_at_each_length(shape: tuple[int, ...], steps: int) -> None:
    def program(x: Any) -> Any:
        r = np.zeros((4, *shape))
        for t in range(steps):
            r[t % 4] = np.sin(x + r[(t - 1) % 4])
        return np.sum(r * r)

    checked_gradient(program, program, 1.0 + 0.1 * np.arange(np.prod(shape, dtype=int)).reshape(shape))


@pytest.mark.costly
@pytest.mark.parametrize("size", [8, 16, 17, 100])
def test_an_element_with_a_new_axis_is_read_before_it_is_overwritten(size: int) -> None:
    def step(k: Any, y: Any) -> Any:
        old, other = y[k, None], y[None, k - 1]
        y[k] = np.sum(other) * 0.5
        y[k - 1] = np.mean(np.sin(old * WIDE))
        y[k] += old[0]
        return y

    def plain(x: Any) -> Any:
        y = x * 1.0
        for k in range(1, size):
            y = step(k, y)
        return np.sum(y * y)

    def program(x: Any) -> Any:
        return np.sum(rg.fori_loop(1, size, step, x * 1.0) ** 2)

    checked_gradient(program, plain, np.linspace(0.1, 1.0, size))


@pytest.mark.parametrize("shape", ROWS[:4])
def test_a_ring_of_single_elements_is_changed_where_it_stands(shape: tuple[int, ...]) -> None:
    def program(x: Any) -> Any:
        r = np.zeros((100, *shape))
        for t in range(300):
            r[t % 100] = np.sin(x + r[(t - 1) % 100])
        return np.sum(r)

    f, x = rg.grad(program, backend="native"), np.ones(shape)
    source = f.source(x, language="c")
    kernel = source[source.index("static int kernel0") : source.index("static PyObject *call0")]
    assert "memcpy" not in kernel
    np.testing.assert_allclose(f(x), rg.grad(program)(x), rtol=1e-12)
