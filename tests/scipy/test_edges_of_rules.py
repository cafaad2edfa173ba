"""Derivatives at the edges of formulas: where rules change, where squares overflow, where a weight or a sum is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import retrograd as rg

SMALL: dict[Any, float] = {np.float64: 1e-170, np.float32: 1e-23, np.float16: 1e-4}
LARGE: dict[Any, float] = {np.float64: 1e160, np.float32: 1e25, np.float16: 300.0}


def second(f: Any) -> Any:
    return rg.grad(rg.grad(f))


def test_weights_of_zero_have_derivatives() -> None:
    a, w = np.array([-1.0, -2.0, -3.0]), np.array([0.0, 0.5, 0.5])
    slopes = np.exp(a) / np.sum(w * np.exp(a))

    def f(w: Any) -> Any:
        return scipy.special.logsumexp(a, b=w)

    np.testing.assert_allclose(rg.grad(f)(w), slopes, rtol=1e-14)
    np.testing.assert_allclose(rg.jvp(f, (w,), (np.ones(3),))[1], slopes.sum(), rtol=1e-14)


@pytest.mark.parametrize("largest", [1e5, np.inf])
def test_what_has_no_weight_counts_nothing(largest: float) -> None:
    a, b = np.array([largest, 2.0, 3.0]), np.array([0.0, 1.0, 1.0])
    value, slopes = rg.value_and_grad(lambda a: scipy.special.logsumexp(a, b=b))(a)
    assert value == scipy.special.logsumexp(a[1:])
    np.testing.assert_allclose(slopes, [0, *scipy.special.softmax(a[1:])], rtol=1e-14)


@pytest.mark.parametrize("f", [scipy.special.rgamma, scipy.special.exprel], ids=["rgamma", "exprel"])
@pytest.mark.parametrize("x", [0.5, -0.5])
def test_second_derivatives_are_right_where_a_rule_changes(f: Any, x: float) -> None:
    beside = second(f)(x + 1e-9)
    assert np.isclose(second(f)(x), beside, rtol=1e-6)
    assert np.isclose(rg.hessian(f)(x), beside, rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", SMALL)
def test_angles_of_very_small_and_very_large_points(dtype: Any, backend: Any) -> None:
    g = rg.grad(lambda y, x: np.sum(np.arctan2(y, x)), backend=backend)
    points = np.array([SMALL[dtype], LARGE[dtype], 0.0], dtype)
    with np.errstate(all="ignore"):
        expected = [0.5 / float(points[0]), 0.5 / float(points[1]), 0.0]
        np.testing.assert_allclose(g(points, points), expected, rtol=4 * np.finfo(dtype).eps)
        z = rg.grad(lambda y: np.sum(np.angle(points[0] + 1j * y)))(points[:1])
    np.testing.assert_allclose(z, expected[:1], rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", LARGE)
def test_the_slope_of_arcsinh_far_out(dtype: Any) -> None:
    x = dtype(LARGE[dtype])
    with np.errstate(all="ignore"):
        assert np.isclose(rg.grad(np.arcsinh)(x), 1 / float(x), rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (np.sinc, np.float16(8.5), -0.3691),
        (np.sinc, np.float32(1000.5), -0.00314),
        (scipy.special.exprel, np.float32(-1e5), 2e-15),
        (scipy.special.exprel, np.float64(-1e23), 2e-69),
    ],
)
def test_series_that_are_not_used_do_not_overflow(f: Any, x: Any, expected: float) -> None:
    with np.errstate(all="ignore"):
        assert np.isclose(second(f)(x), expected, rtol=2e-3, atol=0)


def test_the_second_derivative_of_the_complex_dilogarithm_at_one() -> None:
    f = second(lambda z: np.real(scipy.special.spence(z + 0j)))
    assert np.isclose(f(1.0), 0.5, rtol=1e-12)
    assert np.isclose(f(1.0), f(1.001), rtol=2e-3)


@pytest.mark.parametrize(
    ("name", "shapes", "x"),
    [("laplace", (), 40.0), ("expon", (), 40.0), ("gamma", (2.0,), 300.0), ("t", (200.0,), 10.0)],
)
def test_logarithms_of_almost_one_keep_their_digits(name: str, shapes: tuple[float, ...], x: float) -> None:
    family = getattr(scipy.stats, name)
    found = rg.jit(lambda x: family.logcdf(x, *shapes))(x)
    np.testing.assert_allclose(found, family.logcdf(x, *shapes), rtol=1e-12)
    near = rg.grad(lambda x: family.logcdf(x, *shapes))(x / 30)
    slope = (family.logcdf(x / 30 + 1e-6, *shapes) - family.logcdf(x / 30 - 1e-6, *shapes)) / 2e-6
    assert np.isclose(near, slope, rtol=1e-6)


def test_counts_that_are_no_numbers() -> None:
    k = np.array([np.nan, 1.0, 1.5, -1.0])
    with np.errstate(all="ignore"):
        for name in ("pmf", "logpmf"):
            method = getattr(scipy.stats.poisson, name)
            np.testing.assert_allclose(rg.jit(lambda k, m=method: m(k, 2.0))(k), method(k, 2.0), rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_derivatives_of_powers_at_zero_are_infinite_for_numbers_of_python(backend: Any) -> None:
    with np.errstate(all="ignore"):
        for f in (lambda x: np.float_power(x, 0.5), lambda x: np.power(x, 0.7), lambda x: x**0.5):
            assert rg.grad(f, backend=backend)(0.0) == np.inf
        assert rg.grad(lambda x: x**-1, backend=backend)(1e-200) == -np.inf
        assert second(lambda x: x**0.5)(1e-320) == -np.inf


def test_powers_of_minus_infinity_are_real() -> None:
    inf, nan = float("inf"), float("nan")
    f = rg.jit(lambda x, y: x**y)
    for x, y in ((-inf, 0.5), (-inf, -0.5), (-1.0, 0.5), (-1.0, nan), (-inf, 0.5), (2.0, 0.5)):
        found, expected = f(x, y), x**y
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    root = rg.jit(lambda x: x**0.5)
    for x in (4.0, -inf, -4.0, -inf, 4.0):
        np.testing.assert_allclose(root(x), x**0.5, rtol=1e-15)
