"""Loops write into arrays that they own: every bit stays, and nobody else's array changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.compiler.executable import Executable
from retrograd.ir import Aval, Graph, evaluate, verify
from retrograd.ir.builder import Builder, Symbol
from retrograd.ir.loop_node import loop_of
from retrograd.ir.primitive import REGISTRY
from retrograd.ir.rewrite import walk
from retrograd.passes import place_buffers as placer
from retrograd.passes.own_carries import own_carries
from retrograd.passes.own_outputs import own_outputs
from retrograd.passes.place_buffers import REUSE, carries_in_place
from tests.passes.test_random_storage import ARGUMENTS, F64, FLAT, GRID, STEPS
from tests.support import values
from tests.support.graphs import op
from tests.support.memory import measured

STEP_NAMES = (
    "sin",
    "add",
    "maximum",
    "reversed",
    "shifted",
    "added",
    "number",
    "row",
    "rows",
    "transposed",
    "mul",
    "to_flat",
)
Pools = dict[tuple[int, ...], list[Symbol]]


def _steps(rng: np.random.Generator, pools: Pools, count: int) -> Callable[[tuple[int, ...]], Symbol]:
    """Add random steps; what picks among the last values of a shape."""

    def pick(shape: tuple[int, ...]) -> Symbol:
        pool = pools[shape]
        return pool[-1 - int(rng.integers(0, min(4, len(pool))))]

    for name in rng.choice(STEP_NAMES, count):
        made = STEPS[name](pick, int(rng.integers(1, 40)))
        pools[made.shape].append(made)
    return pick


def _loop(b: Builder, rng: np.random.Generator, given_: list[Symbol], depth: int) -> list[Symbol]:
    """A loop over two flat carries and one grid, which may change places, with a list and an array of its steps."""
    inner = Builder()
    const = inner.input(Aval(FLAT, F64), "k")
    carry = [inner.input(x.aval) for x in given_]
    pools: Pools = {FLAT: [const, *carry[:2]], GRID: [carry[2]]}
    pick = _steps(rng, pools, 3)
    if depth:
        found = _loop(inner, rng, [pick(FLAT), pick(FLAT), pick(GRID)], depth - 1)
        pools[FLAT] += found[:2]
        pools[GRID].append(found[2])
        pick = _steps(rng, pools, 2)
    listed = [pick(FLAT)] if rng.integers(0, 2) else []
    ends = [pick(FLAT), pick(FLAT), pick(GRID)]
    if rng.integers(0, 2):
        ends = [op("setitem", ends[0], op("getitem", ends[1], index=(3,)), index=(4,)), carry[1], pools[GRID][-1]]
    if rng.integers(0, 3) == 0:
        ends[:2] = ends[1::-1]
    body = inner.graph("step", [*ends, pick(GRID), *listed])
    attrs = {"arrays": 1, "body": body, "carry": 3, "consts": 1, "length": 3, "reverse": False}
    return b.emit(REGISTRY["scan"], [given_[int(rng.integers(0, 2))].value, *(x.value for x in given_)], attrs)


def program(seed: int) -> Graph:
    """Loops in a loop over what the program made or got, used afterwards."""
    rng = np.random.default_rng(seed)
    b = Builder()
    x, y = b.input(Aval(FLAT, F64), "x"), b.input(Aval(GRID, F64), "y")
    pools: Pools = {FLAT: [x, op("sin", x), op("owned", x)], GRID: [y, op("sin", y)]}
    pick = _steps(rng, pools, 2)
    *found, ys = _loop(b, rng, [pick(FLAT), pick(FLAT), pick(GRID)], int(rng.integers(0, 2)))[:4]
    pools[FLAT] += found[:2]
    pools[GRID].append(found[2])
    pick = _steps(rng, pools, 2)
    return verify(b.graph("looped", [pick(FLAT), pick(GRID), *found, op("sum", ys, axis=(0,), keepdims=False)]))


def check(seed: int) -> int:
    """Compare bits with the interpreter; how many carries lie in place."""
    graph = own_outputs(program(seed))
    args = [ARGUMENTS[v.aval.shape] for v in graph.inputs]
    kept = values.snapshot(args)
    with np.errstate(all="ignore"):
        expected = evaluate(graph, args)
        found = Executable(graph)(*args)
    values.assert_same_bits(list(found), list(expected))
    values.assert_same_bits(args, kept)
    assert not any(values.shares(x, [*args, *found[:i]]) for i, x in enumerate(found))
    loops = [loop for node in walk(own_carries(graph)) if (loop := loop_of(node)) is not None]
    return sum(len(carries_in_place(loop, frozenset(range(3)))) for loop in loops)


@given(st.integers(0, 2**32))
def test_random_loops_keep_every_bit(seed: int) -> None:
    check(seed)


def test_random_loops_often_work_in_place() -> None:
    assert sum(check(seed) > 0 for seed in range(20)) >= 5


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a list of steps does not count, or a view, some program goes wrong."""
    monkeypatch.setattr(placer, "Counter", lambda roots: dict.fromkeys(roots, 1))
    with pytest.raises(AssertionError):
        list(map(check, range(60)))


