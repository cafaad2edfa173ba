"""Operations on rows of large arrays run on few rows at a time: where, that the numbers stay, and how little memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.parser import parse
from retrograd.passes import fewer_rows, rows_in_blocks
from retrograd.passes.fewer_rows import with_fewer_rows
from tests.support.blocks import agrees, leaves, loops, normals, same_bits_in_all_ways, slopes
from tests.support.memory import measured, one_thread

LARGE = 8192


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of small arrays."""
    monkeypatch.setattr(rows_in_blocks, "MIDDLE", 128)
    for name, value in {"LARGE": LARGE, "BLOCK": LARGE // 4}.items():
        monkeypatch.setattr(fewer_rows, name, value)


def softmax(x: Any, weights: Any) -> Any:
    raised = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.sum(raised / np.sum(raised, axis=-1, keepdims=True) * weights)


def norm(x: Any, gain: Any, shift: Any) -> Any:
    """Its gradients in gain and shift are sums over rows."""
    centred = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(centred**2, axis=1, keepdims=True)
    return np.mean(np.tanh(centred / np.sqrt(variance + 1e-5) * gain + shift) ** 2)


def batch_norm(x: Any, gain: Any) -> Any:
    """Waits for sums over all rows."""
    centred = x - np.mean(x, axis=0)
    return np.sum(np.tanh(gain * centred / np.sqrt(np.mean(centred**2, axis=0) + 1e-5)))


def elementwise(x: Any, y: Any) -> Any:
    return np.sum(np.exp(np.sin(x)) * np.cos(x * y) + np.where(x > y, x, y * y) * np.abs(x))


def of_windows(x: Any) -> Any:
    inner = x[:, 1:-1, 1:-1]
    around = x[:, :-2, 1:-1] + x[:, 2:, 1:-1] + x[:, 1:-1, :-2] + x[:, 1:-1, 2:]
    return np.sum(np.tanh(4.0 * inner - around) ** 2)


def convolution(images: Any, w: Any) -> Any:
    """Reshapes that products of windows need, and a relu: points of images are several rows for each image."""
    n, m = images.shape[1] - 1, images.shape[2] - 1
    out = 0.1
    for i in range(2):
        for j in range(2):
            out = out + images[:, i : i + n, j : j + m] @ w[i, j]
    return np.mean((np.maximum(out, 0.0) - 0.5) ** 2)


def beside(x: Any, w: Any) -> Any:
    """A transpose that products of a group read, and another one that is read as a whole."""
    y = np.tanh(x) * np.sin(x)
    return np.sum((np.exp(y) * y).T @ y) + np.sum((w @ y.T) ** 2) + np.sum(np.cos(y.T[:2]))


def form(x: Any) -> Any:
    """Rows and the transpose of small rows: the transpose is read as a whole by each block."""
    y = np.tanh(x)
    return np.sum(np.exp(np.sin(y @ y.T)) * np.cos(y @ y.T))


def results(x: Any) -> Any:
    """Arrays of rows that are results, and views of them."""
    y = np.sin(np.exp(np.cos(x)) * x)
    return np.tanh(np.exp(y) * y - y * y).T, y[1:], np.max(np.abs(y), axis=1)


PROGRAMS: list[tuple[Any, int, Callable[[int, str], list[Any]]]] = [
    (softmax, 1, lambda n, dtype: normals((n, 24), (n, 24), dtype=dtype)),
    (norm, 3, lambda n, dtype: normals((n, 24), (24,), (24,), dtype=dtype)),
    (batch_norm, 2, lambda n, dtype: normals((n, 24), (24,), dtype=dtype)),
    (elementwise, 2, lambda n, dtype: normals((n, 24), (n, 24), dtype=dtype)),
    (of_windows, 1, lambda n, dtype: normals((n, 8, 9), dtype=dtype)),
    (convolution, 2, lambda n, dtype: normals((n, 7, 8, 3), (2, 2, 3, 4), dtype=dtype)),
    (form, 1, lambda n, dtype: normals((n, 4), dtype=dtype)),
    (beside, 2, lambda n, dtype: normals((n, 24), (24,), dtype=dtype)),
]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [43, 86, 251, 1000])
def test_programs(n: int, dtype: str) -> None:
    for f, count, inputs in PROGRAMS:
        args = inputs(n, dtype)
        agrees(slopes(count)(f), *args, eps=1e-11 if dtype == "f8" else 2e-4)
        agrees(rg.jit(f), *args, eps=1e-11 if dtype == "f8" else 2e-4)
    agrees(rg.jit(results), args[0].reshape(n, -1), eps=1e-12 if dtype == "f8" else 1e-5)


