"""Elementwise work on long arrays is done block by block: the same bits, less memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.footprint.footprint import Simulation
from retrograd.compiler.executable import Executable
from retrograd.ir.builder import Builder
from retrograd.ir.evaluate import evaluate
from retrograd.ir.graph import Graph
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.types import Aval
from retrograd.ops.batching import elementwise
from retrograd.ops.elementwise import eq
from retrograd.ops.masks import putmask
from retrograd.ops.structural.in_blocks import in_blocks, largest_block
from retrograd.passes import block_kernels as blocks
from tests.support.memory import measured, one_thread

SHORT, MOST = 300, 128  # NumPy's own sums have halves down to 128 elements
SIZES = [SHORT - 1, SHORT, SHORT + 1, 511, 512, 513, 1000, 4097]
MADE = "in_blocks("
UFUNCS = sorted(
    name for name, prim in REGISTRY.items() if prim.numpy.ufunc and prim.batch is elementwise and not prim.multi
)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short arrays are worked on in blocks, however little there is to do, and in storage as long arrays are."""
    for name in ("passes.place_buffers.REUSE", "passes.place_buffers.POOL", "codegen.numpy.workspaces.LARGE"):
        monkeypatch.setattr(f"retrograd.{name}", 64)
    monkeypatch.setattr(blocks, "SHORTEST", SHORT)
    monkeypatch.setattr(blocks, "MOST", MOST)
    monkeypatch.setattr(blocks, "FEWEST", 1)


