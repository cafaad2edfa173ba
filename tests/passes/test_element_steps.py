"""Steps on single elements in an order that does not repeat itself are one loop, and compute what they computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import cholesky, lu_by_elements, lu_factors, positive, regular
from retrograd.compiler.rolled import rolled_from
from retrograd.ir.builder import Builder
from retrograd.ir.evaluate import evaluate
from retrograd.ir.graph import Graph
from retrograd.ops.gather import counted
from retrograd.passes.reroll.element_steps import element_steps
from retrograd.passes.reroll.products_of_elements import products_of_elements
from tests.support.growing import again, arguments, compare
from tests.support.limits import other_limits

pytestmark = pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
SHORT = {"compiler.rolled": {"LONG": 8}, "passes.reroll.reroll": {"STEPS": 20, "MANY_STEPS": 20}}


@pytest.fixture
def short() -> Iterator[None]:
    """Short programs, too, become such loops."""
    with other_limits(SHORT):
        yield


def recorded(program: Callable[..., Any], *args: Any) -> Graph:
    """The operations as they were traced; short programs are left as they are."""
    with rolled_from(10**9):
        return rg.trace(program)(*args)


def lu(m, b, x):
    return lu_factors(m)


def forward(m, b, x):
    y = np.zeros_like(b)
    for i in range(len(b)):
        s = b[i]
        for j in range(i):
            s = s - m[i, j] * y[j]
        y[i] = s / m[i, i]
    return y


def durbin(m, b, x):
    """Two arrays that begin as the same zeros, sums of Python's numbers, and variables of four lines."""
    n = len(b)
    y, z = np.zeros_like(b), np.zeros_like(b)
    beta, alpha = 1.0, -b[0]
    y[0] = alpha
    for k in range(1, n):
        beta = (1.0 - 0.1 * alpha * alpha) * beta
        s = 0.0
        for i in range(k):
            s += b[k - i - 1] * y[i]
        alpha = -(x[k] + s) / (beta + 2.0)
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def sorted_by_bubbles(m, b, x):
    """Elements that are read before they are overwritten, and used after it."""
    y = b.copy()
    for i in range(len(b)):
        for j in range(i):
            old = y[j]
            y[j] = np.minimum(old, y[i])
            y[i] = np.maximum(old, y[i])
        y[i] *= x[i]
    return y


def with_copies(m, b, x):
    y = b.copy()
    for i in range(len(b)):
        for j in range(i % 5):
            y = y.copy()
            y[i] = np.sin(y[j]) * x[i] + 0.5 * j
        z = y.copy()
        last = z[i]
        y[i] = last * m[i, i]
    return np.append(y, last)


def of_an_array_that_stays(m, b, x):
    """The array is read as it was at first, while the copy changes."""
    a = m.copy()
    for i in range(len(b)):
        for j in range(i):
            a[i, j] = m[j, i] + a[j, i] * m[i, j]
        a[i, i] = m[i, i] * x[i]
    return a


def not_everywhere(m, b, x):
    """What a line does not compute elsewhere may be infinite or nan there."""
    y = np.zeros_like(b)
    y[0] = 0.0 * b[0]
    for i in range(1, len(b)):
        for j in range(1, i):
            y[i] += np.log(y[j] * y[j]) * 0.1 + 1.0 / y[j]
        y[i] += np.exp(-b[i] * b[i]) + 1.0
    return y


def textbook_lu(m, b, x):
    """Two kinds of steps, as few as a table has."""
    a = m.copy()
    for k in range(len(b)):
        for i in range(k + 1, len(b)):
            a[i, k] /= a[k, k]
            for j in range(k + 1, len(b)):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def quotients(m, b, x):
    """Two kinds of steps in a vector."""
    y = b * b + np.arange(1.0, len(b) + 1.0).astype(b.dtype)
    for k in range(len(b) - 1):
        for i in range(k + 1, len(b)):
            y[i] = y[i] / y[k]
            for j in range(k + 1, i):
                y[i] -= 0.1 * y[j] * y[k]
    return y


PROGRAMS = (lu, forward, durbin, sorted_by_bubbles, with_copies, of_an_array_that_stays, not_everywhere)
PROGRAMS_OF_TWO_KINDS = (textbook_lu, quotients)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("program", PROGRAMS + PROGRAMS_OF_TWO_KINDS, ids=lambda f: f.__name__)
def test_the_loop_computes_what_the_lines_computed(short, program, dtype):
    args = arguments(9, dtype)
    assert element_steps(recorded(program, *args), 20) is not None
    compare(program, args)


PLAN: list[tuple[Any, ...]] = []  # lines with their indices and numbers


