"""Arrays that a module contains are written as short expressions, if these have every bit of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.emitter import Scope
from retrograd.codegen.numpy.tables import DIAGONALS, LONG, definitions, table

BANDS = sum((k + 2.0) * np.eye(30, 30, k) for k in range(DIAGONALS))
SHORT = [
    np.eye(40),
    np.eye(9, 7, -2, np.float32),
    np.full((8, 8), 0.1),
    np.zeros((100, 3), np.int8),
    np.full(50, np.nan),
    np.full(50, -0.0),
    np.full(60, True),
    np.arange(40),
    np.arange(40.0)[::-1].copy(),
    np.arange(0, 300, 7),
    -2.0 * np.eye(20) + np.eye(20, k=1) + np.eye(20, k=-1),
    1j * np.eye(8),
    -np.eye(8, dtype=np.int16),
    BANDS,
]


@pytest.mark.parametrize("array", SHORT, ids=range(len(SHORT)))
def test_short_expressions_have_every_bit(array: np.ndarray[Any, Any]) -> None:
    text = table(array)
    assert text is not None
    found = eval(text, {"np": np})
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert len(text) < 300


def spoilt(array: np.ndarray[Any, Any], at: tuple[int, ...], value: Any) -> np.ndarray[Any, Any]:
    array = array.copy()
    array[at] = value
    return array


@pytest.mark.parametrize(
    "array",
    [
        np.ones(LONG - 1),
        spoilt(np.zeros(50), (7,), -0.0),
        spoilt(np.eye(20), (3, 4), -0.0),
        spoilt(np.eye(20), (3, 3), 1 + 2**-52),
        spoilt(np.arange(50.0), (49,), 0.0),
        spoilt(np.full(50, np.nan), (1,), 0.0),
        np.arange(50) * 0.1,
        np.arange(50.0) + 2.0**53,
        np.arange(50) + 2**53,
        np.arange(50, dtype=np.int32) * 2 + 1,
        BANDS + 3.0 * np.eye(30, k=-1),
        np.random.default_rng(0).normal(size=(6, 6)),
    ],
    ids=range(12),
)
def test_other_arrays_have_no_short_form(array: np.ndarray[Any, Any]) -> None:
    assert table(array) is None


def runs_alone(f: Callable[[Any], Any], x: np.ndarray[Any, Any], most: int) -> None:
    """Whether the source of the gradient has fewer characters, and computes the same."""
    gradient = rg.grad(f)
    source = gradient.source(x)
    assert len(source) < most
    space: dict[str, Any] = {}
    exec(source, space)
    np.testing.assert_array_equal(space["f_grad"](x), gradient(x))


def test_a_module_with_an_identity_is_short_and_runs_alone() -> None:
    def f(x):
        return np.sum(np.sin(np.eye(200) @ x) * np.arange(200.0))

    runs_alone(f, np.linspace(0.0, 1.0, 200), 2_000)


def test_what_is_compiled_contains_no_table() -> None:
    table = np.random.default_rng(0).standard_normal((150, 150))
    numbers = table.tolist()

    def f(x):
        return np.sum(np.tanh(np.array(numbers) @ x) + table @ x) + np.sum(np.eye(150) @ x)

    gradient = rg.grad(f)
    x = np.linspace(0.0, 1.0, 150)
    assert len(gradient.executable(x).module.source) < 2_000
    away = 1.0 / np.cosh(table @ x) ** 2
    np.testing.assert_allclose(gradient(x), away @ table + table.sum(axis=0) + 1.0, rtol=1e-12)


def test_long_arrays_are_packed_together_with_every_bit() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "places": rng.integers(0, 9, 300),
        "few": np.array([3, 1, 2]),
        "matrix": rng.standard_normal((20, 30)),
        "negative": np.array([-0.0, np.nan, np.inf, 5e-324]),
        "small": np.float32(rng.standard_normal(3)),
        "turned": np.asfortranarray(rng.integers(-(2**62), 2**62, (7, 5))),
        "flags": rng.random(500) > 0.5,
        "waves": rng.standard_normal(300) + 1j,
        "equal": np.zeros(400),
        "none": np.zeros((0, 3)),
    }
    scope = Scope()
    scope.arrays.update(arrays)
    lines = definitions(scope)
    helpers, modules = list(scope.helpers), {name: import_module(name) for name in scope.modules}
    space: dict[str, Any] = {"np": np, **modules}
    exec("\n".join([*helpers, *lines]), space)
    for name, array in arrays.items():
        found = space[name]
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert sum("unpacked(" in line for line in lines) == 4  # integers, floats, bools and complex numbers


def test_a_module_with_positions_is_short_and_runs_alone() -> None:
    places = np.random.default_rng(0).integers(0, 50, 2_000).tolist()

    def f(x):
        return np.sum(np.sin(x[np.array(places)]) * np.arange(2_000.0))

    runs_alone(f, np.linspace(0.0, 1.0, 50), 5_000)
