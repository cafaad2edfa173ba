"""Plans and budgets of memory for programs that SciPy's solvers solve: what these hold is an estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import retrograd as rg
from tests.support.memory import measured, one_thread

N = 96


def root(v: Any) -> Any:
    return np.sum(rg.scipy.root(lambda z: np.tanh(0.3 * z + v) - z, np.zeros(len(v)), tol=1e-12).x)


def least_squares(v: Any) -> Any:
    return np.sum(rg.scipy.least_squares(lambda z: z**3 + z - v, np.zeros(len(v))).x)


def minimum(method: str) -> Callable[[Any], Any]:
    def f(v: Any) -> Any:
        found = rg.scipy.minimize(
            lambda z: np.sum((z - v) ** 4 + (z - v) ** 2), np.zeros(len(v)), method=method, tol=1e-7
        )
        return np.sum(found.x)

    return f


def fixed_point(v: Any) -> Any:
    return np.sum(rg.scipy.fixed_point(lambda z: np.cos(0.3 * z + v), np.zeros(len(v))))


def ode(method: str, count: int = 2) -> Callable[[Any], Any]:
    def f(v: Any) -> Any:
        times = np.linspace(0.0, 1.0, count)
        return np.sum(scipy.integrate.solve_ivp(lambda t, y: -v * y, (0.0, 1.0), v, method, times).y[:, -1])

    return f


def own_steps(v: Any) -> Any:
    return np.sum(scipy.integrate.solve_ivp(lambda t, y: -v * y, (0.0, 1.0), v, "RK45").y[:, -1])


def odeint(v: Any) -> Any:
    return np.sum(scipy.integrate.odeint(lambda y, t: -v * y, v, np.linspace(0.0, 1.0, 9))[-1])


def brentq(v: Any) -> Any:
    return rg.scipy.brentq(lambda t: t**3 + t - v @ v, -10.0, 10.0)


PROGRAMS = {
    "root": root,
    "least_squares": least_squares,
    "BFGS": minimum("BFGS"),
    "L-BFGS-B": minimum("L-BFGS-B"),
    "SLSQP": minimum("SLSQP"),
    "trust-exact": minimum("trust-exact"),
    "fixed_point": fixed_point,
    "RK45": ode("RK45"),
    "Radau": ode("Radau"),
    "BDF": ode("BDF"),
    "own steps": own_steps,
    "odeint": odeint,
    "brentq": brentq,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_call_takes_much_more_than_its_plan(name: str) -> None:
    v = np.linspace(0.1, 1.0, N)
    with one_thread():
        for f in (rg.jit(PROGRAMS[name]), rg.grad(PROGRAMS[name])):
            peak = f.plan(v).peak_bytes
            assert peak is not None
            assert measured(f, v) <= peak + 24_000  # Python's objects in the solver


def test_states_at_many_times_are_counted() -> None:
    f, v = rg.jit(ode("RK45", 500)), np.linspace(0.1, 1.0, N)
    assert measured(f, v) <= f.plan(v).peak_bytes + 24_000


@pytest.mark.parametrize("name", ["root", "least_squares", "BFGS", "RK45", "Radau"])
def test_plans_are_not_many_times_what_a_call_takes(name: str) -> None:
    v = np.linspace(0.1, 1.0, N)
    with one_thread():
        f = rg.grad(PROGRAMS[name])
        assert f.plan(v).peak_bytes <= 3 * measured(f, v)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_budgets_and_reports_of_solvers(name: str, backend: str) -> None:
    f, v = PROGRAMS[name], np.linspace(0.1, 1.0, 8)
    plain = rg.grad(f, backend=backend)
    within = rg.grad(f, backend=backend, memory="1 MB")
    np.testing.assert_array_equal(within(v), plain(v))
    assert within.plan(v).budget == 1_000_000
    assert rg.hessian(f, backend=backend).plan(v).peak_bytes > 0
    assert plain.tradeoff(v).points
    assert "peak" in str(plain.plan(v))
    with pytest.raises(rg.errors.MemoryBudgetError):
        rg.grad(f, backend=backend, memory=8)(v)
