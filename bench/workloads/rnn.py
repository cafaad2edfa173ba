"""RNN: 200 steps of 64 tanh units over a batch of 32; mean square of the last state, gradient in weights and bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Function, Workload

STEPS, BATCH, SIZE = 200, 32, 64


def inputs() -> tuple[Any, ...]:
    """Weights of the input and of the state, bias, and the inputs of all steps; float64."""
    rng = np.random.default_rng(0)
    w, r = (rng.standard_normal((SIZE, SIZE)) / 8 for _ in range(2))
    return w, r, np.zeros(SIZE), rng.standard_normal((STEPS, BATCH, SIZE))


def step(np: Any, w: Any, r: Any, b: Any, h: Any, x: Any) -> Any:
    """The next state."""
    return np.tanh(x @ w + h @ r + b)


def rnn(w: Any, r: Any, b: Any, xs: Any) -> Any:
    """In plain NumPy."""
    h = np.zeros((BATCH, SIZE))
    for t in range(STEPS):
        h = step(np, w, r, b, h, xs[t])
    return np.mean(h**2)


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        h, _ = rg.scan(lambda h, x: (step(np, w, r, b, h, x), None), np.zeros((BATCH, SIZE)), xs)
        return np.mean(h**2)

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        h, _ = jax.lax.scan(lambda h, x: (step(jnp, w, r, b, h, x), None), jnp.zeros((BATCH, SIZE)), xs)
        return jnp.mean(h**2)

    return run


WORKLOADS = (
    Workload(
        name="rnn",
        title="RNN 64, batch 32, 200 steps",
        dtype="float64",
        inputs=inputs,
        function=rnn,
        argnums=(0, 1, 2),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
    ),
)
