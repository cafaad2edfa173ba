"""Products of matrices with many rows run on blocks of rows: where, and that the numbers stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.parser import parse
from retrograd.passes import row_roles, rows_in_blocks
from retrograd.passes.rows_in_blocks import with_rows_in_blocks
from tests.support.blocks import agrees, leaves, loops, normals, same_bits_on_threads
from tests.support.memory import measured, one_thread

LARGE = 8192


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of small matrices."""
    for name, value in {"LARGE": LARGE, "MIDDLE": 128, "WORTH": LARGE, "BLOCK": 1 << 16}.items():
        monkeypatch.setattr(rows_in_blocks, name, value)


def regression(w: Any, b: Any, x: Any, labels: Any) -> Any:
    scores = x @ w + b
    return np.mean(np.logaddexp(0.0, scores) - labels * scores)


def form(x: Any, length: Any, y: Any) -> Any:
    squares = np.sum(x**2, axis=1)
    return y @ np.exp(-0.5 * (squares[:, None] + squares - 2.0 * (x @ x.T)) / length**2) @ y


def classes(w: Any, x: Any, y: Any) -> Any:
    scores = np.tanh(x @ w)
    raised = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return np.sum(raised / np.sum(raised, axis=1, keepdims=True) * y[:, None]) + np.sum(scores[:, 1] * y)


def standardised(w: Any, x: Any) -> Any:
    """Waits for sums over all rows between the products."""
    scores = x @ w
    scores = (scores - np.mean(scores)) / np.std(scores)
    return np.sum(np.tanh(scores) @ x)


def again(w: Any, x: Any) -> Any:
    """A product of the rows is read as a whole by another one."""
    scores = np.tanh(x @ w)
    return np.sum(np.sin((x @ (scores[:, None] * x).T) * 0.1) @ scores)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [85, 86, 171, 500, 503, 997])
def test_programs(n: int, dtype: str) -> None:
    eps = 1e-11 if dtype == "f8" else 2e-4
    x, w, y, wide = normals((n, 12), (12,), (n,), (12, 5), dtype=dtype)
    bias = y.dtype.type(0.1)
    programs: list[tuple[Any, tuple[int, ...], tuple[Any, ...]]] = [
        (regression, (0, 1), (w, bias, x, y > 0)),
        (regression, (0, 2), (w, bias, x, y)),
        (form, (0, 1), (0.3 * x, w.dtype.type(1.5), y)),
        (classes, (0, 1), (wide, x, y)),
        (standardised, (0, 1), (w, x)),
        (again, (0, 1), (w, x)),
    ]
    for f, argnums, args in programs:
        slope = rg.value_and_grad(f, argnums=argnums)
        agrees(slope, *args, eps=eps)
        assert loops(slope, *args) > 0 or x.nbytes < LARGE or f in (standardised, again), f.__name__
        agrees(rg.jit(f), *args, eps=eps)


def test_large_enough_twice_read_and_narrow() -> None:
    x, w = normals((LARGE // 64, 8), (8,))
    f = rg.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w)))
    assert loops(f, w, x[:-1]) == 0
    assert loops(f, w, x) == 1
    assert loops(rg.jit(lambda w, x: np.sum(np.tanh(x @ w))), w, x) == 0, "x is read once"
    many, wide = normals((500, 80), (80, row_roles.NARROW + 1))
    for k, expected in ((row_roles.NARROW, True), (row_roles.NARROW + 1, False)):
        g = rg.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w)))
        assert (loops(g, wide[:, :k], many) > 0) == expected
        agrees(g, wide[:, :k], many)


def test_special_values_and_other_dtypes() -> None:
    x, w, y = normals((200, 12), (12,), (200,))
    f = rg.value_and_grad(regression, argnums=(0, 1))
    for k, special in enumerate((np.nan, np.inf, -np.inf, 1e308)):
        z = x.copy()
        z[17 * k, 3] = special
        with np.errstate(all="ignore"):
            found = leaves(f(w, 0.1, z, y))
            with rg.config(exact=True):
                expected = leaves(f(w, 0.1, z, y))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11)
    g = rg.jit(lambda x, w: np.sum(np.abs((x @ w)[:, None] * x) ** 2 + np.abs(x @ w)[:, None]))
    for dtype in (np.complex128, np.int64):
        args = (3 * x).astype(dtype), (3 * w).astype(dtype)
        assert loops(g, *args) == 0
        agrees(g, *args)


