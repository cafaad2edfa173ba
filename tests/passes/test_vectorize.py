"""Loops over elements become operations on arrays by levels: the same bits, and few nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import lu_factors as lu
from retrograd.compiler.executable import Executable
from retrograd.compiler.rolled import rolled_from
from retrograd.ir import evaluate, verify
from retrograd.ir.graph import Graph
from retrograd.ir.rewrite import walk
from retrograd.passes import vectorize as rules
from retrograd.passes.vectorize import with_levels


def unrolled(f: Any, *args: Any) -> Graph:
    """The trace as it is."""
    with rolled_from(10**9):
        return rg.trace(f)(*args)


def bits(x: Any) -> bytes:
    return np.asarray(x).tobytes()


def regular(n: int, dtype: str = "d") -> Any:
    a = np.random.default_rng(n).standard_normal((n, n)) / n + 2.0 * np.eye(n)
    return (a @ a.T).astype(dtype)


def cholesky(a):
    c = np.zeros_like(a)
    n = len(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s = s - c[i, k] * c[j, k]
            c[i, j] = np.sqrt(s) if i == j else s / c[j, j]
    return c


def substitution(a):
    n = len(a)
    x = []
    for i in range(n):
        x.append((a[0, i] - sum(a[i, j] * x[j] for j in range(i))) / a[i, i])
    return np.array(x) * 2.0


def halves(a):
    """Vectors between the numbers: levels are split by them."""
    b = a * 0.5
    for i in range(len(a)):
        for j in range(len(a)):
            b[i, j] = b[i, j] * a[j, i] + 0.25
    c = np.sin(b) @ b
    for i in range(len(a)):
        for j in range(i):
            c[i, j] = c[j, i] - b[i, j] / 3.0
    return c, b[1:3].sum(), c.T[2], c[1, 0]


PROGRAMS = {f.__name__: f for f in (lu, cholesky, substitution, halves)}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["d", "f"])
@pytest.mark.parametrize("n", [6, 12, 24])
def test_values_have_the_bits_of_the_program(name, dtype, n):
    f, a = PROGRAMS[name], regular(n, dtype)
    plain, compiled = f(a), rg.jit(f)(a)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (plain, compiled)), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        assert bits(x) == bits(y)


def kinds(found: Any) -> set[str]:
    """The names of the operations that are planned."""
    return {node.prim.name for node in walk(found.plan.order)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_nodes_remain(name):
    a = regular(40 if name in {"substitution", "halves"} else 20)
    found = rg.jit(PROGRAMS[name]).at(a)
    assert 4 * len(found.plan.order.nodes) < len(unrolled(PROGRAMS[name], a).nodes)
    assert "module_arrays" in kinds(found)


def total(f: Any) -> Any:
    """A sum over all results of a function."""

    def loss(*args):
        found = f(*args)
        return sum(np.sum(np.cos(x)) for x in (found if isinstance(found, (tuple, list)) else (found,)))

    return loss


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("large", [False, True])
def test_gradients_have_the_bits_of_the_unrolled_adjoint(name, large):
    a = regular((24 if name in {"substitution", "halves"} else 12) if large else 4)
    with rolled_from(10**9):
        found = rg.value_and_grad(total(PROGRAMS[name])).at(a)
    args = found.arguments([a])
    for x, y in zip(found.executable(*args), evaluate(found.graph, args), strict=True):
        assert bits(x) == bits(y)
    if name != "halves":  # its adjoint has more operations on arrays
        assert ("module_arrays" in kinds(found)) == large


@pytest.mark.costly
@pytest.mark.parametrize("loss", [np.sqrt, np.log, np.abs, lambda x: 1.0 / x, lambda x: x**1.5])
def test_results_without_a_cotangent_leave_no_nan_at_singular_points(loss):
    def picked(x):
        found = [loss(x[i]) / x[j] * np.sqrt(x[i] * x[j]) for i in range(len(x)) for j in range(len(x))]
        return found[40] + found[60], np.array(found)

    x = np.arange(18.0)
    with np.errstate(all="ignore"), rolled_from(10**9):
        way = rg.value_and_grad(picked, has_aux=True).at(x)
        found = way.executable(x)
        assert "module_arrays" in kinds(way)
        assert not np.isfinite(found[1]).all()
        assert np.isfinite(found[2]).all()
        for a, b in zip(found, evaluate(way.graph, [x]), strict=True):
            assert equal(a, b)


def test_gradients_of_batches_are_those_of_each():
    many = np.stack([regular(12), regular(12) + np.eye(12), 2.0 * regular(12)])
    slope = rg.grad(lambda a: np.sum(np.log(np.abs(np.diag(lu(a))))))
    mapped = rg.vmap(slope)
    assert "module_arrays" in kinds(mapped.at(many))
    for x, y in zip(mapped(many), many, strict=True):
        np.testing.assert_allclose(x, slope(y), rtol=1e-11)


def test_the_module_runs_alone():
    found = rg.grad(total(lu)).at(regular(12))
    scope: dict[str, Any] = {}
    exec(found.source, scope)
    assert bits(scope["loss_grad"](regular(12))) == bits(found.executable(regular(12))[0])
    assert found.source.partition("def loss_grad")[0].count("at_") > 20  # where numbers are read, above the function


def test_results_share_no_memory():
    def twice(a):
        b = a.copy()
        for i in range(len(a)):
            for j in range(len(a)):
                b[i, j] = a[i, j] * a[j, i] - a[0, j]
        return b, b[2:5], b, b.T, b[0, 0]

    compiled, a = rg.jit(twice), regular(20)
    with rolled_from(10**9):
        found = compiled(a)
    assert "module_arrays" in kinds(compiled.at(a))
    for i, x in enumerate(found[:4]):
        assert bits(x) == bits(twice(a)[i])
        assert not any(np.shares_memory(x, y) for y in (a, *found[:i]))


def test_known_numbers_that_equal_positions_are_told_apart(monkeypatch):
    def f(x):
        return np.sin(np.array([x[0] + 1.0])), np.sin(np.array([x[1] - x[0]]))

    for name, value in {"FEWEST": 1, "WIDE": 0, "SHARE": -1e9, "READ": 10**9}.items():
        monkeypatch.setattr(rules, name, value)
    x = np.array([0.3, 0.5])
    graph = unrolled(f, x)
    found = with_levels(graph)
    assert found is not graph
    for a, b in zip(evaluate(graph, [x]), evaluate(found, [x]), strict=True):
        assert bits(a) == bits(b)


def test_numbers_alone_stay_numbers():
    def wide(x, y):
        return sum((x * float(i) + y) / (float(i) - y) for i in range(300))

    with rolled_from(10**9):
        assert "module_arrays" not in kinds(rg.jit(wide).at(1.0, 0.5))


@pytest.mark.parametrize("order", ["C", "F"])
def test_arguments_in_any_order_of_axes(order):
    a = np.array(regular(16), order=order)
    np.testing.assert_array_equal(rg.jit(lu)(a), lu(a))
    apart = np.repeat(a, 2, axis=1)[:, ::2]
    np.testing.assert_array_equal(rg.jit(lu)(apart), lu(apart))


@pytest.mark.costly
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("given", [False, True])
def test_matrices_that_are_read_from_a_vector(order, given):
    places = np.array(np.arange(256).reshape(16, 16) * 5 % 8, order=order)
    x = np.linspace(-1.0, 1.0, 8)

    def read(x, at):
        return lu(x[at] / 16.0 + 2.0 * np.eye(16))

    compiled = rg.jit(read if given else lambda x: read(x, places))
    args = (x, places) if given else (x,)
    assert bits(compiled(*args)) == bits(read(x, places))
    if order == "C":
        assert "module_arrays" in kinds(compiled.at(*args))
    rg.check_grads(lambda x: np.sum(read(x, places) ** 2), (x,), order=1, modes=("fwd", "rev"))


@pytest.mark.parametrize("n", [12, pytest.param(24, marks=pytest.mark.slow)])
def test_a_decision_stays_between_what_it_depends_on_and_what_follows(n):
    def pivoted(a):
        a = a.copy()
        for k in range(n):
            if np.abs(a[k, k]) < 1e-3:
                return a[k, k] * 0.0 - 1.0
            for i in range(k + 1, n):
                a[i, k] /= a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        return np.sum(np.log(np.abs(np.diag(a))))

    a = regular(n)
    singular = a.copy()
    singular[5:7] = singular[4]
    compiled = rg.jit(pivoted)
    with np.errstate(all="raise"):  # no division by a pivot that was refused
        for x in (a, singular, a + np.eye(n), singular):
            assert bits(compiled(x)) == bits(pivoted(x))


def test_results_of_zeros_infinities_and_nan():
    def table(x, y):
        out = np.empty((len(x), len(y)))
        for i in range(len(x)):
            for j in range(len(y)):
                out[i, j] = -(x[i] * y[j]) / (x[i] - y[j])
        return out

    x = np.array([0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, 5e-324, -1e308, 3.0, 7.0, 8.0, 9.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rg.jit(table)(x, x[::-1]), table(x, x[::-1]))
        plain, compiled = table(x, x), rg.jit(table)(x, x)
    numbers = ~np.isnan(plain)  # the sign of nan is the processor's choice
    assert 0 < np.sum(numbers) < x.size**2
    assert bits(plain[numbers]) == bits(compiled[numbers])


def test_chains_stay_as_they_are():
    def chain(x):
        x = x[0]
        for k in range(300):
            x = x * 1.01 - 0.5 / (x + float(k))
        return x

    graph = unrolled(chain, np.ones(2))
    assert with_levels(graph) is graph


def test_reads_of_few_elements_of_a_large_array_stay_as_they_are():
    def few(x):
        return sum(x[i] * x[i + 1] for i in range(300))

    graph = unrolled(few, np.ones(100_000))
    assert with_levels(graph) is graph


class _Program:
    """A drawn program of writes, reads and views of elements, with operations on numbers and on arrays between them."""

    def __init__(self, seed: int, vectors: bool) -> None:
        self.seed, self.vectors = seed, vectors

    def __call__(self, x: Any, m: Any) -> Any:
        rng = np.random.default_rng(self.seed)
        arrays = [x, m.copy(), np.zeros_like(x), x.astype(np.float32), np.zeros(3, np.float32), np.ones((2, 2))]
        numbers = [x[0], m[1, 2], 0.5 * x[1], arrays[3][0]]
        for _ in range(int(rng.integers(20, 60))):
            kind, pick = int(rng.integers(0, 14)), lambda pool: pool[int(rng.integers(len(pool)))]
            array = pick(arrays)
            at = tuple(int(rng.integers(-n, n)) for n in array.shape)
            if kind < 3:
                numbers.append(array[at])
            elif kind < 6:
                a, b = pick(numbers), pick(numbers)
                numbers.append(
                    [a + b, a - b, a * b, a / (b * b + 1.0), -a, np.sqrt(a * a), abs(a)][int(rng.integers(7))]
                )
            elif kind < 8:
                if array is not x:
                    array[at] = pick(numbers)
            elif kind == 8:
                if array is not x:
                    array[at] += pick(numbers)
            elif kind == 9:
                arrays.append(np.array([pick(numbers) for _ in range(int(rng.integers(1, 5)))]))
            elif kind == 10:
                arrays.append(array.copy() if rng.integers(2) else array.T if array.ndim == 2 else array[::-1])
            elif kind == 11 and array.ndim == 2:
                row = array[at[0]]
                arrays.append(row)
                if array is not x:
                    array[at[0]] = row[::-1] if rng.integers(2) else pick(numbers)
            elif kind == 12:
                arrays.append(array[(*at[:-1], slice(None), *[None] * int(rng.integers(2)))])
                if array.ndim == 1 and array is not x:
                    array[at[0], ...] = pick(numbers) + array[at[0], ...]
            elif kind == 13 and self.vectors:
                arrays.append(np.tanh(array) * 2.0)
                numbers.append(np.sum(array))
        return [*numbers, *arrays]


def everything(program: Any) -> dict[str, Any]:
    """A program and its derivatives of several kinds and orders."""

    def loss(x, m):
        return sum(np.sum(v) for v in program(x, m))

    def slope(x, m):
        return sum(np.sum(g * np.cos(np.arange(g.size)).reshape(g.shape)) for g in rg.grad(loss, (0, 1))(x, m))

    return {
        "value": program,
        "grad": rg.grad(loss, (0, 1)),
        "jvp": lambda x, m: rg.jvp(program, (x, m), (np.cos(x), np.sin(m))),
        "second": rg.grad(slope, (0, 1)),
        "vmap": lambda x, m: rg.vmap(rg.grad(loss, (0, 1)))(np.stack([x, x[::-1]]), np.stack([m, -m])),
    }


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, 1e308, 0.5]


def drawn(seed: int) -> list[Any]:
    """Inputs: normal numbers, some of them special, or all."""
    rng = np.random.default_rng(1000 + seed)
    x, m = rng.standard_normal(5), rng.standard_normal((4, 3))
    if seed % 3 == 0:
        return [rng.choice(SPECIAL, 5), rng.choice(SPECIAL, (4, 3))]
    if seed % 3 == 1:
        x[rng.integers(5)], m[rng.integers(4), rng.integers(3)] = 0.0, rng.choice(SPECIAL)
    return [x, m]


def equal(a: Any, b: Any) -> bool:
    """Whether all bits are equal; the sign of nan is the processor's choice."""
    missing = np.isnan(a)
    return bits(missing) == bits(np.isnan(b)) and bits(np.asarray(a)[~missing]) == bits(np.asarray(b)[~missing])


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_drawn_programs_and_their_derivatives_keep_their_bits(seed, vectors, monkeypatch):
    for name, value in {"FEWEST": 1, "WIDE": 0, "SHARE": -1e9, "READ": 10**9}.items():
        monkeypatch.setattr(rules, name, value)
    for kind, f in everything(_Program(seed, vectors)).items():
        args = drawn(seed)
        with rolled_from(10**9):
            way = rg.jit(f).at(*args)
        graph, args = way.graph, way.arguments(args)
        found = with_levels(graph)
        verify(found)
        assert found is not graph or kind == "second", kind  # where it is zero
        for a, b, c in zip(evaluate(graph, args), evaluate(found, args), Executable(graph)(*args), strict=True):
            assert equal(a, b), kind
            assert equal(a, c), kind
            assert type(a) is type(b) is type(c)
