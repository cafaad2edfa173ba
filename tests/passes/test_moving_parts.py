"""Loops over formulas on slices that move and grow fold, and compute what the unrolled programs compute."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import numpy as np
import pytest

import retrograd as rg
from retrograd.compiler.rolled import rolled_from
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.target import TARGETS
from retrograd.ir.types import Aval
from retrograd.ops.batching import elementwise
from retrograd.ops.formula_text import batched, derived, formula_of, turned
from tests.support.growing import again, arguments, compare, functions, leaves, loops, short_loops_fold
from tests.support.native import in_a_hurry, needs_compiler

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
SIZES = (0, 1, 2, 7, 8, 9, 10, 33, 130)


def lu(m, b, x):
    a = m.copy()
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def lu_with_axes(m, b, x):
    a = m.copy()
    for k in range(len(a) - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, k + 1 :]
    return a


def cholesky(m, b, x):
    a = 0.1 * m @ m.T + (2.0 * np.eye(len(b))).astype(m.dtype)
    for k in range(len(a)):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])
    return np.tril(a)


def cholesky_by_sums(m, b, x):
    a = 0.1 * m @ m.T + (2.0 * np.eye(len(b))).astype(m.dtype)
    lower = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i):
            lower[i, j] = (a[i, j] - np.sum(lower[i, :j] * lower[j, :j])) / lower[j, j]
        lower[i, i] = np.sqrt(a[i, i] - np.sum(lower[i, :i] ** 2))
    return lower


def forward_for_many(m, b, x):
    sides = np.stack([b, x, b * x], 1)
    y = np.full_like(sides, np.nan)  # what is not yet written is in no product
    for i in range(len(b)):
        y[i] = (sides[i] - m[i, :i] @ y[:i]) / m[i, i]
    return y


def backward_for_many(m, b, x):
    sides = np.stack([b, x], 1)
    y, n = np.full_like(sides, np.inf), len(b)
    for i in range(n - 1, -1, -1):
        y[i] = (sides[i] - m[i, i + 1 :] @ y[i + 1 :]) / m[i, i]
    return y


def forward_by_sums(m, b, x):
    y = np.full_like(b, np.nan)
    for i in range(len(b)):
        y[i] = (b[i] - np.sum(m[i, :i] * y[:i])) / m[i, i]
    return y


def means_and_extrema(m, b, x):
    y = np.zeros_like(b)
    for i in range(1, len(b)):
        y[i] = np.mean(x[:i]) * np.max(b[:i]) + np.min(m[i, i:]) - 0.01 * np.sum(x[i:] ** 2)
    return y


def rewritten(m, b, x):
    y = b.copy()
    for i in range(len(b)):
        y[:i] = np.sin(y[:i]) * x[i] + np.where(x[:i] > 0.0, x[:i], 0.5) * y[i]
        y[i:] += np.exp(-np.abs(x[i:] * y[i:])) - 1.5
    return y


def limited(m, b, x):
    y = b.copy()
    for i in range(len(b)):
        y[i:] = np.maximum(y[i:], 0.1) * (0.5 * x[i:]) - np.minimum(y[i:], x[i]) / (3.0 + y[i] ** 2)
    return y


def by_matrices(m, b, x):
    y = np.zeros_like(b)
    for i in range(len(b)):
        y[i:] += m[i:, :i] @ x[:i] - 0.5 * m[i:, i]
    return y


def gauss(m, b, x):
    a, y = m.copy(), b.copy()
    for k in range(len(a) - 1):
        f = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= f[:, None] * a[k, k:]
        y[k + 1 :] -= f * y[k]
    return np.sum(a * x, axis=1) + y


def gram_schmidt(m, b, x):
    a, s = m.copy(), 0.0
    for k in range(len(a)):
        r = np.sqrt(np.sum(a[:, k] ** 2))
        q = a[:, k] / r
        s = s + np.log(r)
        a[:, k] = q
        a[:, k + 1 :] -= np.outer(q, q @ a[:, k + 1 :])
    return a * s


def covariances(m, b, x):
    c = np.eye(len(b), dtype=m.dtype)
    for i in range(len(b)):
        c[i:, i] = c[i, i:] = m[:, i] @ m[:, i:]
    return c


PROGRAMS = [
    lu,
    gauss,
    gram_schmidt,
    covariances,
    lu_with_axes,
    cholesky,
    cholesky_by_sums,
    forward_for_many,
    backward_for_many,
    forward_by_sums,
    means_and_extrema,
    rewritten,
    limited,
    by_matrices,
]


@pytest.fixture(autouse=True)
def _short_loops_fold():
    with short_loops_fold():
        yield


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_moving_parts_fold(program):
    args = arguments(33, "d")
    assert loops(program, args) == (25 if program is cholesky_by_sums else 1)
    with rolled_from(10**9):
        assert loops(functions(program)["value"], args) == 0


def arguments_for(program, n, dtype):
    return arguments(min(n, 33) if program is cholesky_by_sums else n, dtype)


@pytest.mark.parametrize(("program", "n", "dtype"), [*product(PROGRAMS, SIZES, "df")])
def test_the_loop_computes_what_the_unrolled_program_computes(program, n, dtype):
    compare(program, arguments_for(program, n, dtype), same_bits=False)


@pytest.mark.parametrize(("program", "n", "dtype"), [*product(PROGRAMS, SIZES, "df")])
def test_the_loop_has_the_bits_of_numpy(program, n, dtype):
    args = arguments_for(program, n, dtype)
    with np.errstate(all="ignore"), rg.config(exact=True):
        np.testing.assert_array_equal(functions(program)["value"](*args), program(*args))


def total(m, b, x):
    return np.sum(np.sin(lu(m, b, x)) * b)


def test_a_plan_of_memory_keeps_the_bits():
    def loss(m, b, x):
        return np.sum(np.sin(rewritten(m, b, x)))

    args = arguments(64, "d")
    plain = rg.grad(loss, argnums=1)(*args)
    for memory in (20_000, 50_000):
        thrifty = rg.grad(loss, argnums=1, memory=memory)
        assert "sweep" in str(thrifty.graph(*args))
        np.testing.assert_array_equal(thrifty(*args), plain)


def test_formulas_compute_all_lanes_at_once():
    args = [np.stack([a, 0.9 * a, 1.1 * a]) for a in arguments(33, "d")]
    for program in (lu, cholesky, forward_for_many, by_matrices):
        source = rg.vmap(program).source(*args)
        assert "range(3)" not in source
        want = np.stack([program(*lane) for lane in zip(*args, strict=True)])
        np.testing.assert_allclose(rg.vmap(program)(*args), want, rtol=1e-13, atol=1e-13)


ELEMENTWISE = sorted(
    name
    for name, prim in REGISTRY.items()
    if prim.batch is elementwise and prim.numpy.ufunc.startswith("np.") and prim.derivative(0) is not None
)


def assert_closed(text: str, operands: int, order: int) -> None:
    """Derivatives up to an order, and their transposes and batches, are formulas."""
    avals, windows = (Aval((20,), np.dtype(float)),) * operands, (("a",),) * operands
    for i, nan_safe in product(range(operands if order else 0), (False, True)):
        tangent, others = derived(text, avals, windows, i, nan_safe)
        if tangent:
            n = 1 + len(others)
            formula_of(tangent, avals[:1] * n, windows[:1] * n)
            assert batched(tangent, avals[:1] * n, windows[:1] * n, (True,) * n, 3)
            turned(tangent, avals[:1] * n, windows[:1] * n)
            assert_closed(tangent, n, order - 1)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_derivatives_of_formulas_are_formulas(name):
    operands = 1 + ("{1}" in str(REGISTRY[name].numpy.op or REGISTRY[name].numpy.code))
    text = f"{name}({', '.join(f'x{k}' for k in range(operands))})"
    assert_closed(text, operands, 3)


def test_rows_by_static_pointers_fold_and_those_by_arguments_are_decisions():
    def rows(data, pointers, places, x):
        y = np.zeros(len(pointers) - 1)
        for i in range(len(y)):
            row = slice(pointers[i], pointers[i + 1])
            y[i] = data[row] @ x[places[row]]
        return y

    pointers, places = np.cumsum([0, *(np.arange(12) * 7 % 5 + 1)]), np.arange(40) * 7 % 12
    data, x = np.cos(np.arange(40.0)), np.sin(np.arange(12.0))
    other = pointers + (np.arange(13) == 5)
    static, traced = rg.jit(rows), rg.jit(rows)
    assert str(static.graph(data, tuple(pointers.tolist()), places, x)).count("scan") == 1
    assert "scan" not in str(traced.graph(data, pointers, places, x))
    for each in (pointers, other):
        want = rows(data, each, places, x)
        np.testing.assert_array_equal(static(data, tuple(each.tolist()), places, x), want)
        np.testing.assert_array_equal(traced(data, each, places, x), want)


def test_steps_of_different_formulas_stay_unrolled():
    def program(m, b, x):
        y = b.copy()
        for i in range(len(b)):
            y[:i] = np.sin(y[:i]) if i % 3 == 0 else np.cos(y[:i]) if i % 3 == 1 else y[:i] * x[:i]
        return y

    assert loops(program, arguments(14, "d")) == 0


def test_gradients_sum_products_by_blas_unless_bits_must_be_those_of_numpy():
    args = arguments(33, "d")
    assert "reshape" not in rg.grad(lambda m: total(m, *args[1:])).source(args[0]).partition("for t_1")[2]
    with rg.config(exact=True):
        assert "np.add.reduce" in rg.grad(lambda m: total(m, *args[1:])).source(args[0]).partition("for t_1")[2]


@pytest.mark.parametrize(("limit", "scans"), [(10_000, 0), (100, 1)])
def test_short_loops_of_formulas_stay_unrolled(monkeypatch, limit, scans):
    monkeypatch.setattr("retrograd.compiler.rolled.UNROLLED", limit)
    assert loops(again(lu), arguments(33, "d")) == scans


@pytest.mark.costly
@needs_compiler
@pytest.mark.parametrize(("program", "n", "dtype"), [*product(PROGRAMS, (1, 8, 9, 10, 33), "df")])
def test_the_native_target_computes_the_same(program, n, dtype):
    args = arguments(n, dtype)
    with np.errstate(all="ignore"):
        with in_a_hurry():
            native = {name: function(*args) for name, function in functions(program).items()}
        with rolled_from(10**9):
            plain = {name: function(*args) for name, function in functions(again(program)).items()}
    eps = np.finfo(dtype).eps
    for name, found in native.items():
        for got, want in zip(leaves(found), leaves(plain[name]), strict=True):
            assert got.dtype == want.dtype
            scale = np.max(np.abs(want), initial=1.0)
            np.testing.assert_allclose(got, want, rtol=0, atol=200 * eps * scale, err_msg=name)


# A batch of dots of vectors is BLAS's, and batches multiply by one over a number that divides each of them.
BITWISE = [p for p in PROGRAMS if p not in (gram_schmidt, means_and_extrema)]


@needs_compiler
@pytest.mark.parametrize("program", BITWISE)
def test_batches_have_the_bits_of_single_calls_in_c(program):
    rows = arguments(20, "d"), arguments(20, "d", 1)
    with in_a_hurry(), np.errstate(all="ignore"):
        gradient = functions(program)["gradient"]
        single = [gradient(*row) for row in rows]
        batch = rg.vmap(gradient)(*(np.stack(pair) for pair in zip(*rows, strict=True)))
    for k, found in enumerate(batch):
        np.testing.assert_array_equal(found, np.stack([row[k] for row in single]))


@needs_compiler
@pytest.mark.parametrize("program", [rewritten, limited])
def test_budgets_keep_the_bits_in_c(program):
    def loss(m, b, x):
        return np.sum(np.sin(program(m, b, x)))

    args, planned = arguments(64, "d"), 0
    with in_a_hurry(), np.errstate(all="ignore"):
        plain = rg.grad(loss, argnums=(0, 1, 2))(*args)
        for memory in (20_000, 40_000, 60_000, 80_000):
            thrifty = rg.grad(loss, argnums=(0, 1, 2), memory=memory)
            with suppress(rg.errors.MemoryBudgetError):
                planned += "sweep" in str(thrifty.graph(*args))
                for found, want in zip(thrifty(*args), plain, strict=True):
                    np.testing.assert_array_equal(found, want)
    assert planned


@needs_compiler
@pytest.mark.parametrize("program", PROGRAMS)
def test_c_runs_the_loop(program):
    with rg.config(backend="native"):
        graph = functions(program)["gradient"].graph(*arguments(33, "d"))
        legal = TARGETS.chosen.legalise(graph)
    assert "scan" in str(graph)
    assert "scan" not in {node.prim.name for node in legal.nodes}


def test_formulas_that_read_come_before_the_write():
    source = rg.jit(again(gauss)).source(*arguments(33, "d"))
    assert ".copy()" not in source.partition("for t")[2]


def test_what_is_added_to_parts_twice_is_added_once():
    """The sum of two chains of writes, of which one begins with zeros."""
    args = arguments(33, "d")
    source = rg.grad(lambda m: total(m, *args[1:])).source(args[0]).partition("for t_1")[2]
    assert ".copy()" not in source
    assert source.count("+=") == 2
