"""Running sums, products and extrema, differences and integrals, against NumPy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import (
    assert_differentiable,
    assert_same,
    assert_traced,
    assert_traced_in_all_layouts,
    assert_traced_with,
    distinct,
    of_dtypes,
    outcome,
)

RUNNING: dict[str, Any] = {
    "cumsum": np.cumsum,
    "cumsum axis": lambda x: np.cumsum(x, axis=-1),
    "cumsum method": lambda x: x.cumsum(0),
    "cumsum dtype": lambda x: np.cumsum(x, axis=0, dtype=np.float64),
    "cumprod": np.cumprod,
    "cumprod axis": lambda x: x.cumprod(axis=-1),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=0),
    "cumulative_sum initial": lambda x: np.cumulative_sum(x, axis=-1, include_initial=True),
    "cumulative_prod initial": lambda x: np.cumulative_prod(x, axis=0, include_initial=True),
    "cumulative_prod flat": lambda x: np.cumulative_prod(x.ravel()),
    "nancumsum": lambda x: np.nancumsum(x, axis=-1),
    "nancumprod": np.nancumprod,
    "add.accumulate": np.add.accumulate,
    "multiply.accumulate": lambda x: np.multiply.accumulate(x, axis=-1),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 2], axis=-1),
    "add.reduceat later": lambda x: np.add.reduceat(x, np.array([1, 2])),
    "add.outer": lambda x: np.add.outer(x, x[0]),
    "multiply.outer": lambda x: np.multiply.outer(x, [1.0, 2.0]),
}
ORDERED: dict[str, Any] = {
    "maximum.accumulate": np.maximum.accumulate,
    "minimum.accumulate": lambda x: np.minimum.accumulate(x, axis=-1),
    "maximum.reduceat": lambda x: np.maximum.reduceat(x, [0, 2], axis=-1),
    "minimum.reduceat": lambda x: np.minimum.reduceat(x, [0, 1]),
}
DIFFERENCES: dict[str, Any] = {
    "diff": np.diff,
    "diff twice": lambda x: np.diff(x, n=2, axis=0),
    "diff never": lambda x: np.diff(x, n=0),
    "diff ends": lambda x: np.diff(x, axis=0, prepend=1.0, append=x[:1]),
    "ediff1d": np.ediff1d,
    "ediff1d ends": lambda x: np.ediff1d(x, to_begin=x[..., 0], to_end=2),
    "gradient": lambda x: np.gradient(x, axis=0),
    "gradient all": np.gradient,
    "gradient edges": lambda x: np.gradient(x, 0.5, axis=-1, edge_order=2),
    "gradient steps": lambda x: np.gradient(x, 0.5, 2.0),
    "gradient places": lambda x: np.gradient(x, [0.0, 0.5, 2.0, 2.5], axis=-1),
    "gradient places edges": lambda x: np.gradient(x, np.array([0.0, 0.5, 2.0]), axis=0, edge_order=2),
    "gradient equal places": lambda x: np.gradient(x, [0, 2, 4, 6], axis=1),
    "trapezoid": np.trapezoid,
    "trapezoid dx": lambda x: np.trapezoid(x, dx=0.3, axis=0),
    "trapezoid places": lambda x: np.trapezoid(x, [0.0, 1.0, 4.0], axis=0),
    "trapezoid array": lambda x: np.trapezoid(x, np.arange(12.0).reshape(3, 4) ** 2),
}
ALL = RUNNING | ORDERED | DIFFERENCES

SHAPES = ((), (0,), (1,), (5,), (0, 4), (3, 0), (2, 3, 4))


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_types_that_numpy_gives(name: str) -> None:
    assert_traced_with(ALL[name], *of_dtypes((3, 4), "dfeDi?B"))


@pytest.mark.parametrize("name", ALL)
def test_layouts_make_no_difference(name: str) -> None:
    assert_traced_in_all_layouts(ALL[name], distinct((3, 4)))


@pytest.mark.parametrize("name", ALL)
def test_edge_shapes_give_what_numpy_gives(name: str) -> None:
    assert_traced_with(ALL[name], *(distinct(shape) for shape in SHAPES))


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name: str) -> None:
    assert_differentiable(ALL[name], distinct((3, 4)))
    if "dtype" not in name:
        assert_differentiable(ALL[name], distinct((3, 4), "f"), order=1)
    if name not in ORDERED and "dtype" not in name:
        assert_differentiable(ALL[name], distinct((3, 4), "D"))


@pytest.mark.parametrize("zeros", [[], [0], [3], [1, 2], [0, 1, 2, 3]])
def test_running_products_are_right_with_zeros(zeros: list[int]) -> None:
    x = np.array([2.0, 3.0, -1.5, 0.5])
    x[zeros] = 0.0
    expected = [[np.prod(np.delete(x[: k + 1], i)) if i <= k else 0.0 for i in range(4)] for k in range(4)]
    np.testing.assert_allclose(rg.jacobian(np.cumprod)(x), expected, rtol=1e-15)
    np.testing.assert_allclose(rg.jacobian(np.cumprod, mode="fwd")(x), expected, rtol=1e-15)
    assert_differentiable(np.cumprod, x, order=3)


@pytest.mark.parametrize("n", [1, 2, 8, 9, 10, 17, 40, 101])
def test_long_running_products(n: int) -> None:
    x = np.linspace(0.8, 1.2, n)
    x[n // 2] = 0.0
    weights = np.cos(np.arange(n))
    y, before = np.cumprod(x), np.concatenate([[1.0], np.cumprod(x)[:-1]])
    carried = np.zeros(n + 1)
    for k in range(n)[::-1]:
        carried[k] = weights[k] + (x[k + 1] * carried[k + 1] if k + 1 < n else 0.0)
    found = rg.grad(lambda x: np.sum(weights * np.cumprod(x)))(x)
    np.testing.assert_allclose(found, before * carried[:n], rtol=1e-12)
    assert_same(rg.jit(np.cumprod)(x), y)


def test_ties_of_running_extrema_share_equally() -> None:
    x = np.array([1.0, 1.0, 0.0, 1.0, 2.0, 2.0])
    third, half = 1 / 3, 1 / 2
    expected = [
        [1, 0, 0, 0, 0, 0],
        [half, half, 0, 0, 0, 0],
        [half, half, 0, 0, 0, 0],
        [third, third, 0, third, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, half, half],
    ]
    np.testing.assert_allclose(rg.jacobian(np.maximum.accumulate)(x), expected, rtol=1e-15)
    np.testing.assert_allclose(rg.jacobian(np.minimum.accumulate)(-x), expected, rtol=1e-15)


def test_running_operations_of_several_lanes() -> None:
    x = distinct((5, 3, 4))
    for function in (np.cumsum, np.cumprod, np.maximum.accumulate, lambda x: np.add.reduceat(x, [0, 2])):
        found = rg.vmap(rg.grad(lambda x, f=function: np.sum(np.sin(f(x)))))(x)
        one = rg.grad(lambda x, f=function: np.sum(np.sin(f(x))))
        np.testing.assert_allclose(found, [one(lane) for lane in x], rtol=1e-12, atol=1e-12)


PLACED: dict[str, Any] = {
    "trapezoid": np.trapezoid,
    "trapezoid step": lambda y, x: np.trapezoid(y, dx=x[0]),
    "gradient": np.gradient,
    "gradient edges": lambda y, x: np.gradient(y, x, edge_order=2),
    "gradient step": lambda y, x: np.gradient(y, x[1]),
    "diff": lambda y, x: np.diff(y, prepend=x[:2], append=x[0]),
    "ediff1d": lambda y, x: np.ediff1d(y, to_end=x[0], to_begin=x[:2]),
}


@pytest.mark.parametrize("name", PLACED)
def test_places_may_be_traced(name: str) -> None:
    y, x = distinct((5,)), np.array([0.3, 0.5, 1.5, 2.0, 3.1])
    assert_traced(PLACED[name], y, x)
    assert_traced(lambda x: PLACED[name](y, x), x)
    assert_differentiable(PLACED[name], y, x)


def test_places_from_outside_are_read_at_each_call() -> None:
    places = np.array([0.0, 1.0, 3.0])
    for function in (np.trapezoid, np.gradient):
        compiled = rg.jit(lambda y, f=function: f(y, places))
        compiled(np.ones(3))
        places[:] = [0.0, 1.0, 2.0]
        assert_same(compiled(np.array([1.0, 4.0, 9.0])), function(np.array([1.0, 4.0, 9.0]), places))
        places[:] = [0.0, 1.0, 3.0]


UNSUPPORTED: dict[str, Any] = {
    "traced runs": lambda x: np.add.reduceat(x, np.argsort(x)),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_traced_says_so(name: str) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="remedy"):
        rg.jit(UNSUPPORTED[name])(distinct((5,)))


def test_errors_are_those_of_numpy() -> None:
    x = distinct((3, 4))
    for function in (
        lambda x: np.add.reduceat(x, [0, 7]),
        lambda x: np.gradient(x, 1.0, 2.0, 3.0),
        lambda x: np.diff(x, n=-1),
        lambda x: np.gradient(x, edge_order=3),
        np.cumulative_sum,
        lambda x: np.cumsum(x, axis=2),
        lambda x: np.ediff1d(x, to_end=1j),
    ):
        assert_same(outcome(rg.jit(function), [x]), outcome(function, [x]))


def test_the_derivative_of_a_running_product_is_one_recurrence() -> None:
    text = rg.grad(lambda x: np.sum(np.cumprod(x))).source(np.ones(5))
    assert text.count("linear_recurrence(") == 2
    assert "/" not in text
