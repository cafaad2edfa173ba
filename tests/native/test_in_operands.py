"""Results of kernels in operands: only where each element is read before it is written, and with the same bits."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from bench.workloads import WORKLOADS
from retrograd.codegen.native import in_operands, in_parts, late_sums, target
from retrograd.codegen.native import kernel_function as kernel_functions
from retrograd.codegen.native.elements import NoC
from retrograd.codegen.native.in_operands import Pairs
from retrograd.codegen.native.kernel_function import kernel_function
from retrograd.codegen.native.target import c_source, compiled
from retrograd.compiler.executable import Executable
from retrograd.compiler.native_target import NATIVE
from retrograd.errors import NoCompilerWarning
from retrograd.ir import Aval, Graph
from retrograd.passes import place_buffers
from tests.native.test_footprint import said_is_taken
from tests.native.test_random_kernels import RandomComplexKernel, RandomKernel, random_kernel
from tests.native.test_threads import always_helped
from tests.support import values
from tests.support.graphs import op
from tests.support.native import in_a_hurry, needs_compiler, results, taken
from tests.support.seeds import SEED

pytestmark = needs_compiler
X = np.random.default_rng(0).normal(size=(96, 40))


def column(x: Any) -> Any:
    return np.sum(np.exp(x), axis=0)


def handed_on(x: Any) -> Any:
    last, _ = rg.scan(lambda c, k: ((c[0], c[1] * k), None), (x, 1.0), np.arange(3.0))
    return last[0][:, 1:] + last[1]


def softmax(x: Any) -> Any:
    return np.exp(x - np.max(x, axis=1, keepdims=True)) / np.sum(np.exp(x), axis=1, keepdims=True)


FIT: dict[str, tuple[Any, Pairs]] = {
    "elementwise": (lambda x: np.exp(x) * x + 1.0, ((0, 0),)),
    "softmax": (softmax, ((0, 0),)),
    "after a sum of all": (lambda x: x * np.sum(x), ((0, 0),)),
    "after sums of columns": (lambda x: x + column(x), ((0, 0),)),
    "beside a largest element": (lambda x: (np.exp(x), np.max(x, axis=1)), ((0, 0),)),
    "one of two": (lambda x: (np.maximum(x, 0.0), np.exp(x)), ((0, 0), (1, 0))),
    "the last that reads all": (lambda x: (np.concatenate([np.ones((5, 40)), x[5:]]), np.exp(x)), ((1, 0),)),
}
UNFIT = {
    "reversed": lambda x: x[::-1] * 2.0,
    "reversed rows": lambda x: x[:, ::-1] + x,
    "neighbours": lambda x: np.roll(x, 1, axis=0) + x,
    "reshaped": lambda x: x.reshape(40, 96).T + x,
    "each row with the first": lambda x: x + x[0],
    "a row below": lambda x: np.concatenate([x[1:], x[:1]]) * 2.0,
    "a sum later": lambda x: (np.exp(x), np.sum(x.T)),
    "a sum of what has storage": lambda x: (np.exp(x), np.sum(x, axis=1)),
    "a small result at the end": lambda x: (np.exp(x), x[3, 4:7]),
    "a result of a loop that is an operand": lambda x: (np.exp(x), handed_on(x)),
    "steps": lambda x: rg.scan(lambda c, k: (np.sin(c) + x * k, None), x, np.arange(3.0))[0],
    "an angle that may be too large": np.sin,
}


def graph_of(function: Any) -> Graph:
    with rg.config(backend="native"):
        graph: Graph = rg.jit(function).graph(X)
    return graph


@pytest.mark.parametrize("name", FIT)
def test_what_reads_each_element_before_it_writes_it(name: str) -> None:
    function, pairs = FIT[name]
    kernel = kernel_function(graph_of(function), "kernel")
    assert kernel.fits == pairs
    own = kernel.in_operands(pairs[:1])
    assert "*restrict in0" not in own.source
    assert f"*restrict out{pairs[0][0]}" not in own.source


@pytest.mark.parametrize("name", UNFIT)
def test_what_reads_an_element_later(name: str) -> None:
    assert kernel_function(graph_of(UNFIT[name]), "kernel").fits == ()


def apart(fits: Pairs) -> list[Pairs]:
    """Each pair by itself, and as many as one can choose together."""
    together: Pairs = ()
    for k, i in fits:
        if all(k != other and i != operand for other, operand in together):
            together = (*together, (k, i))
    return [*((pair,) for pair in fits), *[together] * (len(together) > 1)]


def sharing(graphs: list[Graph]) -> list[tuple[Graph, Graph]]:
    """Graphs whose results may lie in operands, and the same ones where they do; their kernels never give up."""
    found = []
    for graph in graphs:
        with suppress(NoC):
            text = kernel_function(graph, "kernel")
            for pairs in apart(text.fits):
                own = replace(graph)
                own.once("C", partial(text.in_operands, pairs))
                found.append((graph, own))
    return found


def unfit(*args: Any) -> Any:
    raise AssertionError("the kernel gave up")


class RandomSiblings(RandomKernel):
    """Random kernels in which many values have the shape of an operand, or are reductions of one."""

    def step(self) -> None:
        x = self.values[self.integer(0, len(self.values))]
        kind = self.integer(0, 7)
        if kind > 4 or not x.ndim:
            super().step()
            return
        if kind < 3:
            shape, axes = x.shape, (self.integer(0, x.ndim),) if kind else tuple(range(x.ndim))
            total = op(("sum", "max")[self.integer(0, 2)], x, axis=axes, keepdims=True)
            x = op("sub", x, op("broadcast", total, aval=Aval(shape, self.dtype)))
        self.values.append(self._bounded(op("mul", x, self._like(x))))


MIXED = [(RandomKernel, 100), (RandomSiblings, 12)]


def keep_their_bits(kind: type[RandomKernel], start: int, number: int) -> int:
    """Compare kernels whose results lie in operands with those whose do not; the number of them."""
    cases = dict(random_kernel(seed, kind) for seed in range(start, start + number))
    pairs = sharing([graph for graph in cases if taken(graph)])
    functions = compiled([body for pair in pairs for body in pair], [unfit] * (2 * len(pairs)))
    for (graph, _), first, second in zip(pairs, functions[::2], functions[1::2], strict=True):
        assert first is not None
        assert second is not None
        args = cases[graph]
        expected = results(first, graph, args)
        given = [x.copy() for x in args]
        found = results(second, graph, given)
        values.assert_same_bits(found, expected)
        assert any(x is y for x in found for y in given)
    return len(pairs)


@pytest.fixture
def certain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that could give up count as well: with these operands none does."""
    monkeypatch.setattr(kernel_functions, "may_lie_in", in_operands._pairs)


