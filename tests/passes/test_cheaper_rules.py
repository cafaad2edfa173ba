"""Powers as products, and log(1 + eˣ) in operations that NumPy vectorises: NumPy's values, special ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.cheaper_rules import FEWEST, LONGEST_ROW, MOST_BY_BLAS, MOST_WRITES, POWERS, SHORTEST_ROW

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, np.nan, 1e-160, -1e-160, 1e160, -1e160, 5e-324, 1e308, 0.3, -0.7]


def values(n: int, dtype: str, *special: float) -> Any:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n)
    x[: len(special)] = special
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def operations(graph: Any) -> set[str]:
    return {node.prim.name for node in graph.nodes}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("exponent", [*POWERS, 2.5])
@pytest.mark.parametrize("n", [FEWEST - 1, FEWEST, FEWEST + 1, 5000])
def test_powers(n: int, exponent: float, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = values(n, dtype, *SPECIAL)
        x[x == -np.inf] = np.nan  # see below
        expected = x**exponent
        f = rg.jit(lambda x: x**exponent)
        found = f(x)
        with rg.config(exact=True):
            np.testing.assert_array_equal(f(x), expected)
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps, atol=2 * tiny)
    assert ("np.power" in f.at(x).source or "**" in f.at(x).source) == (n < FEWEST or exponent not in POWERS)


def test_half_powers_of_minus_infinity_are_nan_as_their_derivatives() -> None:
    x = np.full(FEWEST, -np.inf)
    with np.errstate(all="ignore"):
        value, gradient = rg.value_and_grad(lambda x: np.sum(x**1.5))(x)
    assert np.isnan(value)
    assert np.isnan(gradient).all()


def test_powers_of_integers_and_complex_numbers_stay() -> None:
    whole = np.arange(1, 2 * FEWEST)
    np.testing.assert_array_equal(rg.jit(lambda x: x**3)(whole), whole**3)
    z = whole * (1 + 2j)
    np.testing.assert_array_equal(rg.jit(lambda z: z**3)(z), z**3)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [FEWEST - 1, FEWEST, 5000])
def test_softplus(n: int, dtype: str) -> None:
    x = values(n, dtype, *SPECIAL, -np.inf, 800.0, -800.0, 40.0, -40.0)
    f, g = rg.jit(lambda x: np.logaddexp(0, x)), rg.jit(lambda x: np.logaddexp(x, 0.0))
    with np.errstate(all="ignore"):
        expected = np.logaddexp(np.zeros((), dtype), x)
        for found in (f(x), g(x)):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)
    assert ("logaddexp" in f.at(x).source) == (n < FEWEST)
    slope = rg.grad(lambda x: np.sum(np.logaddexp(0, x)))
    calm = values(n, "f8").clip(-30, 30)
    np.testing.assert_allclose(slope(calm), 1 / (1 + np.exp(-calm)), rtol=1e-13)


def test_what_is_added_to_zeros_through_further_axes_is_moved() -> None:
    x = np.random.default_rng(0).normal(size=(6, 7))
    f = rg.grad(lambda x: np.sum(np.sin(x[:, None, :]) ** 2))
    np.testing.assert_allclose(f(x), np.sin(2 * x))
    assert "zeros" not in f.at(x).source
    g = rg.grad(lambda x: np.sum(np.sin(x[:, None, 1:]) ** 2))  # a part of the axes: zeros elsewhere
    np.testing.assert_allclose(g(x)[:, 1:], np.sin(2 * x[:, 1:]))
    np.testing.assert_array_equal(g(x)[:, 0], 0)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("n", [SHORTEST_ROW - 1, SHORTEST_ROW, 100, LONGEST_ROW, LONGEST_ROW + 1])
def test_sums_of_products_of_rows(n: int, keepdims: bool, dtype: str) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=(40, n)).astype(dtype) for _ in range(2))
    f = rg.jit(lambda x, y: np.sum(x * y, axis=1, keepdims=keepdims))
    g = rg.jit(lambda x: np.sum(x**2, axis=-1, keepdims=keepdims))
    terms = np.abs(x * y).sum(axis=1, dtype="f8", keepdims=keepdims)
    exact = np.sum(x.astype("f8") * y, axis=1, keepdims=keepdims)
    assert f(x, y).shape == exact.shape
    assert (np.abs(f(x, y) - exact) <= 8 * np.finfo(dtype).eps * terms).all()
    np.testing.assert_allclose(
        g(x), np.sum(x.astype("f8") ** 2, axis=1, keepdims=keepdims), rtol=8 * np.finfo(dtype).eps
    )
    for source in (f.at(x, y).source, g.at(x).source):
        assert ("vecdot" in source) == (SHORTEST_ROW <= n <= LONGEST_ROW)
    with rg.config(exact=True):
        np.testing.assert_array_equal(f(x, y), np.sum(x * y, axis=1, keepdims=keepdims))
    rg.check_grads(
        lambda x, y: np.sum(np.sum(x * y, axis=1) ** 2), (x[:12, :20].astype("f8"), y[:12, :20].astype("f8"))
    )


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [SHORTEST_ROW - 1, SHORTEST_ROW, 100, LONGEST_ROW, LONGEST_ROW + 1])
def test_sums_of_products_with_one_row_are_a_product_with_it(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    x, stack, row = (rng.normal(size=shape).astype(dtype) for shape in ((40, n), (3, 40, n), n))
    for program, other in (
        (lambda x, r: np.sum(x * r, axis=1), x),
        (lambda x, r: np.sum(r[None] * x, axis=-1, keepdims=True), x),
        (lambda x, r: np.sum(r * x, axis=-1), stack),
    ):
        f = rg.jit(program)
        found, exact = f(other, row), program(other.astype("f8"), row.astype("f8"))
        terms = program(np.abs(other.astype("f8")), np.abs(row.astype("f8")))
        assert found.shape == exact.shape
        assert found.dtype == dtype
        assert (np.abs(found - exact) <= 8 * np.finfo(dtype).eps * terms).all()
        expected = "vecdot(" if other.ndim > 2 else " @ "
        assert (expected in f.at(other, row).source) == (SHORTEST_ROW <= n <= LONGEST_ROW)

    def rows_of_a_stack(x: Any, rows: Any) -> Any:
        return np.sum(x * rows[:, None, :], axis=-1)  # not one row for all

    f = rg.jit(rows_of_a_stack)
    np.testing.assert_allclose(f(stack, x[:3]), rows_of_a_stack(stack, x[:3]), rtol=1e-4, atol=1e-4)
    assert " @ " not in f.at(stack, x[:3]).source


def test_all_of_zeros_to_which_something_is_added_is_that() -> None:
    x = np.random.default_rng(0).normal(size=(1, 30))
    f = rg.grad(lambda x: np.sum(np.sin(x[0]) ** 2) + np.sum(np.cos(x[-1, :])))
    np.testing.assert_allclose(f(x), np.sin(2 * x) - np.sin(x), rtol=1e-13, atol=1e-13)
    assert "zeros" not in f.at(x).source
    backwards = rg.grad(lambda x: np.sum(np.sin(x[0, ::-1]) * np.arange(30.0)))
    np.testing.assert_allclose(backwards(x), np.cos(x) * np.arange(30.0)[::-1])


def test_sums_of_other_products_stay() -> None:
    x = np.arange(6000.0).reshape(60, 100)
    for f, args in (
        (rg.jit(lambda x: np.sum(x * x, axis=0)), (x,)),
        (rg.jit(lambda x: np.sum(x * 3.0, axis=1)), (x,)),
        (rg.jit(lambda x: np.sum(x * x)), (x[:, :60],)),
        (rg.jit(lambda x: np.sum(x * x, axis=1)), (x.astype(int),)),
        (rg.jit(lambda x: np.sum(x * x, axis=1)), (x * 1j,)),
    ):
        np.testing.assert_allclose(f(*args), f.__wrapped__(*args), rtol=1e-14)
        assert "vecdot" not in f.at(*args).source


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    "shape", [(1, 5), (5, 1), (2, 2), (3, 70), (70, 3), (100, 39), (512, 511), (512, 512)], ids=str
)
def test_a_column_times_a_row(shape: tuple[int, int], dtype: str) -> None:
    column, row = (values(n, dtype, *SPECIAL[: n - 1]) for n in shape)
    functions = (
        lambda c, r: c[:, None] * r,
        lambda c, r: r[None] * c[:, None],
        lambda c, r: np.outer(c[::-1], r[::-1]),
    )
    for f in functions:
        compiled = rg.jit(f)
        with np.errstate(all="ignore"):
            expected = f(column, row)
            np.testing.assert_array_equal(compiled(column, row), expected)
            with rg.config(exact=True):
                exact = compiled(column, row)
        np.testing.assert_array_equal(np.signbit(exact), np.signbit(expected))
        small = min(shape) > 1 and shape[0] * shape[1] < MOST_BY_BLAS
        assert ("np.dot" in compiled.at(column, row).source) == small


def parts_of(n: int, width: int, order: Any) -> Any:
    """A function of ``n`` parts in this order, each of which meets another function."""

    def f(x: Any) -> Any:
        return sum(np.sum(np.sin(x[:, k * width : (k + 1) * width]) ** (k + 1)) for k in order(range(n)))

    return f


@pytest.mark.parametrize("order", [list, reversed])
@pytest.mark.parametrize("n", [2, 3, MOST_WRITES, MOST_WRITES + 3])
def test_cotangents_of_parts_are_written_where_nothing_else_is(n: int, order: Any) -> None:
    f, x = parts_of(n, 2, order), values(6 * n, "f8", 0.0, -0.0).reshape(3, -1)
    gradient = rg.grad(f)
    assert gradient.source(x).count("+=") == max(n - MOST_WRITES, 0)
    with rg.config(exact=True):
        expected = gradient(x)
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-14)
    np.testing.assert_array_equal(rg.vmap(gradient)(np.stack([x, 2 * x]))[1], gradient(2 * x))
    rg.check_grads(f, (0.3 * x,), order=2)


def test_cotangents_of_parts_that_overlap_are_added() -> None:
    def f(x: Any, m: Any) -> Any:
        return np.sum(x[:4] ** 2) * np.sum(x[3:] ** 3) + np.sum(m[0] * m[:, 1]) + x[1] * x[-4]

    x, m = values(7, "f8"), values(9, "f8").reshape(3, 3)
    found = rg.grad(f, argnums=(0, 1))(x, m)
    with rg.config(exact=True):
        expected = rg.grad(f, argnums=(0, 1))(x, m)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    rg.check_grads(f, (x / 10, m))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (2, 1, 3, 1), (1, 0), (2, 5)])
def test_sums_of_one_element(shape: tuple[int, ...], dtype: str) -> None:
    x = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
    for axis in (0, 1, (0, 1), -1, None):
        for keepdims in (False, True):
            f = rg.jit(lambda x, axis=axis, keep=keepdims: np.sum(x, axis=axis, keepdims=keep))
            found, expected = f(x), np.sum(x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            assert not np.shares_memory(found, x)
    if shape == (1, 5) and dtype != "i8":
        special = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0]]).astype(dtype)
        np.testing.assert_array_equal(rg.jit(lambda x: np.sum(x, axis=0))(special), special[0])
        assert "reduce" not in rg.jit(lambda x: np.sum(x, axis=0)).source(x)
        with rg.config(exact=True):
            assert "reduce" in rg.jit(lambda x: np.sum(x, axis=0)).source(x)


@pytest.mark.parametrize(
    ("shape", "axes", "kept"), [((1, 6), (1, 0), True), ((2, 1, 3), (1, 0, 2), True), ((2, 3), (1, 0), False)]
)
def test_a_reshape_of_axes_of_one_element_needs_no_order(shape: tuple[int, ...], axes: Any, kept: bool) -> None:
    x = np.arange(6.0).reshape(shape)
    f = rg.jit(lambda x: np.transpose(x, axes).reshape(6) * 2.0)
    np.testing.assert_array_equal(f(x), np.transpose(x, axes).reshape(6) * 2.0)
    np.testing.assert_array_equal(f(np.asfortranarray(x)), np.transpose(x, axes).reshape(6) * 2.0)
    assert ("permute" not in operations(f.at(x).graph)) == kept


READS: dict[str, Any] = {
    "ellipsis": lambda a: a[...],
    "new axis": lambda a: a[None],
    "ellipsis and new axis": lambda a: a[..., None],
    "bool": lambda a: a[True],
    "flat": lambda a: a.flat[0],
}
OTHERS: dict[str, Any] = {
    "array": lambda a: np.sum(a * np.ones(3)),
    "number": lambda a: a * 1.5,
    "function": lambda a: np.sin(a) * a,
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("read", READS)
def test_cotangents_of_an_array_without_axes_that_is_read_by_index(read: str, other: str) -> None:
    def f(a: Any) -> Any:
        return OTHERS[other](a) + np.sum(READS[read](a)) + OTHERS[other](a)

    a = np.array(2.0)
    expected = rg.jvp(f, (a,), (np.array(1.0),))[1]
    np.testing.assert_allclose(rg.grad(f)(a), expected, rtol=1e-14)
    np.testing.assert_allclose(rg.vmap(rg.grad(f))(np.stack([a, a])), [expected, expected], rtol=1e-14)