def both(graph: Graph, args: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> tuple[Executable, Executable]:
    """The code with blocks and without, which gives the same bits."""
    with_blocks = Executable(replace(graph))  # which remembers how it was compiled
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "SHORTEST", 10**12)
        without = Executable(replace(graph))
    assert MADE not in without.module.source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (_leaves(made(*(np.copy(x) if isinstance(x, np.ndarray) else x for x in args)))
                           for made in (with_blocks, without))  # fmt: skip
    for x, y in zip(found, expected, strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(np.signbit(np.real(x)), np.signbit(np.real(y)))
    return with_blocks, without


def _leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def check(function: Callable[..., Any], *args: Any, monkeypatch: pytest.MonkeyPatch, made: bool = True) -> None:
    """Values and gradients have the same bits, and blocks are used."""
    for mode in (rg.jit, rg.value_and_grad):
        with_blocks, _ = both(mode(function).graph(*args), args, monkeypatch)
        assert (MADE in with_blocks.module.source) == made


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", UFUNCS)
def test_each_ufunc(name: str, dtype: str, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    prim = REGISTRY[name]
    n, arity = 1001, len(prim.diff)
    rng = np.random.default_rng(0)
    complexes = np.result_type(dtype, "c8").str[1:]
    for kinds in product((dtype, "i8", "?", complexes, "f8"), repeat=arity):
        b = Builder()
        operands = [b.input(Aval((n,), np.dtype(kind))) for kind in kinds]
        args = tuple((rng.integers(0, 2, n) if kind in "i8?" else rng.uniform(-3, 3, n)).astype(kind) for kind in kinds)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = b.graph("f", [prim(*operands)])
                made = np.asarray(evaluate(graph, args)[0])
        except (TypeError, ValueError, rg.RetrogradError):
            continue
        if made.dtype != graph.outputs[0].aval.dtype:  # no program has such operands
            continue
        found, _ = both(graph, args, monkeypatch)
        assert MADE in found.module.source
        return
    pytest.fail("no dtype fits")


def all_of(dtype: str, n: int, names: Iterable[str]) -> Graph:
    """The ufuncs of these names, of two arrays of floats that they take in turn."""
    b = Builder()
    x, y = (b.input(Aval((n,), np.dtype(dtype))) for _ in range(2))
    prims = [REGISTRY[name] for name in names]
    return b.graph("f", [prim(*((x, y) * 2)[: len(prim.diff)]) for prim in prims])


@lru_cache
def of_floats(dtype: str) -> list[str]:
    """The names of the ufuncs that take floats of a dtype."""
    found = []
    for name in UFUNCS:
        with suppress(TypeError, ValueError, rg.RetrogradError), np.errstate(all="ignore"):
            graph = all_of(dtype, 3, [name])
            (made,) = evaluate(graph, [np.ones(3, dtype), np.ones(3, dtype)])
            if made.dtype == graph.outputs[0].aval.dtype:
                found.append(name)
    return found


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", range(SHORT - 1, SHORT + 65))
def test_all_ufuncs_at_every_tail(n: int, dtype: str, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last block may have any number of elements, and NumPy has other loops for a few of them."""
    args = tuple(np.random.default_rng(n).uniform(-3, 3, (2, n)).astype(dtype))
    assert len(of_floats(dtype)) > 60
    found, _ = both(all_of(dtype, n, of_floats(dtype)), args, monkeypatch)
    assert (MADE in found.module.source) == (n >= SHORT)


def test_few_operations_run_on_whole_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=blocks.SHORTEST + 3)
    assert blocks.FEWEST == 4
    three = both(rg.jit(lambda x: np.sin(np.cos(np.exp(x)))).graph(x), (x,), monkeypatch)
    four = both(rg.jit(lambda x: np.sin(np.cos(np.exp(np.tanh(x))))).graph(x), (x,), monkeypatch)
    assert [MADE in found.module.source for found, _ in (three, four)] == [False, True]


@pytest.mark.parametrize("n", SIZES)
def test_folds_have_the_bits_of_folds_of_whole_arrays(n: int, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(n).normal(size=n) * 10.0 ** np.random.default_rng(n + 1).integers(-5, 5, n)
    for dtype in (np.float64, np.float32):
        y = x.astype(dtype)
        check(lambda x: np.sum(np.sin(x) * x), y, monkeypatch=monkeypatch, made=n >= SHORT)
        graph = rg.jit(lambda x: (np.max(x * 2 + 1), np.min(np.sin(x)), np.mean(x * x))).graph(y)
        assert (MADE in both(graph, (y,), monkeypatch)[0].module.source) == (n >= SHORT)


@pytest.mark.parametrize("n", SIZES)
def test_writes_by_masks(n: int, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(n).integers(-2, 3, (2, n)).astype(float)  # with many ties
    check(lambda x, y: np.sum(np.maximum(x, y) * np.sin(x) - np.fmin(y, 0.5 * x)), x, y, monkeypatch=monkeypatch,
          made=n >= SHORT)  # fmt: skip
    for dtype in (np.float32, np.float64, np.complex128):
        b = Builder()
        vector, number = Aval((n,), np.dtype(dtype)), Aval((), np.dtype(dtype), "scalar")
        a, mask, v = b.input(vector), b.input(Aval((n,), np.dtype(bool))), b.input(number)
        once = putmask(a, mask, v)
        twice = putmask(once, eq(a, once), v)
        graph = b.graph("f", [once * twice + a, once])  # the operands are read later
        args = x.astype(dtype), y > 0, dtype(0.5)
        found, _ = both(graph, args, monkeypatch)
        assert (MADE in found.module.source) == (n >= SHORT)
        np.testing.assert_array_equal(found(*args)[1], np.where(args[1], args[2], args[0]))


@pytest.mark.parametrize("n", [blocks.SHORTEST - 1, blocks.SHORTEST, blocks.SHORTEST + 1, 100_003])
def test_real_sizes(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=n)
    check(lambda x: np.sum(np.exp(np.sin(x) * 0.1) * x + x**2), x, monkeypatch=monkeypatch, made=n >= blocks.SHORTEST)


@pytest.mark.parametrize("n", [1, 127, 128, 129, 1000, 16_384, 16_385, 123_457])
@pytest.mark.parametrize("most", [128, 1000, 16_384])
def test_blocks_cover_each_element_once(n: int, most: int) -> None:
    seen = np.zeros(n, int)
    lengths = []

    def kernel(part: Any, by: int) -> tuple[int]:
        part += by
        lengths.append(len(part))
        return (len(part),)

    assert in_blocks(kernel, n, most, (seen,), (1,), (np.add,)) == ((n,) if n <= most else [n])
    assert (seen == 1).all()
    assert max(lengths) == largest_block(n, most) <= most


def test_arrays_and_numbers_of_all_kinds(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n = 1000
    x, t = rng.normal(size=n), np.float64(0.7)

    def f(x: Any, t: Any, k: Any, flags: Any, z: Any) -> Any:
        y = np.where(flags, x * t, k.astype(float)) + np.cos(x) ** 2
        w = np.exp(1j * y) * z
        big = y > 0.5
        return y, w.real + np.abs(w), big & flags, k * 3 + big, np.sum(y), np.max(w.imag)

    args = (x, t, rng.integers(-4, 4, n), x > 0, rng.normal(size=n) + 1j)
    assert MADE in both(rg.jit(f).graph(*args), args, monkeypatch)[0].module.source


def test_special_values(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.tile([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-310, 709.9, -1e308], 100)
    with np.errstate(all="ignore"):
        graph = rg.jit(lambda x: (np.exp(x) / x - np.sqrt(x), np.sum(x * 0), np.max(x + 1), np.min(x * 2))).graph(x)
    assert MADE in both(graph, (x,), monkeypatch)[0].module.source


def test_arrays_that_lie_otherwise_in_memory(short: None) -> None:
    f = rg.value_and_grad(lambda x, y: np.sum(np.sin(x) * y + x * x))
    x, y = np.random.default_rng(0).normal(size=(2, 2000))
    assert MADE in f.source(x[::2], y[:1000])
    value, gradient = f(x[::2], y[::-1][:1000])
    again, same = f(x[::2].copy(), y[::-1][:1000].copy())
    assert value == again
    np.testing.assert_array_equal(gradient, same)


def test_arguments_are_not_changed_and_results_are_new(short: None) -> None:
    f = rg.jit(lambda x: (np.sin(x) * 2.0 + x, np.cos(x) - 1.0, x))
    x = np.linspace(0.0, 1.0, 1000)
    kept = x.copy()
    first, second, _ = f(x)
    first[:] = second[:] = 7.0
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(f(x)[0], np.sin(kept) * 2.0 + kept)


def random_program(seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    steps = [(int(rng.integers(0, 9)), int(rng.integers(0, 99)), int(rng.integers(0, 99))) for _ in range(25)]

    def run(x: Any, y: Any, t: Any) -> Any:
        arrays, numbers = [x, y], [t, 0.5]
        for kind, i, k in steps:
            a, b, s = arrays[i % len(arrays)], arrays[k % len(arrays)], numbers[k % len(numbers)]
            match kind:
                case 0:
                    arrays.append(np.sin(a) * b)
                case 1:
                    arrays.append(a * s + 1.0)
                case 2:
                    arrays.append(np.tanh(a) - b)
                case 3:
                    numbers.append(np.sum(a * b) * 1e-3)
                case 4:
                    numbers.append(np.tanh(np.max(a)))
                case 5:
                    arrays.append(np.where(a > 0.1, b, a * 0.5))
                case 6:
                    arrays.append(np.cumsum(a) * 1e-3)
                case 7:
                    arrays.append(a[::-1] + b)
                case _:
                    arrays.append(np.concatenate([a[1:], b[:1]]) / (2.0 + s * s))
        return sum((np.sum(a) for a in arrays[-3:]), start=np.float64(0.0)) + numbers[-1]  # fmt: skip

    return run


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, 700))
    check(random_program(seed), x, y, np.float64(0.3), monkeypatch=monkeypatch)


@pytest.mark.parametrize("plan", [None, rg.Snapshots(2), rg.Log(), rg.Periodic(3)])
def test_steps_of_loops(plan: Any, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any) -> Any:
        last, sums = rg.scan(lambda c, _: (np.sin(c) * y + 0.1 * c, np.sum(c * c)), x, None, length=9, memory=plan)
        return np.sum(last) + np.sum(sums)

    x, y = np.random.default_rng(0).normal(size=(2, 700))
    check(f, x, y, monkeypatch=monkeypatch)


@one_thread()
def test_the_memory_is_that_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(x: Any) -> Any:
        for k in range(20):
            x = np.sin(x) * (1.0 + 0.01 * k) + x * x
        return np.sum(x)

    x = np.random.default_rng(0).normal(size=200_000) * 0.01
    found, without = both(rg.value_and_grad(chain).graph(x), (x,), monkeypatch)
    for made in (found, without):
        assert Simulation(made.plan).peak() == pytest.approx(measured(made, x), rel=0.02)
    assert Simulation(found.plan).peak() < 0.4 * Simulation(without.plan).peak()


def kernel_in(source: str) -> str:
    """The function of the first kernel."""
    return source[source.index("n = len(") :].partition("\n\n\n")[0]


@one_thread()
def test_what_a_block_needs_lies_in_the_results_until_they_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any, y: Any) -> Any:
        a, b = np.exp(x), np.sin(y)
        c = np.cos(a * b)
        return c * a, np.tanh(c) / b, np.float32(2.0) * np.cos(y).astype(np.float32)

    x, y = np.random.default_rng(0).normal(size=(2, 200_000))
    found, _ = both(rg.jit(f).graph(x, y), (x, y), monkeypatch)
    body = kernel_in(found.module.source)
    assert body.count("np.ndarray(n, np.float64") == 1  # for c, a and b being in the first two results
    assert Simulation(found.plan).peak() == pytest.approx(measured(found, x, y), rel=0.01)


def test_results_that_others_read_and_results_of_masks_are_computed_in_their_arrays(short: None) -> None:
    def f(x: Any, y: Any) -> Any:
        a = np.sin(x)
        first = a * y
        b = np.cos(first) + a
        mask = np.where(b > 0.5, 0.25, b)
        return first, mask, mask * np.exp(first), np.sum(b)

    x, y = np.random.default_rng(0).normal(size=(2, 1001))
    g = rg.jit(f)
    for found, expected in zip(g(x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert MADE in g.source(x, y)


@one_thread()
@pytest.mark.parametrize("n", [blocks.SHORTEST - 1, blocks.SHORTEST, 100_003])
def test_budgets_hold_and_keep_every_bit(n: int) -> None:
    def f(x: Any, w: Any) -> Any:
        for k in range(1, 7):
            x = np.sin(x * w) + 0.1 * k * np.cumsum(x) / n  # a cumulative sum has no blocks, and parts kernels
        return np.sum(x * x)

    x, w = np.random.default_rng(n).normal(size=(2, n))
    free = rg.value_and_grad(f, (0, 1))
    assert "= workspace(" in free.source(x, w)
    most = free.plan(x, w).peak_bytes
    with pytest.raises(rg.errors.MemoryBudgetError) as refused:
        rg.value_and_grad(f, (0, 1), memory=1)(x, w)
    least = refused.value.minimum
    assert least < 0.9 * most
    for budget in (least, (least + most) // 2, most):
        within = rg.value_and_grad(f, (0, 1), memory=budget)
        assert (MADE in within.source(x, w)) == (n >= blocks.SHORTEST)
        predicted = within.plan(x, w).peak_bytes
        assert predicted <= budget
        assert measured(within, x, w) <= 1.01 * predicted + 4096
        for one, other in zip(rg.tree.leaves(within(x, w)), rg.tree.leaves(free(x, w)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_an_exported_module_has_blocks_of_its_own(tmp_path: Any) -> None:
    f = rg.grad(lambda x: np.sum(np.sin(x) * x * x + np.exp(x)))
    x = np.random.default_rng(0).normal(size=blocks.SHORTEST)
    source = f.source(x)
    assert "def in_blocks(" in source
    scope: dict[str, Any] = {"__name__": "made"}
    exec(source, scope)
    name = next(iter(n for n in scope if n.endswith("_grad")))
    np.testing.assert_array_equal(scope[name](x), f(x))


@pytest.mark.parametrize(("many", "longest"), [(3, blocks.MOST), (12, blocks.MOST // 2)])
def test_blocks_are_shorter_where_many_arrays_are_alive(many: int, longest: int) -> None:
    def f(x: Any) -> Any:
        parts = [np.sin(k * x) for k in range(1, many + 1)]
        total = parts[0]
        for part in (*parts[1:], *parts):
            total = total * part + 1.0
        return total

    compiled, x = rg.jit(f), np.linspace(0.0, 1.0, 100_000)
    np.testing.assert_array_equal(compiled(x), f(x))
    (call,) = [line for line in compiled.source(x).splitlines() if MADE in line and "def " not in line]
    assert f", {longest}, " in call
