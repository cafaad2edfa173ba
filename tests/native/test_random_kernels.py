"""Random kernels of views, writes, reductions and loops on arrays of one to nine elements along each axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.shared_objects import LEAN, at_effort, compiler
from retrograd.codegen.native.target import REFUSALS, compiled
from retrograd.ir import Aval, Graph, evaluate, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.structure import Layout
from retrograd.ir.texts import Arg
from retrograd.ops.index import shifted
from retrograd.ops.structural.cond import make_cond
from retrograd.ops.structural.scan import make_scan
from retrograd.ops.structural.while_loop import make_while
from retrograd.passes.prune import prune
from tests.support import values
from tests.support.graphs import op
from tests.support.native import in_a_hurry, needs_compiler, results, taken
from tests.support.seeds import SEED

pytestmark = needs_compiler
F64 = np.dtype(np.float64)
TOGETHER = 50  # kernels in one extension module
MANY = 200  # ... where it is not optimised
FEW = 12  # ... where each is compiled several times
UNARY = ("sin", "tanh", "neg", "square", "abs", "exp")
BINARY = ("add", "sub", "mul", "maximum", "minimum")


class RandomKernel:
    """A graph under construction; results that may grow pass through a function that is bounded."""

    dtype = F64
    most = 400  # elements of a value

    @staticmethod
    def shape(rng: np.random.Generator) -> tuple[int, ...]:
        """The shape of an argument."""
        return tuple(int(n) for n in rng.integers(1, 10, int(rng.integers(1, 4))))

    def __init__(self, seed: int, b: Builder, start: list[Symbol], loops: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.b, self.values, self.loops = b, [*start], loops

    def _bounded(self, x: Symbol) -> Symbol:
        return op("sin", x)

    def _real(self, x: Symbol) -> Symbol:
        return x

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def any(self) -> Symbol:
        return self.values[self.integer(max(0, len(self.values) - 6), len(self.values))]

    def arrays(self) -> Symbol | None:
        found = [x for x in self.values if x.ndim]
        return found[self.integer(0, len(found))] if found else None

    def step(self) -> None:
        kinds: list[Callable[[], Symbol | None]] = [
            *(self._unary, self._binary, self._binary, self._reduction, self._broadcast, self._reshape),
            *(self._permute, self._getitem, self._getitem, self._roll, self._concatenate, self._write, self._write),
            *(self._where, self._scan, self._stack, self._product, self._gather, self._scatter, self._scatter),
            *(self._choice, self._while, self._running, self._turned, self._within),
        ]
        made = kinds[self.integer(0, len(kinds))]()
        if made is not None and 0 < made.aval.size <= self.most:
            self.values.append(made)

    def _unary(self) -> Symbol:
        name = UNARY[self.integer(0, len(UNARY))]
        return op(name, op("sin", self.any())) if name in ("exp", "square") else op(name, self.any())

    def _like(self, x: Symbol) -> Symbol:
        found = [y for y in self.values if y.shape == x.shape]
        return found[self.integer(0, len(found))] if found else self.b.constant(0.5, x.aval)

    def _binary(self) -> Symbol:
        x = self.any()
        y = self._like(x)
        return self._bounded(op(BINARY[self.integer(0, len(BINARY))], x, y))

    def _where(self) -> Symbol | None:
        x = self.arrays()
        return (
            None
            if x is None
            else op("where", op("gt", self._real(x), self._real(self._like(x))), x, self.b.constant(-0.5, x.aval))
        )

    def _reduction(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        axes = tuple(a for a in range(x.ndim) if self.integer(0, 2)) or (self.integer(0, x.ndim),)
        name = ("sum", "max", "min", "sum")[self.integer(0, 4)]
        return self._bounded(op(name, x, axis=axes, keepdims=bool(self.integer(0, 2))))

    def _broadcast(self) -> Symbol | None:
        x = self.any()
        if x.ndim > 2:
            return None
        shape = tuple(self.integer(1, 10) if n == 1 else n for n in x.shape)
        return op("broadcast", x, aval=Aval((self.integer(1, 10), *shape), self.dtype))

    def _reshape(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        n = x.aval.size
        parts = [k for k in range(1, n + 1) if n % k == 0]
        k = parts[self.integer(0, len(parts))]
        shapes = [(n,), (k, n // k), (1, n), (k, 1, n // k)]
        return op("reshape", x, aval=Aval(shapes[self.integer(0, 4)], self.dtype))

    def _permute(self) -> Symbol | None:
        x = self.arrays()
        return None if x is None else op("permute", x, axes=tuple(int(a) for a in self.rng.permutation(x.ndim)))

    def _index(self, shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[Any, ...]:
        items: list[Any] = []
        for n in shape:
            if self.integer(0, 4) == 0:
                items.append(self.integer(-n, n))
                continue
            start = self.integer(0, n)
            stop = self.integer(start + 1, n + 1)
            step = steps[self.integer(0, len(steps))]
            items.append(slice(start, stop, None if step == 1 else step) if step > 0 else slice(None, None, step))
        return tuple(items)

    def _getitem(self) -> Symbol | None:
        x = self.arrays()
        return None if x is None else op("getitem", x, index=self._index(x.shape, (1, 1, 2, -1, -2)))

    def _roll(self) -> Symbol | None:
        x = self.arrays()
        axes = [a for a, n in enumerate(x.shape) if n > 1] if x is not None else []
        if x is None or not axes:
            return None
        axis = axes[self.integer(0, len(axes))]
        return op("roll", x, axis=axis, shift=self.integer(1, x.shape[axis]))

    def _concatenate(self) -> Symbol | None:
        x = self.arrays()
        return None if x is None else op("concatenate", x, self._like(x), x, axis=self.integer(0, x.ndim))

    def _write(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        index = self._index(x.shape, (1,))
        part = op("getitem", x, index=index)
        name = ("setitem", "additem")[self.integer(0, 2)]
        return self._bounded(op(name, x, op("neg", part), index=index))

    def _stack(self) -> Symbol | None:
        found = [x for x in self.values if not x.ndim]
        return op("array", *found[-5:]) if found else None

    def _positions(self, n: int, shape: tuple[int, ...]) -> Symbol:
        """Integers between -n and n - 1 that data decide."""
        x = self.b.emit(REGISTRY["iota"], (), {"aval": Aval((math.prod(shape),), np.dtype(np.int64))})[0]
        found = op("reshape", x, aval=Aval(shape, np.dtype(np.int64)))
        wrapped = op("where", op("lt", found, self.integer(0, 9)), found, found * -1)
        return op("maximum", op("minimum", wrapped + self.integer(-4, 4), n - 1), -n)

    def _chosen(self, shape: tuple[int, ...], first: int) -> tuple[tuple[Any, ...], list[Symbol]]:
        """An index with arrays of positions for some of the axes, or numbers, and slices for others."""
        own = [(), (self.integer(1, 6),), (self.integer(1, 4), self.integer(1, 4))][self.integer(0, 3)]
        items: list[Any] = []
        given: list[Symbol] = []
        for n in shape:
            if self.integer(0, 2) or not given:
                items.append(Arg(first + len(given)))
                given.append(self._positions(n, own))
            else:
                items.append(slice(None) if self.integer(0, 2) else slice(self.integer(0, n), None))
        return tuple(items), given

    def _gather(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        index, given = self._chosen(x.shape, 1)
        return op("gather" if given[0].ndim else "getitem", x, *given, index=index)

    def _scatter(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        index, given = self._chosen(x.shape, 2)
        names = ("scatter", "scatter_add") if given[0].ndim else ("setitem", "additem", "subitem")
        part = op("gather" if given[0].ndim else "getitem", x, *given, index=shifted(index, -1))
        written = op(names[self.integer(0, len(names))], x, self._bounded(part) * 2.0, *given, index=index)
        return self._bounded(written)

    def _running(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        names = ("cumsum", "cumprod", "cummax", "cummin")
        axis, reverse = self.integer(0, x.ndim), bool(self.integer(0, 2))
        return self._bounded(op(names[self.integer(0, 4)], self._bounded(x), axis=axis, reverse=reverse))

    def _turned(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        index = tuple(slice(None, None, -1) if a == 0 or self.integer(0, 2) else slice(None) for a in range(x.ndim))
        return self._bounded(op("additem", x, self._like(x), index=index))

    def _number(self, numbers: list[int]) -> Symbol:
        """One of two numbers, as the data decide."""
        whole = Aval((), np.dtype(np.int64), "scalar")
        return op("where", op("gt", self._total(self.any()), 0.1), *(self.b.constant(k, whole) for k in numbers))

    def _within(self) -> Symbol | None:
        vectors = [x for x in self.values if x.ndim == 1]
        if not vectors:
            return None
        x, y = (vectors[self.integer(0, len(vectors))] for _ in range(2))
        lengths = [self.integer(0, min(x.aval.size, y.aval.size) + 1) for _ in range(2)]
        free = [v.aval.size - max(lengths) + 1 for v in (x, y)]
        starts = tuple(bool(self.integer(0, 2)) for _ in free)
        begins = [[self.integer(0, n) for _ in range(2)] for n, on in zip(free, starts, strict=True) if on]
        numbers = [self._number(pair) for pair in (lengths, *begins)]
        if self.integer(0, 2):
            return self._bounded(op("dot_within", x, y, *numbers, starts=starts))
        return self._bounded(op("add_within", x, self._total(y), y, *numbers, starts=starts))

    def _product(self) -> Symbol | None:
        found = [x for x in self.values if x.ndim in (1, 2)]
        pairs = [(x, y) for x in found for y in found if x.shape[-1] == y.shape[0]]
        if not pairs:
            return None
        x, y = pairs[self.integer(0, len(pairs))]
        return self._bounded(op("vecdot", x, x) if self.integer(0, 4) == 0 else op("matmul", x, y))

    def _body(self, inner: Builder, given: list[Symbol]) -> RandomKernel:
        body = type(self)(self.integer(0, 2**31), inner, given, self.loops)
        for _ in range(self.integer(1, 6)):
            body.step()
        return body

    def _total(self, x: Symbol) -> Symbol:
        x = self._real(self._bounded(x))
        total = op("sum", x, axis=tuple(range(x.ndim)), keepdims=False) if x.ndim else x
        return total if total.aval.kind == "scalar" else op("copy", total)

    def _choice(self) -> Symbol | None:
        if not self.loops:
            return None
        self.loops -= 1
        start, branches = [self.any(), self.any()], []
        several = bool(self.integer(0, 2))
        for k in range(2 + several):
            inner = Builder()
            given = [inner.input(v.aval) for v in start]
            body = self._body(inner, given)
            branches.append(inner.graph(f"branch{k}", [self._bounded(_reached(body, x)) for x in given]))
        flag = op("gt", self._total(start[0]), 0.3 * self.integer(-1, 2))
        whole = Aval((), np.dtype(np.int64), "scalar")
        numbers = [self.b.constant(self.integer(-1, 4), whole) for _ in range(2)]
        number = op("where", flag, *numbers) if several else flag
        made = make_cond(self.b, number, branches, start)
        self.values += made
        return made[0]

    def _while(self) -> Symbol | None:
        if not self.loops:
            return None
        self.loops -= 1
        x, parts = self.any(), Layout(1, 2)
        count = Aval((), np.dtype(np.int64), "scalar")
        decide = Builder()
        given = [decide.input(v) for v in (self.values[0].aval, x.aval, count)]
        early = type(self)(0, decide, given)._total(given[1])
        goes = op("logical_and", op("lt", given[2], self.integer(0, 7)), op("lt", early, 0.9))
        inner = Builder()
        inputs = [inner.input(v.aval) for v in given]
        body = self._body(inner, inputs[:2])
        step = inner.graph("step", [self._bounded(_reached(body, inputs[1])) + 0.1, inputs[2] + 1])
        start = [self.values[0], x, self.b.constant(0, count)]
        last, _, _ = make_while(self.b, decide.graph("goes", [goes]), step, parts, start)
        return last[0]

    def _scan(self) -> Symbol | None:
        x, ys = self.any(), self.arrays()
        if not self.loops or ys is None:
            return None
        self.loops -= 1
        inner = Builder()
        start = [x, self.any()]
        carry = [inner.input(v.aval) for v in start]
        row = inner.input(Aval(ys.shape[1:], self.dtype, "array" if ys.ndim > 1 else "scalar"))
        const = inner.input(self.values[0].aval)
        given = [const, *carry, row]
        body = type(self)(self.integer(0, 2**31), inner, given, self.loops)
        inner.inputs[:] = [const.value, *(c.value for c in carry), row.value]
        for _ in range(self.integer(2, 7)):
            body.step()
        after = [_reached(body, c) for c in carry]
        collected = after[0] if self.integer(0, 4) == 0 else self._bounded(body.values[-1])
        outs = [*after, collected]
        graph = inner.graph("step", outs)
        reverse = bool(self.integer(0, 2))
        operands = [self.values[0], *start, ys]
        last, arrays, _ = make_scan(self.b, graph, Layout(1, 2, 1), operands, ys.shape[0], reverse)
        self.values += last
        return arrays[0] if arrays[0].aval.size <= self.most else last[0]


class RandomLongKernel(RandomKernel):
    """The same on longer arrays, on both sides of the lengths from which C takes another form."""

    most = 40_000

    @staticmethod
    def shape(rng: np.random.Generator) -> tuple[int, ...]:
        """An axis or two, of which one is long."""
        short, long = int(rng.integers(1, 10)), (65, 127, 130, 700, 1025, 1030, 2050, 4097)[rng.integers(0, 8)]
        return ((long,), (short, long), (long, short), (64 + short, 70))[rng.integers(0, 4)]


class RandomComplexKernel(RandomKernel):
    """The same on complex numbers; products of matrices are NumPy's."""

    dtype = np.dtype(np.complex128)

    def _bounded(self, x: Symbol) -> Symbol:
        return op("div", x, self._complex(op("abs", x) + 1.0))

    def _real(self, x: Symbol) -> Symbol:
        return op("real", x) if self.integer(0, 2) else op("imag", x)

    def _complex(self, x: Symbol) -> Symbol:
        return op("cast", x, aval=Aval(x.shape, self.dtype, x.aval.kind))

    def _unary(self) -> Symbol:
        x = self._bounded(self.any())
        name = ("conj", "neg", "square", "exp", "abs", "imag", "reciprocal")[self.integer(0, 7)]
        if name == "reciprocal":
            return op(name, x + 2.0)
        return self._complex(op(name, x)) if name in ("abs", "imag") else op(name, x)

    def _binary(self) -> Symbol:
        x = self.any()
        y = self._like(x)
        name = ("add", "sub", "mul", "div")[self.integer(0, 4)]
        return self._bounded(op(name, x, self._bounded(y) + 2.0 if name == "div" else y))

    def _reduction(self) -> Symbol | None:
        x = self.arrays()
        if x is None:
            return None
        axes = tuple(a for a in range(x.ndim) if self.integer(0, 2)) or (self.integer(0, x.ndim),)
        return self._bounded(op("sum", x, axis=axes, keepdims=bool(self.integer(0, 2))))

    def _product(self) -> Symbol | None:
        return None

    def _running(self) -> Symbol | None:
        return self._binary()

    def _within(self) -> Symbol | None:
        return self._binary()


