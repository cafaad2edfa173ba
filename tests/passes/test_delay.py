"""Results that only later nodes read are computed late: the same bits, effects in their order, and no higher peak."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.builder import Builder
from retrograd.ir.evaluate import evaluate
from retrograd.ir.graph import Graph
from retrograd.ir.types import Aval
from retrograd.ir.verify import verify
from retrograd.ops.elementary import cos, exp, sin, tanh
from retrograd.ops.elementwise import add, mul, neg
from retrograd.ops.index import getitem, setitem
from retrograd.ops.linear import matmul
from retrograd.ops.shape import permute, reshape_to
from retrograd.ops.structural.guard import guard
from retrograd.ops.structural.region import turn
from retrograd.passes import delay as passes
from retrograd.passes.delay import delay
from retrograd.passes.place_buffers import POOL
from retrograd.passes.prune import prune
from retrograd.passes.remat import copy_again
from retrograd.passes.remat.search import peak_of_order
from tests.support.memory import measured

SIDE = 91  # of matrices of a little more than POOL
MATRIX = Aval((SIDE, SIDE), np.dtype(float))
HALF = (slice(0, 40), slice(None))


def drawn(seed: int) -> Graph:
    """A random graph of elementwise operations, views and writes, with effects among them."""
    chance, b = random.Random(seed), Builder()
    known = [b.input(MATRIX, f"x{i}") for i in range(2)]
    for _ in range(chance.randint(8, 40)):
        x, y = (chance.choice(known[-6:]) for _ in range(2))
        kind = chance.randrange(9)
        if kind < 3:
            known.append(chance.choice([exp, sin, tanh, neg])(x))
        elif kind < 5:
            known.append(chance.choice([add, mul])(x, y))
        elif kind == 5:
            known.append(permute(x, axes=(1, 0)))
        elif kind == 6:
            known.append(reshape_to(reshape_to(x, (SIDE * SIDE,)), (SIDE, SIDE)))
        elif kind == 7:
            known.append(setitem(x, getitem(y, index=HALF), index=HALF))
        else:
            b.emit(turn, (), {"budget": None})
    return prune(b.graph("f", [*chance.sample(known, min(2, len(known))), known[-1]]))


def bits(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(x).tobytes() for x in results]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_keep_their_bits_and_need_no_more_memory(seed: int) -> None:
    graph = drawn(seed)
    found = verify(delay(graph))
    assert sorted(map(id, found.nodes)) == sorted(map(id, graph.nodes))
    args = [np.random.default_rng(i).standard_normal((SIDE, SIDE)) for i in range(2)]
    with np.errstate(all="ignore"):
        assert bits(evaluate(found, args)) == bits(evaluate(graph, args))
    if found is not graph:
        assert peak_of_order(found) < peak_of_order(graph)


def test_random_graphs_change() -> None:
    assert sum(delay(graph) is not graph for graph in map(drawn, range(60))) >= 6


def layers(act: Any, n: int) -> Any:
    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = act(x @ w)
        return np.sum(x**2)

    rng = np.random.default_rng(0)
    return loss, [rng.standard_normal((n, n)) / n for _ in range(12)], rng.standard_normal((n, n))


@pytest.mark.parametrize("act", [np.tanh, lambda x: np.maximum(x, 0.0)], ids=["tanh", "relu"])
def test_a_network_keeps_no_derivatives(act: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loss, ws, x = layers(act, 96)
    late = rg.grad(loss)
    memory = measured(late, ws, x)

    def same(ws: Any, x: Any) -> Any:  # which is compiled anew
        return loss(ws, x)

    for module in (passes, copy_again):
        monkeypatch.setattr(module, "POOL", 10**12)
    early = rg.grad(same)
    assert memory < 0.75 * measured(early, ws, x)
    assert bits(late(ws, x)) == bits(early(ws, x))
    assert late.at(ws, x).source != early.at(ws, x).source
    assert memory == pytest.approx(late.plan(ws, x).peak_bytes, rel=0.01)


@pytest.mark.parametrize("n", [90, SIDE])
def test_only_large_arrays_wait(n: int) -> None:
    loss, ws, x = layers(np.tanh, n)
    first_adjoint = [node.prim.name for node in rg.grad(loss).at(ws, x).graph.nodes].index("permute")
    squares = [node.prim.name for node in rg.grad(loss).at(ws, x).graph.nodes[:first_adjoint]].count("square")
    assert (squares > 2) == (n * n * 8 < POOL)


def test_a_pullback_computes_nothing_that_the_function_can() -> None:
    loss, ws, x = layers(np.tanh, 96)
    value, pullback = rg.vjp(loss, ws, x)
    np.testing.assert_array_equal(pullback(1.0)[0][0], rg.grad(loss)(ws, x)[0])
    np.testing.assert_array_equal(value, loss(ws, x))


def test_what_is_written_into_is_read_before() -> None:
    """A reader that waits past the write would cost a copy."""
    b = Builder()
    x = b.input(MATRIX, "x")
    base = exp(x)
    read = sin(base)
    written = setitem(base, getitem(x, index=HALF), index=HALF)
    last = mul(tanh(written), read)
    graph = b.graph("f", [last])
    names = [node.prim.name for node in delay(graph).nodes]
    assert names.index("sin") < names.index("setitem")


def test_writes_in_a_row_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else needs the memory, so that peaks need not be compared, which took a fifth of the time to compile."""
    b = Builder()
    x = b.input(MATRIX, "x")
    filled = b.constant(0, MATRIX)
    for k in range(6):
        filled = setitem(filled, sin(sin(getitem(x, index=(k, k)))), index=(k, 0))
    graph = b.graph("f", [mul(filled, x)])
    monkeypatch.setattr(passes, "Liveness", None)
    assert delay(graph) is graph


@pytest.mark.parametrize("effect", [False, True])
def test_nothing_waits_across_an_effect(effect: bool) -> None:
    b = Builder()
    x, flag = b.input(MATRIX, "x"), b.input(Aval((), np.dtype(bool), "scalar"), "flag")
    early = cos(x)
    later = sin(exp(sin(exp(matmul(exp(x), x)))))
    if effect:
        guard(flag, expected=True, kind="bool", lanes=False)
    graph = b.graph("f", [mul(mul(later, exp(later)), early)])
    names = [node.prim.name for node in delay(graph).nodes]
    assert (names.index("cos") == 0) == effect