def _writes(u: Any, i: Any) -> Any:
    u = u.copy()
    u[i + 1] = 0.5 * u[i] + np.sin(u[i + 1])
    return u


N = 300


def seidel(u: Any) -> Any:
    return rg.fori_loop(0, N - 1, lambda i, v: _writes(v, i), u)


def by_hand(u: Any) -> Any:
    u = u.copy()
    for i in range(N - 1):
        u[i + 1] = 0.5 * u[i] + np.sin(u[i + 1])
    return u


def _nested(u: Any) -> Any:
    return rg.fori_loop(0, 3, lambda _, v: seidel(v), u)


def _while(u: Any) -> Any:
    return rg.while_loop(lambda c: c[0] < N - 1, lambda c: (c[0] + 1, _writes(c[1], c[0])), (0, u))[1]


def _returned_too(u: Any) -> Any:
    def step(v: Any, i: Any) -> Any:
        w = _writes(v, i)
        return w, (v[:7], w[-7:])

    last, (before, after) = rg.scan(step, u, np.arange(N - 1))
    return np.concatenate([last, before.ravel(), after.ravel()])


def _swapped(u: Any) -> Any:
    a, b = rg.fori_loop(0, N - 1, lambda i, c: (_writes(c[1], i), c[0]), (u, 2 * u))
    return np.concatenate([a, b])


def _one_start(u: Any) -> Any:
    v = np.sin(u)
    a, b = rg.fori_loop(0, N - 1, lambda i, c: (_writes(c[0], i), _writes(c[1], i) * 1.0), (v, v))
    return np.concatenate([a, b, v])


def _read_beside(u: Any) -> Any:
    return rg.fori_loop(0, N - 1, lambda i, v: _writes(v, i) + 0 * u[i], u)


