"""Derivatives that are known from calculus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.parametrize("point", [2.0, np.float64(2.0), np.array(2.0), np.float32(2.0)], ids=repr)
def test_three_nested_gradients_of_a_cube(point: Any) -> None:
    def cube(x: Any) -> Any:
        return x**3

    first = rg.grad(cube)
    second = rg.grad(first)
    third = rg.grad(second)
    assert [float(g(point)) for g in (first, second, third)] == [12.0, 12.0, 6.0]


def test_perturbations_of_nested_derivatives_are_not_confused() -> None:
    def derivative(f: Any) -> Any:
        return lambda x: rg.jvp(f, (x,), (1.0,))[1]

    for outer in (derivative, rg.grad):
        for inner in (derivative, rg.grad):
            assert float(outer(lambda x, inner=inner: x * inner(lambda y: x + y)(1.0))(1.0)) == 1.0


def test_the_example_of_a_product_and_a_sine() -> None:
    z, slopes = rg.value_and_grad(lambda x, y: x * y + np.sin(x), argnums=(0, 1))(0.5, 4.2)
    assert float(z) == 2.579425538604203
    assert [float(s) for s in slopes] == [5.077582561890373, 0.5]


def test_the_square_of_the_example() -> None:
    slope = rg.grad(lambda x, y: (x * y + np.sin(x)) ** 2)(0.5, 4.2)
    assert float(slope) == pytest.approx(26.19449226902277, rel=1e-15)


def test_a_value_used_twice_and_sixty_doublings() -> None:
    def doubled(x: Any) -> Any:
        for _ in range(60):
            x = x + x
        return x

    assert float(rg.grad(lambda x: x**2 + x**2)(3.0)) == 12.0
    assert float(rg.grad(doubled)(1.0)) == 2.0**60


def test_a_power_a_hundred_times() -> None:
    def iterated(x: Any) -> Any:
        return rg.scan(lambda c, _: (c**1.01, None), x, length=100)[0]

    assert float(rg.grad(iterated)(4.2)) == pytest.approx(31.2364296422166, rel=1e-13)


def test_broadcasting_on_both_sides_of_a_maximum() -> None:
    def f(w: Any) -> Any:
        y = w + np.max(w)
        return np.sum(y * y)

    value, slope = rg.value_and_grad(f)(np.array([1.0, 3.0, 2.0]))
    assert float(value) == 77.0
    assert slope.tolist() == [8.0, 42.0, 10.0]


def test_the_gradient_of_a_log_softmax() -> None:
    def f(x: Any) -> Any:
        return np.sum(x - np.log(np.sum(np.exp(x))))

    expected = [0.87176559, 0.65142273, 0.05246873, -1.57565704]
    np.testing.assert_allclose(rg.grad(f)(np.array([1.0, 2.0, 3.0, 4.0])), expected, atol=5e-9)
