"""Formulas on parts of arrays, whose lengths and positions the data decide, are loops in C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native.decided_formulas import LARGEST, LONGEST, is_formula
from retrograd.compiler.rolled import rolled_from
from retrograd.ir import Aval, Graph, evaluate
from retrograd.ir.builder import Builder
from retrograd.ops.formulas import value_within, write_within
from tests.support.growing import leaves, short_loops_fold
from tests.support.native import as_kernels, in_a_hurry, needs_compiler, taken

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")]
NUMBER = Aval((), np.dtype(np.int64), "scalar")


def written(
    formula: str,
    windows: tuple[tuple[str, ...], ...],
    target: tuple[str, ...],
    *,
    own: tuple[int, ...] = (),
    sign: str = "-",
    dtype: Any = float,
    size: int = 12,
    numbers: int | tuple[int, ...],
    letters: int = 1,
) -> Graph:
    """A write of a formula into an array of ``size`` along each axis. Operands in ``own`` are that array itself.

    The array is what another write has made, so that C writes where it stands. ``numbers`` are the lengths and
    positions, or which of them are the same.
    """
    b = Builder()
    x = b.input(Aval((size,) * len(target), np.dtype(dtype)))
    first = [b.constant(k, NUMBER) for k in (1, *[0] * (len(target) - 1))]
    one = {"formula": f"const(1.0, {x.aval.dtype.char!r}, a)", "windows": (), "limits": (1,), "sign": "+"}
    base = write_within(x, *first, target=("a", *["#"] * (len(target) - 1)), **one)
    others = [
        base if k in own else b.input(Aval((size,) * len(window), np.dtype(dtype))) for k, window in enumerate(windows)
    ]
    which = tuple(range(numbers)) if isinstance(numbers, int) else numbers
    inputs = [b.input(NUMBER) for _ in range(1 + max(which))]
    given = [inputs[k] for k in which]
    attrs = {"formula": formula, "windows": windows, "limits": (size,) * letters, "target": target, "sign": sign}
    return b.graph("f", [write_within(base, *others, *given, **attrs)])


OUTER = "mul(broadcast(reshape(x0, a, 1), a, b), broadcast(x1, a, b))"
CASES: dict[str, tuple[Graph, int]] = {
    "the same part": (written("mul(x0, x0)", (("a:",),), ("a:",), own=(0,), numbers=3), 1),
    "a part beside": (written("sin(x0)", (("a:",),), ("a",), own=(0,), numbers=2), 1),
    "a row and a column": (
        written(OUTER, (("a:", "#"), ("#", "b:")), ("a:", "b:"), own=(0, 1), numbers=8, letters=2),
        2,
    ),
    "the same place": (written("mul(x0, x0)", (("a:",),), ("a:",), own=(0,), numbers=(0, 1, 1)), 1),
    "turned where it stands": (
        written("permute(x0, axes=(1, 0))", (("a:", "a:"),), ("a:", "a:"), own=(0,), numbers=(0, 1, 2, 1, 2)),
        1,
    ),
    "turned": (written("permute(x0, axes=(1, 0))", (("a:", "a:"),), ("a:", "a:"), own=(0,), numbers=5), 1),
    "its own sum": (
        written("mul(x0, broadcast(sum(x0, axis=(0,), keepdims=False), a))", (("a:",),), ("a:",), own=(0,), numbers=3),
        1,
    ),
    "products": (written("matmul(x0, x1)", (("a:", "b:"), ("b:",)), ("a:",), numbers=6, letters=2), 2),
    "products of columns": (
        written("matmul(x0, x1)", (("b:", "#"), ("b:", "a:")), ("#", "a:"), own=(0,), numbers=8, letters=2),
        2,
    ),
    "sums of rows": (
        written(
            "sum(mul(x0, x1), axis=(0,), keepdims=False)", (("b:", "a:"), ("b", "a")), ("a:",), numbers=5, letters=2
        ),
        2,
    ),
    "sums of all": (
        written("broadcast(sum(x0, axis=(0, 1), keepdims=False), a)", (("a:", "b:"),), ("a:",), numbers=5, letters=2),
        2,
    ),
    "extrema": (
        written("sub(x0, broadcast(max(x0, axis=(0,), keepdims=False), a))", (("a:",),), ("a:",), sign="", numbers=3),
        1,
    ),
}


def numbers_for(graph: Graph, letters: int, lengths: tuple[int, ...], rng: np.random.Generator) -> list[np.int64]:
    """Lengths, and positions from which parts of any of these lengths lie within the arrays."""
    count = sum(v.aval == NUMBER for v in graph.inputs) - letters
    return [*map(np.int64, lengths), *map(np.int64, rng.integers(0, 13 - max(lengths), count))]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("all_in_c")
def test_writes_at_any_place(name: str) -> None:
    graph, letters = CASES[name]
    assert taken(graph)
    (function,) = as_kernels([graph])
    rng = np.random.default_rng(0)
    for lengths in product((0, 1, 2, 7, 8, 9, 11), repeat=letters):
        if name == "extrema" and 0 in lengths:
            continue
        for _ in range(3):
            arrays = [rng.normal(size=v.aval.shape) for v in graph.inputs if v.aval != NUMBER]
            args = [*arrays, *numbers_for(graph, letters, lengths, rng)]
            (expected,) = evaluate(graph, args)
            np.testing.assert_allclose(function(*args), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.usefixtures("all_in_c")
def test_what_is_outside_of_a_part_has_no_part_in_values(dtype: Any) -> None:
    b = Builder()
    x, y = (b.input(Aval((6, 9), np.dtype(dtype))) for _ in range(2))
    numbers = [b.input(NUMBER) for _ in range(3)]
    attrs = {"windows": (("", "a:"), ("", "a:")), "limits": (9,)}
    graph = b.graph("f", [value_within(x, y, *numbers, formula="mul(x0, x1)", **attrs)])
    given = np.full((6, 9), np.nan, dtype)
    given[:, 2:5] = 3.0
    (function,) = as_kernels([graph])
    for order in ("C", "F"):
        found = function(np.array(given, order=order), given, np.int64(3), np.int64(2), np.int64(2))
        np.testing.assert_array_equal(found, np.array([9.0] * 3 + [0.0] * 6, dtype) * np.ones((6, 1), dtype))


def test_large_arrays_and_long_sums_are_numpys() -> None:
    n = int(LARGEST**0.5)
    for size, fits in ((n, True), (n + 1, False)):
        assert is_formula(written("x0", (("a:", "#"),), ("#", "a:"), numbers=5, size=size).nodes[-1]) == fits
    for size, fits in ((LONGEST, True), (LONGEST + 1, False)):
        graph = written("broadcast(sum(x0, axis=(0,), keepdims=False), a)", (("a",),), ("a",), numbers=1, size=size)
        assert is_formula(graph.nodes[-1]) == fits


# random programs

SLICES = (":k", "k:", "k + 1:", ":k + 1", ":")


class RandomProgram:
    """A loop over steps that read and write slices which grow or become shorter."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.n = int(self.rng.choice((8, 9, 10, 13, 20)))
        steps = "range(n)" if self.rng.random() < 0.7 else "range(n - 1, -1, -1)"
        lines = ["def program(a, y, x):", "    a, y, n = a.copy(), y.copy(), len(y)", f"    for k in {steps}:"]
        lines += [f"        {self.statement()}" for _ in range(self.rng.integers(1, 4))]
        self.source = "\n".join([*lines, "    return np.sum(a * a) + np.sum(np.sin(y))"])
        scope: dict[str, Any] = {"np": np}
        exec(compile(self.source, f"random_program_{seed}.py", "exec"), scope)
        self.program: Callable[..., Any] = scope["program"]

    def one_of(self, *choices: Callable[[], str]) -> str:
        return choices[self.rng.integers(len(choices))]()

    def slice(self) -> str:
        return str(self.rng.choice(SLICES))

    def vector(self, s: str, deep: int = 2) -> str:
        """An expression whose value has the length of a slice."""
        if deep == 0 or self.rng.random() < 0.3:
            return str(self.rng.choice((f"x[{s}]", f"y[{s}]", f"a[k, {s}]", f"a[{s}, k]", f"a[{s}, 0]")))
        u, v = self.vector(s, deep - 1), self.vector(s, deep - 1)
        t = self.slice()
        return self.one_of(
            lambda: f"({u}) * ({v})",
            lambda: f"0.5 * ({u}) - ({v})",
            lambda: f"np.tanh({u})",
            lambda: f"({u}) / (2.0 + ({v}) ** 2)",
            lambda: f"np.where({u} > 0.0, {u}, {v})",
            lambda: f"np.maximum({u}, {v})",
            lambda: f"{self.number(deep - 1)} * ({u})",
            lambda: f"0.1 * a[{s}, {t}] @ ({self.vector(t, deep - 1)})",
            lambda: f"0.1 * ({self.vector(t, deep - 1)}) @ a[{t}, {s}]",
        )

    def number(self, deep: int = 2) -> str:
        if deep == 0 or self.rng.random() < 0.3:
            return str(self.rng.choice(("x[k]", "y[k]", "a[k, k]", "0.3")))
        s = self.slice()
        return self.one_of(
            lambda: f"np.tanh(np.sum({self.vector(s, deep - 1)}))",
            lambda: f"np.tanh(({self.vector(s, deep - 1)}) @ ({self.vector(s, deep - 1)}))",
            lambda: f"np.max({self.vector(str(self.rng.choice(('k:', ':k + 1'))), deep - 1)})",
        )

    def statement(self) -> str:
        s, t = self.slice(), self.slice()
        op = str(self.rng.choice(("=", "+=", "-=")))
        return self.one_of(
            lambda: f"y[{s}] {op} 0.2 * ({self.vector(s)})",
            lambda: f"y[k] {op} 0.2 * {self.number()}",
            lambda: f"a[k, {s}] {op} 0.2 * ({self.vector(s)})",
            lambda: f"a[{s}, k] {op} 0.2 * ({self.vector(s)})",
            lambda: f"a[{s}, {t}] {op} 0.1 * np.outer({self.vector(s, 1)}, {self.vector(t, 1)})",
            lambda: f"a[{s}, {t}] {op} 0.5 * a[{s}, {t}] * ({self.vector(s, 1)})[:, None]",
        )

    def arguments(self) -> tuple[Any, ...]:
        rng = np.random.default_rng(self.n)
        return tuple(0.5 * rng.normal(size=shape) for shape in ((self.n, self.n), (self.n,), (self.n,)))

    def results(self) -> Iterator[Any]:
        """The value, the gradient, and a product with the Hessian."""

        def f(a: Any, y: Any, x: Any) -> Any:
            return self.program(a, y, x)

        args = self.arguments()
        value, slopes = rg.value_and_grad(f, argnums=(0, 1, 2))(*args)
        yield value
        yield from slopes
        yield rg.hvp(lambda x: f(*args[:2], x))(args[2], np.cos(args[2]))

    def formulas(self) -> int:
        """The writes and values of formulas in the gradient's loops."""
        graph = rg.grad(self.program, argnums=(0, 1, 2)).graph(*self.arguments())
        return str(graph).count("_within")


def check(seeds: range) -> int:
    """Compare C's results of random programs with NumPy's of the unrolled ones; the formulas there were."""
    formulas = 0
    for seed in seeds:
        made = RandomProgram(seed)
        with rolled_from(10**9), np.errstate(all="ignore"):
            plain = [*RandomProgram(seed).results()]
        with short_loops_fold(), in_a_hurry(), np.errstate(all="ignore"):
            found = [*made.results()]
            formulas += made.formulas()
        if not all(np.all(np.isfinite(x)) for x in leaves(tuple(plain))):
            continue  # it grows beyond all bounds
        np.testing.assert_allclose(plain[0], made.program(*made.arguments()), rtol=1e-12)
        for got, want in zip(leaves(tuple(found)), leaves(tuple(plain)), strict=True):
            scale = np.max(np.abs(want), initial=1.0)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-11 * scale, err_msg=made.source)
    return formulas


@pytest.mark.costly
@pytest.mark.parametrize("start", range(0, 40, 10))
def test_random_programs(start: int) -> None:
    assert check(range(start, start + 10)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 20))
def test_many_random_programs(start: int) -> None:
    assert check(range(start, start + 20)) > 40
