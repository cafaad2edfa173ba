"""Layers over rows: attention, layer norm with tanh, softmax, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from ctypes import c_long
from functools import partial
from typing import Any

import numpy as np

from bench.kept import kept
from bench.workload import Function, Workload, over
from bench.written_c import function, place

ROWS, EPSILON = 64, np.float32(1e-5)


def normals(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[Any, ...]:
    """Standard normals."""
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def softmax(x: Any) -> Any:
    """Along the last axis, without overflow."""
    raised = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return raised / np.sum(raised, axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Heads of dot-product attention; the mean square of what comes out, in plain NumPy."""
    scores = q @ np.swapaxes(k, 1, 2) / 8.0
    return np.mean((softmax(scores) @ v) ** 2)


def attention_in_jax(jax: Any) -> Function:
    """With jax.nn.softmax."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        chances = jax.nn.softmax(q @ k.swapaxes(1, 2) / 8.0, axis=-1)
        return jax.numpy.mean((chances @ v) ** 2)

    return attention


def attention_in_torch(torch: Any) -> Function:
    """With the fused attention of torch, which divides by the root of 64 itself."""
    fused = torch.nn.functional.scaled_dot_product_attention
    return lambda q, k, v: (fused(q, k, v) ** 2).mean()


def attention_by_hand(q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """Head by head, so that the two matrices of a head stay in the cache.

    The row sums of chances times their cotangent are inner products of the output's rows with its cotangent's.
    """
    heads, n, _ = q.shape
    d_q, d_k, d_v = np.empty_like(q), np.empty_like(k), np.empty_like(v)
    chances, pull = kept("attention", (2, n, n), "float32")
    ones, scale = np.ones(n, np.float32), np.float32(1.0 / 8.0)
    value = 0.0
    for head in range(heads):
        queries = q[head] * scale
        np.matmul(queries, k[head].T, out=chances)
        chances -= chances.max(axis=1, keepdims=True)
        np.exp(chances, out=chances)
        chances /= (chances @ ones)[:, None]
        out = chances @ v[head]
        square = np.vecdot(out, out)
        value += float(square.sum())
        out *= np.float32(2.0 / q.size)
        np.matmul(chances.T, out, out=d_v[head])
        np.matmul(out, v[head].T, out=pull)
        square *= np.float32(2.0 / q.size)
        pull -= square[:, None]
        pull *= chances
        np.matmul(pull, k[head], out=d_q[head])
        np.matmul(pull.T, queries, out=d_k[head])
    d_q *= scale
    return value / q.size, (d_q, d_k, d_v)


def norm(x: Any, gain: Any, shift: Any) -> Any:
    """Rows with mean 0 and variance 1, an affine map, tanh; the mean square, in plain NumPy."""
    centred = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(centred**2, axis=1, keepdims=True)
    return np.mean(np.tanh(centred / np.sqrt(variance + EPSILON) * gain + shift) ** 2)


def norm_in_torch(torch: Any) -> Function:
    """With torch.layer_norm."""
    return lambda x, gain, shift: (torch.layer_norm(x, (x.shape[1],), gain, shift, float(EPSILON)).tanh() ** 2).mean()


def norm_by_hand(x: Any, gain: Any, shift: Any) -> tuple[Any, Any]:
    """Blocks of rows; sums along rows and columns are products with ones, and factors of the mean come last."""
    n, d = x.shape
    scale = np.float32(2.0 / x.size)
    d_x = np.empty_like(x)
    d_gain, d_shift = np.zeros_like(gain), np.zeros_like(shift)
    y, spare = kept("norm", (2, ROWS, d), "float32")
    share, column = np.full(d, 1.0 / d, np.float32), np.ones(ROWS, np.float32)
    value = 0.0
    for start in range(0, n, ROWS):
        rows = slice(start, start + ROWS)
        block = x[rows]
        size = len(block)
        normed, out, t, ones = d_x[rows], y[:size], spare[:size], column[:size]
        np.subtract(block, (block @ share)[:, None], out=normed)
        inverse = 1.0 / np.sqrt(np.vecdot(normed, normed) / np.float32(d) + EPSILON)
        normed *= inverse[:, None]
        np.multiply(normed, gain, out=out)
        out += shift
        np.tanh(out, out=out)

        np.multiply(out, out, out=t)
        value += float((t @ share).sum())
        t *= out
        out -= t
        d_shift += ones @ out
        np.multiply(out, normed, out=t)
        d_gain += ones @ t
        out *= gain
        t *= gain
        mean, along = out @ share, t @ share
        normed *= along[:, None]
        np.subtract(out, normed, out=normed)
        normed -= mean[:, None]
        inverse *= scale
        normed *= inverse[:, None]
    d_gain *= scale
    d_shift *= scale
    return value / n, (d_x, d_gain, d_shift)


def norm_in_c(x: Any, gain: Any, shift: Any) -> tuple[Any, Any]:
    """The C of `c/layernorm.c`."""
    gradients = np.empty_like(x), np.empty_like(gain), np.empty_like(shift)
    return function("layernorm")(*map(place, (x, gain, shift, *gradients)), *map(c_long, x.shape)), gradients


def weighted_softmax(x: Any, weights: Any) -> Any:
    """Chances times weights, in plain NumPy."""
    return np.sum(softmax(x) * weights)


def softmax_inputs() -> tuple[Any, ...]:
    """Scores, and weights between 0 and 1; float32."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((512, 1024)).astype(np.float32), rng.random((512, 1024), np.float32)