class RoundedKernel(RandomKernel):
    """The same with casts to narrower numbers and back."""

    narrow = np.dtype(np.float32)

    def _unary(self) -> Symbol:
        x = super()._unary()
        near = op("cast", x, aval=Aval(x.shape, self.narrow))
        return op("cast", near, aval=Aval(x.shape, self.dtype)) if self.integer(0, 2) else x


class RoundedComplexKernel(RoundedKernel, RandomComplexKernel):
    """The same on complex numbers."""

    narrow = np.dtype(np.complex64)


def _reached(body: RandomKernel, carry: Symbol) -> Symbol:
    """A next state: the last value of the same type that the body has."""
    found = [v for v in body.values if v.aval == carry.aval]
    return found[-1]


def random_kernel(seed: int, kind: type[RandomKernel] = RandomKernel) -> tuple[Graph, list[Any]]:
    rng = np.random.default_rng(seed)
    b = Builder()
    shapes = [kind.shape(rng) for _ in range(2)]
    kernel = kind(seed, b, [b.input(Aval(shape, kind.dtype)) for shape in shapes])
    for _ in range(int(rng.integers(4, 16))):
        kernel.step()
    made = [x for x in kernel.values[2:] if x.aval.kind != "python"][-3:]
    outs = [op("copy", x) if x.ndim else x for x in made]
    graph = verify(prune(b.graph("random", outs)))
    args = [rng.normal(size=shape) for shape in shapes]
    return graph, args if kind.dtype == F64 else [x + 1j * np.cos(x * 5.0) for x in args]


