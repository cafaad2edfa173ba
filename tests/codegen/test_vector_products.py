"""Products of new vectors are calls of `dot`: where they are, and that they have the bits of ``@``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

VECTORS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "new": lambda x, y: (x + y, x - y),
    "of reversed": lambda x, y: (np.square(x[::-1]), x[::-1] + y[::-1]),
    "of every second": lambda x, y: (2.0 * x[::2], x[::2] * y[::2]),
    "of repeated": lambda x, y: (x[:1] + np.zeros_like(x), np.sin(y)),
    "made by products": lambda x, y: (np.outer(x, y) @ y, np.exp(-(y**2))),
}
LENGTHS = [0, 1, 2, 7, 16, 17, 100, 1000, 10_000, 10_001, 40_000]


def normals(n: int, dtype: str) -> Any:
    rng = np.random.default_rng(n)
    return rng.normal(size=n).astype(dtype), rng.normal(size=n).astype(dtype)


def source(f: Any, *args: Any) -> str:
    text: str = f.source(*args)
    return text


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("vectors", VECTORS.values(), ids=VECTORS)
def test_they_have_the_bits_of_a_matrix_product(vectors: Any, dtype: str) -> None:
    f = rg.jit(lambda x, y: np.matmul(*vectors(x, y)))
    for n in LENGTHS[:8] if "outer" in vectors.__code__.co_names else LENGTHS[1:]:
        x, y = normals(n, dtype)
        with rg.config(exact=True):
            found, wanted = f(x, y), np.matmul(*vectors(x, y))
            assert type(found) is type(wanted)
            assert found.tobytes() == wanted.tobytes()
            assert n < 13 or ".dot(" in source(f, x, y)


@pytest.mark.parametrize("given", [lambda x: x[::-1], lambda x: np.broadcast_to(x[:1], x.shape), lambda x: x[::2]])
def test_vectors_from_outside_and_views_stay(given: Any) -> None:
    """They may run backwards or repeat an element, for which NumPy's two functions round otherwise."""
    x, y = normals(101, "f4")
    v = given(x)
    f, g = rg.jit(lambda v, w: (v @ w, w @ v)), rg.jit(lambda v: (v + 1)[::-1] @ (v * v))
    with rg.config(exact=True):
        assert f(v, y[: len(v)]) == (v @ y[: len(v)], y[: len(v)] @ v)
        assert g(v) == (v + 1)[::-1] @ (v * v)
    assert ".dot(" not in source(f, v, y[: len(v)]) + source(g, v)


def test_complex_integers_and_matrices_stay() -> None:
    x = np.arange(20)
    for v in (x, x + 1j):
        f = rg.jit(lambda v: (v + v) @ (v * v))
        assert f(v) == (v + v) @ (v * v)
        assert ".dot(" not in source(f, v)
    f = rg.jit(lambda m: (m + m) @ (m * m))
    m = np.ones((13, 13))
    np.testing.assert_array_equal(f(m), (m + m) @ (m * m))
    assert ".dot(" not in source(f, m)


def test_in_loops_and_in_derivatives() -> None:
    def f(x: Any) -> Any:
        return rg.fori_loop(0, 5, lambda i, v: v / np.sqrt(np.sin(v) @ np.cos(v)), x)[0]

    x = np.linspace(0.5, 1.0, 30)
    assert ".dot(" in source(rg.grad(f), x)
    rg.check_grads(f, (x,), order=2)
    stack = np.stack([x, 2 * x])
    np.testing.assert_allclose(rg.vmap(rg.grad(f))(stack), [rg.grad(f)(x), rg.grad(f)(2 * x)], rtol=1e-12)