def softmax_in_jax(jax: Any) -> Function:
    """With jax.nn.softmax."""
    return lambda x, weights: jax.numpy.sum(jax.nn.softmax(x, axis=-1) * weights)


def softmax_in_torch(torch: Any) -> Function:
    """With torch.softmax."""
    return lambda x, weights: (torch.softmax(x, dim=1) * weights).sum()


def softmax_by_hand(x: Any, weights: Any) -> tuple[Any, Any]:
    """Blocks of rows, made in the place of the gradient: chances times what a weight is above the row's mean."""
    d_x = np.empty_like(x)
    ones, spare = np.ones(x.shape[1], np.float32), kept("softmax", (ROWS, x.shape[1]), "float32")
    value = 0.0
    for start in range(0, len(x), ROWS):
        rows = slice(start, start + ROWS)
        chances, block, weight = d_x[rows], x[rows], weights[rows]
        np.subtract(block, block.max(axis=1, keepdims=True), out=chances)
        np.exp(chances, out=chances)
        chances /= (chances @ ones)[:, None]
        mean = np.vecdot(chances, weight)
        value += float(mean.sum())
        chances *= np.subtract(weight, mean[:, None], out=spare[: len(block)])
    return value, d_x


def softmax_in_c(x: Any, weights: Any) -> tuple[Any, Any]:
    """The C of `c/softmax.c`."""
    d_x = np.empty_like(x)
    return function("softmax")(place(x), place(weights), place(d_x), *map(c_long, x.shape)), d_x


def log_sum_exp(x: Any) -> Any:
    """Summed over rows, in plain NumPy."""
    top = np.max(x, axis=1)
    return np.sum(np.log(np.sum(np.exp(x - top[:, None]), axis=1)) + top)


def log_sum_exp_in_jax(jax: Any) -> Function:
    """With jax.nn.logsumexp."""
    return lambda x: jax.numpy.sum(jax.nn.logsumexp(x, axis=1))


def log_sum_exp_in_torch(torch: Any) -> Function:
    """With torch.logsumexp."""
    return lambda x: torch.logsumexp(x, dim=1).sum()


def log_sum_exp_by_hand(x: Any) -> tuple[Any, Any]:
    """The gradient is the softmax."""
    top = x.max(axis=1, keepdims=True)
    chances = x - top
    np.exp(chances, out=chances)
    total = chances @ np.ones(x.shape[1])
    chances /= total[:, None]
    return np.log(total).sum() + top.sum(), chances


def log_sum_exp_in_c(x: Any) -> tuple[Any, Any]:
    """The C of `c/logsumexp.c`."""
    d_x = np.empty_like(x)
    return function("logsumexp")(place(x), place(d_x), *map(c_long, x.shape)), d_x


WORKLOADS = (
    Workload(
        name="attention",
        title="attention, 4 heads × 256 × 64, f32",
        dtype="float32",
        inputs=partial(normals, *[(4, 256, 64)] * 3),
        function=attention,
        argnums=(0, 1, 2),
        in_jax=attention_in_jax,
        in_torch=attention_in_torch,
        by_hand=attention_by_hand,
    ),
    Workload(
        name="layernorm",
        title="layer norm and tanh 512 × 1024, f32",
        dtype="float32",
        inputs=partial(normals, (512, 1024), (1024,), (1024,)),
        function=norm,
        argnums=(0, 1, 2),
        in_jax=lambda jax: over(jax.numpy, norm),
        in_torch=norm_in_torch,
        by_hand=norm_by_hand,
        in_c=norm_in_c,
    ),
    Workload(
        name="softmax",
        title="softmax 512 × 1024, f32",
        dtype="float32",
        inputs=softmax_inputs,
        function=weighted_softmax,
        in_jax=softmax_in_jax,
        in_torch=softmax_in_torch,
        by_hand=softmax_by_hand,
        in_c=softmax_in_c,
    ),
    Workload(
        name="logsumexp",
        title="log-sum-exp of 1,000 rows of 25",
        dtype="float64",
        inputs=partial(normals, (1000, 25), dtype="float64"),
        function=log_sum_exp,
        in_jax=log_sum_exp_in_jax,
        in_torch=log_sum_exp_in_torch,
        by_hand=log_sum_exp_by_hand,
        in_c=log_sum_exp_in_c,
    ),
)