@pytest.mark.parametrize("function", [np.tril, np.triu])
def test_triangles_are_no_functions_of_rows(function: Any) -> None:
    x, w = normals((120, 120), (120,))
    f = rg.value_and_grad(lambda x, w: np.sum(np.tanh(function(np.sin(x) * np.cos(x)) @ w)), argnums=(0, 1))
    agrees(f, x, w)


def test_orders_maps_and_other_transforms() -> None:
    x, w, y = normals((120, 12), (12,), (120,))

    def loss(w: Any, x: Any) -> Any:
        return regression(w, 0.1, x, y)

    slope = rg.grad(loss)
    assert loops(slope, w, x) == 1
    agrees(rg.grad(lambda w, x: np.sum(slope(w, x) ** 2), argnums=(0, 1)), w, x)
    agrees(rg.hessian(loss), w, x)
    agrees(lambda w, x: rg.vjp(lambda w: loss(w, x), w)[1](2.0), w, x)
    agrees(lambda w, x: rg.vjp(lambda w: np.tanh(x @ w), w)[1](y), w, x)
    agrees(lambda w, x: rg.jvp(lambda w: loss(w, x), (w,), (np.cos(w),)), w, x)
    agrees(rg.vmap(slope, (0, None)), np.stack([w, 2 * w]), x)
    agrees(lambda w, x: rg.scan(lambda w, _: (w - slope(w, x), None), w, None, length=3)[0], w, x)
    agrees(rg.grad(lambda w, x: np.sum(rg.checkpoint(loss)(w, x) + loss(2 * w, x))), w, x)
    rg.check_grads(lambda w: loss(w, x), (w,), order=2)


def test_one_and_several_threads_and_plans_give_the_same_bits() -> None:
    x, w, y, z = normals((503, 12), (12,), (503,), (20_000,))

    def loss(w: Any, x: Any, z: Any) -> Any:
        for k in range(1, 5):
            z = np.tanh(k * z)
        return regression(w, 0.1, x, y) + form(0.3 * x, 1.5, y) + np.sum(z**2)

    f = rg.value_and_grad(loss, argnums=(0, 1, 2))
    free = same_bits_on_threads(f, (w, x, z))
    peak = f.plan(w, x, z).peak_bytes
    assert loops(f, w, x, z) == 2
    for budget in (peak, int(0.8 * peak)):
        within = rg.value_and_grad(loss, argnums=(0, 1, 2), memory=budget)
        for a, b in zip(leaves(within(w, x, z)), free, strict=True):
            np.testing.assert_array_equal(a, b)
        assert within.plan(w, x, z).peak_bytes <= budget
        assert loops(within, w, x, z) >= 2


@pytest.mark.parametrize(("mark", "number"), [("turn {budget=None}", 1), ("turn {budget=None, split=(1, 1)}", 0)])
def test_effects_part_groups(mark: str, number: int) -> None:
    graph = parse(f"""
        graph f(%w: f64[12], %x: f64[200,12]) {{
          %0 = matmul %x, %w : f64[200]
          {mark}
          %1 = tanh %0 : f64[200]
          %2 = matmul %1, %x : f64[12]
          return %0, %2
        }}
    """)
    found = with_rows_in_blocks(graph)
    assert sum(node.prim.name == "scan" for node in found.nodes) == number
    assert (found is graph) == (number == 0)


def test_decisions_between_products() -> None:
    x, w = normals((200, 12), (12,))

    def f(w: Any, x: Any) -> Any:
        scores = x @ w
        if np.sum(scores) > 0:
            scores = np.tanh(scores)
        return np.sum(scores @ x)

    for sign in (1.0, -1.0):
        agrees(rg.value_and_grad(f), sign * w, x)


@pytest.mark.parametrize("n", [1000, 1009])
def test_the_memory_of_a_call_is_foretold_and_small(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE": 1 << 20, "MIDDLE": 1 << 18, "WORTH": 1 << 22, "BLOCK": 1 << 18}.items():
        monkeypatch.setattr(rows_in_blocks, name, value)
    x, y = normals((n, 8), (n,))
    f = rg.value_and_grad(form, argnums=(0, 1))
    with one_thread():
        found, predicted = measured(f, x, 1.5, y), f.plan(x, 1.5, y).peak_bytes
    assert loops(f, x, 1.5, y) == 1
    buffers = 2 * 8192 * x.itemsize  # in which NumPy stretches columns and rows
    assert abs(found - predicted) <= 0.01 * found + buffers + 4096
    assert found < 0.15 * 8 * n * n