def sensitivity(graph: Graph, args: list[Any], expected: list[Any]) -> float:
    """How far the last bits of the arguments move the results: loops may amplify them without bound."""
    rng, moved = np.random.default_rng(0), 0.0
    for _ in range(3):
        near = [x * (1 + rng.choice([-1, 1], x.shape) * 1.2e-16) for x in args]
        pairs = zip(expected, evaluate(graph, near), strict=True)
        moved = max([moved, *(float(np.max(np.abs(x - y), initial=0.0)) for x, y in pairs)])
    return moved


def as_numpy_computes(seeds: range, kind: type[RandomKernel] = RandomKernel) -> int:
    """Compare the kernels of these seeds with NumPy; the number of kernels."""
    return compared((seed, *random_kernel(seed, kind)) for seed in seeds)


def compared(drawn: Iterable[tuple[int, Graph, list[Any]]]) -> int:
    """Compare kernels of these seeds, graphs and arguments with NumPy; how many of them C has."""
    cases = [case for case in drawn if taken(case[1])]

    def fallback(*args: Any) -> Any:
        raise AssertionError("the kernel gave up")

    REFUSALS.clear()
    functions = compiled([replace(graph) for _, graph, _ in cases], [fallback] * len(cases))
    assert not [why for why in REFUSALS if "failed" in why], REFUSALS
    for (seed, graph, args), function in zip(cases, functions, strict=True):
        if function is None:
            continue
        try:
            found = results(function, graph, args)
            values.assert_has_avals(found, graph.out_avals)
            expected = list(evaluate(graph, args))
            try:
                values.assert_close(found, expected, 1e-9)
            except AssertionError:
                values.assert_close(found, expected, 10 * sensitivity(graph, args, expected))
        except AssertionError as fault:
            fault.add_note(f"seed {seed}:\n{graph}")
            raise
    return sum(function is not None for function in functions)


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("kind", [RandomKernel, RoundedKernel, RoundedComplexKernel])
def test_random_kernels_compute_what_numpy_computes(kind: type[RandomKernel], part: int) -> None:
    start = (SEED * 1000 + part) * TOGETHER
    assert as_numpy_computes(range(start, start + TOGETHER), kind) >= TOGETHER // 2