def test_the_comparison_finds_what_may_not_lie_in_an_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_pairs(body: Graph, _: Any) -> Pairs:
        sizes = [(k, i) for k, v in enumerate(body.outputs) for i, x in enumerate(body.inputs) if v.aval == x.aval]
        return tuple((k, i) for k, i in sizes if body.inputs[i].aval.kind == "array")

    monkeypatch.setattr(kernel_functions, "may_lie_in", all_pairs)
    with in_a_hurry(), pytest.raises(AssertionError):
        keep_their_bits(RandomSiblings, 10**9, 60)


@pytest.mark.costly
@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize("part", [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 100))])
@pytest.mark.parametrize("kind", [RandomKernel, RandomComplexKernel, RandomSiblings])
def test_random_kernels_keep_their_bits(kind: type[RandomKernel], part: int) -> None:
    with in_a_hurry():
        assert keep_their_bits(kind, 10**9 + (SEED * 1000 + part) * 60, 60) >= 5


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize(("kind", "number"), MIXED)
def test_random_kernels_keep_their_bits_if_the_compiler_optimises(kind: type[RandomKernel], number: int) -> None:
    assert keep_their_bits(kind, 2 * 10**9 + SEED * 100, number) >= 5


@pytest.mark.usefixtures("certain")
@pytest.mark.parametrize(("kind", "number"), MIXED)
def test_random_kernels_keep_their_bits_in_parts(
    kind: type[RandomKernel], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_parts, "LEAST", 0)
    monkeypatch.setattr(in_parts, "MOST", 3)
    monkeypatch.setattr(in_parts, "ALIGNED", 2)
    monkeypatch.setattr(in_parts, "ROWS", 2)
    monkeypatch.setattr(late_sums, "TERMS", 16)
    monkeypatch.setattr(rg.config, "threads", 2)
    with always_helped("-O1"):
        assert keep_their_bits(kind, 3 * 10**9 + SEED * 100, number) >= 5


def layers(x: Any, w: Any) -> Any:
    h = np.tanh(x @ w)
    h = np.maximum(h @ w + 0.1, 0.0)
    return np.sum((h @ w) ** 2)


def rows_in_turn(x: Any, w: Any) -> Any:
    def step(c: Any, k: Any) -> Any:
        y = np.exp(-((c @ w) ** 2)) * k
        return y / (1.0 + np.max(y, axis=1, keepdims=True)), y

    last, all_ = rg.scan(step, x, np.linspace(0.5, 1.0, 4))
    return np.sum(last) + np.sum(all_ * all_)


W = np.random.default_rng(1).normal(size=(200, 200)) / 14.0
PROGRAMS = {"layers": layers, "steps": rows_in_turn}


def compiled_twice(function: Any, argnums: Any, args: tuple[Any, ...]) -> list[Executable]:
    """A gradient with results in operands, and without."""
    with rg.config(backend="native"):
        graph = rg.value_and_grad(function, argnums=argnums).graph(*args)
        found = [Executable(graph)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place_buffers._BufferPlacer, "_place_in_operands", lambda *_: None)
            found.append(Executable(graph))
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_keep_their_bits(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rg.config, "threads", threads)
    args = np.random.default_rng(2).normal(size=(300, 200)), W
    own, plain = compiled_twice(PROGRAMS[name], (0, 1), args)
    assert "over(" in c_source(own.module).split("call0", 1)[1]
    given = [x.copy() for x in args]
    values.assert_same_bits(own(*given), plain(*given))
    values.assert_same_bits(given, args)
    values.assert_same_bits(own(*[np.asfortranarray(x) for x in args]), plain(*given))


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_compiler_numpy_computes_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise NoC("no compiler")

    args = np.random.default_rng(2).normal(size=(300, 200)), W
    own, _ = compiled_twice(PROGRAMS[name], (0, 1), args)
    expected = own(*args)
    monkeypatch.setattr(target, "functions", failing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoCompilerWarning)
        by_numpy, _ = compiled_twice(PROGRAMS[name], (0, 1), args)
    values.assert_close(by_numpy(*args), expected, 1e-12)


@pytest.mark.parametrize("name", ["gmm-10", "attention", "k-means"])
def test_peaks_are_lower_and_as_said(name: str) -> None:
    workload = WORKLOADS[name]
    args = workload.inputs()
    said_is_taken(rg.value_and_grad(workload.function, argnums=workload.argnums, backend="native"), *args)
    own, plain = compiled_twice(workload.function, workload.argnums, args)
    assert NATIVE.footprint(own.plan).peak() < 0.85 * NATIVE.footprint(plain.plan).peak()
