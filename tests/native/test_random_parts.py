"""Random kernels in parts of few elements, as long arrays have them: of nests, and of loops over lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.native import in_parts, lanes
from retrograd.codegen.native.elements import FEW
from retrograd.ir import Aval, Graph
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.structure import Layout
from retrograd.ops.structural.loops import make_scan
from retrograd.passes.prune import prune
from tests.native.test_random_kernels import RandomKernel, compared, random_kernel
from tests.support.graphs import op
from tests.support.native import in_a_hurry, needs_compiler
from tests.support.seeds import SEED

pytestmark = needs_compiler
MANY = 200
Case = tuple[Graph, list[Any]]


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for room in (in_parts, lanes):
        monkeypatch.setattr(room, "LEAST", 1)
        monkeypatch.setattr(room, "ALIGNED", 2)
    monkeypatch.setattr(lanes, "LEAST_LANES", FEW // 3 + 1)  # smaller states are variables
    monkeypatch.setattr(lanes, "LANES", 4)
    monkeypatch.setattr(in_parts, "ROWS", 1)
    threads, rg.config.threads = rg.config.threads, 3
    yield
    rg.config.threads = threads


class RandomSteps(RandomKernel):
    """Operations on the elements of arrays of one shape, and on numbers."""

    def step(self) -> None:
        self.values.append((self._unary, self._binary, self._binary, self._where)[self.integer(0, 4)]())

    def _where(self) -> Symbol:
        x = self.any()
        found: Symbol = op("where", op("gt", x, self._like(x)), x, self.b.constant(-0.5, x.aval))
        return found

    def _like(self, x: Symbol) -> Symbol:
        y = self.any()
        return y if y.ndim == x.ndim else op("broadcast", y, aval=x.aval) if x.ndim else super()._like(x)

    def chosen(self, aval: Aval) -> Symbol:
        found = [x for x in self.values if x.aval == aval]
        return found[self.integer(0, len(found))]


def random_lanes(seed: int) -> Case:
    """A loop whose steps need one element of each array; next states and results may be the same, or operands."""
    rng = np.random.default_rng(seed)
    n, steps, carries, results = (int(rng.integers(low, high)) for low, high in ((FEW + 4, 90), (2, 6), (1, 4), (1, 4)))
    state, number = Aval((n,), np.dtype(float)), Aval((), np.dtype(float), "scalar")
    b, inner = Builder(), Builder()
    xs = [b.input(Aval((steps, n), state.dtype)), b.input(Aval((steps,), state.dtype))]
    operands = [b.input(state) for _ in range(1 + carries)]
    given = [inner.input(state) for _ in range(1 + carries)]
    body = RandomSteps(seed, inner, [*given, inner.input(state), inner.input(number)])
    for _ in range(int(rng.integers(2, 9))):
        body.step()
    after = [body.chosen(state) for _ in range(carries + results)]
    loop = inner.graph("step", after)
    last, arrays, _ = make_scan(b, loop, Layout(1, carries, results), [*operands, *xs], steps, bool(rng.integers(0, 2)))
    outs = [op("sin", x) if rng.integers(0, 2) else op("copy", x) for x in (*last, *arrays)]
    graph = prune(b.graph("lanes", outs))
    return graph, [rng.normal(size=v.aval.shape) for v in graph.inputs]


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 100))])
@pytest.mark.parametrize("drawn", [random_kernel, random_lanes], ids=lambda f: f.__name__)
def test_random_kernels_in_parts(drawn: Callable[[int], Case], part: int) -> None:
    start = 10**9 + (SEED * 1000 + part) * MANY
    with in_a_hurry():
        assert compared((seed, *drawn(seed)) for seed in range(start, start + MANY)) >= 0.5 * MANY