@pytest.mark.parametrize("n", [43, 251])
def test_programs_with_loops_for_all_groups(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewer_rows, "LEAST", -100.0)
    for f, count, inputs in PROGRAMS:
        args = inputs(n, "f8")
        slope = slopes(count)(lambda *args, f=f: 1.5 * f(*args))  # which is compiled anew
        agrees(slope, *args, eps=1e-11)
        assert loops(slope, *args) > 0, f.__name__
        agrees(rg.jit(lambda *args, f=f: 1.5 * f(*args)), *args, eps=1e-11)
        agrees(rg.grad(lambda *args, f=f: np.sum(rg.grad(f)(*args) ** 2)), *args, eps=1e-10)


def test_which_programs_have_loops() -> None:
    many = 1000
    for f, count, inputs in PROGRAMS:
        found = loops(slopes(count)(f), *inputs(many, "f8"))
        assert found == {batch_norm: 3, beside: 0}.get(f, 1), f.__name__
        with rg.config(exact=True):
            assert loops(slopes(count)(f), *inputs(many, "f8")) == 0
    assert loops(rg.jit(results), *normals((many, 24))) == 1


def test_large_arrays_of_enough_rows_with_much_to_save() -> None:
    f = slopes(1)(softmax)
    for n, number in ((LARGE // 64 - 1, 0), (LARGE // 64, 1)):
        assert loops(f, *normals((n, 8), (n, 8))) == number
    for n, number in ((3, 0), (4, 1)):  # steps
        assert loops(f, *normals((n, 20_000), (n, 20_000))) == number
    g = rg.jit(lambda x: np.sin(x) * 2.0)  # whose intermediate result lies in the place of the result
    assert loops(g, *normals((500, 24))) == 0
    vector = slopes(1)(lambda x: np.sum(np.exp(np.sin(x)) * np.cos(x)))
    assert loops(vector, *normals((5000,))) == 0, "vectors have kernels of their own"


@pytest.mark.parametrize("function", [np.tril, np.triu, np.linalg.inv, np.linalg.cholesky])
def test_functions_of_matrices_are_no_functions_of_rows(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewer_rows, "LEAST", -100.0)
    (x,) = normals((60, 60))

    def f(x: Any) -> Any:
        positive = np.exp(0.01 * x) * 0.01 + 100.0 * np.eye(60)
        return np.sum(np.sin(function((positive + positive.T) * 0.5)) * np.cos(np.exp(np.sin(x))))

    assert loops(rg.jit(f), x) > 0
    agrees(rg.jit(f), x)
    agrees(rg.value_and_grad(f), x)
    many = np.stack([x[:20, :20] + k for k in range(30)])
    stacks = rg.jit(lambda x: np.sum(np.sin(np.tril(np.exp(np.sin(x)))) * np.cos(x), axis=(1, 2)))
    assert loops(stacks, many) > 0
    agrees(stacks, many)


def test_groups_that_wait_for_each_other_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewer_rows, "LEAST", -100.0)

    def norms(x: Any, gain: Any, layers: int) -> Any:
        for _ in range(layers):
            x = np.tanh(x - np.mean(x, axis=0)) * gain
        return np.sum(x)

    args = normals((500, 24), (24,))
    few, many = (rg.jit(lambda x, gain, k=k: norms(x, gain, k)) for k in (2, 20))
    assert loops(few, *args) > 0
    assert loops(many, *args) == 0
    for f in (few, many):
        agrees(f, *args)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 1e308])
def test_special_values(special: float) -> None:
    for f, count, inputs in PROGRAMS:
        args = inputs(128, "f8")
        for k in (0, 77, 127):
            args[0][k].flat[3] = special
        slope = slopes(count)(f)
        with np.errstate(all="ignore"):
            found = leaves(slope(*args))
            with rg.config(exact=True):
                expected = leaves(slope(*args))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
            if np.shape(a) == args[0].shape:
                np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


