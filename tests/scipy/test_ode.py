"""Solutions of differential equations: values, derivatives of every argument and of what slopes close over."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from scipy.integrate import odeint

import retrograd as rg
from retrograd import errors

START, TIMES = np.array([1.0, 0.5]), np.linspace(0.0, 1.5, 5)
W = np.array([[0.1, -1.0], [0.7, 0.2]])
TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def rivals(y, t, a, b):
    return np.array([a * y[0] - b * y[0] * y[1], -y[1] + y[0] * y[1] * np.cos(t)])


def rivals_first(t, y, a, b):
    return [a * y[0] - b * y[0] * y[1], -y[1] + y[0] * y[1] * np.cos(t)]


def path(start, a, b):
    return odeint(rivals, start, TIMES, (a, b), **TIGHT)


def test_a_traced_solution_is_scipys():
    np.testing.assert_array_equal(rg.jit(path)(START, 1.1, 0.4), path(START, 1.1, 0.4))


def test_start_and_parameters_have_derivatives_to_second_order():
    rg.check_grads(path, (START, 1.1, 0.4), order=2)


def test_times_have_derivatives():
    rg.check_grads(lambda t: odeint(rivals, START, t, (1.1, 0.4), **TIGHT), (TIMES,), order=1)


def test_what_a_slope_closes_over_has_derivatives():
    def loss(w, start):
        return np.sum(odeint(lambda y, t: np.tanh(w @ y), start, TIMES, **TIGHT)[-1] ** 2)

    rg.check_grads(loss, (W, START), order=2)


def test_a_known_solution_has_its_known_derivatives():
    def end(k):
        return odeint(lambda y, t: -k * y, 1.0, [0.0, 2.0], **TIGHT)[-1, 0]

    for order, slope in enumerate((end, rg.grad(end), rg.grad(rg.grad(end)))):
        np.testing.assert_allclose(slope(0.7), (-2.0) ** order * np.exp(-1.4), rtol=1e-8)


def turning(rates):
    """A state whose slope reads both parts of its rates."""
    slope = lambda t, y: (np.imag(rates) - np.real(rates) * t) * y  # noqa: E731 - a formula
    return scipy.integrate.solve_ivp(slope, (0.0, 1.0), START, t_eval=[0.5, 1.0], rtol=1e-9, atol=1e-11).y


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
def test_parameters_of_every_precision_have_derivatives(dtype):
    slope = rg.grad(lambda rates: np.sum(turning(rates)))
    second = rg.grad(lambda rates: np.real(np.sum(slope(rates) * 2.0)))
    rates = np.array([0.5, 0.75] if dtype is not np.complex64 else [0.5, 0.75 + 0.25j], dtype)
    for derivative in (slope, second):
        found = derivative(rates)
        assert found.dtype == dtype
        wide = derivative(rates.astype(np.result_type(dtype, float)))
        np.testing.assert_allclose(found, wide, rtol=1e-2 if dtype is np.float16 else 1e-5)


def test_complex_parameters_have_derivatives_to_second_order():
    rg.check_grads(turning, (np.array([0.5, 0.75 + 0.25j]),), order=2)


def test_lanes_are_a_loop():
    slope = rg.grad(lambda start: np.sum(path(start, 1.1, 0.4) ** 2))
    lanes = np.stack([START, 2 * START])
    np.testing.assert_allclose(rg.vmap(slope)(lanes), [slope(x) for x in lanes], rtol=1e-9)


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"])
@pytest.mark.parametrize("times", [TIMES, TIMES[1:3], TIMES[-1:]], ids=["all", "inner", "last"])
def test_solve_ivp_gives_states_and_slopes_at_the_times_asked_for(method, times):
    def states(start, a):
        return scipy.integrate.solve_ivp(
            rivals_first, (0.0, 1.5), start, method, times, args=(a, 0.4), rtol=1e-7, atol=1e-8
        ).y

    np.testing.assert_allclose(rg.jit(states)(START, 1.1), states(START, 1.1), rtol=1e-12)
    found = rg.jacfwd(lambda a: states(START, a))(1.1)
    expected = rg.jacfwd(lambda a: odeint(rivals, START, np.append(0.0, times), (a, 0.4), **TIGHT)[1:].T)(1.1)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(rg.grad(lambda a: np.sum(states(START, a)))(1.1), np.sum(expected), rtol=2e-4)


def decayed(t_span, t_eval, start=1.0, method="RK45", **more):
    """y' = -t y, whose solution is known."""
    tight = {"rtol": 1e-9, "atol": 1e-10}
    return scipy.integrate.solve_ivp(lambda t, y: -t * y, t_span, [start], method, t_eval, **tight, **more)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_times_and_ends_that_coincide_at_one_call_may_differ_at_the_next(method):
    gauss = lambda first, t: np.exp((first**2 - t**2) / 2)  # noqa: E731 - a formula

    def states(first, last, times):
        return decayed((first, last), times, method=method).y[0]

    both = rg.jit(states), rg.jit(rg.jacfwd(states)), rg.jit(rg.jacrev(states))
    asked = np.array([0.0, 1.0, 2.0])
    for first, last, times in ((0.0, 2.0, asked), (0.0, 2.0, asked / 2 + 0.2), (-0.5, 2.5, asked), (0.0, 2.0, asked)):
        expected = gauss(first, times)
        found, forward, reverse = (f(first, last, times) for f in both)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        for slope in (forward, reverse):
            np.testing.assert_allclose(slope, first * expected, rtol=1e-3, atol=1e-5)
    backwards = np.array([2.0, 1.0, 0.0])
    np.testing.assert_allclose(both[0](2.0, 0.0, backwards), gauss(2.0, backwards), rtol=1e-4)


