"""Arrays of objects, strings and dates in traced functions: NumPy's own, and never a wrong number."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])
OBJECTS = np.array([None, "x", 3.5], dtype=object)
NAMES = np.array(["a", "b", "a"])
DATES = np.array(["2020-01-01", "2020-01-03"], dtype="datetime64[D]")


def table_of_lists(x):
    table = np.full(3, None)
    table[0], table[1] = "a", [1, 2]
    return np.sum(x) * len(table[1])


def ragged_rows(x):
    rows = np.empty(3, dtype=object)
    for i in range(3):
        rows[i] = np.ones(i + 1) * 2
    return sum(np.sum(row) for row in rows) * x[0]


def memory_of_results(x):
    memo = np.full(3, None)
    for i in range(3):
        memo[i] = x[i] * i if memo[i] is None else 0.0
    return memo[0] + memo[2]


def arrays_in_entries(x):
    cells = np.empty((2, 2), object)
    cells[0, 0] = np.sin(x)
    return np.sum(cells[0, 0] * 2)


def copied_and_written(x):
    found = OBJECTS.copy()
    found[0] = 2.0
    return np.sum(found[0] * x) * found[2]


PROGRAMS = [
    table_of_lists,
    ragged_rows,
    memory_of_results,
    arrays_in_entries,
    copied_and_written,
    lambda x: np.sum(np.array(OBJECTS)[2] * x),
    lambda x: np.sum(x[np.array(NAMES) == "a"]),
    lambda x: sum(np.sum(x[np.asarray(NAMES) == n] ** 2) for n in np.unique(NAMES)),
    lambda x: np.sum((np.array(DATES) - DATES[0]) / np.timedelta64(1, "D")) * x[0],
    lambda x: np.zeros(2, object)[0] + x[0] * np.max(np.array([3, 2], object)),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_arrays_without_numbers_are_those_of_numpy(f):
    assert rg.jit(f)(X) == f(X)
    found = rg.grad(f)(X)
    eps = 1e-6
    near = [(f(X + eps * unit) - f(X - eps * unit)) / (2 * eps) for unit in np.eye(3)]
    np.testing.assert_allclose(found, near, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("read", [np.array, np.asarray, np.copy, lambda a: a, lambda a: a.copy(), lambda a: a[:]])
def test_changed_names_are_seen(read):
    names = np.array(["a", "b", "a"])
    f = rg.jit(lambda x: np.sum(x[read(names) == "a"]))
    assert f(X) == X[0] + X[2]
    names[0] = "b"
    assert f(X) == X[2]
    assert f.cache_info().misses == 2
    assert f(X) == X[2]
    assert f.cache_info().misses == 2


@pytest.mark.parametrize("read", [np.array, np.asarray, lambda a: a, lambda a: a.copy()])
def test_changed_objects_and_dates_are_seen(read):
    cells = np.array([None, 2.0], dtype=object)
    g = rg.jit(lambda x: x * read(cells)[1])
    assert g(1.0) == 2.0
    cells[1] = 3.0
    assert g(1.0) == 3.0
    dates = DATES.copy()
    h = rg.jit(lambda x: x * ((read(dates)[1] - read(dates)[0]) / np.timedelta64(1, "D")))
    assert h(1.0) == 2.0
    dates[1] = np.datetime64("2020-01-06")
    assert h(1.0) == 5.0


def cells_of(x):
    cells = np.empty(2, object)
    cells[0], cells[1] = x[0], 2 * x[0]
    return cells


@pytest.mark.parametrize(
    "f",
    [
        cells_of,
        lambda x: cells_of(x).astype(float),
        lambda x: np.array(cells_of(x), dtype=float),
        lambda x: cells_of(x) * x[:2],
        lambda x: np.full(2, x[0], dtype=object),
        lambda x: np.full(2, x[0], dtype="U5"),
        lambda x: np.array([x[0], None], dtype=object),
        lambda x: x.astype(object),
    ],
)
def test_traced_values_do_not_become_plain_numbers_in_them(f):
    with pytest.raises(rg.RetrogradError, match="RG0"):
        rg.jit(f)(X)
