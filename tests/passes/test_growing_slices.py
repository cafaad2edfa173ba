"""Loops over slices that grow become loops in the graph, and compute what the unrolled program computes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.rolled import rolled_from
from retrograd.ir.builder import Builder
from retrograd.ir.types import Aval
from retrograd.ops.index import additem
from retrograd.passes.reroll.growing_slices import widened
from tests.support.growing import again, arguments, compare, functions, loops, short_loops_fold

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
SIZES = (0, 1, 2, 7, 8, 9, 33, 130)


def forward(m, b, x):
    y = np.full_like(b, np.nan)  # what is not yet written is in no product
    for i in range(len(b)):
        y[i] = (b[i] - m[i, :i] @ y[:i]) / m[i, i]
    return y


def backward(m, b, x):
    y, n = np.full_like(b, np.inf), len(b)
    for i in range(n - 1, -1, -1):
        y[i] = (b[i] - m[i, i + 1 :] @ y[i + 1 :]) / m[i, i]
    return y


def by_columns(m, b, x):
    y = b.copy()
    for i in range(len(b)):
        y[i] = y[i] / m[i, i] + 0.1 * (m[:i, i] @ x[:i])
        y[:i] -= y[i] * m[i, :i]
        y[i + 1 :] += m[i + 1 :, i] * y[i]
    return y


def renewal(m, b, x):
    y = np.full_like(b, np.nan)
    for i in range(len(b)):
        y[i] = x[i] + 0.1 * (b[:i] @ y[:i][::-1]) - 0.1 * np.dot(np.flip(x[:i]), b[:i])
    return y


def durbin(m, b, x):
    y, r, beta = np.full_like(b, np.nan), 0.5 * np.tanh(b) * 0.6 ** np.arange(len(b), dtype=b.dtype), 1.0
    for k in range(len(b)):
        alpha = (r[k] - np.flip(r[:k]) @ y[:k]) / beta
        y[:k] -= alpha * np.flip(y[:k])
        y[k] = alpha
        beta = beta * (1.0 - alpha * alpha)
    return y


def moving(m, b, x):
    y, n = np.zeros_like(b), len(b)
    for i in range(n):
        j = i // 2
        y[i] = np.sin(x[j:i] @ m[j, j:i]) + b[n - i :] @ x[:i]
    return y


POINTERS = np.cumsum([3, *(np.arange(max(SIZES)) * 7 % 11)])
PLACES = {n: np.arange(POINTERS[n] + 2) * 31 % max(n, 1) for n in SIZES}
for _places in PLACES.values():
    _places[:3] = _places[-2:] = 10**6  # in no row


def sparse(m, b, x):
    places = PLACES[len(b)]
    rest = np.resize(m, len(places) - 3) if m.size else np.zeros(2)
    data = np.concatenate([np.full(3, np.nan), rest]).astype(b.dtype)
    y = np.empty_like(b)
    for i in range(len(b)):
        row = slice(POINTERS[i], POINTERS[i + 1])
        y[i] = data[row] @ x[places[row]] + b[i]
    return y


PROGRAMS = [forward, backward, by_columns, renewal, durbin, moving, sparse]


@pytest.fixture(autouse=True)
def _short_loops_fold():
    with short_loops_fold():
        yield


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_growing_slices_fold(program):
    args = arguments(33, "d")
    assert loops(program, args) == 1
    with rolled_from(10**9):
        assert loops(functions(program)["value"], args) == 0


@pytest.mark.parametrize(("program", "n", "dtype"), [*product(PROGRAMS, SIZES, "df")])
def test_the_loop_computes_what_the_unrolled_program_computes(program, n, dtype):
    compare(program, arguments(n, dtype))


def first_of_updates(m, b, x):
    y = np.zeros_like(b)
    for k in range(len(b)):
        y[:k] += b[k] * x[:k]
        y[:k] -= (b[:k] @ b[:k]) * b[:k]
    return y[:1]


def test_what_is_added_to_a_whole_vector_is_no_slice():
    b = Builder()
    x = b.input(Aval((12,), np.dtype(float)), "x")
    graph = b.graph("f", [additem(x, x * 2.0, index=())])
    assert widened(graph) is graph


@pytest.mark.parametrize("nan_safe", [False, True])
def test_zeros_win_over_infinities_as_they_do_step_by_step(nan_safe):
    m, b, x = arguments(33, "d")
    x[5] = np.inf
    with np.errstate(all="ignore"), rg.config(nan_safe=nan_safe):
        assert loops(first_of_updates, (m, b, x)) == 1
        folded = functions(first_of_updates)["gradient"](m, b, x)
        with rolled_from(10**9):
            unrolled = functions(again(first_of_updates))["gradient"](m, b, x)
    assert np.isnan(folded[1]).any() != nan_safe
    for got, want in zip(folded, unrolled, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
