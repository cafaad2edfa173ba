"""Cubic splines through traced values: their derivatives and integrals, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator, make_interp_spline

import retrograd as rg
from retrograd import errors

rng = np.random.default_rng(0)
KNOTS = np.cumsum(rng.uniform(0.5, 1, 7))
VALUES, COLUMNS = rng.standard_normal(7), rng.standard_normal((2, 7, 3))
POINTS = np.array([KNOTS[0] + 0.1, 2.2, KNOTS[-1] + 0.3])

CALLS = {
    "derivative": (lambda y: CubicSpline(KNOTS, y).derivative(2)(POINTS), VALUES),
    "antiderivative": (lambda y: CubicSpline(KNOTS, y).antiderivative(2)(POINTS), VALUES),
    "of columns": (lambda y: CubicSpline(KNOTS, y, axis=1, extrapolate=False).derivative()(POINTS[:2]), COLUMNS),
    "integral": (lambda y: CubicSpline(KNOTS, y, bc_type="natural").integrate(3.0, 1.0), VALUES),
    "integral of columns": (lambda y: CubicSpline(KNOTS, y, axis=1).integrate(1.0, 3.0), COLUMNS),
    "integral to a traced end": (lambda y: CubicSpline(KNOTS, y).integrate(1.0, y[0] + 3.0), VALUES),
}


@pytest.mark.costly
@pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning")
@pytest.mark.parametrize("name", CALLS)
def test_methods_of_a_spline_through_traced_values(name):
    call, y = CALLS[name]
    np.testing.assert_allclose(rg.jit(call)(y), call(y), rtol=1e-11, atol=1e-12)
    assert np.shape(rg.jit(call)(y)) == np.shape(call(y))
    rg.check_grads(call, (y,), order=2)


def test_values_of_a_periodic_spline_that_do_not_close_are_refused_at_a_later_call_too():
    f = rg.jit(lambda y: CubicSpline(KNOTS, y, bc_type="periodic")(POINTS))
    closed = np.append(VALUES[:-1], VALUES[0])
    np.testing.assert_allclose(f(closed), CubicSpline(KNOTS, closed, bc_type="periodic")(POINTS), rtol=1e-12)
    with pytest.raises(ValueError, match="must be"):
        f(VALUES)


def test_other_interpolators_through_traced_values_are_refused_by_name():
    with pytest.raises(errors.TracerConversionError):
        rg.jit(lambda y: PchipInterpolator(KNOTS, y)(POINTS))(VALUES)


STEPS = make_interp_spline(np.arange(4.0), np.array([1.0, 5.0, 2.0, 7.0]), k=0)


@pytest.mark.parametrize("at", [-1.0, 0.0, 0.5, 1.0, 2.9, 3.0, 3.5, 9.0, np.nan])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("extrapolate", [True, False, "periodic"])
def test_a_step_function_has_its_last_value_from_the_last_point_on(at, order, extrapolate):
    f = rg.jit(lambda x: STEPS(x, order, extrapolate))
    for x in (at, np.array([at, 1.5])):
        np.testing.assert_array_equal(f(x), STEPS(x, order, extrapolate))


def test_derivatives_of_a_higher_order_than_the_polynomial_are_zero():
    for spline in (CubicSpline(KNOTS, VALUES), make_interp_spline(KNOTS, VALUES, k=2)):
        for x in (POINTS[0], POINTS, np.array([np.nan, POINTS[0]])):
            found = rg.jit(lambda x, f=spline: f(x, 4 if isinstance(f, CubicSpline) else 3))(x)
            np.testing.assert_array_equal(found, np.where(np.isnan(x), np.nan, 0.0))
