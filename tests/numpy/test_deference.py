"""Operators with objects of the user's classes: who answers, as in NumPy."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")


class Metres:
    """A number with a unit, which knows how to stand on the right."""

    def __init__(self, value):
        self.value = value

    def __rmatmul__(self, other):
        return Metres(other * self.value)

    def __mul__(self, other):
        return Metres(self.value * other)


def _reflected(name):
    def method(self, other):
        return Metres(getattr(operator, name)(other, self.value))

    return method


for name in OPERATORS[:-1]:
    setattr(Metres, f"__r{name}__", _reflected(name))


class Whole(Metres):
    __array_ufunc__ = None


class Prior(Metres):
    __array_priority__ = 10.0


@pytest.mark.parametrize("cls", [Metres, Whole, Prior])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_class_with_reflected_operators_answers_for_traced_numbers(cls, name):
    run = getattr(operator, name)
    for at in (lambda x: x, np.sin):
        expected = run(at(0.75), cls(2.0)).value
        assert rg.jit(lambda x, at=at: run(at(x), cls(2.0)).value)(0.75) == expected


@pytest.mark.parametrize("cls", [Whole, Prior])
@pytest.mark.parametrize("name", OPERATORS[:-2])
def test_arrays_leave_it_to_classes_that_ask_for_it(cls, name):
    run = getattr(operator, name)
    np.testing.assert_array_equal(rg.jit(lambda x: run(x, cls(2.0)).value)(X), run(X, cls(2.0)).value)


def test_what_the_class_computes_is_differentiated():
    np.testing.assert_allclose(rg.grad(lambda x: np.sum((x * Whole(3.0)).value ** 2))(X), 18 * X, rtol=1e-15)
    assert rg.grad(lambda x: (x[0] / Metres(2.0)).value)(X)[0] == 0.5
    assert rg.grad(lambda x: (Metres(2.0) * x).value)(0.5) == 2.0


def test_an_array_of_objects_is_still_refused():
    with pytest.raises(rg.errors.UnsupportedError, match="objects"):
        rg.jit(lambda x: x * Metres(2.0))(X)
