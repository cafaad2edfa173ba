"""Random programs on arrays that are large enough for every way of reusing storage: the results keep every bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, Graph, evaluate, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.graph import Node, Value
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.texts import Arg
from retrograd.passes.differentiate import value_and_grad
from retrograd.passes.linearize import linearize
from retrograd.passes.own_outputs import own_outputs
from retrograd.passes.place_buffers import POOL, place_buffers
from retrograd.passes.prune import prune
from tests.support import values
from tests.support.graphs import op
from tests.support.stages import pipeline

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)
ROWS, COLUMNS = 64, 128
FLAT, GRID, INDEX = (ROWS * COLUMNS,), (ROWS, COLUMNS), (100,)
assert ROWS * COLUMNS * 8 >= POOL

seeds = st.integers(0, 2**32)
Pick = Callable[[tuple[int, ...]], Symbol]


def _loop(x: Symbol, y: Symbol, swap: bool) -> list[Symbol]:
    """A loop whose carries pass through, or change places."""
    inner = Builder()
    a, b = inner.input(x.aval), inner.input(y.aval)
    body = inner.graph("step", [b, a] if swap else [a, a * b])
    attrs = {"arrays": 0, "body": body, "carry": 2, "consts": 0, "length": 3, "reverse": False}
    return x.builder.emit(REGISTRY["scan"], [x.value, y.value], attrs)


def _called(x: Symbol) -> list[Symbol]:
    """A call that returns its argument, and something new."""
    inner = Builder()
    a = inner.input(x.aval)
    return x.builder.emit(REGISTRY["call"], [x.value], {"body": inner.graph("same", [a, -a])})


def _row(pick: Pick, k: int) -> Symbol:
    row: Symbol = op("getitem", pick(GRID), index=(k,))
    return row


def _part(pick: Pick, k: int) -> Symbol:
    part: Symbol = op("getitem", pick(FLAT), index=(slice(k, k + 100),))
    return part


STEPS: dict[str, Callable[[Pick, int], Any]] = {
    "sin": lambda pick, k: op("sin", pick(FLAT)),
    "neg": lambda pick, k: -pick(GRID),
    "add": lambda pick, k: pick(FLAT) + pick(FLAT),
    "mul": lambda pick, k: pick(GRID) * pick(GRID),
    "maximum": lambda pick, k: op("maximum", pick(FLAT), pick(FLAT)),
    "to_grid": lambda pick, k: op("reshape", pick(FLAT), aval=Aval(GRID, F64)),
    "to_flat": lambda pick, k: op("reshape", pick(GRID), aval=Aval(FLAT, F64)),
    "transposed": lambda pick, k: op("reshape", op("permute", pick(GRID), axes=(1, 0)), aval=Aval(GRID, F64)),
    "stretched": lambda pick, k: op("broadcast", _row(pick, k), aval=Aval(GRID, F64)),
    "reversed": lambda pick, k: op("getitem", pick(FLAT), index=(slice(None, None, -1),)),
    "row": lambda pick, k: op("setitem", pick(GRID), _row(pick, k), index=(k + 1,)),
    "rows": lambda pick, k: op(
        "additem", pick(GRID), op("broadcast", _row(pick, k), aval=Aval((7, COLUMNS), F64)), index=(slice(2, 9),)
    ),
    "shifted": lambda pick, k: op("setitem", pick(FLAT), _part(pick, k), index=(slice(k + 3, k + 103),)),
    "added": lambda pick, k: op("additem", pick(FLAT), _part(pick, 0), index=(slice(k, k + 100),)),
    "all_added": lambda pick, k: op("additem", pick(FLAT), pick(FLAT), index=(slice(None),)),
    "number": lambda pick, k: op("setitem", pick(FLAT), op("getitem", pick(FLAT), index=(k,)), index=(k + 5,)),
    "diagonal": lambda pick, k: op(
        "setitem", op("diagonal", pick(GRID), offset=0), op("getitem", pick(FLAT), index=(k,)), index=(k,)
    ),
    "gather": lambda pick, k: op("gather", pick(FLAT), pick(INDEX), index=(Arg(1),)),
    "scatter_add": lambda pick, k: op("scatter_add", pick(FLAT), _part(pick, k), pick(INDEX), index=(Arg(2),)),
    "scatter": lambda pick, k: op("scatter", pick(FLAT), _part(pick, k), pick(INDEX), index=(Arg(2),)),
    "sums": lambda pick, k: op("sum", pick(GRID), axis=(k % 2,), keepdims=True),
    "product": lambda pick, k: pick(GRID) @ op("permute", pick(GRID), axes=(1, 0)) @ pick(GRID),
    "joined": lambda pick, k: op(
        "concatenate", _part(pick, k), op("getitem", pick(FLAT), index=(slice(100, None),)), axis=0
    ),
    "chosen": lambda pick, k: op("where", op("lt", pick(FLAT), pick(FLAT)), pick(FLAT), pick(FLAT)),
    "loop": lambda pick, k: _loop(pick(GRID), pick(GRID), bool(k % 2)),
    "call": lambda pick, k: _called(pick(FLAT)),
}


def program(seed: int) -> Graph:
    """A program of 30 steps; each reads among the last few values of a shape."""
    rng = np.random.default_rng(seed)
    b = Builder()
    pools: dict[tuple[int, ...], list[Symbol]] = {
        FLAT: [b.input(Aval(FLAT, F64), "x")],
        GRID: [b.input(Aval(GRID, F64), "y")],
        INDEX: [b.input(Aval(INDEX, I64), "i")],
    }

    def pick(shape: tuple[int, ...]) -> Symbol:
        pool = pools[shape]
        return pool[-1 - int(rng.integers(0, min(4, len(pool))))]

    made: list[Symbol] = []
    for name in rng.choice(sorted(STEPS), 30):
        found = STEPS[name](pick, int(rng.integers(1, 40)))
        for symbol in found if isinstance(found, list) else [found]:
            made.append(symbol)
            if symbol.aval in {Aval(FLAT, F64), Aval(GRID, F64)}:
                pools[symbol.shape].append(symbol)
    kept = [made[k] for k in rng.integers(0, len(made), 3)]
    return verify(prune(b.graph("random", [made[-1], made[-2], *kept])))


ARGUMENTS = {
    FLAT: np.linspace(-1.5, 1.5, FLAT[0]),
    GRID: np.cos(np.arange(FLAT[0])).reshape(GRID) / COLUMNS,
    INDEX: np.arange(100) ** 2 % 777,
}


@given(seeds)
def test_large_storage_is_reused_without_a_trace(seed: int) -> None:
    graph = program(seed)
    args = [ARGUMENTS[v.aval.shape] for v in graph.inputs]
    kept = values.snapshot(args)
    with np.errstate(all="ignore"):
        expected = evaluate(graph, args)
        found = Executable(own_outputs(graph))(*args)
    values.assert_same_bits(list(found), list(expected))
    values.assert_same_bits(args, kept)
    for i, x in enumerate(found):
        assert not values.shares(x, args)
        assert not values.shares(x, list(found[:i]))


@given(seeds)
def test_a_plan_writes_only_into_what_nobody_reads_later(seed: int) -> None:
    """Replay the plan on paper: no value is read after its storage was taken over."""
    plan = place_buffers(own_outputs(program(seed)))
    before = set(plan.order.inputs)
    for i, node in enumerate(plan.order.nodes):
        for out in node.outputs:
            if out in plan.into:
                assert plan.buffer[out] == plan.buffer[plan.into[out]]
                late = [v for v in before if plan.buffer[v] == plan.buffer[out] and plan.last_use[v] > i]
                assert [v for v in late if not shows_others(plan.order, v, node)] == []
        before.update(node.outputs)


def shows_others(graph: Graph, view: Value, write: Node) -> bool:
    """Whether a part of an array holds other elements than a write into that array changes."""
    made = graph.producer
    part = made[view]
    if part.prim.name != "getitem" or write.prim.name not in {"setitem", "additem", "subitem"}:
        return False
    for whole in (part.inputs[0], write.inputs[0]):
        assert whole not in made or made[whole].prim.alias is None
    numbers = np.arange(part.inputs[0].aval.size).reshape(part.inputs[0].aval.shape)
    return not np.isin(numbers[part.attrs["index"]], numbers[write.attrs["index"]]).any()


BODY = (
    "sin",
    "add",
    "maximum",
    "reversed",
    "shifted",
    "added",
    "all_added",
    "number",
    "joined",
    "transposed",
    "to_grid",
    "to_flat",
    "neg",
    "mul",
    "row",
)


def loop_program(seed: int) -> Graph:
    """A loop over a random body with two carries that it writes into and passes on, and the sum of all results."""
    rng = np.random.default_rng(seed)
    inner = Builder()
    carries = [inner.input(Aval(FLAT, F64), "a"), inner.input(Aval(GRID, F64), "b")]
    pools = {FLAT: [inner.input(Aval(FLAT, F64), "x"), carries[0]], GRID: [carries[1]]}

    def pick(shape: tuple[int, ...]) -> Symbol:
        pool = pools[shape]
        return pool[-1 - int(rng.integers(0, min(4, len(pool))))]

    for name in rng.choice(BODY, 8):
        made = STEPS[name](pick, int(rng.integers(1, 40)))
        pools[made.shape].append(made)
    body = inner.graph("step", [pick(FLAT), pick(GRID), pick(FLAT)])
    b = Builder()
    x, y = b.input(Aval(FLAT, F64), "x"), b.input(Aval(GRID, F64), "y")
    xs = op("broadcast", x * 0.5, aval=Aval((3, *FLAT), F64))
    attrs = {"arrays": 1, "body": body, "carry": 2, "consts": 0, "length": 3, "reverse": bool(seed % 2)}
    results = b.emit(REGISTRY["scan"], [op("sin", x).value, op("sin", y).value, xs.value], attrs)
    total = None
    for r in results:
        part = op("sum", op("mul", r, r), axis=tuple(range(r.ndim)), keepdims=False)
        total = part if total is None else total + part
    return verify(b.graph("looped", [total]))


@given(seeds)
def test_the_gradient_of_a_loop_over_large_states_keeps_every_bit(seed: int) -> None:
    graph = loop_program(seed)
    gradient = value_and_grad(graph, [True, True], linearize(graph, [True, True], nan_safe=False))
    args = [ARGUMENTS[v.aval.shape] for v in graph.inputs]
    kept = values.snapshot(args)
    with np.errstate(all="ignore"):
        expected = evaluate(gradient, args)
        found = Executable(pipeline(gradient))(*args)
    values.assert_same_bits(list(found), list(expected))
    values.assert_same_bits(args, kept)
