"""Sorting, partitions, and searches in sorted arrays, against NumPy and finite differences."""

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

SORTED: dict[str, Any] = {
    "sort": np.sort,
    "sort axis": lambda x: np.sort(x, axis=0),
    "sort flat": lambda x: np.sort(x, axis=None),
    "sort stable": lambda x: np.sort(x, axis=0, stable=True),
    "sort kind": lambda x: np.sort(x, kind="mergesort"),
    "partition": lambda x: np.partition(x, 2),
    "partition axis": lambda x: np.partition(x, (0, 1), axis=0),
    "partition flat": lambda x: np.partition(x, -5, axis=None),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
    "take_along_axis part": lambda x: np.take_along_axis(x, np.argpartition(x, 1)[..., :2], axis=-1),
    "take_along_axis flat": lambda x: np.take_along_axis(x, np.array([0, 3, 3]), axis=None),
    "take_along_axis stretched": lambda x: np.take_along_axis(x, np.array([[0, 0, 2]]), axis=1),
}
SEARCHED: dict[str, Any] = {
    "argsort": lambda x: x * np.argsort(x, axis=0),
    "argsort method": lambda x: np.ravel(x) * x.argsort(axis=None, kind="stable"),
    "argpartition": lambda x: x * np.argpartition(x, 1, axis=0),
    "argpartition method": lambda x: x * x.argpartition(0),
    "argmax": lambda x: x * np.argmax(x, axis=0),
    "argmax keepdims": lambda x: x * x.argmax(axis=-1, keepdims=True),
    "argmin": lambda x: x * np.argmin(x),
    "argmin method": lambda x: x * x.argmin(0),
    "lexsort": lambda x: x * np.lexsort((x, np.floor(x))),
    "lexsort axis": lambda x: x * np.lexsort((np.floor(x[0]), x[1]), axis=0),
    "searchsorted": lambda x: x * np.searchsorted(np.sort(np.ravel(x)), x),
    "searchsorted right": lambda x: x * np.searchsorted(np.array([-0.9, 0.0, 0.6]), x, side="right"),
    "searchsorted sorter": lambda x: x * np.searchsorted(x[0], [0.1, 0.2, 0.3, 0.4], sorter=np.argsort(x[0])),
    "searchsorted method": lambda x: x * np.sort(x[0]).searchsorted(0.2),
    "digitize": lambda x: x * np.digitize(x, [-0.9, 0.0, 0.6]),
    "digitize right": lambda x: x * np.digitize(x, np.array([-0.9, 0.0, 0.6]), right=True),
    "digitize traced": lambda x: x * np.digitize(x, np.sort(x[0])[::-1], right=True),
    "digitize falling": lambda x: x * np.digitize(x, [0.6, 0.0, -0.9]),
}
ALL = SORTED | SEARCHED

SHAPES = ((), (0,), (1,), (6,), (0, 4), (3, 0), (2, 3, 4))


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_types_that_numpy_gives(name: str) -> None:
    assert_traced_with(ALL[name], *of_dtypes((3, 4), "dfeDiB"))


@pytest.mark.parametrize("name", ALL)
def test_layouts_make_no_difference(name: str) -> None:
    assert_traced_in_all_layouts(ALL[name], distinct((3, 4)))


@pytest.mark.parametrize("name", ALL)
def test_edge_shapes_give_what_numpy_gives(name: str) -> None:
    assert_traced_with(ALL[name], *(distinct(shape) for shape in SHAPES))


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name: str) -> None:
    assert_differentiable(ALL[name], distinct((3, 4)))
    assert_differentiable(ALL[name], distinct((3, 4), "f"), order=1)
    if name in SORTED:
        assert_differentiable(ALL[name], distinct((3, 4), "D"), order=1)


def test_ties_follow_the_stable_order() -> None:
    x = np.array([2.0, 1.0, 2.0, 1.0, 1.0])
    expected = np.eye(5)[np.argsort(x, stable=True)]
    np.testing.assert_array_equal(rg.jacobian(np.sort)(x), expected)
    np.testing.assert_array_equal(rg.jacobian(np.sort, mode="fwd")(x), expected)


