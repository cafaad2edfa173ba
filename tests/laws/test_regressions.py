"""Faults that the laws found, each in its smallest form."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import Aval
from tests.support import laws
from tests.support.graphs import built, op

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def test_a_cast_beside_a_python_number_is_not_dropped() -> None:
    graph = built(lambda x, y: x * op("cast", y, aval=Aval((), F64)), Aval((), F64, "python"), Aval((), F32, "scalar"))
    laws.emission(graph, [0.1, np.float32(0.3)])


def test_nothing_is_written_into_a_broadcast() -> None:
    def f(x: Any) -> Any:
        wide = op("broadcast", op("sin", x), aval=Aval((2, 3), F64))
        at = x.builder.constant(np.array([0, 0]))
        return op("scatter_add", wide, x.builder.constant(1, Aval((2, 3), F64)), at, index=(rg.ir.texts.Arg(2),))

    laws.emission(built(f, Aval((3,), F64)), [np.arange(3.0)])


def test_a_gradient_that_is_one_number_everywhere_can_be_written_into() -> None:
    slope = rg.grad(lambda x, y: np.sum(x) * y)(np.ones(3), 2.0)
    slope -= 1
    assert slope.tolist() == [1.0, 1.0, 1.0]


def test_a_scalar_reshaped_to_no_axes_is_what_numpy_makes_of_it() -> None:
    for point in (np.float64(2.0), 2.0, np.array(2.0)):
        for f in (lambda x: np.reshape(x, ()), lambda x: np.reshape(np.reshape(x, (1, 1)), ())):
            assert type(rg.jit(f)(point)) is type(f(point))


def test_indices_into_an_empty_axis_leave_it_empty() -> None:
    def f(x: Any) -> Any:
        return x[np.array([1, 0, 1])]

    assert rg.jit(f)(np.zeros((2, 0))).shape == (3, 0)
    assert rg.jacfwd(f)(np.zeros((2, 0))).shape == (3, 0, 2, 0)


def test_lanes_of_nothing_times_a_matrix() -> None:
    product = rg.vmap(lambda x, w: x @ w, in_axes=(0, None))
    assert product(np.zeros((0, 2, 3)), np.ones((3, 4))).shape == (0, 2, 4)


def test_the_cotangent_of_a_cast_to_complex_is_real() -> None:
    out, pullback = rg.vjp(lambda x: x.astype(complex) * (2 + 1j), np.ones(2))
    (ct,) = pullback(np.array([1.0 + 1j, 1j]))
    assert out.dtype == np.complex128
    assert ct.dtype == np.float64
    assert ct.tolist() == [1.0, -1.0]
