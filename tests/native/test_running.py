"""Running sums, products and extrema, and linear recurrences, are loops in C, with NumPy's bits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import running
from retrograd.ir import Aval, Graph, evaluate
from retrograd.ir.builder import Builder
from retrograd.ir.primitive import REGISTRY
from tests.support.native import as_kernels, is_one_kernel, needs_compiler, taken

pytestmark = needs_compiler

NAMES = [*running.COMBINED, running.RECURRENCE]
DTYPES = [np.dtype(d) for d in (np.float64, np.float32, np.int64)]
SHAPES = [(1,), (2,), (9,), (2100,), (3, 1), (1, 4), (4, 3, 5)]
UFUNCS = (np.add, np.maximum, np.minimum)
SPECIAL = np.array([-0.0, 0.0, -0.0, 1.5, np.inf, -2.0, 0.0, -np.inf, 3.0, np.nan, 1.0])


def graph_of(name: str, shape: tuple[int, ...], dtype: Any, axis: int, reverse: bool) -> Graph:
    b = Builder()
    x = b.input(Aval(shape, dtype))
    given = [x]
    if name == running.RECURRENCE:
        given = [b.input(Aval((*shape[:axis], shape[axis] - 1, *shape[axis + 1 :]), dtype)), x]
    return b.graph("f", [REGISTRY[name](*given, axis=axis, reverse=reverse)])


def cases() -> Iterator[Graph]:
    for name, shape, dtype, reverse in itertools.product(NAMES, SHAPES, DTYPES, (False, True)):
        for axis in range(len(shape)):
            if name != running.RECURRENCE or (dtype.kind == "f" and shape[axis] > 1):
                yield graph_of(name, shape, dtype, axis, reverse)


def test_every_bit_is_numpys() -> None:
    graphs, rng = list(cases()), np.random.default_rng(0)
    assert all(map(taken, graphs))
    for graph, function in zip(graphs, as_kernels(graphs), strict=True):
        size = 2.0 if len(graph.inputs) == 1 else 0.4  # recurrences grow
        args = [(rng.normal(size=v.aval.shape) * size).astype(v.aval.dtype) for v in graph.inputs]
        with np.errstate(all="ignore"):
            (expected,) = evaluate(graph, args)
        found = function(*args)
        assert found.dtype == expected.dtype
        if len(args) == 1:
            np.testing.assert_array_equal(found, expected, err_msg=str(graph))
        else:  # NumPy computes halves
            np.testing.assert_allclose(found, expected, rtol=1e-4 if found.dtype == np.float32 else 1e-11, atol=1e-6)


@pytest.mark.parametrize("name", running.COMBINED)
@pytest.mark.parametrize("reverse", [False, True])
def test_zeros_with_a_sign_infinity_and_nan(name: str, reverse: bool) -> None:
    graphs = [graph_of(name, (n,), SPECIAL.dtype, 0, reverse) for n in range(1, len(SPECIAL) + 1)]
    for graph, function in zip(graphs, as_kernels(graphs), strict=True):
        x = SPECIAL[: graph.inputs[0].aval.size]
        with np.errstate(invalid="ignore"):
            (expected,) = evaluate(graph, [x])
        np.testing.assert_array_equal(found := function(x), expected)
        if name in ("cumsum", "cumprod"):  # of 0 and -0, NumPy's larger one depends on the position
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def test_ints_wrap_around() -> None:
    x = np.array([2**62, 2**62, 3, -(2**63)])
    for name in running.COMBINED:
        graph = graph_of(name, (4,), x.dtype, 0, False)
        np.testing.assert_array_equal(as_kernels([graph])[0](x), evaluate(graph, [x])[0])


def returns(x: Any) -> Any:
    """The squared drawdowns of a path, and a smooth average of it."""
    path = np.cumsum(x * 0.1)
    fall = np.maximum.accumulate(path) - path
    return np.sum(fall * fall) + np.sum(np.cumprod(1.0 + 0.01 * path) * np.cos(x))


def stepped(x: Any) -> Any:
    return np.sum(rg.fori_loop(20, lambda _, c: np.sin(np.cumsum(c) / len(x)) * 0.5 + x, x))


def rows(x: Any) -> Any:
    y = np.reshape(x, (5, -1))
    return np.sum(np.cumsum(np.exp(-y * y), axis=1) * np.cumprod(1.0 + 0.1 * y, axis=0))


@pytest.mark.parametrize("f", [returns, stepped, rows], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [5, 40, 2050])
def test_derivatives_are_those_of_the_numpy_target(f: Any, n: int) -> None:
    x = np.random.default_rng(1).normal(size=n)
    value, slope = rg.value_and_grad(f, backend="native")(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(slope, rg.grad(f)(x), rtol=1e-9, atol=1e-11)
    if n < 2050:
        np.testing.assert_allclose(rg.hessian(f, backend="native")(x), rg.hessian(f)(x), rtol=1e-9, atol=1e-11)
    each = rg.vmap(rg.grad(f, backend="native"), backend="native")(np.stack([x, 2.0 * x]))
    np.testing.assert_array_equal(each[0], slope)


@pytest.mark.parametrize("f", [returns, stepped, rows], ids=lambda f: f.__name__)
def test_one_kernel_computes_all(f: Any) -> None:
    assert is_one_kernel(rg.value_and_grad(f), np.ones(40))


@pytest.mark.parametrize("shape", [(3, 70_000), (2100, 40), (40, 2100)])
@pytest.mark.parametrize("axis", [0, 1])
def test_long_arrays(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    for ufunc in UFUNCS:
        found = rg.jit(lambda x, ufunc=ufunc: np.sin(ufunc.accumulate(x * 2.0, axis=axis)), backend="native")(x)
        np.testing.assert_allclose(found, np.sin(ufunc.accumulate(x * 2.0, axis=axis)), rtol=1e-12, atol=1e-15)
