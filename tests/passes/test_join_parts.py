"""Equal operations on neighbouring parts become one: values keep their bits, and missing cotangents stay missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.evaluate import evaluate
from retrograd.ir.rewrite import walk
from retrograd.passes.join_parts import LARGEST, SHORTEST, join_parts
from tests.support.derivatives import checked_gradient

STEPS, BATCH, SIZE = 6, 3, 5


def cell(h: Any, c: Any, x: Any, w: Any, r: Any) -> tuple[Any, Any]:
    gates = x @ w + h @ r
    i, f, o = (1.0 / (1.0 + np.exp(-gates[:, k * SIZE : (k + 1) * SIZE])) for k in range(3))
    c = f * c + i * np.tanh(gates[:, 3 * SIZE :])
    return o * np.tanh(c), c


def lstm(w: Any, r: Any, xs: Any) -> Any:
    zeros = np.zeros(xs.shape[1:], xs.dtype)
    (h, _), _ = rg.scan(lambda s, x: (cell(*s, x, w, r), None), (zeros, zeros), xs)
    return np.sum(np.abs(h) ** 2)


def in_python(w: Any, r: Any, xs: Any) -> Any:
    h = c = np.zeros(xs.shape[1:], xs.dtype)
    for x in xs:
        h, c = cell(h, c, x, w, r)
    return np.sum(np.abs(h) ** 2)


def first_axis(w: Any, r: Any, xs: Any) -> Any:
    """Parts of different lengths along the first axis, numbers from outside, and a product of two rows."""
    x, y, s = xs.reshape(-1, SIZE), 0.5 * xs.reshape(-1, SIZE) + 1.0, w[0, 0]
    parts = [np.exp(x[a:b]) * y[a:b] * s + 1.0 for a, b in ((0, 4), (4, 9), (9, 15))]
    return sum(np.sum(np.abs(p @ r) ** (k + 1)) for k, p in enumerate(parts))


def one_of_the_parts_goes_on(w: Any, r: Any, xs: Any) -> Any:
    """Two of three rows have a further operation."""
    x = xs.reshape(-1, SIZE)
    a, b, c = np.sin(x[0:4]), np.sin(x[4:8]), np.sin(x[8:12])
    return np.sum(np.exp(b) @ r + np.exp(c) @ w) + np.sum(a * b)


PROGRAMS = [lstm, in_python, first_axis, one_of_the_parts_goes_on]


def inputs(dtype: str = "f8") -> tuple[Any, ...]:
    rng = np.random.default_rng(5)
    shapes = (SIZE, 4 * SIZE), (SIZE, 4 * SIZE), (STEPS, BATCH, SIZE)
    return tuple((0.4 * rng.standard_normal(shape)).astype(dtype) for shape in shapes)


def counted(graph: Any) -> Counter[str]:
    return Counter(node.prim.name for node in walk(graph))


@pytest.fixture(params=PROGRAMS, ids=lambda f: f.__name__)
def program(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_values_have_the_same_bits(program: Callable[..., Any], dtype: str) -> None:
    args = inputs(dtype)
    args[2][0, 0] = [-0.0, np.inf, np.nan, 0.0, -np.inf]
    with np.errstate(all="ignore"):
        graph = rg.trace(program)(*args)
        joined = join_parts(graph)
        assert counted(joined).total() - counted(joined)["getitem"] < counted(graph).total() - counted(graph)["getitem"]
        for a, b in zip(evaluate(joined, args), evaluate(graph, args), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(np.real(a)), np.signbit(np.real(b)))


def test_derivatives(program: Callable[..., Any]) -> None:
    checked_gradient(program, inputs())


def test_a_cell_has_one_sigmoid_forth_and_back() -> None:
    args = inputs()
    names = counted(rg.grad(lstm, argnums=(0, 1)).at(*args).graph)
    assert names["exp"] == 1  # the adjoint gets it from the step, as the tangent of the candidate
    assert names["tanh"] == 3
    with rg.config(exact=True):
        assert counted(rg.grad(lstm, argnums=(0, 1)).at(*args).graph)["exp"] == 6


@pytest.mark.parametrize("plan", [rg.Snapshots(1), rg.Log(), rg.Periodic(2), rg.Tiered(1, 2)])
def test_a_plan_for_memory_changes_no_bit(plan: Any) -> None:
    def planned(w: Any, r: Any, xs: Any) -> Any:
        zeros = np.zeros(xs.shape[1:])
        (h, _), _ = rg.scan(lambda s, x: (cell(*s, x, w, r), None), (zeros, zeros), xs, memory=plan)
        return np.sum(np.abs(h) ** 2)

    for a, b in zip(rg.grad(planned, (0, 1, 2))(*inputs()), rg.grad(lstm, (0, 1, 2))(*inputs()), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_budget_is_kept() -> None:
    args = inputs()
    gradient = rg.grad(lstm, (0, 1, 2))
    with pytest.raises(rg.errors.MemoryBudgetError) as raised:
        rg.grad(lstm, (0, 1, 2), memory=1)(*args)
    within = rg.grad(lstm, (0, 1, 2), memory=raised.value.minimum)
    for a, b in zip(within(*args), gradient(*args), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_part_without_a_cotangent_gets_no_nan() -> None:
    """The slope of the logarithm at 0 is infinite, and the part that is 0 serves a result or a choice alone."""
    x = np.concatenate([np.ones(SHORTEST), np.zeros(SHORTEST)])

    def beside(x: Any) -> Any:
        a, b = np.log(x[:SHORTEST] + 0.0), np.log(x[SHORTEST:] + 0.0)
        return np.sum(a * 2.0), b * 2.0

    def chosen(x: Any) -> Any:
        a, b = np.sqrt(x[:SHORTEST]), np.sqrt(x[SHORTEST:])
        return np.sum(np.where(b > 1.0, a, 2.0 * a))

    def in_a_loop(x: Any) -> Any:
        def step(h: Any, t: Any) -> Any:
            a, b = np.log(h[:SHORTEST] + 0.0), np.log(h[SHORTEST:] + 0.0)
            return h + t, (a * 2.0, b * 2.0)

        _, (rows, others) = rg.scan(step, x, np.zeros(2))
        return np.sum(rows), others

    half = np.concatenate([np.ones(SHORTEST), np.zeros(SHORTEST)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rg.grad(beside, has_aux=True)(x)[0], 2.0 * half)
        np.testing.assert_array_equal(rg.grad(chosen)(x), half)
        np.testing.assert_array_equal(rg.grad(in_a_loop, has_aux=True)(x)[0], 4.0 * half)


@pytest.mark.parametrize(("n", "joined"), [(SHORTEST - 1, False), (SHORTEST, True)])
def test_short_vectors_stay_apart(n: int, joined: bool) -> None:
    graph = rg.trace(lambda x: np.sum(np.sin(x[:n]) * np.sin(x[n:])))(np.ones(2 * n))
    assert (counted(join_parts(graph))["sin"] == 1) == joined


@pytest.mark.parametrize(("n", "joined"), [(LARGEST // 16, True), (LARGEST // 16 + 1, False)])
def test_large_arrays_stay_apart(n: int, joined: bool) -> None:
    x = np.linspace(0.0, 1.0, 2 * n)

    def f(x: Any) -> Any:
        return np.sum(np.sin(x[:n]) * np.sin(x[n:]))

    assert (counted(join_parts(rg.trace(f)(x)))["sin"] == 1) == joined
    expected = np.cos(x) * np.concatenate([np.sin(x[n:]), np.sin(x[:n])])
    np.testing.assert_allclose(rg.grad(f)(x), expected, rtol=1e-12, atol=1e-14)


def test_nothing_moves_past_an_effect() -> None:
    def f(x: Any) -> Any:
        a = np.log(x[:SHORTEST])
        if x[-1] < 0.0:
            a = 2.0 * a
        return np.sum(a * np.log(x[SHORTEST:]))

    graph = rg.trace(f)(np.ones(2 * SHORTEST))
    assert counted(graph)["guard"] == 1
    assert counted(join_parts(graph))["log"] == 2


def test_in_c_each_gate_has_its_own_exponentials_which_the_adjoint_gets() -> None:
    with rg.config(backend="native"):
        names = counted(rg.grad(lstm, argnums=(0, 1)).at(*inputs()).graph)
    assert (names["exp"], names["tanh"]) == (3, 3)
