"""Lists and tuples that a recording makes are not watched; those from outside are, in the same places of the code."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg

ROWS = [[1.0, 2.0], [3.0, 4.0]]
ARRAYS = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]


def comprehended(x: Any) -> Any:
    return sum([x * row[0] for row in [*ROWS, [2.0 * x]]])


def generated(x: Any) -> Any:
    return sum(x * v for row in ROWS for v in row)


def nested(x: Any) -> Any:
    return sum([sum([x * v for v in row]) for row in ROWS])


def sliced(x: Any) -> Any:
    built = [x, x * x]
    return sum(x * v for values in (built, ROWS) for v in values[1:] if values is built) + x * ROWS[1:][-1][0]


def indexed(x: Any) -> Any:
    return sum([rows[k][0] * x for rows in ([[x], [x * x]], ROWS) for k in range(2)])


def counted(x: Any) -> Any:
    return sum([len(values) * x for values in ([x, x], ROWS, ROWS[0], (x,))])


def passed(x: Any) -> Any:
    def first(values: list[Any]) -> Any:
        return x * values[0]

    return sum([first(values) for values in ([x], [1.0, x], *ROWS)])


def recursive(x: Any) -> Any:
    def total(values: Any) -> Any:
        return total(values[0]) + total(values[1:]) if isinstance(values, list) and values else x if values else 0.0

    return total([1.0, [2.0]]) + total(ROWS)


def unpacked(x: Any) -> Any:
    (a, b), (c, d) = [(x, x), *ROWS][1:]
    return x * (a + 2 * b + 3 * c + 4 * d)


def collected(x: Any) -> Any:
    parts = [*ARRAYS, np.array([x, x])]
    return x * sum([part[0] * part[1] for part in parts])


def by_default(x: Any, rows: Any = ROWS) -> Any:
    return sum([x * row[-1] for row in rows])


def rebuilt(x: Any) -> Any:
    values = [v for row in ROWS for v in row]
    values[0] = x * values[0]
    return sum(values) * x


PROGRAMS = [
    comprehended,
    generated,
    nested,
    sliced,
    indexed,
    counted,
    passed,
    recursive,
    unpacked,
    collected,
    by_default,
    rebuilt,
]


def _set(rows: list[Any]) -> None:
    rows[0][0] = 7.0


def _set_last(rows: list[Any]) -> None:
    rows[1][1], rows[1][0] = 8.0, -3.0


def _replace(rows: list[Any]) -> None:
    rows[1] = [5.0, 6.0]


CHANGES: list[Callable[[list[Any]], None]] = [_set, _set_last, _replace]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = copy.deepcopy((ROWS, ARRAYS))
    yield
    ROWS[:], ARRAYS[:] = before


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(program: Callable[..., Any], change: Callable[[list[Any]], None]) -> None:
    f, slope = rg.jit(program), rg.grad(program)
    for _ in range(2):
        for x in (1.5, -0.5):
            assert f(x) == pytest.approx(program(x), rel=1e-14)
            assert slope(x) == pytest.approx((program(x + 1e-6) - program(x - 1e-6)) / 2e-6, rel=1e-6)
        change(ROWS)
        for array in ARRAYS:
            array[1] += 1.0


def test_a_longer_list_is_seen() -> None:
    f = rg.jit(counted)
    assert f(2.0) == counted(2.0)
    ROWS.append([9.0])
    assert f(2.0) == counted(2.0) == 16.0


def test_a_function_of_lists_that_becomes_another_one() -> None:
    def first(values: list[Any]) -> Any:
        return values[0]

    def last(values: list[Any]) -> Any:
        return values[-1]

    chosen = [first]

    @rg.jit
    def f(x: Any) -> Any:
        return sum([chosen[0]([x, k * x]) for k in range(3)])

    assert f(2.0) == 6.0
    chosen[0] = last
    assert f(2.0) == 6.0
    first.__code__ = last.__code__
    chosen[0] = first
    assert f(3.0) == 9.0


def test_what_a_comprehension_raises_is_raised_again() -> None:
    limits = [1.0, 2.0]

    @rg.grad
    def f(x: Any) -> Any:
        def kept(limit: float) -> Any:
            if x > limit:
                raise ValueError(f"above {limit}")
            return x * x

        return sum([kept(limit) for limit in limits])

    assert f(0.5) == 2.0
    limits[0] = 3.0
    with pytest.raises(ValueError, match="above 2"):
        f(2.5)
    limits[:] = [4.0]
    assert f(2.5) == 5.0


def test_arrays_of_parts_have_memory_of_their_own() -> None:
    @rg.value_and_grad
    def f(x: Any) -> Any:
        parts = [x[0], x[1] * x[1]]
        a, b = np.array(parts), np.array(parts)
        a[0] = 3.0 * x[1]
        c = np.array([a, b])
        b[1] = x[0]
        return np.sum(c * np.array([[1.0, 2.0], [3.0, 4.0]])) + np.sum(a * b)

    for x in (np.array([1.0, 2.0]), np.array([-0.5, 3.0])):
        value, slope = f(x)
        u, v = x
        assert value == pytest.approx(3 * v + 2 * v * v + 3 * u + 4 * v * v + 3 * v * u + v * v * u)
        assert slope == pytest.approx([3 + 3 * v + v * v, 3 + 12 * v + 3 * u + 2 * u * v])


@pytest.mark.parametrize(
    "parts", [[1, 2.5], [np.float32(1), np.float32(2)], [np.float32(1), 2.0], [1j, 2.0], [True, 2]]
)
def test_arrays_of_parts_have_the_dtype_of_numpy(parts: list[Any]) -> None:
    made = rg.jit(lambda *given: np.array([*given]))(*parts)
    assert made.dtype == np.array(parts).dtype
    assert np.array_equal(made, np.array(parts))


def test_an_array_of_outer_parts_is_written_inside() -> None:
    @rg.jit
    def f(x: Any, y: Any) -> Any:
        def inner(z: Any) -> Any:
            made = np.array([x, y])
            made[0] = z * z
            return np.sum(made * made)

        return rg.grad(inner)(x)

    assert f(2.0, 3.0) == 32.0
