"""Layers and losses written in NumPy equal torch's own, with their first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.oracles.program import Program, Sampler, normal, uniform

torch = pytest.importorskip("torch")
F = torch.nn.functional

LABELS = np.array([1, 0, 2, 1])
TARGETS = np.array([0.3, -0.2, 0.5, 0.9])
OUTCOMES = np.array([1.0, 0.0, 1.0, 0.0])
SOBEL = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])

PAIRS: list[tuple[Program, Callable[..., Any]]] = []


def same_as(theirs: Callable[..., Any], *samplers: Sampler) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function beside torch's function of the same arguments."""

    def enter(ours: Callable[..., Any]) -> Callable[..., Any]:
        def run(_: Any, *args: Any) -> Any:
            return ours(*args)

        run.__name__ = ours.__name__
        PAIRS.append((Program(run, samplers), theirs))
        return ours

    return enter


def log_softmax(x):
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def patches(image, size):
    rows, columns = (n - size + 1 for n in image.shape[-2:])
    return [image[..., i : i + rows, j : j + columns] for i in range(size) for j in range(size)]


@same_as(
    lambda x, W1, b1, W2, b2: F.cross_entropy(F.linear(torch.relu(F.linear(x, W1, b1)), W2, b2), torch.tensor(LABELS)),
    normal(4, 3),
    normal(5, 3),
    normal(5),
    normal(3, 5),
    normal(3),
)
def cross_entropy_of_a_perceptron(x, W1, b1, W2, b2):
    logits = np.maximum(x @ W1.T + b1, 0) @ W2.T + b2
    return -np.mean(log_softmax(logits)[np.arange(4), LABELS])


@same_as(
    lambda x, gain, bias: torch.sum(F.gelu(F.layer_norm(x, (5,), gain, bias), approximate="tanh") ** 2),
    normal(3, 5),
    uniform(0.5, 1.5, 5),
    normal(5),
)
def layer_norm_and_gelu(x, gain, bias):
    y = gain * (x - np.mean(x, axis=1, keepdims=True)) / np.sqrt(np.var(x, axis=1, keepdims=True) + 1e-5) + bias
    y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    return np.sum(y**2)


@same_as(
    lambda q, k, v: torch.sum(F.scaled_dot_product_attention(q, k, v, is_causal=True) ** 2),
    normal(2, 3, 4),
    normal(2, 3, 4),
    normal(2, 3, 4),
)
def causal_attention(q, k, v):
    scores = q @ np.swapaxes(k, 1, 2) / 2.0
    scores = np.where(np.tri(3, dtype=bool), scores, -np.inf)
    return np.sum((np.exp(log_softmax(scores)) @ v) ** 2)


@same_as(
    lambda x, w, b: torch.sum(torch.tanh(F.conv2d(x, w, b, padding=1))),
    normal(1, 2, 4, 4),
    normal(2, 2, 3, 3),
    normal(2),
)
def padded_convolution_of_images(x, w, b):
    padded = np.zeros((1, 2, 6, 6))
    padded[:, :, 1:-1, 1:-1] = x
    windows = np.stack(patches(padded, 3), axis=-1)
    return np.sum(np.tanh(np.einsum("bcijk,ock->boij", windows, w.reshape(2, 2, 9)) + b[:, None, None]))


@same_as(lambda x: torch.sum(F.conv2d(x[None, None], torch.tensor(SOBEL)[None, None]) ** 2), normal(5, 5))
def sobel_energy(image):
    return np.sum(sum(w * part for w, part in zip(SOBEL.ravel(), patches(image, 3), strict=True)) ** 2)


@same_as(lambda x, w: torch.sum(torch.exp(F.conv1d(x, w, stride=2))), normal(1, 2, 7), normal(2, 2, 3, scale=0.5))
def strided_convolution(x, w):
    out = 0.0
    for k in range(3):
        out = out + np.einsum("bct,oc->bot", x[:, :, k : k + 5 : 2], w[:, :, k])
    return np.sum(np.exp(out))


@same_as(lambda x: torch.sum(F.max_pool2d(x, 2) ** 2) + torch.sum(F.avg_pool2d(x, 2) ** 3), normal(1, 2, 4, 4))
def pooling(x):
    blocks = x.reshape(1, 2, 2, 2, 2, 2)
    return np.sum(blocks.max(axis=(3, 5)) ** 2) + np.sum(blocks.mean(axis=(3, 5)) ** 3)


@same_as(
    lambda x, h, c, W, U, b: sum(torch.sum(y**2) for y in torch.lstm_cell(x, (h, c), W, U, b, b)),
    normal(2, 3),
    normal(2, 2),
    normal(2, 2),
    normal(8, 3),
    normal(8, 2),
    normal(8),
)
def long_short_term_memory(x, h, c, W, U, b):
    i, f, g, o = np.split(x @ W.T + h @ U.T + 2 * b, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return np.sum((sigmoid(o) * np.tanh(c)) ** 2) + np.sum(c**2)


@same_as(
    lambda x, h, W, U, b: torch.sum(torch.gru_cell(x, h, W, U, b, b) ** 2),
    normal(2, 3),
    normal(2, 2),
    normal(6, 3),
    normal(6, 2),
    normal(6),
)
def gated_recurrent_unit(x, h, W, U, b):
    xr, xz, xn = np.split(x @ W.T + b, 3, axis=1)
    hr, hz, hn = np.split(h @ U.T + b, 3, axis=1)
    update, candidate = sigmoid(xz + hz), np.tanh(xn + sigmoid(xr + hr) * hn)
    return np.sum((candidate + update * (h - candidate)) ** 2)


@same_as(
    lambda x, gain, bias: torch.sum(torch.sin(F.batch_norm(x, None, None, gain, bias, training=True))),
    normal(5, 3),
    normal(3),
    normal(3),
)
def batch_norm(x, gain, bias):
    return np.sum(np.sin(gain * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5) + bias))