def _view_later(u: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        part = v[2:9]
        w = v.copy()
        w[3] = part[0] * 0.5
        w[8] = np.sum(part)
        return w

    return rg.fori_loop(0, 20, body, u)


def _parts_handed_on(u: Any) -> Any:
    """Rows of the array go to the next step by themselves, too, and a list keeps them."""

    def body(i: Any, c: Any) -> Any:
        a, row = c
        a = a.copy()
        a[i % 17] = np.sin(row) * a[(i + 3) % 17]
        return a, a[(i + 5) % 17]

    a, row = rg.fori_loop(0, 30, body, (u[:289].reshape(17, 17), u[:17]))
    return a @ row


def _branches(u: Any) -> Any:
    return rg.fori_loop(
        0, N - 1, lambda i, v: rg.cond(v[i] > 0.3, lambda w: _writes(w, i), lambda w: w * 0.999, _writes(v, i)), u
    )


def _reversed(u: Any) -> Any:
    return rg.fori_loop(0, N - 1, lambda i, v: _writes(v[::-1], i), u)


def _turned(u: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        a = a.copy()
        a[i % 17, 1:] = a[i % 17, :-1] * 0.5
        return a.T

    return rg.fori_loop(0, 7, body, u[:289].reshape(17, 17).T) @ np.ones(17)


def _none(u: Any) -> Any:
    return rg.fori_loop(0, 0, lambda i, v: _writes(v, i), u)


def _kept(u: Any) -> Any:
    return rg.fori_loop(0, N - 1, lambda i, v: _writes(v, i), u, memory=rg.Snapshots(4))


FUNCTIONS = [
    seidel, _nested, _while, _returned_too, _swapped, _one_start, _read_beside, _view_later, _parts_handed_on,
    _branches, _reversed, _turned, _none, _kept,
]  # fmt: skip
U = np.cos(np.arange(N) / 7.0)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_compiled_loops_have_the_bits_of_the_interpreter(f: Any) -> None:
    def total(u: Any) -> Any:
        return np.sum(np.sin(f(u)))

    start, tangent = U.copy(), np.sin(U)
    for compiled, args in (
        (rg.jit(f), (start,)),
        (rg.grad(total), (start,)),
        (rg.jit(lambda u, t: rg.jvp(rg.grad(total), (u,), (t,))[1]), (start, tangent)),
        (rg.jit(rg.vmap(f)), (np.stack([start, tangent]),)),
    ):
        found = compiled(*args)
        values.assert_same_bits([found], [np.asarray(evaluate(compiled.graph(*args), list(args))[0])])
        values.assert_same_bits([start], [U])


def test_a_loop_over_elements_has_the_bits_of_numpy() -> None:
    values.assert_same_bits([rg.jit(seidel)(U)], [by_hand(U)])


@pytest.mark.parametrize("f", [seidel, _nested, _while, _swapped, _parts_handed_on])
def test_the_source_copies_before_the_loop_alone(f: Any) -> None:
    lines = rg.jit(f).source(U).splitlines()
    loop = next(k for k, line in enumerate(lines) if line.lstrip().startswith(("for ", "while ")))
    assert not any(".copy()" in line and "]" not in line for line in lines[loop:])  # parts may be copied
    assert sum(".copy()" in line for line in lines[:loop]) <= 1


def test_checkpointed_gradients_keep_their_bits() -> None:
    plain, thrifty = (rg.grad(lambda u, f=f: np.sum(np.sin(f(u)))) for f in (seidel, _kept))
    values.assert_same_bits([thrifty(U)], [plain(U)])


def test_arrays_of_a_call_that_fails_stay() -> None:
    def f(u: Any) -> Any:
        def body(i: Any, v: Any) -> Any:
            rg.throw_if((i > 100) & (v[0] > 5), v[0])
            return _writes(v, i)

        return rg.fori_loop(0, N - 1, body, u)

    compiled, u = rg.jit(f), U + 9
    compiled(U)
    with pytest.raises(rg.errors.Thrown):
        compiled(u)
    values.assert_same_bits([u], [U + 9])


@pytest.mark.parametrize("elements", [REUSE // 8 - 1, REUSE // 8, 9000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_states_are_updated_where_they_are(elements: int, order: str) -> None:
    def f(u: Any) -> Any:
        return rg.fori_loop(0, 5, lambda i, v: v + 0.1 * (np.sin(v) - v), u)

    u = np.asarray(np.cos(np.arange(3.0 * elements)).reshape(3, elements), order=order)  # type: ignore[call-overload]
    kept, compiled = u.copy(), rg.jit(f)
    expected = u
    for _ in range(5):
        expected = expected + 0.1 * (np.sin(expected) - expected)
    values.assert_same_bits([compiled(u), u], [expected, kept])


def test_the_memory_of_a_loop_in_place_is_predicted() -> None:
    u = np.cos(np.arange(200_000.0))

    def f(u: Any) -> Any:
        return rg.fori_loop(0, 20, lambda i, v: _writes(v, i), u)

    for compiled, arrays in ((rg.jit(f), 1), (rg.grad(lambda u: np.sum(f(u) ** 2)), 2.2)):
        predicted, found = compiled.plan(u).peak_bytes, measured(compiled, u)
        assert predicted is not None
        assert found - 20_000 <= predicted <= 1.01 * found
        assert found < (arrays + 0.1) * u.nbytes


def test_a_state_that_is_a_copy_of_what_was_freed() -> None:
    def f(u: Any) -> Any:
        return rg.scan(lambda u, _: (np.sin(u).T.reshape(64, 128), None), u, None, length=4)[0]

    u = np.cos(np.arange(8192.0)).reshape(64, 128)
    expected = u
    for _ in range(4):
        expected = np.sin(expected).T.reshape(64, 128)
    values.assert_same_bits([rg.jit(f)(u)], [expected])