@pytest.mark.parametrize("n", [7, 300])
def test_partitions_move_tangents_with_their_elements(n: int) -> None:
    rng = np.random.default_rng(1)
    x, t = rng.standard_normal(n), rng.standard_normal(n)
    y, dy = rg.jvp(lambda x: np.partition(x, (n // 3, n // 2)), (x,), (t,))
    found = dict(zip(y.tolist(), dy.tolist(), strict=True))
    assert found == dict(zip(x.tolist(), t.tolist(), strict=True))


def test_sorting_in_place_changes_what_views_see() -> None:
    def inside(x: Any) -> Any:
        y = x * 2.0
        tail = y[1:]
        y.sort()
        z = -x
        z.partition(2)
        y[::2].sort(kind="stable")
        return y, tail * 1.0, z

    x = distinct((6,))
    assert_same(rg.jit(inside)(x), inside(x))
    assert_differentiable(inside, x)


def test_sorts_of_several_lanes() -> None:
    x = distinct((5, 3, 4))
    edges = np.array([-1.0, 0.0, 2.0])
    for function in (
        np.sort,
        np.median,
        lambda x: np.partition(x, 1),
        lambda x: np.take_along_axis(x, np.argsort(x), -1),
        lambda x: np.quantile(x, [0.2, 0.7], axis=1),
        lambda x: x * np.searchsorted(edges, x),
        lambda x: x * np.searchsorted(np.sort(x[0]), x),
        lambda x: x * np.lexsort((x, np.floor(x))),
    ):

        def loss(x: Any, f: Any = function) -> Any:
            return np.sum(np.sin(f(x)))

        found = rg.vmap(rg.grad(loss))(x)
        np.testing.assert_allclose(found, [rg.grad(loss)(lane) for lane in x], rtol=1e-12, atol=1e-12)


DATA_DEPENDENT: dict[str, Any] = {
    "unique": np.unique,
    "unique_values": np.unique_values,
    "nonzero": np.nonzero,
    "nonzero method": lambda x: x.nonzero(),
    "flatnonzero": np.flatnonzero,
    "argwhere": np.argwhere,
    "where": np.where,
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_shapes_that_depend_on_data_are_those_of_the_call(name: str) -> None:
    compiled = rg.jit(DATA_DEPENDENT[name])
    for x in (distinct((5,)), np.array([0.0, 2.0, 2.0, 0.0, 1.0]), np.zeros(5), np.arange(5.0)):
        assert_same(compiled(x), DATA_DEPENDENT[name](x))


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_of_plain_numbers_they_are_known(name: str) -> None:
    def inside(x: Any) -> Any:
        found = DATA_DEPENDENT[name](np.array([0.0, 3.0, 3.0]))
        return x * np.sum(found[0] if isinstance(found, tuple) else found)

    assert_traced(inside, np.float64(2.0))


def test_errors_are_those_of_numpy() -> None:
    x = distinct((3, 4))
    for function in (
        lambda x: np.sort(x, axis=2),
        lambda x: np.sort(x, kind="bubble"),
        lambda x: np.partition(x, 9),
        lambda x: np.searchsorted(x, 1.0),
        lambda x: np.digitize(x, [0.0, 2.0, 1.0]),
        lambda x: np.take_along_axis(x, np.array([[9]]), 0),
        lambda x: np.searchsorted(x[0], 1.0, side="middle"),
        lambda x: np.median(x, axis=3),
        lambda x: np.quantile(x, 1.5),
        lambda x: np.argmax(x, axis=(0, 1)),
    ):
        assert_same(outcome(rg.jit(function), [x]), outcome(function, [x]))


def test_partitions_at_traced_places_hold_for_these() -> None:
    compiled, x = rg.jit(lambda x: np.partition(x, np.argmax(x))), distinct((5,))
    for point in (x, x[::-1].copy()):
        k = np.argmax(point)
        np.testing.assert_array_equal(compiled(point)[k], np.sort(point)[k])