def random_lines(m, b, x):
    a, y, s = m.copy(), b.copy(), x[0]
    t = 0.5 * s
    for line, i, j, k, c in PLAN:
        if line == 0:
            y[i] = y[i] - a[j, k] * y[k]
        elif line == 1:
            a[i, j] = np.sin(a[j, k]) + s
        elif line == 2:
            s = s * 0.5 + x[i] * c
        elif line == 3:
            y[i], y[j] = y[j], y[i]
        elif line == 4:
            old = y[k]
            y[k] = s
            s = np.tanh(old)
        elif line == 5:
            t = np.tanh(s + t) * m[i, j]
        elif line == 6:
            y[i] += c
        elif line == 7:
            a = a.copy()
            a[i, k] *= t
        else:
            x = x.copy()
            x[j] = np.cos(x[j]) + x[i]
    return np.concatenate([a.ravel(), y, x, np.stack([s, t])])


@pytest.mark.parametrize("seed", range(40))
def test_random_lines_in_random_order(short, seed):
    rng = np.random.default_rng(seed)
    lines = rng.permutation(9)[: rng.integers(2, 6)]
    plan = [(int(rng.choice(lines)), *map(int, rng.integers(0, 5, 3)), float(rng.normal())) for _ in range(60)]
    code = random_lines.__code__.replace(co_name=f"random_lines_{seed}")
    compare(FunctionType(code, {**globals(), "PLAN": plan}), arguments(5, "float64", seed))


@pytest.mark.parametrize(
    "program",
    [
        lambda m, b, x: _sum([m[i, j] * b[j] for i in range(9) for j in range(9)]),  # one line
        lambda m, b, x: _sum([np.sin(b[i]) ** k for i in range(9) for k in range(9)]),  # a number for each step
    ],
)
def test_what_repeats_itself_or_never_does_is_no_table(program):
    assert element_steps(recorded(program, *arguments(9, "float64")), 20) is None


