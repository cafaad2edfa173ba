"""solve_ivp at steps of the solver's own, and the times of events: values, derivatives, decisions, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import retrograd as rg
from retrograd import errors

TIGHT = {"method": "DOP853", "rtol": 1e-10, "atol": 1e-10}
SPAN = (0.0, 4.5)


def fall(t, y, gravity, drag):
    return [y[1], -gravity - drag * y[1]]


def ground(t, y, *_):
    return y[0]


ground.terminal, ground.direction = True, -1


def landing(speed, gravity, drag):
    return solve_ivp(fall, (0.0, 10.0), [0.5, speed], events=ground, args=(gravity, drag), **TIGHT).t_events[0][0]


def swing(t, y, length):
    return [y[1], -9.81 / length * np.sin(y[0])]


def upwards(t, y, *_):
    return y[0]


upwards.direction = 1


def test_the_first_impact_of_a_ball_has_derivatives_to_second_order():
    point = (5.0, 9.81, 0.2)
    assert rg.jit(landing)(*point) == landing(*point)
    rg.check_grads(landing, point, order=2)
    speed, gravity, drag = rg.grad(landing, (0, 1, 2))(3.0, 10.0, 0.0)
    root = np.sqrt(9.0 + 10.0)
    np.testing.assert_allclose(speed, (1 + 3.0 / root) / 10.0, rtol=1e-9)
    np.testing.assert_allclose(gravity, 0.5 / 10.0 / root - (3.0 + root) / 100.0, rtol=1e-9)
    np.testing.assert_allclose(rg.jacfwd(landing, 2)(3.0, 10.0, 0.0), drag, rtol=1e-9)


def test_the_period_of_a_pendulum_has_its_known_derivatives():
    def period(length, start):
        crossings = solve_ivp(swing, SPAN, [start, 0.0], events=[upwards], args=(length,), **TIGHT).t_events[0]
        return crossings[1] - crossings[0]

    length, start = rg.grad(period, (0, 1))(1.2, 0.4)
    np.testing.assert_allclose(length, period(1.2, 0.4) / 2.4, rtol=1e-8)
    series = lambda a: 2 * np.pi * np.sqrt(1.2 / 9.81) * (a / 8 + 11 * a**3 / 768 + 173 * a**5 / 122880)  # noqa: E731
    np.testing.assert_allclose(start, series(0.4), rtol=1e-5)


def level(t, y, gravity):
    return y[0] - 0.2 + 0.1 * np.sin(gravity * t)


level.terminal = 2


def crossed_levels(speed, gravity, **options):
    def top(t, y, gravity):
        return y[1]

    tight = TIGHT | options
    return solve_ivp(
        lambda t, y, g: [y[1], -g * y[0] - 0.1 * y[1]], (0.0, 10.0), [0.5, speed], events=[top, level],
        args=(gravity,), **tight
    )  # fmt: skip


READ = {
    "times": lambda found: found.t_events,
    "states": lambda found: found.y_events,
    "the end": lambda found: (found.t[-1], found.y[:, -1]),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("read", READ.values(), ids=READ.keys())
def test_several_events_and_the_end_that_one_sets_have_derivatives_to_second_order(read):
    def found(speed, gravity):
        return read(crossed_levels(speed, gravity))

    for ours, scipys in zip(rg.jit(found)(1.0, 3.0), found(1.0, 3.0), strict=True):
        np.testing.assert_allclose(ours, scipys, rtol=1e-12)
    rg.check_grads(found, (1.0, 3.0), order=2)


@pytest.mark.costly
@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF", "LSODA"])
def test_each_method_gives_scipys_events_and_their_derivatives(method):
    def found(speed, gravity):
        result = crossed_levels(speed, gravity, method=method, rtol=1e-7, atol=1e-8)
        return np.concatenate(result.t_events), result.y_events[1]

    for ours, scipys in zip(rg.jit(found)(1.0, 3.0), found(1.0, 3.0), strict=True):
        np.testing.assert_allclose(ours, scipys, rtol=1e-10)
    exact = rg.jacfwd(lambda g: np.concatenate(crossed_levels(1.0, g).t_events))(3.0)
    for mode in (rg.jacfwd, rg.jacrev):
        np.testing.assert_allclose(mode(lambda g: found(1.0, g)[0])(3.0), exact, rtol=1e-3, atol=1e-4)


def test_steps_of_the_solver_are_scipys_and_their_times_stay_fixed():
    def decay(start, k, last):
        return solve_ivp(lambda t, y: -k * np.cos(t) * y, (0.0, last), start, **TIGHT)

    def steps(start, k):
        found = decay(start, k, 2.0)
        return found.t, found.y, found.status, found.success

    plain = steps(np.ones(2), 0.7)
    for ours, scipys in zip(rg.jit(steps)(np.ones(2), 0.7), plain, strict=True):
        np.testing.assert_allclose(ours, scipys, rtol=1e-14)
    times, slopes = plain[0], rg.jacrev(lambda k: steps(np.ones(2), k)[1][0])(0.7)
    np.testing.assert_allclose(slopes, -np.sin(times) * np.exp(-0.7 * np.sin(times)), rtol=1e-8, atol=1e-12)
    assert not np.any(rg.jacfwd(lambda k: steps(np.ones(2), k)[0])(0.7))
    rg.check_grads(lambda y, k, last: decay(y, k, last).y[:, -1], (np.ones(2), 0.7, 2.0), order=2)
    assert rg.grad(lambda last: decay(np.ones(2), 0.7, last).t[-1])(2.0) == 1.0


def test_the_number_of_steps_is_asked_only_where_steps_are_read():
    traced = []

    def first(speed):
        traced.append(speed)
        return landing(speed, 9.81, 0.2)

    slope = rg.grad(first)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for speed in np.linspace(1.0, 12.0, 30):
            slope(speed)
    assert len(traced) == 1


def test_another_number_of_events_is_another_way():
    def crossings(span):
        return solve_ivp(swing, (0.0, span), [0.4, 0.0], events=upwards, args=(1.2,)).t_events[0]

    compiled = rg.jit(crossings)
    for span in (6.0, 3.0, 1.0, 6.0):
        np.testing.assert_array_equal(compiled(span), crossings(span))
    assert len(compiled(1.0)) == 0


def test_times_asked_for_end_where_an_event_ends_the_solution():
    times = np.linspace(0.1, 3.0, 12)

    def seen(speed, times):
        found = solve_ivp(fall, (0.0, 4.0), [0.5, speed], t_eval=times, events=ground, args=(9.81, 0.2), **TIGHT)
        return found.t, found.y, found.t_events[0], found.y_events[0]

    for ours, scipys in zip(rg.jit(seen)(5.0, times), seen(5.0, times), strict=True):
        np.testing.assert_allclose(ours, scipys, rtol=1e-12, atol=1e-15)
    assert len(seen(5.0, times)[0]) < 5
    rg.check_grads(seen, (5.0, times), order=1)
    rg.check_grads(lambda speed: seen(speed, times)[1], (5.0,), order=2)


@pytest.mark.slow
def test_events_beside_times_that_are_asked_for_leave_these_as_they_are():
    def seen(length, dense):
        found = solve_ivp(
            swing, SPAN, [0.4, 0.0], t_eval=[1.0, 2.0], dense_output=dense, events=upwards, args=(length,), **TIGHT
        )
        return found.t, found.y, found.t_events[0]

    for ours, scipys in zip(rg.jit(lambda x: seen(x, False))(1.2), seen(1.2, False), strict=True):
        np.testing.assert_allclose(ours, scipys, rtol=1e-12)
    rg.check_grads(lambda x: seen(x, True)[1:], (1.2,), order=2)


def test_dense_output_reaches_to_the_event_that_ends_the_solution():
    def halfway(speed):
        found = solve_ivp(fall, (0.0, 10.0), [0.5, speed], dense_output=True, events=ground, args=(9.81, 0.2), **TIGHT)
        return found.sol(found.t_events[0][0] / 2)

    np.testing.assert_allclose(rg.jit(halfway)(5.0), halfway(5.0), rtol=1e-8)
    rg.check_grads(halfway, (5.0,), order=2)


@pytest.mark.slow
def test_events_backwards_in_time_and_with_traced_ends_have_derivatives():
    def back(first, length):
        found = solve_ivp(swing, (first, first - 2.5), [0.4, 0.0], events=upwards, args=(length,), **TIGHT)
        return found.t_events[0], found.t[0], found.t[-1], found.y[:, -1]

    for ours, scipys in zip(rg.jit(back)(1.0, 1.2), back(1.0, 1.2), strict=True):
        np.testing.assert_allclose(ours, scipys, rtol=1e-12)
    rg.check_grads(back, (1.0, 1.2), order=2)


def test_slopes_that_close_over_python_numbers_have_second_derivatives():
    def ends(k):
        return solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], t_eval=[0.5, 1.0], **TIGHT).y[0]

    for outer in (rg.jacrev, rg.jacfwd):
        np.testing.assert_allclose(outer(rg.jacfwd(ends))(0.7), np.exp([-0.35, -0.7]) / [4.0, 1.0], rtol=1e-7)


def test_what_events_close_over_has_derivatives():
    def reached(height):
        def at(t, y):
            return y[0] - height

        return solve_ivp(lambda t, y: [y[1], -9.81], (0.0, 1.0), [0.0, 9.0], events=at, **TIGHT).t_events[0][0]

    np.testing.assert_allclose(rg.grad(reached)(2.0), 1 / np.sqrt(81.0 - 2 * 9.81 * 2.0), rtol=1e-9)


def test_lanes_with_as_many_events_are_alike_and_others_are_refused():
    speeds = np.array([5.0, 6.0])
    slopes = rg.vmap(rg.grad(lambda speed: landing(speed, 9.81, 0.2)))(speeds)
    np.testing.assert_allclose(slopes, [rg.grad(landing)(speed, 9.81, 0.2) for speed in speeds], rtol=1e-9)

    def crossings(length):
        return solve_ivp(swing, SPAN, [0.4, 0.0], events=upwards, args=(length,)).t_events[0]

    with pytest.raises(errors.ControlFlowError):
        rg.vmap(crossings)(np.array([0.2, 1.2]))


@pytest.mark.parametrize("over", [0.0, 1e-12])
def test_an_event_that_only_touches_zero_has_no_derivative(over):
    def start(angle):
        def turning(t, y, _):
            return y[0] - 0.4 + over

        return solve_ivp(swing, SPAN, [angle, 0.0], events=turning, args=(1.2,), **TIGHT).t_events[0][0]

    assert rg.jit(start)(0.4) == start(0.4)
    for mode in (rg.grad, rg.jacfwd):
        with pytest.raises(errors.SolutionError, match="only touches zero"):
            mode(start)(0.4)


def test_a_solver_that_fails_says_so():
    def burst(start):
        found = solve_ivp(lambda t, y: y * y, (0.0, 2.0), [start], events=lambda t, y: y[0] - 3.0)
        return found.success, found.status, found.t, found.t_events[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, scipys in zip(rg.jit(burst)(1.0), burst(1.0), strict=True):
            np.testing.assert_array_equal(ours, scipys)
    assert not burst(1.0)[0]


def test_steps_in_the_body_of_a_loop_are_refused():
    def run(x):
        return rg.scan(lambda c, _: (solve_ivp(lambda t, y: -c * y, (0, 1), [c]).y[0, -1], None), x, None, 3)[0]

    with pytest.raises(errors.ControlFlowError, match="t_eval"):
        rg.jit(run)(1.0)


def test_events_that_give_several_numbers_are_refused():
    with pytest.raises(errors.ShapeError):
        rg.jit(lambda x: solve_ivp(lambda t, y: -x * y, (0, 1), [1.0, 2.0], events=lambda t, y: y).t)(1.0)
