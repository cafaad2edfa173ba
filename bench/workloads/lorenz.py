"""Lorenz: Runge-Kutta steps of h = 0.001 from (1, 1, 1); squared norm of the last state, gradient in all numbers."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_long
from functools import partial
from typing import Any

import numpy as np

from bench.workload import Function, Workload
from bench.written_c import function, place

H = 0.001
State = tuple[Any, Any, Any]


def inputs() -> tuple[Any, ...]:
    """The state at the start, and sigma, rho, beta."""
    return 1.0, 1.0, 1.0, 10.0, 28.0, 8.0 / 3.0


def flow(s: State, p: State) -> State:
    """The velocity at a state."""
    x, y, z = s
    sigma, rho, beta = p
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


def moved(s: State, k: State, h: float) -> State:
    """A state further along a velocity."""
    return s[0] + h * k[0], s[1] + h * k[1], s[2] + h * k[2]


def step(s: State, p: State) -> State:
    """One step of the classical method of fourth order."""
    a = flow(s, p)
    b = flow(moved(s, a, H / 2), p)
    c = flow(moved(s, b, H / 2), p)
    d = flow(moved(s, c, H), p)
    x, y, z = ((a[i] + 2.0 * (b[i] + c[i]) + d[i]) for i in range(3))
    return moved(s, (x, y, z), H / 6)


def norm(s: State) -> Any:
    """The squared norm."""
    return s[0] * s[0] + s[1] * s[1] + s[2] * s[2]


def lorenz(steps: int) -> Function:
    """In plain Python."""

    def run(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        s: State = (x, y, z)
        for _ in range(steps):
            s = step(s, (sigma, rho, beta))
        return norm(s)

    return run


def in_retrograd(rg: Any, steps: int) -> Function:
    """With rg.scan."""

    def run(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        return norm(rg.scan(lambda s, _: (step(s, (sigma, rho, beta)), None), (x, y, z), None, steps)[0])

    return run


def in_jax(jax: Any, steps: int) -> Function:
    """With lax.scan."""

    def run(x: Any, y: Any, z: Any, sigma: Any, rho: Any, beta: Any) -> Any:
        return norm(jax.lax.scan(lambda s, _: (step(s, (sigma, rho, beta)), None), (x, y, z), None, steps)[0])

    return run


def pulled(s: State, p: State, ct: State) -> tuple[State, State]:
    """Cotangents of a velocity, of the state and of the parameters."""
    x, y, z = s
    sigma, rho, beta = p
    u, v, w = ct
    ds = (v * (rho - z) + w * y - sigma * u, sigma * u - v + w * x, -v * x - beta * w)
    return ds, (u * (y - x), v * x, -w * z)


def by_hand(x: float, y: float, z: float, *p: float, steps: int) -> tuple[Any, Any]:
    """The states are kept; each step is made again on the way back."""
    s: State = (x, y, z)
    states = []
    for _ in range(steps):
        states.append(s)
        s = step(s, p)
    value = norm(s)
    ct: State = (2.0 * s[0], 2.0 * s[1], 2.0 * s[2])
    total = [0.0, 0.0, 0.0]
    for t in reversed(states):
        b_at = moved(t, flow(t, p), H / 2)
        c_at = moved(t, flow(b_at, p), H / 2)
        d_at = moved(t, flow(c_at, p), H)
        back = ct
        into = (0.0, 0.0, 0.0)
        for at, weight, h in ((d_at, 1.0, H), (c_at, 2.0, H / 2), (b_at, 2.0, H / 2), (t, 1.0, 0.0)):
            k = tuple(H / 6 * weight * ct[i] + into[i] for i in range(3))
            ds, dp = pulled(at, p, k)
            back = moved(back, ds, 1.0)
            into = tuple(h * d for d in ds)
            total = [a + d for a, d in zip(total, dp, strict=True)]
        ct = back
    return value, (*ct, *total)


def as_arrays() -> tuple[Any, ...]:
    """The state at the start, and the parameters, as two arrays."""
    return np.ones(3), np.array([10.0, 28.0, 8.0 / 3.0])


def trajectories() -> tuple[Any, ...]:
    """A thousand states at the start, one in each column, and the parameters."""
    return 1.0 + 0.1 * np.random.default_rng(0).standard_normal((3, 1000)), as_arrays()[1]


def flow_of_arrays(xp: Any, s: Any, p: Any) -> Any:
    """The velocity as an array."""
    return xp.array(flow((s[0], s[1], s[2]), (p[0], p[1], p[2])))


def step_of_arrays(xp: Any, s: Any, p: Any) -> Any:
    """The same step of arrays."""
    a = flow_of_arrays(xp, s, p)
    b = flow_of_arrays(xp, s + H / 2 * a, p)
    c = flow_of_arrays(xp, s + H / 2 * b, p)
    d = flow_of_arrays(xp, s + H * c, p)
    return s + H / 6 * (a + 2.0 * (b + c) + d)


def lorenz_of_arrays(steps: int) -> Function:
    """In plain NumPy."""

    def run(s: Any, p: Any) -> Any:
        for _ in range(steps):
            s = step_of_arrays(np, s, p)
        return np.sum(s * s)

    return run


def arrays_in_retrograd(rg: Any, steps: int) -> Function:
    """With rg.scan."""
    return lambda s, p: np.sum(rg.scan(lambda s, _: (step_of_arrays(np, s, p), None), s, None, steps)[0] ** 2)


def arrays_in_jax(jax: Any, steps: int) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(s: Any, p: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda s, _: (step_of_arrays(jnp, s, p), None), s, None, steps)[0] ** 2)

    return run


def in_c(*args: Any, steps: int) -> tuple[Any, Any]:
    """The same in C."""
    start, slope = np.array(args), np.empty(6)
    return function("lorenz")(place(start), place(slope), c_long(steps)), tuple(slope.tolist())


def on_arrays(name: str, title: str, inputs: Callable[[], tuple[Any, ...]], steps: int) -> Workload:
    """A row on arrays of states."""
    return Workload(
        name=name,
        title=title,
        dtype="float64",
        inputs=inputs,
        function=lorenz_of_arrays(steps),
        argnums=(0, 1),
        in_retrograd=partial(arrays_in_retrograd, steps=steps),
        in_jax=partial(arrays_in_jax, steps=steps),
    )


WORKLOADS = (
    Workload(
        name="lorenz-scan",
        title="Lorenz, 10,000 steps in a scan",
        dtype="float64",
        inputs=inputs,
        function=lorenz(10_000),
        argnums=(0, 1, 2, 3, 4, 5),
        in_retrograd=partial(in_retrograd, steps=10_000),
        in_jax=partial(in_jax, steps=10_000),
        by_hand=partial(by_hand, steps=10_000),
        in_c=partial(in_c, steps=10_000),
    ),
    Workload(
        name="lorenz-for",
        title="Lorenz, 200 steps in a Python for",
        dtype="float64",
        inputs=inputs,
        function=lorenz(200),
        argnums=(0, 1, 2, 3, 4, 5),
        in_jax=partial(in_jax, steps=200),
        by_hand=partial(by_hand, steps=200),
        in_c=partial(in_c, steps=200),
    ),
    on_arrays("lorenz-arrays", "Lorenz, 10,000 steps on arrays of 3", as_arrays, 10_000),
    on_arrays("lorenz-batch", "Lorenz, 1,000 states, 1,000 steps", trajectories, 1000),
)