def _sum(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def test_an_array_that_is_read_after_its_copy_changed_is_no_state():
    def program(m, b, x):
        y = b.copy()
        for i in range(9):
            for j in range(i):
                z = y.copy()
                y[i] = z[j] * x[i]
            y[i] = np.sin(y[i] + z[0] if i else y[i])
        return y + z

    args = arguments(9, "float64")
    assert element_steps(recorded(program, *args), 20) is None


def cholesky_by_rows(m, b, x):
    a = 0.1 * m @ m.T + np.diag(2.0 + x * x)
    lower = np.zeros_like(a)
    for i in range(len(b)):
        for j in range(i):
            lower[i, j] = (a[i, j] - lower[i, :j] @ lower[j, :j]) / lower[j, j]
        lower[i, i] = np.sqrt(a[i, i] - lower[i, :i] @ lower[i, :i])
    return lower


def products_of_all_kinds(m, b, x):
    places = np.array([3, 1, 2])
    found = [b @ x, b[::-1] @ m[1], m[:, 2] @ m[2], b[1:4] @ x[:3], b[3:0:-1] @ x[places], b[:0] @ x[:0]]
    wide = np.concatenate([b] * 20)
    return np.stack([*found, wide @ wide, (2.0 * b) @ np.sin(x), m[:2, 1:3][1] @ m[::-1, ::2][2, :2]])


@pytest.mark.parametrize("program", [cholesky_by_rows, products_of_all_kinds])
def test_products_of_short_vectors_are_sums(program):
    args = arguments(5, "float64")
    graph = recorded(program, *args)
    written = products_of_elements(graph)
    assert sum(node.prim.name == "matmul" for node in written.nodes) == (program is products_of_all_kinds) + (
        program is cholesky_by_rows
    )
    np.testing.assert_allclose(evaluate(written, args)[0], program(*args), rtol=1e-13)


def test_cholesky_by_rows_is_one_loop_where_it_would_be_a_long_kernel():
    args = arguments(9, "float64")

    def total(m, b, x):
        return np.sum(np.sin(cholesky_by_rows(m, b, x)))

    expected = rg.grad(total, argnums=(0, 2))(*args)
    with other_limits({"compiler.rolled": {"LONG": 8}, "passes.reroll.reroll": {"STEPS": 20, "KERNEL": 20}}):
        again = rg.grad(lambda m, b, x: total(m, b, x), argnums=(0, 2), backend="native")  # noqa: PLW0108 - equal code is compiled once
        if rg.native_info().compiler:
            assert str(again.graph(*args)).count("= scan") == 2
        found = again(*args)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_what_is_beside_the_steps_folds_too(short):
    def program(m, b, x):
        a = lu(m, b, x)
        for _ in range(300):
            x = np.cos(x) + 0.1 * b
        c = lu(a + 3.0 * np.eye(9), b, x)
        return c * x

    args = arguments(9, "float64")
    assert str(rg.jit(again(program)).graph(*args, stage="traced")).count("= scan") == 3
    compare(program, args)


def test_few_operations_stay_written_out():
    args = arguments(6, "float64")
    assert element_steps(recorded(lu, *args), 1000) is None


@pytest.mark.parametrize(("program", "matrix"), [(lu_by_elements, regular), (cholesky, positive)])
def test_kernels_are_one_loop_in_c_and_written_out_in_numpy(program, matrix):
    a = matrix(12)
    loops = [node for node in rg.grad(program, backend="native").graph(a).nodes if node.prim.name == "scan"]
    assert len(loops) == (2 if rg.native_info().compiler else 0)
    assert all(node.prim.name != "scan" for node in rg.grad(program).graph(a).nodes)
    np.testing.assert_allclose(rg.grad(program, backend="native")(a), rg.grad(program)(a), rtol=1e-12)


@pytest.mark.costly
@pytest.mark.parametrize("n", [2, 8, 9, 10, 16])
@pytest.mark.parametrize("program", PROGRAMS_OF_TWO_KINDS, ids=lambda f: f.__name__)
def test_programs_of_two_kinds_compute_what_numpy_computes_at_all_sizes(program, n):
    m, b, x = arguments(n, "float64")

    def total(m, b):
        return np.sum(np.sin(program(m, b, x)))

    graph = recorded(program, m, b, x)
    if (found := element_steps(graph, 1000)) is not None:
        assert len(found.kinds) == 2
    assert (found is not None) == (n >= 10 if program is quotients else n >= 9)
    np.testing.assert_allclose(rg.jit(again(program), backend="native")(m, b, x), program(m, b, x), rtol=1e-12)
    f = rg.value_and_grad(total, argnums=(0, 1), backend="native")
    value, slopes = f(m, b)
    np.testing.assert_allclose(value, total(m, b), rtol=1e-12)
    for slope, other in zip(slopes, rg.grad(total, argnums=(0, 1))(m, b), strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    way, h = [np.cos(np.arange(a.size)).reshape(a.shape) for a in (m, b)], 1e-6
    difference = total(m + h * way[0], b + h * way[1]) - total(m - h * way[0], b - h * way[1])
    along = sum(np.sum(a * w) for a, w in zip(slopes, way, strict=True))
    np.testing.assert_allclose(along, difference / (2 * h), rtol=1e-6, atol=1e-8)
    most = f.plan(m, b).peak_bytes
    for budget in filter(None, (most, most // 2, most // 8)):
        limited = rg.value_and_grad(total, argnums=(0, 1), backend="native", memory=budget)
        try:
            same = limited(m, b)
        except rg.errors.MemoryBudgetError as error:
            limited = rg.value_and_grad(total, argnums=(0, 1), backend="native", memory=int(error.minimum))
            same = limited(m, b)
        for a, c in zip((same[0], *same[1]), (value, *slopes), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(c).tobytes()


def columns_of_numbers() -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Short columns of all kinds, that count up, down, not at all, and to the ends of their type."""
    for char, size in itertools.product("?bBhHiIlLqQfdFD", range(6)):
        dtype = np.dtype(char)
        yield f"{char} up {size}", np.arange(3, 3 + size).astype(dtype)
        yield f"{char} down {size}", np.arange(9, 9 - 2 * size, -2).astype(dtype)
        yield f"{char} equal {size}", np.full(size, 7).astype(dtype)
        yield f"{char} in turn {size}", np.resize([1, 0], size).astype(dtype)
        if dtype.kind in "iu":
            ends = np.iinfo(dtype)
            yield f"{char} from end to end {size}", np.resize(np.array([ends.min, ends.max], dtype), size)
            yield f"{char} around the end {size}", np.full(size, ends.max, dtype) + np.arange(size).astype(dtype)
        elif dtype.kind in "fc":
            yield f"{char} infinite {size}", np.resize([np.inf, np.inf, -np.inf], size).astype(dtype)
    yield "pairs", np.arange(10).reshape(5, 2)
    yield "one pair", np.arange(2).reshape(1, 2)
    yield "a number", np.array(3)


@pytest.mark.filterwarnings("error")
def test_only_vectors_of_integers_that_count_are_ranges():
    for name, numbers in columns_of_numbers():
        first, *others = numbers.reshape(-1).tolist() or [0]
        by = others[0] - first if others else 0
        counts = abs(by) < 2**63 and [first + by * k for k in range(numbers.size)] == numbers.reshape(-1).tolist()
        b = Builder()
        found = counted(b, numbers)
        expected = counts and numbers.ndim == 1 and numbers.size > 1 and numbers.dtype == np.int64
        assert (found is not None) == expected, name
        if found is not None:
            (value,) = evaluate(b.graph("range", [found]), ())
            assert value.dtype == numbers.dtype, name
            np.testing.assert_array_equal(value, numbers, err_msg=name)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("steps", [8, 60, 200])
def test_infinite_numbers_of_steps_fold_without_a_warning(backend, steps):
    def program(x):
        s = x * 0.5
        for t in range(steps):
            s = np.minimum(s * 0.5, np.inf if t % 5 < 3 else 2.0) + x
        return np.sum(np.sin(s))

    x = np.linspace(0.1, 1.0, 5)
    np.testing.assert_allclose(rg.jit(program, backend=backend)(x), program(x), rtol=1e-13)