@pytest.mark.parametrize("part", [*range(10), *(pytest.param(k, marks=pytest.mark.slow) for k in range(10, 250))])
def test_many_random_kernels_compute_what_numpy_computes(part: int) -> None:
    start = 10**6 + (SEED * 1000 + part) * MANY
    with in_a_hurry():
        assert as_numpy_computes(range(start, start + MANY)) >= 0.8 * MANY


@pytest.mark.parametrize("part", [*range(2), *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 50))])
def test_many_random_kernels_of_complex_numbers(part: int) -> None:
    start = 10**8 + (SEED * 1000 + part) * MANY
    with in_a_hurry():
        assert as_numpy_computes(range(start, start + MANY), RandomComplexKernel) >= 0.8 * MANY


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 50))])
def test_many_random_kernels_of_long_arrays(part: int) -> None:
    start = 10**10 + (SEED * 1000 + part) * MANY
    with in_a_hurry():
        assert as_numpy_computes(range(start, start + MANY), RandomLongKernel) >= 0.5 * MANY


@pytest.mark.parametrize("kind", [RandomKernel, RandomLongKernel, RandomComplexKernel])
@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 30))])
def test_no_effort_of_the_compiler_changes_a_bit(
    part: int, kind: type[RandomKernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much there is to compile decides about it, and so would a plan of memory, and a batch."""
    tool = compiler()
    assert tool is not None
    start = 10**12 + (SEED * 1000 + part) * FEW
    drawn = [random_kernel(seed, kind) for seed in range(start, start + FEW)]
    cases = [(graph, args) for graph, args in drawn if taken(graph)]
    monkeypatch.setattr(shared_objects, "_flags_for", lambda tool, source: tool.flags)
    further = shared_objects.CLANG.values() if "clang" in tool.version else (LEAN, *shared_objects.EFFORT.values())
    found: list[list[Any]] = []
    for effort in (("-O3",), *further):
        flags = at_effort(tool.flags, effort)
        monkeypatch.setattr(shared_objects, "compiler", lambda flags=flags: replace(tool, flags=flags))
        functions = compiled([replace(graph) for graph, _ in cases], [lambda *_: ()] * len(cases))  # () if it gives up
        found.append([f and results(f, graph, args) for f, (graph, args) in zip(functions, cases, strict=True)])
    assert sum(one is not None for one in found[0]) > FEW // 4
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                values.assert_same_bits(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_optimised_kernels_compute_what_numpy_computes(part: int) -> None:
    start = 10**7 + (SEED * 1000 + part) * TOGETHER
    assert as_numpy_computes(range(start, start + TOGETHER)) >= TOGETHER // 2
