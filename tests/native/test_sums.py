"""Sums in C have the bits of NumPy's: in any shape, in parts, beside other reductions, and for a batch."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import kernel_function
from retrograd.codegen.native.sum_order import kept_terms, run_start
from retrograd.ir import Graph, parse
from retrograd.ir.graph import Value
from tests.native.test_threads import always_helped
from tests.support.native import as_kernels, needs_compiler

pytestmark = [needs_compiler, pytest.mark.usefixtures("all_in_c")]


LENGTHS = [2, 7, 8, 9, 16, 127, 128, 129, 136, 1024, 1025, 4099, 300_000]
SHAPES: list[tuple[tuple[int, ...], Any]] = [
    ((7, 300), 1),
    ((300, 7), 1),
    ((300, 70), 0),
    ((200, 700), 0),
    ((7, 1100), 1),
    ((60, 40, 1), 1),
    ((40, 1), 0),
    ((1, 50), None),
    ((400, 3), None),
    ((4, 2), None),
    ((3, 8), 1),
    ((3, 2, 4), (1, 2)),
    ((50, 2, 4), (1, 2)),
    ((9, 30, 2, 3), 3),
    ((5, 40, 60), (1, 2)),
    ((5, 40, 60), (0, 2)),
    ((5, 40, 60), (0, 1)),
    ((30, 30, 40), (0, 1)),
    ((30, 300, 40), (0, 2)),
    ((30, 20, 1300), (1, 2)),
    ((2, 3, 5, 7), (1, 3)),
    ((3, 4000, 3), (1, 2)),
    ((30, 4000, 3), None),
    ((700, 400), 0),
    ((300, 1001), 0),
    ((20, 40_000), 0),
    ((20_000, 12), 0),
    ((90, 50, 60), (0, 1)),
    ((300, 50, 20), (0, 2)),
    ((300, 5, 10, 16), (0, 2)),
    ((300, 5, 16, 10), (0, 1, 3)),
    ((30, 70, 60), 1),
]


def made(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(list(shape))
    x = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3, shape)
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
def test_one_axis(dtype: Any) -> None:
    total = rg.jit(lambda xs: [np.sum(x + x) for x in xs], backend="native")
    xs = [made((n,), dtype) for n in LENGTHS]
    for x, found in zip(xs, total(xs), strict=True):
        assert same(found, np.sum(x + x))
    assert "rg_take_part" in total.source(xs, language="c")


@pytest.mark.costly
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_axes(shape: tuple[int, ...], axis: Any) -> None:
    """Alone, with the axes kept, and in the nest of others that work row by row."""

    def several(x: Any, rows: Any, columns: Any) -> tuple[Any, ...]:
        y = np.sqrt(np.abs(x) + rows * rows + columns * columns)
        return np.sum(y, axis=axis), np.sum(y, axis=-1), np.sum(y), np.max(y, axis=axis), np.sum(y, axis=axis) * 2

    for dtype in (np.float64, np.float32):
        x, rows, columns = (made(s, dtype) for s in (shape, (shape[0], *[1] * (len(shape) - 1)), shape[-1:]))
        kept = rg.jit(lambda x: np.sum(x * x, axis=axis, keepdims=True), backend="native")
        assert same(kept(x), np.sum(x * x, axis=axis, keepdims=True))
        found = rg.jit(several, backend="native")(x, rows, columns)
        for a, b in zip(found, several(x, rows, columns), strict=True):
            assert same(a, b)


@pytest.mark.parametrize("shape", [(500, 60, 3), (30, 2000, 3), (9, 30, 2, 3), (2000, 3), (20_000, 5)])
def test_a_few_columns_add_up_in_one_go(shape: tuple[int, ...]) -> None:
    """... as single columns do, of one array and of a batch: NumPy adds these one after the other."""
    x, axis = made(shape, np.float64), len(shape) - (2 if len(shape) < 4 else 3)
    found = rg.jit(lambda x: np.sum(x * 1.5, axis=axis), backend="native")(x)
    columns = np.moveaxis(x * 1.5, axis, -1).copy()
    assert same(found, np.sum(columns, axis=-1))
    many = rg.vmap(rg.jit(lambda x: np.sum(x * 1.5, axis=axis), backend="native"), backend="native")
    assert same(many(np.stack([x, -x]))[0], found)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((5, 4, 2), (0, 1)),
        ((10, 2, 2, 2), (0, 1)),
        ((20, 2, 3), 0),
        ((9, 8, 1), 0),
        ((9, 1, 8), 0),
        ((9, 3, 3), 0),
        ((8, 3), 0),
        ((4, 2), 0),
    ],
)
def test_a_few_columns_add_up_alike_in_a_batch(shape: tuple[int, ...], axis: Any) -> None:
    for dtype in (np.float64, np.complex64):
        x = made(shape, dtype)
        one = rg.jit(lambda x: np.sum(x + x, axis=axis), backend="native")
        assert same(rg.vmap(one, backend="native")(np.stack([-x, x, x * 2]))[1], one(x))


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3), (2, 3, 4), (20, 3, 40), (3, 7, 50)])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "count_nonzero"])
def test_axes_in_any_order(name: str, shape: tuple[int, ...]) -> None:
    """... give what they give in their own order, also from the end."""
    x = made(shape, np.float64)

    def over(axis: tuple[int, ...]) -> Any:
        return rg.jit(lambda x: getattr(np, name)(x * 0.5, axis=axis), backend="native")(x)

    for axes in permutations(range(len(shape)), 2):
        for axis in (axes, (axes[0] - len(shape), axes[1])):
            assert same(over(axis), over(tuple(sorted(axes))))
            np.testing.assert_allclose(over(axis), getattr(np, name)(x * 0.5, axis=axes), rtol=1e-12)


def test_short_sums_that_are_stored_add_up_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse("graph f(%x: f64[30,8,3]) {\n  %0 = sum %x {axis=(1,), keepdims=False} : f64[30,3]\n  return %0\n}")
    x, written = made((30, 8, 3), np.float64), kernel_function._written

    def stores(body: Graph, name: str, stored: set[Value]) -> Any:
        return written(body, name, {*stored, *(node.out for node in body.nodes)})

    for write in (written, stores):
        monkeypatch.setattr(kernel_function, "_written", write)
        (function,) = as_kernels([graph])
        assert same(function(x), np.sum(x, axis=1))


def test_very_many_sums_of_a_few_elements_are_one_kernel() -> None:
    """... each of which is read by the next: one at a time, their loops were found by writing all again."""
    lines = [
        line
        for k in range(300)
        for line in (
            f"  %y{k} = mul %x, %s{k} : f64[12]",
            f"  %s{k + 1} = sum %y{k} {{axis=(0,), keepdims=False}} : f64",
        )
    ]
    graph = parse("\n".join(["graph f(%x: f64[12], %s0: f64) {", *lines, "  return %s300", "}"]))
    (function,) = as_kernels([graph])
    x, s = made((12,), np.float64), 1.0
    x /= np.sum(x)
    expected = np.float64(s)
    for _ in range(300):
        expected = np.sum(x * expected)
    assert same(function(x, s), expected)


def test_a_loop_that_falls_into_two_has_the_sums_of_a_few_columns_in_both() -> None:
    """An index of the loop around them decides what is read."""

    def function(x: Any) -> Any:
        y = x.copy()
        y[:, 0:2] = -x[:, 0:2]
        return np.sum(x, axis=(0, 2)), np.max(y), np.sum(y, axis=2)

    x = made((7, 4, 14, 6), np.float64)
    compiled = rg.jit(function, backend="native")
    total, _, columns = compiled(x)
    y = np.where(np.arange(4)[:, None, None] < 2, -x, x)
    assert same(columns, np.sum(np.moveaxis(y, 2, -1).copy(), axis=-1))
    parts = np.sum(np.moveaxis(x, 2, -1).copy(), axis=-1)
    assert same(total, np.sum(parts, axis=0))


def test_terms_that_have_storage_are_not_copied() -> None:
    """... whether they are an argument, its part, or what a loop stores."""
    x = made((30, 700), np.float64)

    def function(x: Any) -> Any:
        y = np.exp(x / 1000)
        return np.sum(x, axis=1), np.sum(x[3:, 100:]), np.sum(x[:, ::2], axis=1), y / np.sum(y, axis=1, keepdims=True)

    compiled = rg.jit(function, backend="native")
    rows, part, strided, normed = compiled(x)
    assert same(rows, np.sum(x, axis=1))
    assert same(part, np.sum(x[3:, 100:].copy()))
    assert same(strided, np.sum(x[:, ::2].copy(), axis=1))
    code = compiled.source(x, language="c")
    assert "rg_total(&in0[700 * " in code
    e = rg.jit(lambda x: np.exp(x / 1000), backend="native")(x)
    assert same(normed, e * (1 / np.sum(e, axis=1, keepdims=True)))


def test_one_long_row() -> None:
    """... is no sum of columns, though its first axis goes away."""
    x, w = made((1, 100_000), np.float64), made((100_000,), np.float64)
    total = rg.jit(lambda x, w: np.sum(np.sqrt(np.abs(x)) * w), backend="native")
    assert same(total(x, w), np.sum(np.sqrt(np.abs(x)) * w))


def test_zeros_have_numpys_sign() -> None:
    for n in (2, 5, 8, 30, 2000):
        x = np.full(n, -0.0)
        assert not np.signbit(rg.jit(lambda x: np.sum(np.minimum(x, 1.0)), backend="native")(x))
    zeros = [np.full(shape, complex(-0.0, -0.0)) for shape in [(5,), (8,), (30,), (2000,), (50, 3), (3, 50)]]
    totals = rg.jit(lambda zs: [np.sum(z - 0.0, axis=0) for z in zs], backend="native")(zeros)
    assert not any(np.any(np.signbit(total.real) | np.signbit(total.imag)) for total in totals)


@pytest.mark.parametrize("shape", [(200_000,), (3000, 100), (64, 5000), (700, 30, 11)])
def test_threads_do_not_change_bits(shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        y = np.exp(np.sin(x) * x / 1000)
        return np.sum(y), np.sum(y, axis=0), np.sum(y, axis=-1)

    x, before = made(shape, np.float64), rg.config.threads
    with always_helped():
        compiled = rg.jit(function, backend="native")
        try:
            rg.config.threads = 1
            expected = compiled(x)
            rg.config.threads = 3
            found = compiled(x)
        finally:
            rg.config.threads = before
    assert "in_parts" in compiled.source(x, language="c")
    for a, b in zip(found, expected, strict=True):
        assert same(a, b)


@pytest.mark.costly
@pytest.mark.parametrize("shape", [(8,), (129,), (7, 30), (1500,), (6, 5, 4)])
def test_a_batch_has_the_bits_of_single_calls(shape: tuple[int, ...]) -> None:
    """Values, gradients and tangents, with decisions and loops inside."""

    def function(x: Any) -> Any:
        y = rg.cond(np.sum(x) > 0, lambda x: np.sin(x) * x, np.exp, x / 50)
        s = rg.fori_loop(3, lambda i, s: s * 0.5 + np.tanh(s) * np.sum(s * s), y)
        return np.sum(s / (1 + np.sum(s * s, axis=-1, keepdims=True)), axis=0).sum() + np.mean(s) * np.var(y)

    x = made(shape, np.float64) / 50
    batch = np.stack([x, -x, 0.3 * x, x[::-1]])
    for transform in (rg.jit, rg.value_and_grad):
        one = transform(function, backend="native")
        many = rg.vmap(one, backend="native")(batch)
        for k, x in enumerate(batch):
            for a, b in zip(*(list(t) if isinstance(t, tuple) else [t] for t in (many, one(x))), strict=True):
                assert same(np.asarray(a)[k], b)


def test_products_multiply_one_after_the_other() -> None:
    for shape, axis in [((9,), 0), ((3000,), 0), ((7, 300), 1), ((300, 7), 0), ((4, 30, 2), 1), ((4, 3000, 2), (1, 2))]:
        x = np.exp(made(shape, np.float64) / 10_000)
        found = rg.jit(lambda x, axis=axis: np.prod(x * 1.0001, axis=axis), backend="native")(x)
        assert same(found, np.prod(x * 1.0001, axis=axis))


@pytest.mark.parametrize(
    ("shape", "axes", "start"),
    [
        ((5, 6), (1,), 1),
        ((5, 6), (0, 1), 0),
        ((5, 6), (0,), None),
        ((5, 1), (0,), 0),
        ((1, 6), (0, 1), 1),
        ((2, 3, 4), (0, 2), 2),
    ],
)
def test_where_runs_start(shape: tuple[int, ...], axes: tuple[int, ...], start: int | None) -> None:
    assert run_start(shape, axes) == start


@pytest.mark.parametrize(("each", "n"), [(1024, 2**16), (1000, 63_000), (64, 800), (1, 100), (2400, 63_000), (7, 500)])
@pytest.mark.parametrize(("beside", "most"), [(8, 128), (8, 1024), (4, 64), (4, 512)])
def test_parts_have_room_for_what_they_keep(each: int, n: int, beside: int, most: int) -> None:
    """Counted block by block."""

    def ends(n: int) -> list[int]:
        if n <= most:
            return [n]
        half = n // 2 - n // 2 % beside
        return [*ends(half), *(half + k for k in ends(n - half))]

    stops = ends(n)
    blocks = list(zip([0, *stops[:-1]], stops, strict=True))
    for first in range(0, n, each):
        end = min(first + each, n)
        kept = sum(1 if first <= a and b <= end else max(0, min(b, end) - max(a, first)) for a, b in blocks)
        assert kept <= kept_terms(each, n, beside, most, whole=False)
