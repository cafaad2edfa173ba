"""Columns and rows that are added to a product of matrices become terms of it: nearly the same sums."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.passes.sums_in_products import FEWEST, LARGEST, LEAST, SHARE, TERMS
from tests.support.blocks import agrees, normals, same_bits_in_all_ways, same_bits_on_threads, slopes

Program = Callable[..., Any]
FORMS: dict[str, Program] = {
    "c + r - 2 p": lambda x, y, c, r: c[:, None] + r - 2.0 * (x @ y.T),
    "-2 p + r + c": lambda x, y, c, r: -2.0 * (x @ y.T) + r + c[:, None],
    "c - p / 4 + r": lambda x, y, c, r: c[:, None] - x @ y.T / 4 + r[None, :],
    "r - (p - c)": lambda x, y, c, r: r - (x @ y.T - c[:, None]),
    "-(p + (c - r)) / 2 - c": lambda x, y, c, r: -0.5 * (x @ y.T + (c[:, None] - r)) - c[:, None],
    "p - (4 c + (r - c))": lambda x, y, c, r: x @ y.T - (4.0 * (c[:, None] + 0.0 * r) + (r - c[:, None])),
    "2 (p + c) - 8 r": lambda x, y, c, r: 2 * (x @ y.T + c[:, None]) - 8 * (c[:, None] + r),
}


def points(n: int, m: int, k: int, dtype: str = "f8") -> list[Any]:
    return normals((n, k), (m, k), (n,), (m,), dtype=dtype)


def walks(f: Any, *args: Any) -> int:
    """The sums and differences of whole matrices in the graph of a compiled function."""
    graph = f.at(*args).graph
    return sum(node.prim.name in ("add", "sub") and node.out.aval.size >= LEAST for node in graph.nodes)


def distances(x: Any, y: Any) -> Any:
    return np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1) - 2.0 * (x @ y.T)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("form", FORMS)
def test_sums_of_all_forms_agree_and_have_no_walk_of_their_own(form: str, dtype: str) -> None:
    args, eps = points(130, 140, 3, dtype), 1e-13 if dtype == "f8" else 1e-5
    f = rg.jit(FORMS[form])
    agrees(f, *args, eps=eps)
    assert not walks(f, *args)
    found = f(*args)
    assert found.dtype == dtype
    assert found.flags.c_contiguous

    def loss(x: Any, y: Any, c: Any, r: Any) -> Any:
        return np.sum(np.tanh(FORMS[form](x, y, c, r)) ** 2)

    agrees(slopes(4)(loss), *args, eps=1e-11 if dtype == "f8" else 1e-4)


@pytest.mark.parametrize(
    ("n", "m", "k", "joined"),
    [
        (128, LEAST // 128, 2, True),
        (128, LEAST // 128 - 1, 2, False),
        (LEAST // 64, 64, 2, True),
        (130, 130, TERMS.start - 1, False),
        (130, 130, TERMS.stop - 1, True),
        (130, 130, TERMS.stop, False),
        (2048, FEWEST, 2, True),
        (2048, FEWEST - 1, 2, False),
        (2048, 16, int(16 * SHARE) - 3, True),
        (2048, 16, int(16 * SHARE) - 1, False),
    ],
)
def test_large_products_of_few_terms_are_joined(n: int, m: int, k: int, joined: bool) -> None:
    x, y = normals((n, k), (m, k))
    f = rg.jit(distances)
    agrees(f, x, y)
    assert ("concatenate" in f.source(x, y)) == joined


def scaled(f: Any, *args: Any) -> set[tuple[int, ...]]:
    """The shapes of what a compiled function multiplies by numbers, or negates."""
    graph = f.at(*args).graph
    made = graph.producer
    numbers = (
        n
        for n in graph.nodes
        if n.prim.name == "mul" and any(made[v].prim.name == "const" for v in n.inputs if v in made)
    )
    return {node.out.aval.shape for node in (*numbers, *(n for n in graph.nodes if n.prim.name == "neg"))}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_powers_of_two_go_to_the_smaller_factor(dtype: str) -> None:
    few, many = 64, LEAST // 64
    for x, y in (normals((few, 8), (8, many), dtype=dtype), normals((3, many, 8), (3, 8, few), dtype=dtype)):
        smaller = min(x.shape, y.shape, key=np.prod)
        for program in (lambda x, y: 0.25 * (x @ y), lambda x, y: -(x @ y) / 2, lambda x, y: -(-(x @ y) * 8.0)):
            f = rg.jit(lambda x, y, program=program: np.cos(program(x, y)))
            np.testing.assert_array_equal(f(x, y), np.cos(program(x, y)))
            assert scaled(f, x, y) == {smaller}

    def loss(q: Any, k: Any) -> Any:
        return np.sum(np.tanh(0.125 * (q @ np.swapaxes(k, 1, 2))))

    agrees(slopes(2)(loss), *normals((4, 128, 8), (4, 128, 8), dtype=dtype), eps=1e-12 if dtype == "f8" else 1e-5)


def test_numbers_stay_where_that_is_no_less_work() -> None:
    x, y = normals((128, 64), (64, LEAST // 128))
    stays: list[tuple[Program, Any, Any]] = [
        (lambda x, y: 0.25 * (x @ y), x, y[:, :-1]),  # small
        (lambda x, y: 0.3 * (x @ y), x, y),
        (lambda x, y: 0.25 * (x @ y), *normals((128, 128), (128, 128))),  # factors as large as their product
    ]
    for program, one, other in stays:
        f = rg.jit(lambda x, y, program=program: np.cos(program(x, y)))
        agrees(f, one, other)
        assert scaled(f, one, other) == {(one @ other).shape}

    def twice(x: Any, y: Any) -> Any:
        product = x @ y
        return np.sum(np.exp(0.25 * product) + product)

    assert scaled(rg.jit(twice), x, y) == {(x @ y).shape}


def test_what_others_read_and_what_is_no_row_or_column_stays() -> None:
    x, y, c, r = points(130, 140, 3)

    def shown(x: Any, y: Any, c: Any, r: Any) -> Any:
        product = x @ y.T
        return product, product + c[:, None] + r

    def halfway(x: Any, y: Any, c: Any, r: Any) -> Any:
        partial = x @ y.T + c[:, None]
        return np.sum(np.exp(partial + r)), np.sum(np.cos(partial))

    others: list[Program] = [
        shown,
        halfway,
        lambda x, y, c, r: x @ y.T + c[:, None],
        lambda x, y, c, r: r - x @ y.T,
        lambda x, y, c, r: (x @ y.T) * 3.0 + c[:, None] + r,
        lambda x, y, c, r: (x @ y.T) * c[:, None] + c[:, None] + r,
        lambda x, y, c, r: (x @ y.T) * (2 * LARGEST) + c[:, None] + r,
        lambda x, y, c, r: np.sin(c[:, None] + r) - x @ y.T,
    ]
    for program in others:
        f = rg.jit(program)
        agrees(f, x, y, c, r)
        assert "concatenate" not in f.source(x, y, c, r)

    def with_more(x: Any, y: Any, c: Any, r: Any) -> Any:
        return np.sum(np.sqrt((x @ y.T + c[:, None] + r) ** 2 + 1e-300) * 3.0)

    f = rg.jit(with_more)
    agrees(f, x, y, c, r)
    assert walks(f, x, y, c, r) == 1


def test_a_number_beside_the_sum_stays_outside_so_that_it_is_not_rounded_away() -> None:
    x = np.arange(130.0).reshape(-1, 1) % 7.0
    x = np.concatenate((x, -x), axis=1)
    f = rg.jit(lambda x: np.sqrt(distances(x, x) + 1e-300))
    assert "concatenate" in f.source(x)
    np.testing.assert_array_equal(f(x), f.__wrapped__(x))
    assert np.min(f(x)) > 0.0


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_points_on_a_grid_and_numbers_on_a_line_have_distances_of_zero_from_themselves(scale: float) -> None:
    grid = scale * np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    line = np.linspace(0.0, 1.0, 150)[:, None]
    f = rg.jit(lambda x: np.sqrt(distances(x, x) / 3.0))
    for x in (grid, line):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = f(x)
        np.testing.assert_array_equal(np.diag(found), 0.0)
        np.testing.assert_allclose(found, f.__wrapped__(x), rtol=1e-12, atol=1e-12)


def test_infinities_and_nan_meet_what_they_met() -> None:
    x, y, c, r = points(130, 140, 3)
    x[3, 1], y[5, 0], c[7], r[9], x[11, 0], c[11] = np.inf, np.nan, -np.inf, np.inf, np.inf, -np.inf
    for form in FORMS.values():
        f = rg.jit(form)
        with np.errstate(all="ignore"):
            found, expected = f(x, y, c, r), form(x, y, c, r)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))
        np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))


def test_kernels_have_the_same_bits_on_all_threads_and_within_budgets() -> None:
    def form(x: Any, length: Any, y: Any) -> Any:
        return y @ np.exp(-0.5 * distances(x, x) / length**2) @ y

    for n in (130, 600, 900):
        x, y = normals((n, 4), (n,))
        args = [x, np.float64(1.3), y]
        same_bits_in_all_ways(form, args)
        agrees(slopes(3)(form), *args, eps=1e-11)
    same_bits_on_threads(
        slopes(2)(lambda x, y: np.sum(np.log1p(np.maximum(distances(x, y), 0.0)))), normals((700, 2), (900, 2))
    )


def test_second_derivatives_batches_and_loops_agree() -> None:
    def loss(x: Any, y: Any) -> Any:
        return np.sum(np.exp(-0.5 * distances(x, y)))

    x, y = normals((130, 2), (128, 2))
    rng = np.random.default_rng(1)
    v = rng.standard_normal(x.shape)
    agrees(rg.grad(lambda x, y: np.sum(v * rg.grad(loss)(x, y))), x, y, eps=1e-10)
    agrees(rg.vmap(rg.grad(loss), in_axes=(0, None)), rng.standard_normal((3, *x.shape)), y, eps=1e-11)

    def steps(x: Any, y: Any) -> Any:
        return np.sum(rg.fori_loop(0, 3, lambda i, x: x - 0.01 * rg.grad(loss)(x, y), x) ** 2)

    f = rg.value_and_grad(steps)
    agrees(f, x, y, eps=1e-11)
    assert "concatenate" in f.source(x, y)


def random_sum(rng: np.random.Generator) -> Program:
    """A random sum of products, columns, rows, whole matrices, numbers and sums, multiplied and negated at random."""

    def tree(depth: int) -> Program:
        kind, a = int(rng.integers(9 if depth else 5)), float(rng.choice([2.0, -0.5, 0.25, 3.0, 1.0]))
        if kind > 4:
            one, other = tree(depth - 1), tree(depth - 1)
            if kind == 5:
                return lambda *args: a * one(*args)
            if kind == 6:
                return lambda *args: -one(*args)
            return (lambda *args: one(*args) + other(*args)) if kind == 7 else (lambda *args: one(*args) - other(*args))
        leaves: list[Program] = [
            lambda x, y, c, r: x @ y.T,
            lambda x, y, c, r: c[:, None] + 0.0 * r,
            lambda x, y, c, r: r[None, :] * np.ones((len(c), 1)),
            lambda x, y, c, r: c[:, None] * a + r,
            lambda x, y, c, r: np.sin(c)[:, None] * r + a,
        ]
        return leaves[kind]

    return tree(5)


@pytest.mark.parametrize("seed", range(40))
def test_random_sums_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrograd.passes.sums_in_products.LEAST", 64)
    rng = np.random.default_rng(seed)
    program, args = random_sum(rng), points(40, 30, 2)
    expected = np.broadcast_to(program(*args), (40, 30))
    size = 1e-13 * (1.0 + float(np.max(np.abs(expected)))) * 2.0**8

    def loss(*args: Any) -> Any:
        found = np.sin(program(*args) * 1e-2)
        return np.sum(found) + np.sum(found[3])

    np.testing.assert_allclose(np.broadcast_to(rg.jit(program)(*args), (40, 30)), expected, rtol=0, atol=size)
    agrees(slopes(4)(loss), *args, eps=1e-11)
