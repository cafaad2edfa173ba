"""Products of large matrices, and the kernels between them, run on blocks of rows: nearly NumPy's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.blocks import leaves, normals, same_bits_in_all_ways, same_bits_on_threads, slopes
from tests.support.limits import other_limits
from tests.support.memory import measured
from tests.support.native import needs_compiler
from tests.support.tiny_blocks import STACKS

SMALL = {
    "passes.rows_in_blocks": {"LARGE": 8192, "MIDDLE": 128, "WORTH": 8192, "SMALL_BLOCK": 1 << 15},
    "passes.fewer_rows": {"LARGE": 8192, "BLOCK": 1 << 13},
    "passes.moved_axes": {"LARGE": 1024},
    "passes.sums_in_products": {"LEAST": 1024},
}
Program = Callable[..., Any]


def form(x: Any, length: Any, y: Any) -> Any:
    squares = np.sum(x**2, axis=1)
    return y @ np.exp(-0.5 * (squares[:, None] + squares - 2.0 * (x @ x.T)) / length**2) @ y


def regression(w: Any, b: Any, x: Any, labels: Any) -> Any:
    scores = x @ w + b
    return np.mean(np.logaddexp(0.0, scores) - labels * scores)


def clusters(centres: Any, x: Any) -> Any:
    apart = np.sum(x**2, axis=1)[:, None] + np.sum(centres**2, axis=1) - 2.0 * (x @ centres.T)
    return np.sum(np.min(apart, axis=1))


def convolution(w: Any, images: Any) -> Any:
    inner = images.shape[1] - 1
    out = sum(images[:, i : i + inner, j : j + inner] @ w[i, j] for i in range(2) for j in range(2))
    return np.mean(np.maximum(out, 0.0) ** 2)


def mixture(mu: Any, factors: Any, x: Any) -> Any:
    scaled = (x - mu[:, None, :]) @ np.swapaxes(factors, 1, 2)
    scores = -0.5 * np.sum(scaled**2, axis=2)
    top = np.max(scores, axis=0)
    return np.sum(np.log(np.sum(np.exp(scores - top), axis=0)) + top)


def cases(n: int, dtype: str = "f8") -> dict[str, tuple[Program, list[Any]]]:
    x, y, w, centres = normals((n, 12), (n,), (12,), (6, 12), dtype=dtype)
    filters, images = normals((2, 2, 3, 5), (n // 16, 9, 9, 3), dtype=dtype)
    mu, factors, points = normals((7, 6), (7, 6, 6), (n, 6), dtype=dtype)
    one = np.dtype(dtype).type(1.3)
    return {
        "form": (form, [x, 4 * one, y]),
        "regression": (regression, [w, one, x, y]),
        "clusters": (clusters, [centres, x]),
        "convolution": (convolution, [filters, images]),
        "mixture": (mixture, [mu, factors, points]),
    }


LOOPED = {"form", "regression", "clusters", "convolution"}


@needs_compiler
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [500, 503])
@pytest.mark.parametrize("name", cases(500))
def test_programs_agree_with_numpy(name: str, n: int, dtype: str) -> None:
    program, args = cases(n, dtype)[name]
    f, eps = slopes(len(args))(program), 1e-11 if dtype == "f8" else 1e-3
    with other_limits(SMALL), rg.config(backend="native"):
        found = leaves(f(*args))
        assert ("for t in range(" in f.source(*args)) == (name in LOOPED)
        assert "static int kernel0" in f.source(*args, language="c")
    with rg.config(exact=True):
        expected = leaves(f(*args))
    for a, b in zip(found, expected, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=eps, atol=eps * float(np.max(np.abs(b), initial=0.0)))


@pytest.mark.costly
@needs_compiler
@pytest.mark.parametrize("name", cases(500))
def test_threads_and_budgets_change_no_bit(name: str) -> None:
    program, args = cases(503)[name]
    with other_limits(SMALL), rg.config(backend="native"):
        same_bits_in_all_ways(program, args)


@needs_compiler
def test_real_sizes_take_little_memory() -> None:
    x, y = normals((1200, 8), (1200,))
    f = slopes(3)(form)
    with rg.config(backend="native"):
        found = f(x, 2.0, y)
        peak = f.plan(x, 2.0, y).peak_bytes
        assert peak < x.shape[0] ** 2 * 8 / 4  # a quarter of the kernel matrix
        assert measured(f, x, 2.0, y) <= 1.01 * peak + 4096
    with rg.config(exact=True):
        for a, b in zip(leaves(found), leaves(f(x, 2.0, y)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * float(np.max(np.abs(b))))


@needs_compiler
def test_work_on_elements_alone_has_no_loop_over_rows() -> None:
    x, shift = normals((600, 700), (700,))

    def norm(x: Any, shift: Any) -> Any:
        centred = x - np.mean(x, axis=1, keepdims=True)
        return np.mean(np.tanh(centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5) + shift) ** 2)

    with rg.config(backend="native"):
        assert "for t in range(" not in slopes(2)(norm).source(x, shift)


@needs_compiler
def test_threads_share_stacks_of_matrices() -> None:
    """... with the same bits for any number of threads, and NumPy's numbers."""
    limits: dict[str, dict[str, Any]] = {
        "passes.stacks_in_blocks": {**STACKS, "LARGER": 8},
        "codegen.numpy.at_once": {"WORTH": 8, "LONG": 8},
        "compiler.block_threads": {"WORTH": -1.0, "GAIN": float("inf")},
    }
    program, args = cases(503)["mixture"]
    f = slopes(len(args))(lambda *args: program(*args))  # noqa: PLW0108 - equal code was compiled with other limits
    with other_limits(limits), rg.config(backend="native"):
        found = same_bits_on_threads(f, args, (1, 2, 3, 7))
        assert "    in_steps(" in f.source(*args)
        assert "static int kernel0" in f.source(*args, language="c")
    with rg.config(exact=True):
        expected = leaves(f(*args))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * float(np.max(np.abs(b), initial=0.0)))