@same_as(
    lambda x, gain, bias: torch.sum(torch.cos(F.group_norm(x, 2, gain, bias))), normal(2, 4, 3), normal(4), normal(4)
)
def group_norm(x, gain, bias):
    groups = x.reshape(2, 2, 6)
    scaled = (groups - groups.mean(axis=2, keepdims=True)) / np.sqrt(groups.var(axis=2, keepdims=True) + 1e-5)
    return np.sum(np.cos(scaled.reshape(2, 4, 3) * gain[:, None] + bias[:, None]))


@same_as(lambda x: F.huber_loss(x, torch.tensor(TARGETS), delta=0.7) * 3, normal(4))
def huber_loss(x):
    size = np.abs(x - TARGETS)
    return 3 * np.mean(np.where(size <= 0.7, 0.5 * size**2, 0.7 * (size - 0.35)))


@same_as(lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor(OUTCOMES)), normal(4))
def binary_cross_entropy(x):
    return np.mean(np.logaddexp(0.0, x) - OUTCOMES * x)


@same_as(
    lambda mean, variance: F.gaussian_nll_loss(mean, torch.tensor(TARGETS), variance, full=True),
    normal(4),
    uniform(0.5, 2, 4),
)
def gaussian_likelihood(mean, variance):
    return 0.5 * np.mean(np.log(2 * np.pi * variance) + (mean - TARGETS) ** 2 / variance)


@same_as(lambda x: F.poisson_nll_loss(x, torch.tensor(LABELS)), normal(4))
def poisson_likelihood(x):
    return np.mean(np.exp(x) - LABELS * x)


@same_as(
    lambda a, b: F.kl_div(F.log_softmax(a, 1), F.log_softmax(b, 1), reduction="batchmean", log_target=True),
    normal(2, 4),
    normal(2, 4),
)
def divergence(a, b):
    log_p = log_softmax(b)
    return np.sum(np.exp(log_p) * (log_p - log_softmax(a))) / 2


@same_as(lambda a, b: torch.sum(F.cosine_similarity(a, b) ** 2), normal(3, 4), normal(3, 4))
def cosine_similarity(a, b):
    products = np.einsum("ij,ij->i", a, b)
    return np.sum(products**2 / (np.sum(a**2, axis=1) * np.sum(b**2, axis=1)))


@same_as(lambda a, b: torch.sum(torch.linalg.vector_norm(a[:, None] - b, dim=-1) ** 3), normal(3, 2), normal(4, 2))
def distances_of_two_sets(a, b):
    return np.sum(np.sqrt(np.sum((a[:, None] - b[None]) ** 2, axis=-1)) ** 3)


@same_as(
    lambda x, y, A, b: torch.sum(F.softplus(F.bilinear(x, y, A, b))),
    normal(3, 2),
    normal(3, 4),
    normal(2, 2, 4),
    normal(2),
)
def bilinear_layer(x, y, A, b):
    return np.sum(np.logaddexp(0.0, np.einsum("ni,oij,nj->no", x, A, y) + b))


@same_as(
    lambda x: torch.sum(torch.cumsum(x, 0) ** 2) + torch.prod(x) + torch.sum(torch.cumprod(x, 0)), uniform(0.5, 1.5, 5)
)
def running_sums_and_products(x):
    return np.sum(np.cumsum(x) ** 2) + np.prod(x) + np.sum(np.cumprod(x))


@same_as(lambda x: torch.sum(torch.sort(x)[0][1:3] ** 2) + torch.median(x) * torch.std(x), normal(5))
def order_statistics(x):
    ranked = np.sort(x)
    return np.sum(ranked[1:3] ** 2) + ranked[2] * np.std(x, ddof=1)


@same_as(
    lambda z: torch.sum(torch.roll(z, 1, 0) * torch.flip(z, [0]).tril() * torch.kron(z[:1], z[:, :1])), normal(3, 3)
)
def moved_elements(z):
    return np.sum(np.roll(z, 1, axis=0) * np.tril(z[::-1]) * np.kron(z[:1], z[:, :1]))


@pytest.mark.parametrize(("program", "theirs"), PAIRS, ids=[program.name for program, _ in PAIRS])
def test_values_gradients_and_second_derivatives_equal_those_of_torch(program, theirs):
    args, directions = program.args, program.tangents
    ours = program.bound(np, rg.scan)
    leaves = tuple(torch.tensor(x, requires_grad=True) for x in args)
    value = theirs(*leaves)
    gradients = torch.autograd.grad(value, leaves)
    _, products = torch.autograd.functional.hvp(theirs, leaves, tuple(torch.tensor(v) for v in directions))

    found, slopes = rg.value_and_grad(ours, program.argnums)(*args)
    curved = rg.jvp(rg.grad(ours, program.argnums), args, directions)[1]
    np.testing.assert_allclose(found, value.detach().numpy(), rtol=1e-12)
    for a, b in zip((*slopes, *curved), (*gradients, *products), strict=True):
        wanted = b.numpy()
        np.testing.assert_allclose(a, wanted, rtol=1e-9, atol=1e-12 * max(1.0, np.max(np.abs(wanted))))
