"""Powers and quotients of Python's floats in C: one kernel, the bits that are promised, and Python's errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.native import needs_compiler

pytestmark = needs_compiler


def rosenbrock(x: Any, y: Any) -> Any:
    return (1.0 - x) ** 2.0 + 100.0 * (y - x**2.0) ** 2.0


def general(x: Any, y: Any) -> Any:
    """Powers of what is not negative: those of other numbers may be complex in Python, which is asked outside."""
    return (x * x) ** y + abs(y) ** 1.5 / x


@pytest.mark.parametrize("function", [rosenbrock, general])
def test_a_function_of_numbers_is_one_kernel(function: Any) -> None:
    f = rg.value_and_grad(function, argnums=(0, 1), backend="native")
    expected = rg.value_and_grad(function, argnums=(0, 1))(1.5, 2.0)
    found = f(1.5, 2.0)
    assert type(found[0]) is float
    np.testing.assert_allclose([found[0], *found[1]], [expected[0], *expected[1]], rtol=1e-14)
    assert type(f.executable(1.5, 2.0).function).__name__ == "builtin_function_or_method"


RAISING = {
    "a division by zero": (lambda x: 1.0 / x + 2.0 * x, (0.0, -0.0), ZeroDivisionError),
    "a remainder by zero": (lambda x: 1.0 % x + 2.0 * x, (0.0,), ZeroDivisionError),
    "a quotient by zero": (lambda x: 1.0 // x + 2.0 * x, (0.0,), ZeroDivisionError),
    "a negative power of zero": (lambda x: x**-1.5 + 2.0 * x, (0.0,), ZeroDivisionError),
    "a power that is too large": (lambda x: x**300.0 + 2.0 * x, (1e10, -1e10), OverflowError),
}


@pytest.mark.parametrize("name", RAISING)
def test_python_raises_its_own_errors(name: str) -> None:
    function, points, error = RAISING[name]
    f = rg.jit(function, backend="native")
    assert f(0.75) == pytest.approx(function(0.75), rel=1e-14)
    for x in points:
        with pytest.raises(error):
            f(x)
        assert f(0.75) == pytest.approx(function(0.75), rel=1e-14)


@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan, 1e300, 5e-324, -2.0, 0.0, -0.0])
@pytest.mark.parametrize("n", [2.0, 3.0, -2.0, 0.0, math.inf, -math.inf, math.nan, 4.0])
def test_special_powers_of_numbers_are_pythons(x: float, n: float) -> None:
    f = rg.jit(lambda x, n: -(x**n), backend="native")
    assert "rg_pow(" in kernels(f.source(1.5, 2.0, language="c"))
    try:
        expected = -(x**n)
    except ArithmeticError as fault:
        with pytest.raises(type(fault)):
            f(x, n)
    else:
        assert repr(f(x, n)) == repr(expected) or f(x, n) == pytest.approx(expected, rel=1e-15)


def test_few_exponents_are_products() -> None:
    x = np.random.default_rng(0).uniform(0.1, 3.0, 99)
    f = rg.jit(lambda x: np.power(x, 2.0) + np.power(x, 3.0), backend="native")
    assert "rg_pow(" not in kernels(f.source(x, language="c"))
    np.testing.assert_array_equal(f(x), x * x + x * x * x)
    g = rg.jit(lambda x: np.power(x, 2.5) + 1.0, backend="native")
    assert "rg_pow(" in kernels(g.source(x, language="c"))


def kernels(source: str) -> str:
    return source[source.index("static int kernel0") :]


def test_powers_are_within_one_unit() -> None:
    rng = np.random.default_rng(2)
    x, y = 10.0 ** rng.uniform(-30, 30, 20_000), rng.uniform(-9, 9, 20_000)
    f = rg.jit(lambda x, y: -np.power(x, y), backend="native")
    assert "rg_pow(" in kernels(f.source(x, y, language="c"))
    exact = -np.power(x.astype(np.longdouble), y)
    away = np.abs(f(x, y) - exact) / np.spacing(exact.astype(np.float64))
    assert float(np.max(away)) < 1.0


@pytest.mark.parametrize("exponent", [0.5, np.float32(0.5), np.float64(0.5)])
def test_the_power_of_a_half_is_numpys_square_root(exponent: Any) -> None:
    """... of minus infinity and minus zero, too; ``np.float_power`` has other results."""
    x = np.array([-np.inf, -0.0, 2.0, np.nan, -1.0, 5e-324])
    with np.errstate(all="ignore"):
        for power in (np.power, np.float_power):
            found = rg.jit(lambda x, power=power: power(x, exponent), backend="native")(x)
            expected = power(x, exponent)
            np.testing.assert_allclose(found, expected, rtol=1e-15)
            np.testing.assert_array_equal(np.signbit(found[:4]), np.signbit(expected[:4]))
