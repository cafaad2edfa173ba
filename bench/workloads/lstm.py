"""LSTM: steps of cells over a batch; mean square of the last output, gradient in weights and bias."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench.workload import Function, Workload

STEPS, BATCH, SIZE = 100, 32, 64


def inputs(steps: int, batch: int, size: int) -> tuple[Any, ...]:
    """Weights of the input and of the state, bias, and the inputs of all steps; float64."""
    rng = np.random.default_rng(0)
    w, r = (rng.standard_normal((size, 4 * size)) / 8 for _ in range(2))
    return w, r, np.zeros(4 * size), rng.standard_normal((steps, batch, size))


def cell(np: Any, w: Any, r: Any, b: Any, h: Any, c: Any, x: Any) -> tuple[Any, Any]:
    """One step; gates stand in the order input, forget, output, candidate."""
    size = h.shape[1]
    gates = x @ w + h @ r + b
    i, f, o = (1.0 / (1.0 + np.exp(-gates[:, k * size : (k + 1) * size])) for k in range(3))
    c = f * c + i * np.tanh(gates[:, 3 * size :])
    return o * np.tanh(c), c


def lstm(w: Any, r: Any, b: Any, xs: Any) -> Any:
    """In plain NumPy."""
    h = np.zeros(xs[0].shape)
    c = np.zeros(xs[0].shape)
    for t in range(len(xs)):
        h, c = cell(np, w, r, b, h, c, xs[t])
    return np.mean(h**2)


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        zeros = np.zeros(xs.shape[1:])
        (h, _), _ = rg.scan(lambda s, x: (cell(np, w, r, b, *s, x), None), (zeros, zeros), xs)
        return np.mean(h**2)

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        zeros = jnp.zeros(xs.shape[1:])
        (h, _), _ = jax.lax.scan(lambda s, x: (cell(jnp, w, r, b, *s, x), None), (zeros, zeros), xs)
        return jnp.mean(h**2)

    return run


def in_torch(torch: Any) -> Function:
    """With fused affine maps, cell by cell."""

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        size = xs.shape[2]
        h = c = torch.zeros(xs.shape[1:], dtype=torch.float64)
        for x in xs:
            gates = torch.addmm(torch.addmm(b, x, w), h, r)
            i, f, o = torch.sigmoid(gates[:, : 3 * size]).chunk(3, dim=1)
            c = f * c + i * torch.tanh(gates[:, 3 * size :])
            h = o * torch.tanh(c)
        return (h**2).mean()

    return run


def by_hand(w: Any, r: Any, b: Any, xs: Any) -> tuple[Any, Any]:
    """Gates and states are kept; the weights' gradients are one product each at the end."""
    steps, batch, size = xs.shape
    h = c = np.zeros((batch, size))
    kept = []
    hs = np.empty((steps, batch, size))
    given = (xs.reshape(-1, size) @ w + b).reshape(steps, batch, 4 * size)
    for t in range(steps):
        hs[t] = h
        gates = given[t] + h @ r
        s = 1.0 / (1.0 + np.exp(-gates[:, : 3 * size]))
        i, f, o, g = s[:, :size], s[:, size : 2 * size], s[:, 2 * size :], np.tanh(gates[:, 3 * size :])
        before, c = c, f * c + i * g
        top = np.tanh(c)
        h = o * top
        kept.append((s, i, f, o, g, before, top))
    dh, dc = 2.0 * h / h.size, np.zeros((batch, size))
    dgates = np.empty((steps, batch, 4 * size))
    for t in reversed(range(steps)):
        s, i, f, o, g, before, top = kept[t]
        d = dgates[t]
        dc = dc + dh * o * (1.0 - top**2)
        d[:, :size] = dc * g
        d[:, size : 2 * size] = dc * before
        d[:, 2 * size : 3 * size] = dh * top
        d[:, : 3 * size] *= s * (1.0 - s)
        d[:, 3 * size :] = dc * i * (1.0 - g**2)
        dc = dc * f
        dh = d @ r.T
    flat = dgates.reshape(-1, 4 * size)
    return np.mean(h**2), (xs.reshape(-1, size).T @ flat, hs.reshape(-1, size).T @ flat, flat.sum(axis=0))


def workload(steps: int, batch: int, size: int, name: str) -> Workload:
    """The row for these sizes."""
    return Workload(
        name=name,
        title=f"LSTM {size}, batch {batch}, {steps:,} steps",
        dtype="float64",
        inputs=partial(inputs, steps, batch, size),
        function=lstm,
        argnums=(0, 1, 2),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
    )


WORKLOADS = (workload(STEPS, BATCH, SIZE, "lstm"), workload(1024, 1, 16, "long-lstm"))
