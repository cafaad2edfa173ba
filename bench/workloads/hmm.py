"""HMM: the likelihood of 200 observations by the forward algorithm in logarithms; gradient in all parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Function, Workload

STEPS, STATES, SYMBOLS = 200, 50, 20


def inputs() -> tuple[Any, ...]:
    """Scores of the first state, of transitions and of symbols, and the symbols that are seen."""
    rng = np.random.default_rng(0)
    scores = (rng.standard_normal(shape) for shape in (STATES, (STATES, STATES), (STATES, SYMBOLS)))
    return *scores, rng.integers(0, SYMBOLS, STEPS)


def summed(np: Any, x: Any, axis: int) -> Any:
    """The logarithm of the sum of exponentials, without overflow."""
    top = np.max(x, axis=axis, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top


def parts(np: Any, start: Any, transition: Any, emission: Any, seen: Any) -> tuple[Any, Any, Any]:
    """Logarithms of probabilities: of the first state, of transitions, and of what is seen, a row for each step."""
    emission = emission - summed(np, emission, 1)
    return start - summed(np, start, 0), transition - summed(np, transition, 1), emission.T[seen]


def step(np: Any, transition: Any, alpha: Any, likely: Any) -> Any:
    """The next state's probability together with all that was seen."""
    return summed(np, alpha[:, None] + transition, 0)[0] + likely


def hmm(start: Any, transition: Any, emission: Any, seen: Any) -> Any:
    """In plain NumPy."""
    first, moves, likely = parts(np, start, transition, emission, seen)
    alpha = first + likely[0]
    for t in range(1, STEPS):
        alpha = step(np, moves, alpha, likely[t])
    return summed(np, alpha, 0)[0]


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(start: Any, transition: Any, emission: Any, seen: Any) -> Any:
        first, moves, likely = parts(np, start, transition, emission, seen)
        alpha, _ = rg.scan(lambda a, x: (step(np, moves, a, x), None), first + likely[0], likely[1:])
        return summed(np, alpha, 0)[0]

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(start: Any, transition: Any, emission: Any, seen: Any) -> Any:
        first, moves, likely = parts(jnp, start, transition, emission, seen)
        alpha, _ = jax.lax.scan(lambda a, x: (step(jnp, moves, a, x), None), first + likely[0], likely[1:])
        return summed(jnp, alpha, 0)[0]

    return run


WORKLOADS = (
    Workload(
        name="hmm",
        title="HMM, 50 states, 200 steps",
        dtype="float64",
        inputs=inputs,
        function=hmm,
        argnums=(0, 1, 2),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
    ),
)