def test_elementwise_results_keep_their_bits() -> None:
    (x,) = normals((301, 24))
    x[5, 3], x[7, 4], x[9, 5], x[11, 0] = np.nan, np.inf, -0.0, 5e-324
    f = rg.jit(results)
    with np.errstate(all="ignore"):
        assert loops(f, x) == 1
        found = leaves(f(x))
        with rg.config(exact=True):
            expected = leaves(f(x))
    for a, b in zip(found, expected, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_complex_numbers_and_integers() -> None:
    (x,) = normals((400, 24))
    f = rg.jit(lambda x: np.sum(np.abs(x * x + 3 * x) ** 2 * np.abs(x - 1), axis=1))
    for dtype in (np.complex128, np.int64):
        args = (5 * x).astype(dtype)
        assert loops(f, args) == 1
        agrees(f, args)


def test_orders_maps_and_other_transforms() -> None:
    x, w = normals((120, 24), (120, 24))

    def loss(x: Any) -> Any:
        return softmax(x, w)

    slope = rg.grad(loss)
    assert loops(slope, x) == 1
    agrees(slope, np.asfortranarray(x))
    agrees(slope, x[::-1])
    agrees(slope, np.repeat(x, 2, axis=1)[:, ::2])
    agrees(rg.grad(lambda x: np.sum(slope(x) ** 2)), x)
    agrees(lambda x: rg.vjp(loss, x)[1](2.0), x)
    agrees(lambda x: rg.vjp(lambda x: np.tanh(np.exp(x) * np.sin(x)), x)[1](w), x)
    agrees(lambda x: rg.jvp(loss, (x,), (np.cos(x),)), x)
    agrees(lambda x: rg.linearize(loss, x)[1](w), x)
    agrees(rg.vmap(slope), np.stack([x, 2 * x]))
    agrees(lambda x: rg.scan(lambda x, _: (x - slope(x), None), x, None, length=3)[0], x)
    agrees(rg.grad(lambda x: loss(x) + rg.checkpoint(loss)(2 * x)), x)
    rg.check_grads(loss, (x,), order=2)


def test_maps_have_the_bits_of_single_calls_where_no_sum_is_over_rows() -> None:
    x, w = normals((3, 200, 24), (200, 24))
    slope = rg.grad(lambda x: elementwise(x, w))
    assert loops(slope, x[0]) == 1
    for found, single in zip(rg.vmap(slope)(x), x, strict=True):
        np.testing.assert_array_equal(found, slope(single))


def test_decisions_between_rows() -> None:
    x, w = normals((200, 24), (200, 24))

    def f(x: Any, w: Any) -> Any:
        y = np.exp(np.sin(x)) * w
        if np.sum(y) > 0:
            y = np.tanh(y) * np.cos(y)
        return softmax(y, w)

    for sign in (1.0, -1.0):
        agrees(slopes(2)(f), x, sign * np.abs(w))


def test_one_and_several_threads_and_budgets_give_the_same_bits() -> None:
    args = normals((503, 24), (24,), (24,))
    assert loops(slopes(3)(norm), *args) == 1
    same_bits_in_all_ways(norm, args)


@pytest.mark.parametrize(("mark", "number"), [("turn {budget=None}", 1), ("turn {budget=None, split=(1, 1)}", 0)])
def test_effects_part_groups(mark: str, number: int) -> None:
    graph = parse(f"""
        graph f(%x: f64[200,24]) {{
          %0 = sin %x : f64[200,24]
          %1 = exp %x : f64[200,24]
          {mark}
          %2 = mul %0, %1 : f64[200,24]
          %3 = sum %2 {{axis=(1,), keepdims=False}} : f64[200]
          return %3
        }}
    """)
    found = with_fewer_rows(graph)
    assert sum(node.prim.name == "scan" for node in found.nodes) == number
    assert (found is graph) == (number == 0)


@pytest.mark.parametrize("n", [512, 500])
@pytest.mark.parametrize("f", [softmax, norm, elementwise])
def test_the_memory_of_a_call_is_foretold_and_small(f: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LARGE": 1 << 20, "BLOCK": 1 << 18}.items():
        monkeypatch.setattr(fewer_rows, name, value)
    args = normals((n, 512), (512,), (512,)) if f is norm else normals((n, 512), (n, 512))
    slope = slopes(1)(f)
    with one_thread():
        found, predicted = measured(slope, *args), slope.plan(*args).peak_bytes
    assert loops(slope, *args) == 1
    buffers = 2 * 8192 * 8  # in which NumPy stretches columns and rows
    assert abs(found - predicted) <= 0.01 * found + buffers + 4096
    assert found < (2.5 if f is elementwise else 1.75) * args[0].nbytes


def test_a_product_reads_an_array_by_rows_and_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fewer_rows, "LEAST", -100.0)
    (x,) = normals((32, 40_000))

    def f(x: Any) -> Any:
        large = np.sin(x)
        part = large[:, :32]
        return np.sum(np.tanh(np.exp((part @ part)[:, :1] * large)) * np.cos(large))

    with np.errstate(over="ignore"):
        assert loops(rg.jit(f), x) > 0
        agrees(rg.value_and_grad(f), x, eps=1e-9)
