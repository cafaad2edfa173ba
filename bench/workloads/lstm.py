"""LSTM: 100 steps of 64 cells over a batch of 32; mean square of the last output, gradient in weights and bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Function, Workload

STEPS, BATCH, SIZE = 100, 32, 64


def inputs() -> tuple[Any, ...]:
    """Weights of the input and of the state, bias, and the inputs of all steps; float64."""
    rng = np.random.default_rng(0)
    w, r = (rng.standard_normal((SIZE, 4 * SIZE)) / 8 for _ in range(2))
    return w, r, np.zeros(4 * SIZE), rng.standard_normal((STEPS, BATCH, SIZE))


def cell(np: Any, w: Any, r: Any, b: Any, h: Any, c: Any, x: Any) -> tuple[Any, Any]:
    """One step; gates stand in the order input, forget, output, candidate."""
    gates = x @ w + h @ r + b
    i, f, o = (1.0 / (1.0 + np.exp(-gates[:, k * SIZE : (k + 1) * SIZE])) for k in range(3))
    c = f * c + i * np.tanh(gates[:, 3 * SIZE :])
    return o * np.tanh(c), c


def lstm(w: Any, r: Any, b: Any, xs: Any) -> Any:
    """In plain NumPy."""
    h = np.zeros((BATCH, SIZE))
    c = np.zeros((BATCH, SIZE))
    for t in range(STEPS):
        h, c = cell(np, w, r, b, h, c, xs[t])
    return np.mean(h**2)


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        zeros = np.zeros((BATCH, SIZE))
        (h, _), _ = rg.scan(lambda s, x: (cell(np, w, r, b, *s, x), None), (zeros, zeros), xs)
        return np.mean(h**2)

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        zeros = jnp.zeros((BATCH, SIZE))
        (h, _), _ = jax.lax.scan(lambda s, x: (cell(jnp, w, r, b, *s, x), None), (zeros, zeros), xs)
        return jnp.mean(h**2)

    return run


def in_torch(torch: Any) -> Function:
    """With fused affine maps, cell by cell."""

    def run(w: Any, r: Any, b: Any, xs: Any) -> Any:
        h = c = torch.zeros((BATCH, SIZE), dtype=torch.float64)
        for x in xs:
            gates = torch.addmm(torch.addmm(b, x, w), h, r)
            i, f, o = torch.sigmoid(gates[:, : 3 * SIZE]).chunk(3, dim=1)
            c = f * c + i * torch.tanh(gates[:, 3 * SIZE :])
            h = o * torch.tanh(c)
        return (h**2).mean()

    return run


def by_hand(w: Any, r: Any, b: Any, xs: Any) -> tuple[Any, Any]:
    """Gates and states are kept; the weights' gradients are one product each at the end."""
    h = c = np.zeros((BATCH, SIZE))
    kept = []
    hs = np.empty((STEPS, BATCH, SIZE))
    given = (xs.reshape(-1, SIZE) @ w + b).reshape(STEPS, BATCH, 4 * SIZE)
    for t in range(STEPS):
        hs[t] = h
        gates = given[t] + h @ r
        s = 1.0 / (1.0 + np.exp(-gates[:, : 3 * SIZE]))
        i, f, o, g = s[:, :SIZE], s[:, SIZE : 2 * SIZE], s[:, 2 * SIZE :], np.tanh(gates[:, 3 * SIZE :])
        before, c = c, f * c + i * g
        top = np.tanh(c)
        h = o * top
        kept.append((s, i, f, o, g, before, top))
    dh, dc = 2.0 * h / h.size, np.zeros((BATCH, SIZE))
    dgates = np.empty((STEPS, BATCH, 4 * SIZE))
    for t in reversed(range(STEPS)):
        s, i, f, o, g, before, top = kept[t]
        d = dgates[t]
        dc = dc + dh * o * (1.0 - top**2)
        d[:, :SIZE] = dc * g
        d[:, SIZE : 2 * SIZE] = dc * before
        d[:, 2 * SIZE : 3 * SIZE] = dh * top
        d[:, : 3 * SIZE] *= s * (1.0 - s)
        d[:, 3 * SIZE :] = dc * i * (1.0 - g**2)
        dc = dc * f
        dh = d @ r.T
    flat = dgates.reshape(-1, 4 * SIZE)
    return np.mean(h**2), (xs.reshape(-1, SIZE).T @ flat, hs.reshape(-1, SIZE).T @ flat, flat.sum(axis=0))


WORKLOADS = (
    Workload(
        name="lstm",
        title="LSTM 64, batch 32, 100 steps",
        dtype="float64",
        inputs=inputs,
        function=lstm,
        argnums=(0, 1, 2),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
    ),
)