def test_dense_output_gives_the_states_at_any_times():
    points = np.array([1.5, 0.25, 0.0, 2.0])

    def between(start, points):
        found = decayed((0.0, 2.0), [1.0], start, dense_output=True)
        return found.sol(points)[0], found.sol(points[1])

    plain = decayed((0.0, 2.0), [1.0], 1.3, dense_output=True)
    several, one = rg.jit(between)(1.3, points)
    np.testing.assert_allclose(several, plain.sol(points)[0], rtol=1e-10)
    np.testing.assert_allclose(one, plain.sol(0.25), rtol=1e-10)
    inner = np.array([1.5, 0.25, 0.1, 1.9])
    np.testing.assert_allclose(
        np.diag(rg.jacrev(lambda t: between(1.3, t)[0])(inner)), -inner * 1.3 * np.exp(-(inner**2) / 2), rtol=1e-6
    )
    np.testing.assert_allclose(rg.jacfwd(lambda y: between(y, inner)[0])(1.3), np.exp(-(inner**2) / 2), rtol=1e-6)


def test_the_result_of_solve_ivp_is_read_by_its_names():
    @rg.jit
    def solved(a):
        result = scipy.integrate.solve_ivp(rivals_first, (0, 1), START, t_eval=[0, 0.5, 1], args=(a, 0.4))
        assert result.success
        return result.t, result.y

    t, y = solved(1.1)
    plain = scipy.integrate.solve_ivp(rivals_first, (0, 1), START, t_eval=[0, 0.5, 1], args=(1.1, 0.4))
    np.testing.assert_array_equal(t, plain.t)
    np.testing.assert_allclose(y, plain.y, rtol=1e-12)


def test_a_solution_of_plain_numbers_inside_a_trace_is_scipys_own():
    def f(x):
        return x * odeint(lambda y, t: -y, 1.0, [0.0, 1.0])[-1, 0]

    assert rg.grad(f)(2.0) == odeint(lambda y, t: -y, 1.0, [0.0, 1.0])[-1, 0]
    assert "solve_ode" not in rg.grad(f).source(2.0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            lambda a: scipy.integrate.solve_ivp(rivals_first, (0, 1), START, args=(a, 0.4), max_step=0.1).y,
            errors.UnsupportedError,
        ),
        (lambda a: odeint(lambda y, t: -a * y, START, TIMES, full_output=True), errors.UnsupportedError),
        (lambda a: odeint(lambda y, t: a, START, TIMES), errors.ShapeError),
        (lambda a: odeint(lambda y, t: y if y[0] > a else -y, START, TIMES), errors.ControlFlowError),
    ],
    ids=["steps", "full_output", "a slope of another shape", "a branch"],
)
def test_what_is_not_solved_is_refused(call, error):
    with pytest.raises(error):
        rg.grad(lambda a: np.sum(call(a)))(1.0)


@pytest.mark.parametrize("times", [[0.5], [0.5, 0.5]])
def test_states_at_equal_times_are_the_first_one(times):
    def last(y):
        return odeint(lambda y, t: -y, y, np.array(times))[-1]

    for derivative in (rg.jacfwd, rg.jacrev):
        np.testing.assert_array_equal(derivative(last)(np.array([1.0, 2.0])), np.eye(2))


def test_a_gradient_by_odeint_that_gives_up_is_nan():
    def f(k):
        return np.sum(odeint(lambda y, t: -k * k * y + k, [1.0, 2.0], [0.0, 1.0])[-1] ** 2)

    with pytest.warns(scipy.integrate.ODEintWarning):  # half precision is too coarse for the tolerances
        assert np.isnan(rg.grad(f)(np.array([0.5, 1.5], np.float16))).all()
