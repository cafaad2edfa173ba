"""Loops over elements become operations on arrays by levels: the same bits, and few nodes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.rolled import rolled_from
from retrograd.errors import RetrogradError
from retrograd.ir import evaluate, verify
from retrograd.ir.graph import Graph
from retrograd.passes.reroll import vectorize as rules
from retrograd.passes.reroll.vectorize import vectorize


def unrolled(f: Any, *args: Any) -> Graph:
    """The trace as it is."""
    with rolled_from(10**9):
        return rg.trace(f)(*args)


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


def regular(n: int, dtype: str = "d") -> Any:
    a = np.random.default_rng(n).standard_normal((n, n)) / n + 2.0 * np.eye(n)
    return (a @ a.T).astype(dtype)


def lu(a):
    a = a.copy()
    n = len(a)
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[k, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            for k in range(i):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def cholesky(a):
    c = np.zeros_like(a)
    n = len(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - c[i, k] * c[j, k]
            c[i, j] = np.sqrt(s) if i == j else s / c[j, j]
    return c


def substitution(a):
    n = len(a)
    x = []
    for i in range(n):
        x.append((a[0, i] - sum(a[i, j] * x[j] for j in range(i))) / a[i, i])
    return np.array(x) * 2.0


def halves(a):
    """Vectors between the numbers: levels are split by them."""
    b = a * 0.5
    for i in range(len(a)):
        for j in range(len(a)):
            b[i, j] = b[i, j] * a[j, i] + 0.25
    c = np.sin(b) @ b
    for i in range(len(a)):
        for j in range(i):
            c[i, j] = c[j, i] - b[i, j] / 3.0
    return c, b[1:3].sum(), c.T[2], c[1, 0]


PROGRAMS = {f.__name__: f for f in (lu, cholesky, substitution, halves)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["d", "f"])
@pytest.mark.parametrize("n", [6, 12, 24, 33])
def test_values_have_the_bits_of_the_program(name, dtype, n):
    f, a = PROGRAMS[name], regular(n, dtype)
    plain, compiled = f(a), rg.jit(f)(a)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (plain, compiled)), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert bits(x) == bits(y)


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_nodes_remain(name):
    graph = rg.jit(PROGRAMS[name]).at(regular(40)).recorded.graph
    verify(graph)
    assert 4 * len(graph.nodes) < len(unrolled(PROGRAMS[name], regular(40)).nodes)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [10, 12])
def test_gradients_are_those_of_the_numbers(name, n):
    def loss(a):
        found = PROGRAMS[name](a)
        return sum(np.sum(np.cos(x)) for x in (found if isinstance(found, tuple) else (found,)))

    a = regular(n)
    with rolled_from(10**9):
        expected = rg.grad(partial(loss))(a)
    np.testing.assert_allclose(rg.grad(loss)(a), expected, rtol=1e-11, atol=1e-13)
    rg.check_grads(loss, (a,), order=2)


def test_gradients_of_batches_are_those_of_each():
    many = np.stack([regular(12), regular(12) + np.eye(12), 2.0 * regular(12)])
    slope = rg.grad(lambda a: np.sum(np.log(np.abs(np.diag(lu(a))))))
    for x, y in zip(rg.vmap(slope)(many), many, strict=True):
        np.testing.assert_allclose(x, slope(y), rtol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arguments_in_any_order_of_axes(order):
    a = np.array(regular(16), order=order)
    np.testing.assert_array_equal(rg.jit(lu)(a), lu(a))
    apart = np.repeat(a, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(rg.jit(lu)(apart), lu(apart))


def test_a_decision_stays_between_what_it_depends_on_and_what_follows():
    def pivoted(a):
        a = a.copy()
        n = len(a)
        for k in range(n):
            if np.abs(a[k, k]) < 1e-3:
                return a[k, k] * 0.0 - 1.0
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        return np.sum(np.log(np.abs(np.diag(a))))

    a = regular(24)
    singular = a.copy()
    singular[5:7] = singular[4]
    compiled = rg.jit(pivoted)
    with np.errstate(all="raise"):  # no division by a pivot that was refused
        for x in (a, singular, a + np.eye(24), singular):
            assert bits(compiled(x)) == bits(pivoted(x))


def test_results_of_zeros_infinities_and_nan():
    def table(x, y):
        out = np.empty((len(x), len(y)))
        for i in range(len(x)):
            for j in range(len(y)):
                out[i, j] = -(x[i] * y[j]) / (x[i] - y[j])
        return out

    x = np.array([0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, 5e-324, -1e308, 3.0, 7.0, 8.0, 9.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rg.jit(table)(x, x[::-1]), table(x, x[::-1]))
        plain, compiled = table(x, x), rg.jit(table)(x, x)
    numbers = ~np.isnan(plain)  # the sign of nan is the processor's choice
    assert 0 < np.sum(numbers) < x.size**2
    assert bits(plain[numbers]) == bits(compiled[numbers])


def test_chains_stay_as_they_are():
    def chain(x):
        for k in range(300):
            x = x * 1.01 - 0.5 / (x + float(k))
        return x

    assert vectorize(unrolled(chain, 3.0)) is None


def test_reads_of_few_elements_of_a_large_array_stay_as_they_are():
    def few(x):
        return sum(x[i] * x[i + 1] for i in range(300))

    assert vectorize(unrolled(few, np.ones(100_000))) is None


class _Program:
    """A drawn program of writes, reads and views of elements, with operations on numbers and on arrays between them."""

    def __init__(self, seed: int, vectors: bool) -> None:
        self.seed, self.vectors = seed, vectors

    def __call__(self, x: Any, m: Any) -> Any:
        rng = np.random.default_rng(self.seed)
        arrays = [x, m.copy(), np.zeros_like(x), x.astype(np.float32), np.zeros(3, np.float32), np.ones((2, 2))]
        numbers = [x[0], m[1, 2], 0.5 * x[1], arrays[3][0]]
        for _ in range(int(rng.integers(20, 60))):
            kind, pick = int(rng.integers(0, 14)), lambda pool: pool[int(rng.integers(len(pool)))]
            array = pick(arrays)
            at = tuple(int(rng.integers(-n, n)) for n in array.shape)
            if kind < 3:
                numbers.append(array[at])
            elif kind < 6:
                a, b = pick(numbers), pick(numbers)
                numbers.append(
                    [a + b, a - b, a * b, a / (b * b + 1.0), -a, np.sqrt(a * a), abs(a)][int(rng.integers(7))]
                )
            elif kind < 8:
                if array is not x:
                    array[at] = pick(numbers)
            elif kind == 8:
                if array is not x:
                    array[at] += pick(numbers)
            elif kind == 9:
                arrays.append(np.array([pick(numbers) for _ in range(int(rng.integers(1, 5)))]))
            elif kind == 10:
                arrays.append(array.copy() if rng.integers(2) else array.T if array.ndim == 2 else array[::-1])
            elif kind == 11 and array.ndim == 2:
                row = array[at[0]]
                arrays.append(row)
                if array is not x:
                    array[at[0]] = row[::-1] if rng.integers(2) else pick(numbers)
            elif kind == 12:
                arrays.append(array[(*at[:-1], slice(None), *[None] * int(rng.integers(2)))])
                if array.ndim == 1 and array is not x:
                    array[at[0], ...] = pick(numbers) + array[at[0], ...]
            elif kind == 13 and self.vectors:
                arrays.append(np.tanh(array) * 2.0)
                numbers.append(np.sum(array))
        return [*numbers, *arrays]


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_drawn_programs_keep_their_bits(seed, vectors, monkeypatch):
    for name, value in {"FEWEST": 1, "WIDE": 0, "SHARE": -1e9, "READ": 10**9}.items():
        monkeypatch.setattr(rules, name, value)
    program = _Program(seed, vectors)
    rng = np.random.default_rng(1000 + seed)
    x, m = rng.standard_normal(5), rng.standard_normal((4, 3))
    try:
        graph = unrolled(program, x, m)
    except RetrogradError:  # a program that writes into an argument
        pytest.skip("refused by the tracer")
    found = vectorize(graph)
    assert found is not None
    verify(found[0])
    for a, b in zip(evaluate(graph, [x, m]), evaluate(found[0], [x, m, *found[1]]), strict=True):
        assert bits(a) == bits(b)
        assert type(a) is type(b)
