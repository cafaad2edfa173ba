"""Convolution by slices: 3 × 3 over 64 images of 28 × 28 with four channels, relu, mean square error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bench.kept import kept
from bench.workload import Function, Workload

IMAGES, SIZE, TAPS, CHANNELS, FILTERS = 64, 28, 3, 4, 8
INNER = SIZE - TAPS + 1
BLOCK = 4  # images


def inputs() -> tuple[Any, ...]:
    """Filters, bias, images and targets, channels last; float32."""
    rng = np.random.default_rng(0)
    shapes = (TAPS, TAPS, CHANNELS, FILTERS), (IMAGES, SIZE, SIZE, CHANNELS), (IMAGES, INNER, INNER, FILTERS)
    w, images, targets = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return w / np.float32(6.0), np.zeros(FILTERS, np.float32), images, targets


def convolution(w: Any, b: Any, images: Any, targets: Any) -> Any:
    """In plain NumPy: a product for each place in the filter."""
    out = b
    for i in range(TAPS):
        for j in range(TAPS):
            out = out + images[:, i : i + INNER, j : j + INNER] @ w[i, j]
    return np.mean((np.maximum(out, 0.0) - targets) ** 2)


def in_jax(jax: Any) -> Function:
    """With lax.conv_general_dilated."""
    jnp = jax.numpy

    def convolution(w: Any, b: Any, images: Any, targets: Any) -> Any:
        layout = ("NHWC", "HWIO", "NHWC")
        out = jax.lax.conv_general_dilated(images, w, (1, 1), "VALID", dimension_numbers=layout) + b
        return jnp.mean((jax.nn.relu(out) - targets) ** 2)

    return convolution


def in_torch(torch: Any) -> Function:
    """With conv2d on views that have channels first."""

    def convolution(w: Any, b: Any, images: Any, targets: Any) -> Any:
        out = torch.nn.functional.conv2d(images.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), b)
        return ((torch.relu(out) - targets.permute(0, 3, 1, 2)) ** 2).mean()

    return convolution


def windows(images: Any) -> Any:
    """What the filter covers at each place, as a view: images, rows, columns, places in the filter, channels."""
    return sliding_window_view(images, (TAPS, TAPS), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)


def by_hand(w: Any, b: Any, images: Any, targets: Any) -> tuple[Any, Any]:
    """Blocks of images: the windows as rows of a matrix make one product of all places in the filter.

    On the way back, the errors in a frame of zeros are convolved with the filter that is turned around.
    """
    rows = BLOCK * INNER * INNER
    seen = kept("seen", (BLOCK, INNER, INNER, TAPS, TAPS, CHANNELS), "float32")
    met = kept("met", (BLOCK, SIZE, SIZE, TAPS, TAPS, FILTERS), "float32")
    framed = kept("framed", (BLOCK, SIZE + TAPS - 1, SIZE + TAPS - 1, FILTERS), "float32")
    framed[...] = 0.0
    error = framed[:, TAPS - 1 : 1 - TAPS, TAPS - 1 : 1 - TAPS]
    flat, around = seen.reshape(rows, -1), met.reshape(-1, TAPS * TAPS * FILTERS)
    out, above = kept("out", (rows, FILTERS), "float32"), kept("above", (rows, FILTERS), "bool")
    lines, bias = out.reshape(-1, INNER * FILTERS), np.tile(b, INNER)
    weights = w.reshape(-1, FILTERS)
    turned = w[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, CHANNELS)
    d_weights, d_lines = np.zeros_like(weights), np.zeros_like(bias)
    d_images = np.empty_like(images)
    ones = np.ones(len(lines), np.float32)
    value = 0.0
    for start in range(0, IMAGES, BLOCK):
        block = slice(start, start + BLOCK)
        np.copyto(seen, windows(images[block]))
        np.matmul(flat, weights, out=out)
        lines += bias
        np.greater(out, 0.0, out=above)
        np.maximum(out, 0.0, out=out)
        out -= targets[block].reshape(rows, FILTERS)
        value += float(np.vdot(out, out))
        out *= above
        d_weights += flat.T @ out
        d_lines += ones @ lines
        np.copyto(error, out.reshape(error.shape))
        np.copyto(met, windows(framed))
        np.matmul(around, turned, out=d_images[block].reshape(-1, CHANNELS))
    scale = np.float32(2.0 / targets.size)
    d_weights *= scale
    d_images *= scale
    return value / targets.size, (d_weights.reshape(w.shape), scale * d_lines.reshape(INNER, -1).sum(axis=0), d_images)


WORKLOADS = (
    Workload(
        name="convolution",
        title="convolution 3², 64 images 28², f32",
        dtype="float32",
        inputs=inputs,
        function=convolution,
        argnums=(0, 1, 2),
        in_jax=in_jax,
        in_torch=in_torch,
        by_hand=by_hand,
    ),
)
