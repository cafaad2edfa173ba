"""Loops for the benchmark of checkpointing: in retrograd under a plan, and in JAX under jax.checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import isqrt
from types import ModuleType
from typing import Any

import numpy as np

import retrograd as rg
from bench.workload import Function
from bench.workloads import lorenz


@dataclass(frozen=True)
class Loop:
    """``length`` steps ``state = step(xp, parameters, state, x)``, and the loss of the last state.

    The gradient is that in the parameters and the first state. ``length`` is a square.
    """

    name: str
    title: str
    length: int
    inputs: Callable[[], tuple[Any, Any, Any]]  # parameters, state, xs
    step: Function
    loss: Function


def heat_inputs() -> tuple[Any, Any, Any]:
    """The diffusivity, and standard normals."""
    return 0.1, np.random.default_rng(0).standard_normal((512, 512)), None


def heat_step(xp: ModuleType, k: Any, u: Any, _: Any) -> Any:
    """Periodic diffusion with a reaction."""
    laplacian = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1) - 4.0 * u
    return u + k * (laplacian + 0.01 * u * (1.0 - u**2))


def rnn_inputs(length: int) -> tuple[Any, Any, Any]:
    """Weights for 256 cells, the state of 32 lanes, and an input for each step."""
    rng = np.random.default_rng(0)
    weights = tuple(rng.standard_normal((256, 256)) / 16.0 for _ in range(2))
    return (*weights, rng.standard_normal(256)), np.zeros((32, 256)), rng.standard_normal((length, 32, 256))


def rnn_step(xp: ModuleType, weights: Any, h: Any, x: Any) -> Any:
    """A recurrent cell."""
    a, b, bias = weights
    return xp.tanh(h @ a + x @ b + bias)


def squares(xp: ModuleType, state: Any) -> Any:
    """The sum of squares."""
    return xp.sum(state**2)


LOOPS = {
    loop.name: loop
    for loop in (
        Loop("heat", "heat 512²", 196, heat_inputs, heat_step, squares),
        Loop("rnn", "recurrent network, 256 cells, batch 32", 196, partial(rnn_inputs, 196), rnn_step, squares),
        Loop(
            "lorenz",
            "Lorenz, scalars",
            10_000,
            lambda: (lorenz.inputs()[3:], lorenz.inputs()[:3], None),
            lambda xp, p, s, _: lorenz.step(s, p),
            lambda xp, s: lorenz.norm(s),
        ),
    )
}


def in_retrograd(loop: Loop, memory: Any = None) -> Function:
    """The loss, by rg.scan under a plan."""

    def loss(parameters: Any, state: Any, xs: Any) -> Any:
        def body(s: Any, x: Any) -> Any:
            return loop.step(np, parameters, s, x), None

        return loop.loss(np, rg.scan(body, state, xs, loop.length, memory=memory)[0])

    return loss


def in_jax(loop: Loop, how: str) -> Function:
    """The loss, by lax.scan: ``everything`` kept, ``states`` kept, or every √n-th state kept (``nested``)."""
    jax = import_module("jax")
    scan, checkpoint = jax.lax.scan, jax.checkpoint

    def loss(parameters: Any, state: Any, xs: Any) -> Any:
        def body(s: Any, x: Any) -> Any:
            return loop.step(jax.numpy, parameters, s, x), None

        def stretch(s: Any, xs: Any) -> Any:
            return scan(body, s, xs, isqrt(loop.length))

        if how == "nested":
            root = isqrt(loop.length)
            rows = None if xs is None else xs.reshape(root, root, *xs.shape[1:])
            return loop.loss(jax.numpy, scan(checkpoint(stretch), state, rows, root)[0])
        inner = body if how == "everything" else checkpoint(body)
        return loop.loss(jax.numpy, scan(inner, state, xs, loop.length)[0])

    return loss
