"""Reads and writes at positions that data decide: values, errors, and loops that write into one array."""

from __future__ import annotations

import traceback
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
