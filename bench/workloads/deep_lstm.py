"""LSTM of two layers: 100 steps of 64 cells over a batch of 32; mean square of the last output, all weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.kept import kept
from bench.workload import Function, Workload
from bench.workloads.lstm import BATCH, SIZE, STEPS, cell


def inputs() -> tuple[Any, ...]:
    """For each layer the weights of the input, of the state, and the bias; the inputs of all steps; float64."""
    rng = np.random.default_rng(0)
    w, r, v, s = (rng.standard_normal((SIZE, 4 * SIZE)) / 8 for _ in range(4))
    return w, r, np.zeros(4 * SIZE), v, s, np.zeros(4 * SIZE), rng.standard_normal((STEPS, BATCH, SIZE))


def step(np: Any, layers: Any, states: Any, x: Any) -> Any:
    """The next states of both layers."""
    (w, r, b), (v, s, a) = layers
    (h, c), (k, e) = states
    h, c = cell(np, w, r, b, h, c, x)
    k, e = cell(np, v, s, a, k, e, h)
    return (h, c), (k, e)


def deep_lstm(w: Any, r: Any, b: Any, v: Any, s: Any, a: Any, xs: Any) -> Any:
    """In plain NumPy."""
    zeros = np.zeros((BATCH, SIZE))
    states = (zeros, zeros), (zeros, zeros)
    for t in range(STEPS):
        states = step(np, ((w, r, b), (v, s, a)), states, xs[t])
    return np.mean(states[1][0] ** 2)


def in_retrograd(rg: Any) -> Function:
    """With rg.scan."""

    def run(w: Any, r: Any, b: Any, v: Any, s: Any, a: Any, xs: Any) -> Any:
        zeros = np.zeros((BATCH, SIZE))
        start = (zeros, zeros), (zeros, zeros)
        states, _ = rg.scan(lambda now, x: (step(np, ((w, r, b), (v, s, a)), now, x), None), start, xs)
        return np.mean(states[1][0] ** 2)

    return run


def in_jax(jax: Any) -> Function:
    """With lax.scan."""
    jnp = jax.numpy

    def run(w: Any, r: Any, b: Any, v: Any, s: Any, a: Any, xs: Any) -> Any:
        zeros = jnp.zeros((BATCH, SIZE))
        start = (zeros, zeros), (zeros, zeros)
        states, _ = jax.lax.scan(lambda now, x: (step(jnp, ((w, r, b), (v, s, a)), now, x), None), start, xs)
        return jnp.mean(states[1][0] ** 2)

    return run


def in_torch(torch: Any) -> Function:
    """With fused affine maps, cell by cell."""

    def one(x: Any, h: Any, c: Any, w: Any, r: Any, b: Any) -> Any:
        gates = torch.addmm(torch.addmm(b, x, w), h, r)
        i, f, o = torch.sigmoid(gates[:, : 3 * SIZE]).chunk(3, dim=1)
        c = f * c + i * torch.tanh(gates[:, 3 * SIZE :])
        return o * torch.tanh(c), c

    def run(w: Any, r: Any, b: Any, v: Any, s: Any, a: Any, xs: Any) -> Any:
        h = c = k = e = torch.zeros((BATCH, SIZE), dtype=torch.float64)
        for x in xs:
            h, c = one(x, h, c, w, r, b)
            k, e = one(h, k, e, v, s, a)
        return (k**2).mean()

    return run


def forward(name: str, w: Any, r: Any, b: Any, xs: Any) -> tuple[Any, Any]:
    """All steps of one layer, features first, so that each gate is contiguous.

    The products with all inputs come before the loop. Returns the outputs, from the state before the first step on, and
    what the way back needs.
    """
    hs, cs = kept(f"{name} h", (STEPS + 1, SIZE, BATCH)), kept(f"{name} c", (STEPS + 1, SIZE, BATCH))
    gates, tops = kept(f"{name} gates", (STEPS, 4 * SIZE, BATCH)), kept(f"{name} tops", (STEPS, SIZE, BATCH))
    product, part = kept("product", (4 * SIZE, BATCH)), kept("part", (SIZE, BATCH))
    sign = np.repeat((-1.0, 1.0), (3 * SIZE, SIZE))[:, None]  # sigmoids take the exponential of the negative
    into, again = sign * w.T, sign * r.T
    hs[0] = cs[0] = 0.0
    np.matmul(into, xs, out=gates)
    gates += sign * b[:, None]
    for t in range(STEPS):
        gate, c = gates[t], cs[t + 1]
        gate += np.matmul(again, hs[t], out=product)
        sigmoids, g = gate[: 3 * SIZE], gate[3 * SIZE :]
        np.exp(sigmoids, out=sigmoids)
        sigmoids += 1.0
        np.reciprocal(sigmoids, out=sigmoids)
        np.tanh(g, out=g)
        np.multiply(sigmoids[SIZE : 2 * SIZE], cs[t], out=c)
        c += np.multiply(sigmoids[:SIZE], g, out=part)
        np.tanh(c, out=tops[t])
        np.multiply(sigmoids[2 * SIZE :], tops[t], out=hs[t + 1])
    return hs, (gates.reshape(STEPS, 4, SIZE, BATCH), cs, tops)


def backward(r: Any, memory: Any, last: Any, handed: Any = None) -> Any:
    """Cotangents of the gates of all steps, from that of the last output and what each output is handed from above.

    They take the gates' place.
    """
    gates, cs, tops = memory
    dh, dc, before, part = (kept(name, (SIZE, BATCH)) for name in ("dh", "dc", "before", "part"))
    slope = kept("slope", (3, SIZE, BATCH))
    np.copyto(dh, last)
    dc[...] = 0.0
    for t in reversed(range(STEPS)):
        if handed is not None:
            dh += handed[t]
        (i, f, o, g), top = gates[t], tops[t]
        np.multiply(top, top, out=part)
        np.subtract(1.0, part, out=part)
        part *= o
        part *= dh
        dc += part
        np.multiply(dc, f, out=before)

        np.subtract(1.0, gates[t, :3], out=slope)
        slope *= gates[t, :3]
        np.multiply(g, g, out=part)
        np.subtract(1.0, part, out=part)
        part *= i
        np.multiply(dc, g, out=i)
        np.multiply(dc, cs[t], out=f)
        np.multiply(dh, top, out=o)
        np.multiply(dc, part, out=g)
        gates[t, :3] *= slope
        np.matmul(r, gates[t].reshape(4 * SIZE, BATCH), out=dh)
        dc, before = before, dc
    return gates.reshape(STEPS, 4 * SIZE, BATCH)


def by_rows(name: str, stack: Any) -> Any:
    """Features first at each step, to one row for each step and sequence."""
    steps, features, batch = stack.shape
    rows = kept(name, (steps, batch, features))
    np.copyto(rows, stack.transpose(0, 2, 1))
    return rows.reshape(steps * batch, features)


def by_hand(w: Any, r: Any, b: Any, v: Any, s: Any, a: Any, xs: Any) -> tuple[Any, Any]:
    """Layer by layer, forward and back; the weights' gradients are one product each at the end."""
    hs, memory = forward("low", w, r, b, xs.transpose(0, 2, 1))
    ks, above = forward("high", v, s, a, hs[1:])
    last = ks[-1]
    d_above = backward(s, above, last * (2.0 / last.size))
    handed = np.matmul(v, d_above, out=kept("handed", (STEPS, SIZE, BATCH)))
    d_below = backward(r, memory, 0.0, handed)

    low, high, h = by_rows("low", d_below), by_rows("high", d_above), by_rows("h", hs)
    d_low = (xs.reshape(-1, SIZE).T @ low, h[:-BATCH].T @ low, low.sum(axis=0))
    d_high = (h[BATCH:].T @ high, by_rows("k", ks)[:-BATCH].T @ high, high.sum(axis=0))
    return np.mean(last**2), (*d_low, *d_high)


WORKLOADS = (
    Workload(
        name="deep-lstm",
        title="LSTM of 2 layers, batch 32, 100 steps",
        dtype="float64",
        inputs=inputs,
        function=deep_lstm,
        argnums=(0, 1, 2, 3, 4, 5),
        in_retrograd=in_retrograd,
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
    ),
)
