"""Perceptron: relu layers, mean cross-entropy of a max-shifted log-softmax, gradient in all weights and biases."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bench.workload import Function, Workload

Layers = list[tuple[Any, Any]]


def inputs(sizes: tuple[int, ...], batch: int) -> tuple[Any, ...]:
    """The layers as (weights, bias), a batch of standard normals, one-hot targets; all float32."""
    rng = np.random.default_rng(0)
    layers = [
        ((0.05 * rng.standard_normal((fan_in, fan_out))).astype(np.float32), np.zeros(fan_out, np.float32))
        for fan_in, fan_out in pairwise(sizes)
    ]
    x = rng.standard_normal((batch, sizes[0])).astype(np.float32)
    targets = np.eye(sizes[-1], dtype=np.float32)[rng.integers(0, sizes[-1], batch)]
    return layers, x, targets


def cross_entropy(layers: Layers, x: Any, targets: Any) -> Any:
    """In plain NumPy."""
    *hidden, (weights, bias) = layers
    for w, b in hidden:
        x = np.maximum(x @ w + b, 0.0)
    logits = x @ weights + bias
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(np.sum(targets * log_softmax, axis=1))


def in_jax(jax: Any) -> Function:
    """With jax.nn."""
    jnp = jax.numpy

    def cross_entropy(layers: Layers, x: Any, targets: Any) -> Any:
        *hidden, (weights, bias) = layers
        for w, b in hidden:
            x = jax.nn.relu(x @ w + b)
        log_softmax = jax.nn.log_softmax(x @ weights + bias)
        return -jnp.mean(jnp.sum(targets * log_softmax, axis=1))

    return cross_entropy


def in_torch(torch: Any) -> Function:
    """With addmm, which is what a linear layer calls."""

    def cross_entropy(layers: Layers, x: Any, targets: Any) -> Any:
        *hidden, (weights, bias) = layers
        for w, b in hidden:
            x = torch.relu(torch.addmm(b, x, w))
        log_softmax = torch.log_softmax(torch.addmm(bias, x, weights), dim=1)
        return -(targets * log_softmax).sum(dim=1).mean()

    return cross_entropy


def by_hand(layers: Layers, x: Any, targets: Any) -> tuple[Any, Layers]:
    """Two products per layer on the way back; one-hot targets make the cotangent of the logits softmax - targets."""
    batch = len(x)
    activations = [x]
    for w, b in layers[:-1]:
        a = activations[-1] @ w
        a += b
        np.maximum(a, 0.0, out=a)
        activations.append(a)

    w, b = layers[-1]
    logits = activations[-1] @ w
    logits += b
    logits -= logits.max(axis=1, keepdims=True)
    delta = np.exp(logits)
    total = delta.sum(axis=1, keepdims=True)
    value = (np.log(total).sum() - np.vdot(targets, logits)) / batch
    delta /= total
    delta -= targets
    delta /= batch

    gradient = []
    for depth in reversed(range(len(layers))):
        a = activations[depth]
        gradient.append((a.T @ delta, delta.sum(axis=0)))
        if depth:
            delta = delta @ layers[depth][0].T
            delta *= a > 0.0
    gradient.reverse()
    return value, gradient


def workload(sizes: tuple[int, ...], batch: int) -> Workload:
    """The row for layers of these sizes."""
    shape = "-".join(map(str, sizes))
    return Workload(
        name=f"mlp-{shape}",
        title=f"MLP {shape}, batch {batch}, f32",
        dtype="float32",
        inputs=partial(inputs, sizes, batch),
        function=cross_entropy,
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
        resident=True,
    )


WORKLOADS = (
    workload((784, 128, 10), 32),
    workload((784, 512, 256, 10), 128),
    workload((784, 1024, 1024, 10), 512),
)
