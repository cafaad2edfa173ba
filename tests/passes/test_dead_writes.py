"""Writes of elements that nothing reads later are left out; nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np

import retrograd as rg
from retrograd.ir import parse
from retrograd.ir.evaluate import evaluate
from retrograd.ir.graph import Graph
from retrograd.ir.types import Aval
from retrograd.ops.index import additem, getitem, setitem
from retrograd.passes import dead_writes
from retrograd.passes.dead_writes import without_dead_writes
from tests.support.graphs import built

SQUARE = Aval((4, 3), np.dtype(float))
PLACES: list[Any] = [0, 2, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(2, 2), slice(0, 1), ...]


def index(rng: np.random.Generator) -> tuple[Any, ...]:
    first, second = (PLACES[k] for k in rng.integers(len(PLACES), size=2))
    return (first,) if first is ... or second is ... else (first, second)[: rng.integers(1, 3)]


def random_graph(seed: int) -> Graph:
    """Writes into arrays and reads of their states, of which some reach the results."""
    rng = np.random.default_rng(seed)

    def program(x: Any, y: Any) -> list[Any]:
        states, read = [x, y], []
        for _ in range(rng.integers(2, 14)):
            base = states[-1] if rng.random() < 0.7 else states[rng.integers(len(states))]
            at = index(rng)
            part = getitem(base, index=at)
            if rng.random() < 0.4:
                read.append(part)
                continue
            value = part.builder.zeros(part.aval) if rng.random() < 0.5 else part * part
            states.append((setitem if rng.random() < 0.7 else additem)(base, value, index=at))
        results = [*read, *([states[-1]] if rng.random() < 0.3 else [])]
        return results or [x]

    return built(program, SQUARE, SQUARE)


def writes(graph: Graph) -> int:
    return sum(node.prim.name in dead_writes.WRITES for node in graph.nodes)


def test_results_keep_their_bits():
    left_out = 0
    for seed in range(400):
        graph = random_graph(seed)
        rng = np.random.default_rng(seed)
        args = [np.where(rng.random((4, 3)) < 0.2, np.nan, rng.standard_normal((4, 3))) for _ in range(2)]
        smaller = without_dead_writes(graph)
        left_out += writes(graph) - writes(smaller)
        for got, want in zip(evaluate(smaller, args), evaluate(graph, args), strict=True):
            np.testing.assert_array_equal(got, want)
    assert left_out > 100


def test_a_cotangent_is_not_set_to_zero_where_nothing_reads_it():
    def f(x):
        y = np.zeros((3, 3))
        y[0, 1:] = x
        y[1:, 0] = x * x
        return np.sum(y**2)

    x = np.array([1.0, 3.0])
    gradient = rg.grad(f)
    np.testing.assert_array_equal(gradient(x), 2 * x + 4 * x**3)
    assert "] = 0.0" not in gradient.source(x)


def test_large_arrays_keep_their_writes(monkeypatch):
    graphs = [random_graph(seed) for seed in range(40)]
    monkeypatch.setattr(dead_writes, "LARGEST", 11)
    assert all(without_dead_writes(graph) is graph for graph in graphs)


def test_a_write_of_no_elements_still_makes_a_result_of_its_own() -> None:
    graph = parse("""graph f(%x: f64[4,1], %z: f64[0]) {
  %0 = setitem %x, %z {index=s_[0, 1:]} : f64[4,1]
  %1 = setitem %x, %z {index=s_[1, 1:]} : f64[4,1]
  %2 = getitem %1 {index=s_[2:,]} : f64[2,1]
  return %0, %2
}""")
    assert [node.prim.name for node in without_dead_writes(graph).nodes] == ["setitem", "setitem", "getitem"]
