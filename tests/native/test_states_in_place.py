"""States that steps change where they stand, also in loops in loops: who reads an old state gets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads.kernels import gauss_seidel
from retrograd.ir import Aval
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.structure import Layout
from retrograd.ir.texts import Arg
from retrograd.ops.index import shifted
from retrograd.ops.structural.scan import make_scan
from tests.native.test_random_kernels import F64, TOGETHER, RandomKernel, as_numpy_computes
from tests.support.graphs import op
from tests.support.native import in_a_hurry, needs_compiler
from tests.support.seeds import SEED

pytestmark = needs_compiler
WHOLE = np.dtype(np.int64)
NUMBER = Aval((), WHOLE, "scalar")


class RandomStates(RandomKernel):
    """Random kernels of loops whose steps write into their state, in inner loops too, and read older states of it."""

    @staticmethod
    def shape(rng: np.random.Generator) -> tuple[int, ...]:
        """A matrix, or three axes, of which the last one is long."""
        return tuple(int(n) for n in (*rng.integers(1, 6, int(rng.integers(1, 3))), rng.integers(3, 25)))

    def step(self) -> None:
        if self.integer(0, 4) and any(x.aval.size > 16 for x in self.values):
            large = [x for x in self.values if x.aval.size > 16]
            self.values.append(self._bounded(self._loop(large[self.integer(0, len(large))], depth=0)))
        else:
            super().step()

    def _loop(self, state: Symbol, depth: int) -> Symbol:
        """A loop over a state, which may also collect states or parts of them, and lets another value pass."""
        length, other = self.integer(2, 5), self.values[self.integer(0, len(self.values))]
        inner = Builder()
        given = [inner.input(v) for v in (other.aval, state.aval, NUMBER)]
        body = type(self)(self.integer(0, 2**31), inner, given[:2], loops=0)
        states = body._chain(given[1], given[2], depth)
        collects = self.integer(0, 3) == 0
        outs = [states[-1], *([body.values[-1]] if collects else [])]
        graph = inner.graph("step", outs)
        at = self.b.emit(REGISTRY["iota"], (), {"aval": Aval((length,), WHOLE)})[0]
        parts, backwards = Layout(1, 1, len(outs) - 1), bool(self.integer(0, 2))
        last, arrays, _ = make_scan(self.b, graph, parts, [other, state, at], length, backwards)
        self.values += [self._bounded(x) for x in arrays if x.aval.size <= self.most]
        return last[0]

    def _chain(self, state: Symbol, at: Symbol, depth: int) -> list[Symbol]:
        """States, each made of the one before by a write or by a loop; readers of all of them in between."""
        states = [state]
        for _ in range(self.integer(1, 6)):
            if depth < 2 and self.integer(0, 3) == 0:
                self.values += states[-1:] if self.integer(0, 4) == 0 else []
                states.append(self._loop(states[-1], depth + 1))
            elif self.integer(0, 3) == 0:
                states += self._stencil(states, at)
            else:
                states.append(self._written(states, at))
            if self.integer(0, 3) == 0:
                self.values.append(self._bounded(self._part(states, at)))
        if self.integer(0, 8) == 0:
            self.values.append(self._bounded(states[self.integer(0, len(states))]))
        return states

    def _written(self, states: list[Symbol], at: Symbol) -> Symbol:
        """A write of parts of states at a place that the step decides."""
        now = states[-1]
        index, given = self._place(now, at)
        name = ("setitem", "additem", "subitem")[self.integer(0, 3)]
        part = op("getitem", now, *given, index=shifted(index, -1))
        new = self._like_part(self._part(states, at), part.aval)
        if self.integer(0, 2):
            new = self._bounded(op(("add", "mul")[self.integer(0, 2)], new, self._like_part(part, part.aval)))
        if self.integer(0, 3) == 0:
            new = op("add", new, self._like_part(self.any(), part.aval))
        written: Symbol = op(name, now, self._bounded(new), *given, index=index)
        return written

    def _stencil(self, states: list[Symbol], at: Symbol) -> list[Symbol]:
        """Additions of one part of a state to neighbouring parts of a row, as in the adjoint of a stencil."""
        now = states[-1]
        index, given = self._place(now, at)
        axes = [k for k, item in enumerate(index) if isinstance(item, slice)]
        if not axes:
            return []
        axis = axes[self.integer(0, len(axes))]
        n = now.shape[axis]
        length = self.integer(1, n + 1)
        new, found = None, []
        for _ in range(self.integer(2, 5)):
            start = self.integer(0, n - length + 1)
            own = (*index[:axis], slice(start, start + length), *index[axis + 1 :])
            part = op("getitem", now, *given, index=shifted(own, -1))
            if new is None:
                new = self._bounded(self._like_part(self._part([now], at), part.aval))
            found.append(op("additem", found[-1] if found else now, new, *given, index=own))
        return found

    def _place(self, x: Symbol, at: Symbol) -> tuple[tuple[Any, ...], list[Symbol]]:
        """An index with numbers that depend on the step, ints and slices."""
        items: list[Any] = []
        given: list[Symbol] = []
        for n in x.shape:
            kind = self.integer(0, 3)
            if kind == 0 or not (given or items):
                items.append(Arg(2 + len(given)))
                shifted_by = op("add", at, self.b.constant(self.integer(-3, 3), NUMBER))
                low, high = (self.b.constant(k, NUMBER) for k in (-n, n - 1))
                given.append(op("maximum", op("minimum", shifted_by, high), low))
            elif kind == 1:
                items.append(self.integer(-n, n))
            else:
                start = self.integer(0, n)
                items.append(slice(start, self.integer(start + 1, n + 1)))
        return tuple(items), given

    def _part(self, states: list[Symbol], at: Symbol) -> Symbol:
        """A part of one of the last states, or of any other."""
        x = states[self.integer(max(0, len(states) - 2), len(states)) if self.integer(0, 3) else 0]
        index, given = self._place(x, at)
        part: Symbol = op("getitem", x, *given, index=shifted(index, -1))
        return part

    def _like_part(self, x: Symbol, aval: Aval) -> Symbol:
        """The value in a shape: its elements if it has as many, else their sum."""
        if x.aval.size == aval.size and x.ndim and aval.shape:
            found: Symbol = op("reshape", x, aval=Aval(aval.shape, F64))
            return found
        total = self._total(x)
        spread: Symbol = op("broadcast", total, aval=Aval(aval.shape, F64)) if aval.shape else total
        return spread


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 100))])
def test_random_states_are_as_numpy_computes(part: int) -> None:
    start = 7 * 10**9 + (SEED * 1000 + part) * TOGETHER
    with in_a_hurry():
        assert as_numpy_computes(range(start, start + TOGETHER), RandomStates) >= 0.5 * TOGETHER


def sweeps(a: Any) -> Any:
    """Gauss–Seidel: each row takes the rows beside it, and then each point the one before it."""
    n, m = a.shape

    def row(a: Any, i: Any) -> Any:
        a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 1:-1] + a[i, 2:]
        a[i, 1:-1] += a[i + 1, :-2] + a[i + 1, 2:]

        def point(j: Any, a: Any) -> Any:
            a[i, j + 1] += a[i, j]
            a[i, j + 1] /= 7.0
            return a

        return rg.fori_loop(m - 2, point, a), None

    return np.sum(rg.scan(row, a * 1.0, np.tile(np.arange(1, n - 1), 3))[0] ** 2)


@pytest.mark.parametrize("shape", [(4, 4), (4, 5), (7, 9), (24, 24), (3, 70), (40, 41)])
def test_loops_in_loops_change_one_array(shape: tuple[int, ...]) -> None:
    a = np.linspace(-1, 1, shape[0] * shape[1]).reshape(shape)
    f, g = rg.value_and_grad(sweeps, backend="native"), rg.value_and_grad(sweeps)
    for x in (a, a[::-1].copy()):
        (value, slope), (expected, other) = f(x), g(x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)
    if shape == (24, 24):
        source = f.source(a, language="c")
        kernel = source[source.index("static int kernel0") : source.index("static int run0")]
        loops = kernel[kernel.index("for (") : kernel.rindex("for (")]
        assert "memcpy" not in loops


def test_a_step_that_reads_much_of_its_state_later_copies_it() -> None:
    def f(x: Any) -> Any:
        def step(k: Any, a: Any) -> Any:
            old = a
            b = a.copy()
            b[k, 1:] += a[k, :-1] * 0.5
            b = rg.fori_loop(5, lambda j, b: _written(b, j, old), b)
            return b + 0.1 * old

        return np.sum(rg.fori_loop(4, step, x) ** 2)

    def _written(b: Any, j: Any, old: Any) -> Any:
        b[j, j] = np.sum(old[j]) - b[j, 0]
        return b

    x = np.linspace(0.1, 1.0, 36).reshape(6, 6)
    for transform in (rg.jit, rg.grad, rg.value_and_grad):
        found, expected = transform(f, backend="native")(x), transform(f)(x)
        for one, other in zip(
            found if isinstance(found, tuple) else [found],
            expected if isinstance(expected, tuple) else [expected],
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_gauss_seidel_of_the_benchmark() -> None:
    a = np.linspace(-1, 1, 576).reshape(24, 24)
    (value, slope), (expected, other) = (
        rg.value_and_grad(gauss_seidel, backend=backend)(a) for backend in ("native", "numpy")
    )
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(slope, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("part", range(6))
def test_additions_to_one_row_are_one_loop_and_keep_their_order(part: int) -> None:
    rng = np.random.default_rng([SEED, part])
    length = int(rng.integers(1, 20))
    starts = [int(k) for k in rng.integers(0, 24 - length, int(rng.integers(2, 6)))]

    def f(a: Any) -> Any:
        def row(k: Any, a: Any) -> Any:
            new = a[k + 1, 3 : 3 + length] * 0.7
            for start in starts:
                a[k, start : start + length] += new
            a[k + 1, 1:-1] += a[k, 2:]
            a[k + 1, 1:-1] += a[k, :-2]
            return a

        return rg.fori_loop(8, row, a * 1.0)

    a = rng.normal(size=(9, 24))
    np.testing.assert_array_equal(rg.jit(f, backend="native")(a), rg.jit(f)(a))
    total = rg.grad(lambda a: np.sum(f(a) * a), backend="native")(a)
    np.testing.assert_allclose(total, rg.grad(lambda a: np.sum(f(a) * a))(a), rtol=1e-12, atol=1e-14)


def test_the_adjoint_of_a_stencil_passes_a_row_once() -> None:
    a = np.linspace(-1, 1, 576).reshape(24, 24)
    source = rg.grad(sweeps, backend="native").source(a, language="c")
    together = [line for line in source.splitlines() if "] = new" in line and line.count(" + v") == 2]
    assert len(together) >= 2
