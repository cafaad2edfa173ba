"""Sums of products by BLAS, the adjoint of a softmax, writes into zeros: what fires, and that the numbers stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.rewrite import walk
from retrograd.passes.cheaper_rules import LONGEST_ROW, SHORTEST_ROW
from retrograd.passes.row_rules import (
    FEWEST_ROWS,
    FEWEST_SUMMED,
    LONGEST_ALONE,
    LONGEST_SUMMED,
    SHORTEST_ALONE,
    SHORTEST_OF_MANY,
)
from retrograd.passes.short_axes import LONGEST as LONGEST_SHORT
from tests.support.memory import measured


def operations(f: Any, *args: Any) -> list[str]:
    return [node.prim.name for node in walk(f.at(*args).graph)]


def normals(*shapes: tuple[int, ...], dtype: str = "f8") -> Any:
    rng = np.random.default_rng(len(shapes))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [SHORTEST_OF_MANY - 1, SHORTEST_OF_MANY, LONGEST_ROW, LONGEST_ROW + 1])
def test_a_sum_of_all_products_is_as_accurate_as_numpys(n: int, dtype: str) -> None:
    f = rg.jit(lambda x, y: np.sum(x * y))
    g = rg.jit(lambda x: np.sum(x**2))
    for lead in ((3,), (2, 5)):
        x, y = normals((*lead, n), (*lead, n), dtype=dtype)
        wide = x.astype("f8") * y
        bound = 8 * np.finfo(dtype).eps * np.abs(wide).sum()
        assert abs(float(f(x, y)) - wide.sum()) <= bound
        assert f(x, y).dtype == g(x).dtype == x.dtype
        np.testing.assert_allclose(g(x), np.sum(x.astype("f8") ** 2), rtol=8 * np.finfo(dtype).eps)
        assert ("vecdot" in operations(f, x, y)) == (SHORTEST_OF_MANY <= n <= LONGEST_ROW and x.size >= 128)
        with rg.config(exact=True):
            np.testing.assert_array_equal(f(x, y), np.sum(x * y))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [SHORTEST_ALONE - 1, SHORTEST_ALONE, LONGEST_ALONE, LONGEST_ALONE + 1])
def test_vectors(n: int, dtype: str) -> None:
    x, y = normals((n,), (n,), dtype=dtype)
    f, g = rg.jit(lambda x, y: np.sum(x * y)), rg.jit(lambda x, y: np.sum(4.0 * x**2 + y**2))
    wide = x.astype("f8"), y.astype("f8")
    eps = np.finfo(dtype).eps
    assert abs(float(f(x, y)) - np.sum(wide[0] * wide[1])) <= 8 * eps * np.sum(np.abs(wide[0] * wide[1]))
    np.testing.assert_allclose(g(x, y), np.sum(4.0 * wide[0] ** 2 + wide[1] ** 2), rtol=8 * eps)
    inside = SHORTEST_ALONE <= n <= LONGEST_ALONE
    assert ("matmul" in operations(f, x, y)) == ("matmul" in operations(g, x, y)) == inside
    for special in (np.nan, np.inf, -np.inf):
        x[0] = special
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(g(x, y), np.sum(4.0 * x**2 + y**2))
            np.testing.assert_array_equal(f(x, y), np.sum(x * y))


def test_an_infinite_multiple_of_a_zero_is_nan() -> None:
    x = np.ones(20)
    x[3] = 0.0
    with np.errstate(invalid="ignore"):
        assert np.isnan(rg.jit(lambda x: np.sum(x**2 + np.inf * x**2))(x))


def test_sums_that_may_cancel_or_overflow_stay_together() -> None:
    x, y = normals((40,), (40,))
    for f in (
        rg.jit(lambda x, y: np.sum(x**2 - y**2)),
        rg.jit(lambda x, y: np.sum(x * y + y**2)),
        rg.jit(lambda x, y: np.sum(0.5 * x**2 + y**2)),
        rg.jit(lambda x, y: np.sum(-2.0 * x**2 + y**2)),
    ):
        assert "matmul" not in operations(f, x, y)
        np.testing.assert_allclose(f(x, y), f.__wrapped__(x, y), rtol=1e-14)
    big = np.full(40, 1e154)
    assert np.isfinite(rg.jit(lambda x, y: np.sum(0.001 * x**2 + 0.0 * y))(big, big))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    ("n", "length"),
    [
        (FEWEST_SUMMED - 1, 20),
        (FEWEST_SUMMED, 20),
        (5000, LONGEST_SHORT),
        (5001, LONGEST_SHORT + 1),
        (FEWEST_SUMMED, LONGEST_SUMMED),
        (FEWEST_SUMMED, LONGEST_SUMMED + 1),
    ],
)
def test_sums_of_rows_are_as_accurate_as_numpys(n: int, length: int, dtype: str) -> None:
    f = rg.jit(lambda x: np.sum(np.exp(x), axis=-2))
    kept = rg.jit(lambda x: np.sum(np.exp(x), axis=-2, keepdims=True))
    for lead in ((), (3,), (2, 1)):
        (x,) = normals((*lead, n, length), dtype=dtype)
        wide = np.exp(x.astype("f8")).sum(axis=-2)
        found = f(x)
        np.testing.assert_allclose(found, wide, rtol=(n**0.5 + 8) * np.finfo(dtype).eps)
        assert found.dtype == x.dtype
        assert found.shape == (*lead, length)
        np.testing.assert_array_equal(found, kept(x)[..., 0, :])
        inside = n >= FEWEST_SUMMED and LONGEST_SHORT < length <= LONGEST_SUMMED
        assert ("matmul" in operations(f, x)) == inside
        with rg.config(exact=True):
            np.testing.assert_array_equal(f(x), f.__wrapped__(x))


def test_sums_of_special_rows() -> None:
    f = rg.jit(lambda x: np.sum(np.negative(x), axis=0))
    x = np.ones((80, 20))
    x[3, :4] = np.nan, np.inf, -np.inf, 1e308
    x[:, 5], x[7, 6], x[9, 6] = 0.0, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(f(x), np.sum(-x, axis=0))
    assert "matmul" in operations(f, x)
    for other in (np.full((80, 20), 2 + 1j), np.ones((80, 20), np.int64)):
        np.testing.assert_array_equal(f(other), np.sum(-other, axis=0))
        assert "matmul" not in operations(f, other)
    empty = rg.jit(lambda x: np.sum(np.negative(x), axis=-2))
    np.testing.assert_array_equal(empty(np.ones((0, 80, 20))), np.zeros((0, 20)))


def test_derivatives_and_maps_of_sums_of_rows() -> None:
    x, w = normals((70, 10), (10,))

    def f(x: Any, w: Any) -> Any:
        return np.sum(np.sum(np.tanh(x * w), axis=0) ** 3)

    rg.check_grads(f, (x, w), order=2)
    slope = rg.grad(f, argnums=(0, 1))
    mapped = rg.vmap(slope)(np.stack([x, 2 * x]), np.stack([w, w]))
    for k, point in enumerate((x, 2 * x)):
        for found, expected in zip(mapped, slope(point, w), strict=True):
            np.testing.assert_array_equal(found[k], expected)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    ("lead", "length"),
    [
        ((FEWEST_ROWS - 1,), 25),
        ((FEWEST_ROWS,), 25),
        ((5001,), SHORTEST_ROW),
        ((200,), SHORTEST_ROW - 1),
        ((FEWEST_ROWS,), LONGEST_ROW),
        ((FEWEST_ROWS,), LONGEST_ROW + 1),
        ((FEWEST_ROWS // 2, 2), 33),
        ((FEWEST_ROWS // 2 - 1, 2), 33),
    ],
)
def test_sums_along_rows_are_as_accurate_as_numpys(lead: tuple[int, ...], length: int, dtype: str) -> None:
    f = rg.jit(lambda x: np.sum(np.exp(x), axis=-1))
    kept = rg.jit(lambda x: np.sum(np.exp(x), axis=-1, keepdims=True))
    (x,) = normals((*lead, length), dtype=dtype)
    wide = np.exp(x.astype("f8")).sum(axis=-1)
    inside = np.prod(lead) >= FEWEST_ROWS and SHORTEST_ROW <= length <= LONGEST_ROW
    for layout in (x, np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2]):
        found = f(layout)
        np.testing.assert_allclose(found, wide, rtol=(length**0.5 / 2 + 8) * np.finfo(dtype).eps)
        assert (found.dtype, found.shape) == (x.dtype, lead)
        np.testing.assert_array_equal(found, kept(layout)[..., 0])
        assert ("matmul" in operations(f, layout)) == ("matmul" in operations(kept, layout)) == inside
    with rg.config(exact=True):
        np.testing.assert_array_equal(f(x), f.__wrapped__(x))


def test_sums_along_special_rows() -> None:
    f = rg.jit(lambda x: np.sum(np.negative(x), axis=1))
    x = np.ones((200, 20))
    x[:4, 3], x[5], x[6, 7], x[6, 9] = (np.nan, np.inf, -np.inf, 1e308), 0.0, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(f(x), np.sum(-x, axis=1))
    assert "matmul" in operations(f, x)
    for other in (np.full((200, 20), 2 + 1j), np.ones((200, 20), np.int64)):
        np.testing.assert_array_equal(f(other), np.sum(-other, axis=1))
        assert "matmul" not in operations(f, other)
    empty = rg.jit(lambda x: np.sum(np.negative(x), axis=-1))
    np.testing.assert_array_equal(empty(np.ones((0, 200, 20))), np.zeros((0, 200)))


def test_sums_along_the_rows_of_views_stay_numpys() -> None:
    x = normals((20, 30, 40))[0]
    for f in (rg.jit(lambda x: np.sum(x, axis=-1)), rg.jit(lambda x: np.sum(np.exp(x)[::2], axis=-1))):
        np.testing.assert_array_equal(f(x), f.__wrapped__(x))
        assert "matmul" not in operations(f, x), "a view is not copied into a matrix"


def test_derivatives_and_maps_of_sums_along_rows() -> None:
    x, w = normals((130, 9), (9,))

    def f(x: Any, w: Any) -> Any:
        return np.sum(np.sum(np.tanh(x * w), axis=1) ** 3)

    rg.check_grads(f, (x, w), order=2)
    slope = rg.grad(f, argnums=(0, 1))
    mapped = rg.vmap(slope)(np.stack([x, 2 * x]), np.stack([w, w]))
    for k, point in enumerate((x, 2 * x)):
        for found, expected in zip(mapped, slope(point, w), strict=True):
            np.testing.assert_allclose(found[k], expected, rtol=1e-13)
    plain = rg.grad(lambda x, w: f(x, w) ** 2)
    halved = rg.grad(rg.checkpoint(lambda x, w: f(x, w) ** 2))
    np.testing.assert_array_equal(halved(x, w), plain(x, w))


def softmax(x: Any, axis: int = -1) -> Any:
    raised = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return raised / np.sum(raised, axis=axis, keepdims=True)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((5, 7), 0),
        ((3, 4, 70), -1),
        ((2, 3, 1100), -1),
        ((3, 9, 4), 1),
        ((200, 9), 1),
        ((2, 100, 9), 2),
        ((300, 70), 1),
    ],
)
def test_the_adjoint_of_a_softmax(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x, w = normals(shape, shape, dtype=dtype)
    x = 3.0 * x
    f = rg.grad(lambda x, w: np.sum(softmax(x, axis) * w))
    found = f(x, w)
    p = softmax(x.astype("f8"), axis)
    expected = p * (w - np.sum(p * w, axis=axis, keepdims=True))
    assert found.dtype == x.dtype
    assert np.max(np.abs(found - expected)) <= 8 * np.finfo(dtype).eps * np.max(np.abs(p * w))
    divisions = operations(f, x, w).count("div")
    assert divisions == 1, "w is not divided by the sum"
    with rg.config(exact=True):
        assert np.max(np.abs(f(x, w) - expected)) <= 8 * np.finfo(dtype).eps * np.max(np.abs(p * w))
        assert operations(f, x, w).count("div") == 2


def test_higher_orders_maps_and_far_scores_of_a_softmax() -> None:
    x, w = normals((3, 4), (3, 4))
    rg.check_grads(lambda x, w: np.sum(softmax(x) * w), (x, w), order=2)
    rg.check_grads(lambda x, w: np.sum(softmax(x, 0) * np.sin(w)), (x, w), order=2)
    slope = rg.grad(lambda x, w: np.sum(softmax(x) * w))
    mapped = rg.vmap(slope)(np.stack([x, 2 * x]), np.stack([w, w]))
    np.testing.assert_allclose(mapped, [slope(x, w), slope(2 * x, w)], rtol=1e-14, atol=1e-16)
    far = np.array([[0.0, -800.0, 800.0, 1.0]])
    with rg.config(exact=True):
        expected = slope(far, w[:1])
    np.testing.assert_array_equal(slope(far, w[:1]), expected)
    assert np.isnan(slope(np.array([[np.nan, 0.0, 1.0, 2.0]]), w[:1])).all()


def test_other_normalisations_keep_their_adjoint() -> None:
    x, w = normals((30, 20), (30, 20))
    for part in (lambda x: x / np.sum(x, axis=1, keepdims=True), lambda x: np.exp(x) / np.sum(x, axis=1)[:, None]):
        f = rg.grad(lambda x, w, part=part: np.sum(part(x) * w))
        with rg.config(exact=True):
            expected = f(x, w)
        np.testing.assert_allclose(f(x, w), expected, rtol=1e-11)


@pytest.mark.parametrize("n", [5, 300])  # sums by NumPy, and as products with ones
@pytest.mark.parametrize("turned", ["shift", "sum", "both"])
def test_sums_that_meet_another_axis_are_no_adjoint_of_a_softmax(n: int, turned: str) -> None:
    def f(x: Any, w: Any) -> Any:
        raised = np.exp(x)
        total = np.sum(raised, axis=1, keepdims=True)
        total = total if turned == "shift" else total.reshape(1, n)
        quotient, p = w / total, raised / total
        shift = np.sum(quotient * p, axis=1)
        return (quotient + (-shift.reshape(n, 1) if turned == "sum" else -shift)) * raised

    x, w = normals((n, n), (n, n))
    np.testing.assert_allclose(rg.jit(f)(x, w), f(x, w), rtol=1e-10, atol=1e-12)


def test_a_softmax_takes_two_arrays() -> None:
    x, w = normals((300, 500), (300, 500))
    assert measured(rg.value_and_grad(lambda x, w: np.sum(softmax(x) * w)), x, w) < 2.2 * x.nbytes


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_the_first_slice_of_a_gradient_is_written(dtype: str) -> None:
    x = np.linspace(-1, 1, 30).astype(dtype)
    f = rg.vjp(lambda x: (x[1:] * x[:-1])[:-1] * x[2:], x)[1]
    ct = np.linspace(1, 2, 28).astype(dtype)
    expected = np.zeros(30, dtype)
    expected[1:-1] += ct * x[:-2] * x[2:]
    expected[:-2] += ct * x[1:-1] * x[2:]
    expected[2:] += ct * x[1:-1] * x[:-2]
    np.testing.assert_allclose(f(ct)[0] if isinstance(f(ct), tuple) else f(ct), expected, rtol=1e-5, atol=1e-6)


def test_only_floats_are_written_and_exact_bits_stay() -> None:
    x = np.linspace(0.5, 1.0, 40)
    f = rg.grad(lambda x: np.sum(np.sin(x[1:]) * np.cos(x[:-1])))
    assert "setitem" in operations(f, x)
    with rg.config(exact=True):
        expected = f(x)
        assert "setitem" not in operations(f, x)
    np.testing.assert_allclose(f(x), expected, rtol=1e-14)
    rg.check_grads(lambda x: np.sum(np.sin(x[1:]) * np.cos(x[:-1])), (x,), order=2)
