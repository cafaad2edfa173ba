"""Arrays of a few elements become numbers: the same bits and types as with arrays, where all of them can."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.plain_numbers import regions, small_arrays
from retrograd.compiler.executable import Executable
from retrograd.ir.graph import Graph
from retrograd.passes.lower import lower
from tests.support.samples import SAMPLES

LONGEST = small_arrays.LARGEST
CASES = [(name, k) for name in sorted(SAMPLES) for k in range(len(SAMPLES[name]))]
MADE = "number is float else"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest functions run on numbers, too, however many it takes."""
    monkeypatch.setattr(regions, "FEWEST", 0)
    monkeypatch.setattr(regions, "SHORT", 0)
    monkeypatch.setattr(small_arrays, "NUMBERS_PER_CALL", 1000)


def assert_same(first: Any, second: Any) -> None:
    for x, y in zip(first, second, strict=True):
        assert type(x) is type(y) or np.ndim(x) == 0  # callers give these their type
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(np.signbit(np.real(x)), np.signbit(np.real(y)))


def leaves(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def both(graph: Graph, args: Sequence[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The sources with arrays as numbers and without, which give the same bits.

    One source is not compared with itself: NumPy's square of a complex number depends on where the number lies.
    """
    found, sources = [], []
    for largest in (LONGEST, 0):
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(small_arrays, "LARGEST", largest)
            made = Executable(replace(graph))  # which remembers how it was compiled
            found.append(leaves(made(*(x.copy() if isinstance(x, np.ndarray) else x for x in args))))
            sources.append(made.module.source)
    if sources[0] != sources[1] and all(isinstance(x, (np.ndarray, np.generic, float, int, bool)) for x in found[0]):
        assert_same(*found)
    return sources[0], sources[1]


def check(function: Callable[..., Any], *args: Any, apart: bool = True, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and gradients have the same bits; ``apart`` says whether numbers take the place of the arrays."""
    for mode in (rg.jit, rg.value_and_grad):
        numbers, arrays = both(mode(function).graph(*args), args, monkeypatch)
        assert MADE not in arrays
    assert (MADE in numbers) == apart


@pytest.mark.parametrize(("name", "k"), CASES)
def test_each_primitive_gives_what_arrays_give(
    name: str, k: int, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = SAMPLES[name][k]
    both(lower(sample.graph()), sample.operands(), monkeypatch)


def test_the_moves_are_those_of_primitives_that_move() -> None:
    assert set(SAMPLES) >= small_arrays.MOVES


@pytest.mark.parametrize("n", range(1, LONGEST + 2))
def test_sums_add_in_numpys_order(n: int, always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        x = rng.normal(size=n) * 10.0 ** rng.integers(-5, 5, n)
        check(lambda x: np.sum(x * 1.5) + np.sum(x[::-1]), x, apart=n <= LONGEST, monkeypatch=monkeypatch)


@pytest.mark.parametrize("n", [1, 2, 5, LONGEST])
def test_extrema(n: int, always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=n)
    largest = rg.jit(lambda x: np.max(x) - np.min(x, axis=0, keepdims=True))
    assert MADE in both(largest.graph(x), (x,), monkeypatch)[0]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("fold", [np.sum, np.max, np.min, np.logaddexp.reduce])
def test_what_is_reduced_over_no_axis_stays_as_long(
    fold: Any, keepdims: bool, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(x: Any) -> Any:
        return np.sum(fold(np.exp(x * 0.1), axis=(), keepdims=keepdims) * x) + x[0] * x[1]

    x = np.array([2.0, 3.0, 5.0])
    assert MADE in both(rg.jit(f).graph(x), (x,), monkeypatch)[0]
    both(rg.value_and_grad(f).graph(x), (x,), monkeypatch)
    np.testing.assert_allclose(rg.jit(f)(x), f(x), rtol=1e-14)


@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (2, 2, 3), (3, 1)])
def test_arrays_of_more_axes_keep_their_order_in_memory(shape: tuple[int, ...]) -> None:
    f = rg.jit(lambda x: (np.tanh(0.9 * x) * x + x.T.T, np.sum(np.sin(x) * np.cos(x))))
    for x in (np.random.default_rng(0).normal(size=shape), np.random.default_rng(0).normal(size=shape[::-1]).T):
        array, total = f(x)
        expected = np.tanh(0.9 * x) * x + x.T.T
        np.testing.assert_array_equal(array, expected)
        assert array.strides == expected.strides
        assert total == np.sum(np.sin(x) * np.cos(x))


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("n", [2, 3, 8, 12, 13])
def test_rosenbrock(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(rosenbrock, np.random.default_rng(n).normal(size=n), apart=n <= 12, monkeypatch=monkeypatch)


@pytest.mark.parametrize(("turns", "apart"), [(3, True), (33, True), (34, False), (40, False)])
def test_long_functions_keep_arrays(turns: int, apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 400 operations on numbers take the place of arrays; each turn has twelve."""
    x = np.linspace(-0.3, 0.3, 6)

    def turned(x: Any) -> Any:
        for k in range(turns):
            x = x * x + 0.01 * k
        return x

    numbers, _ = both(rg.jit(turned).graph(x), (x,), monkeypatch)
    assert (MADE in numbers) == apart


def test_arrays_that_lie_otherwise_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(4, 6))
    f = rg.value_and_grad(lambda x: np.sum(np.sin(x) * np.cos(x[0]) + x[:, :1] ** 2))
    for part in (x[::2, ::2], x.T[:2, :3], np.asfortranarray(x[:3, :2]), x[::-1][:2, :3]):
        value, gradient = f(part)
        again, same = f(np.ascontiguousarray(part))
        assert value == pytest.approx(again, rel=1e-15)
        np.testing.assert_allclose(gradient, same, rtol=1e-15)


def lorenz(s: Any, p: Any) -> Any:
    def step(s: Any, x: Any) -> Any:
        def slope(s: Any) -> Any:
            return np.array([p[0] * (s[1] - s[0]), s[0] * (p[1] - s[2]) - s[1], s[0] * s[1] - p[2] * s[2]])

        new = s + 0.01 * slope(s + 0.005 * slope(s))
        return new, new * 0.5

    last, trail = rg.scan(step, s, None, length=30)
    return np.sum(last**2) + np.sum(trail)


def test_loops_over_small_states(monkeypatch: pytest.MonkeyPatch) -> None:
    check(lorenz, np.ones(3), np.array([10.0, 28.0, 8 / 3]), monkeypatch=monkeypatch)


@pytest.mark.parametrize("steps", [1, 2, 4, 40])
@pytest.mark.parametrize("row", [(), (1,), (3,), (2, 2)])
def test_loops_over_short_rows(steps: int, row: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def f(c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = np.tanh(c * 0.9 + np.sum(x)) + x * x
            return c, (c + 1.0, np.sum(c) * x)

        c, (a, b) = rg.scan(step, c, xs)
        return np.sum(c * c) + np.sum(a * np.cos(b))

    rng = np.random.default_rng(steps)
    c, xs = rng.normal(size=row)[()], rng.normal(size=(steps, *row))
    for mode in (rg.jit, rg.value_and_grad):
        both(mode(f).graph(c, xs), (c, xs), monkeypatch)


def test_choices_and_loops_that_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        y = rg.cond(x[0] > 0, lambda x: np.sin(x) * x[::-1], lambda x: x - x[1], x)
        y, _ = rg.while_loop(lambda s: s[1] < 20.0, lambda s: (s[0] * 1.1, s[1] + np.sum(s[0] ** 2)), (y, 0.0))
        return np.sum(y)

    check(f, np.array([0.3, 1.5]), monkeypatch=monkeypatch)
    check(f, np.array([-0.3, 1.5]), monkeypatch=monkeypatch)


def test_numpys_answer_where_python_raises() -> None:
    f = rg.jit(lambda x: np.log(x) + 1.0 / x + np.exp(x * 1000) + x**3 - np.sqrt(x))
    x = np.array([0.0, -1.0, 1.0])
    with pytest.warns(RuntimeWarning):
        found = f(x)
    with np.errstate(all="ignore"):
        expected = np.log(x) + 1.0 / x + np.exp(x * 1000) + x**3 - np.sqrt(x)
    np.testing.assert_array_equal(found, expected)


def test_arrays_of_integers_and_products_stay_arrays() -> None:
    x = np.ones(3)
    assert MADE not in rg.jit(lambda x, i: np.sin(x) * np.cos(x) * np.exp(x) * i).source(x, np.arange(3))
    assert MADE not in rg.jit(lambda x: np.sin(x) @ np.cos(x) + np.exp(x)).source(x)


def test_results_are_new_arrays() -> None:
    f = rg.jit(lambda x: (np.sin(x) * np.cos(x) * np.exp(x), x[::-1]))
    x = np.arange(3.0)
    first, back = f(x)
    back[:] = 0
    first[:] = 0
    np.testing.assert_array_equal(x, np.arange(3.0))
    np.testing.assert_array_equal(f(x)[1], [2.0, 1.0, 0.0])
