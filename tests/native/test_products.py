"""Small products of matrices and vectors in C, alone and in the bodies of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.element_form import SMALL
from retrograd.codegen.native.taken import takes
from retrograd.ir import Aval, Graph
from retrograd.ir.primitive import REGISTRY
from tests.support.graphs import one_node
from tests.support.native import as_kernels, needs_compiler

pytestmark = needs_compiler
SHAPES = [((1,), (1,)), ((7,), (7,)), ((3, 4), (4,)), ((9, 17), (17,)), ((4,), (4, 3)), ((17,), (17, 9)),
          ((2, 3), (3, 2)), ((16, 16), (16, 16)), ((1, 9), (9, 1)), ((20, 2), (2, 20))]  # fmt: skip


def product(a: tuple[int, ...], b: tuple[int, ...], dtype: Any = np.float64) -> Graph:
    return one_node(REGISTRY["matmul"], [Aval(a, np.dtype(dtype)), Aval(b, np.dtype(dtype))], {})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_numpys(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    graphs = [product(a, b, dtype) for a, b in SHAPES]
    for (a, b), graph, function in zip(SHAPES, graphs, as_kernels(graphs), strict=True):
        assert takes(graph.nodes[0])
        x, y = rng.normal(size=a).astype(dtype), rng.normal(size=b).astype(dtype)
        found, expected = function(x, y), x @ y
        assert (type(found), found.dtype, found.shape) == (type(expected), expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=0, atol=64 * np.finfo(dtype).eps * np.abs(x).max() * 9)


def test_large_products_are_numpys_own() -> None:
    n = round(SMALL ** (1 / 3))
    assert takes(product((n, n), (n, n)).nodes[0])
    assert not takes(product((n + 1, n), (n, n)).nodes[0])
    assert not takes(product((2, 3, 3), (2, 3, 3)).nodes[0])


@pytest.mark.parametrize("n", [3, 16, 17, 40])
def test_a_loop_of_element_form_is_one_kernel(n: int) -> None:
    rng = np.random.default_rng(n)
    matrix, x = rng.normal(size=(n, n)) * 0.3, rng.normal(size=n)

    def network(matrix: Any, x: Any) -> Any:
        return np.sum(rg.fori_loop(12, lambda _, s: np.tanh(matrix @ s + x), x))

    f = rg.value_and_grad(network, argnums=(0, 1), backend="native")
    value, slopes = f(matrix, x)
    expected, others = rg.value_and_grad(network, argnums=(0, 1))(matrix, x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for a, b in zip(slopes, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())
    assert type(f.executable(matrix, x).function).__name__ == "builtin_function_or_method"
