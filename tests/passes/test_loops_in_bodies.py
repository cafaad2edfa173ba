"""Python loops inside the bodies of rg's loops and branches fold as those outside of them do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.graph import Graph
from tests.support.native import needs_compiler

STEPS = 100
WEIGHTS = np.linspace(0.5, 1.0, STEPS)
X, Y = np.linspace(0.1, 0.5, 7), np.linspace(0.9, 0.2, 7)
Pair = tuple[Any, Any]


def steps(x: Any, y: Any) -> Pair:
    """Steps in plain Python; each has numbers of its own, of which some are in an array outside."""
    for k in range(STEPS):
        x = 0.5 * np.sin(x) * y + 0.01 * k
        y = y * 0.99 + 0.01 * x * WEIGHTS[k]
        x = x * 0.9 + np.cos(x)
    return x, y


def in_fori_loop(x: Any, y: Any) -> Any:
    return np.sum(rg.fori_loop(3, lambda _, s: steps(*s), (x, y))[0])


def in_scan(x: Any, y: Any) -> Any:
    (x, _), ys = rg.scan(lambda s, _: (steps(*s), np.sum(s[1])), (x, y), length=3)
    return np.sum(x) + 0.0 * np.sum(ys)


def in_while_loop(x: Any, y: Any) -> Any:
    return np.sum(rg.while_loop(lambda s: s[2] < 3, lambda s: (*steps(*s[:2]), s[2] + 1), (x, y, 0))[0])


def in_cond(x: Any, y: Any) -> Any:
    for _ in range(3):
        x, y = rg.cond(x[0] > -9.0, lambda x=x, y=y: steps(x, y), lambda x=x, y=y: (y, x))
    return np.sum(x)


def in_python(x: Any, y: Any) -> Any:
    for _ in range(3):
        x, y = steps(x, y)
    return np.sum(x)


def longest(graph: Graph) -> int:
    """The most nodes of a graph and those inside it."""
    return max([len(graph.nodes), *(longest(body) for node in graph.nodes for _, body in node.graphs)])


BACKENDS = ["numpy", pytest.param("native", marks=needs_compiler)]
PROGRAMS = [in_fori_loop, in_scan, in_while_loop, in_cond]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_body_has_loops_in_place_of_their_steps(program, backend):
    f = rg.jit(program, backend=backend)
    assert longest(f.graph(X, Y, stage="traced")) < STEPS
    assert f(X, Y) == pytest.approx(in_python(X, Y), rel=1e-12)
    assert f(Y, X) == pytest.approx(in_python(Y, X), rel=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [in_fori_loop, in_scan, in_cond])
def test_gradients_are_those_of_the_steps(program, backend):
    expected = rg.grad(in_python, argnums=(0, 1))(X, Y)
    for memory in (None, "120 kB"):
        g = rg.grad(program, argnums=(0, 1), backend=backend, memory=memory)
        for found, wanted in zip(g(X, Y), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_numbers_of_steps_are_right_under_other_transforms_and_in_compiled_functions():
    batch = np.stack([X, Y, X * Y])
    inner = rg.jit(in_scan)
    found = rg.vmap(in_fori_loop)(batch, batch[::-1])
    np.testing.assert_allclose(found, [in_python(x, y) for x, y in zip(batch, batch[::-1], strict=True)], rtol=1e-12)
    twice = rg.jit(lambda x, y: inner(x, y) + inner(y, x))
    assert twice(X, Y) == pytest.approx(in_python(X, Y) + in_python(Y, X), rel=1e-12)
    tangent = rg.jvp(in_fori_loop, (X, Y), (Y, X))[1]
    slopes = rg.grad(in_python, argnums=(0, 1))(X, Y)
    assert tangent == pytest.approx(slopes[0] @ Y + slopes[1] @ X, rel=1e-10)


def test_a_budget_finds_fewer_bytes_than_all_steps_take():
    with pytest.raises(rg.errors.MemoryBudgetError) as refused:
        rg.grad(in_fori_loop, argnums=(0, 1), memory=300)(X, Y)
    (least,) = re.findall(r"at least ([\d,]+) bytes", str(refused.value))
    assert int(least.replace(",", "")) < X.nbytes * STEPS * 3  # a result of each step


def test_a_change_of_the_array_outside_is_seen():
    weights = [np.array(WEIGHTS)]

    def body(_: Any, x: Any) -> Any:
        for k in range(STEPS):
            x = np.sin(x) * weights[0][k] + 0.001 * k
            x = x * 0.9 + 0.1 * x * x
        return x

    f = rg.jit(lambda x: rg.fori_loop(2, body, x))
    first = f(X)
    assert longest(f.graph(X, stage="traced")) < STEPS
    weights[0] = 0.5 * weights[0]
    second = f(X)
    assert not np.allclose(first, second)
    np.testing.assert_allclose(second, body(0, body(0, X)), rtol=1e-12)


def test_views_of_inputs_that_all_steps_read_are_no_part_of_the_first():
    def bodies(place: Any, speed: Any, mass: Any) -> Any:
        for _ in range(60):
            apart = place[None, :, :] - place[:, None, :]
            pull = mass[None, :, None] * apart / (np.sum(apart**2, axis=-1) + 0.1)[:, :, None] ** 1.5
            speed = speed + 0.01 * np.sum(pull, axis=1)
            place = place + 0.01 * speed
        return place, speed

    rng = np.random.default_rng(0)
    args = rng.random((12, 3)), rng.random((12, 3)), np.ones(12)
    f = rg.jit(bodies)
    (loop,) = [node for node in f.graph(*args, stage="traced").nodes if node.prim.name == "scan"]
    assert loop.attrs["length"] == 60
    assert sum(v.aval.nbytes for v in loop.outputs) == args[0].nbytes + args[1].nbytes  # what differs between steps
    assert max(v.aval.size for v in loop.inputs) == args[0].size  # masses are stretched in each step
    with rg.config(exact=True):
        for found, wanted in zip(f(*args), bodies(*args), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_functions_with_their_own_derivative_have_loops():
    @rg.custom_vjp
    def swept(x: Any) -> Any:
        return steps(x, Y)[0]

    swept.defvjp(lambda x: (swept(x), x), lambda x, ct: (steps(ct, x)[1],))
    g = rg.grad(lambda x: np.sum(swept(x) ** 2))
    np.testing.assert_allclose(g(X), steps(2.0 * steps(X, Y)[0], X)[1], rtol=1e-12)
    assert longest(g.graph(X)) < STEPS


def numbered(_: Any, s: Pair) -> Pair:
    x, y = s
    for k in range(60):
        x = 0.5 * np.sin(x) * y + 0.01 * k
        y = y * 0.99 + 0.01 * x
    return x, y


def in_turn(steps: int, body: Any, s: Pair) -> Pair:
    """``rg.fori_loop`` in plain Python."""
    for k in range(steps):
        s = body(k, s)
    return s


def loops_in_loops(x: Any, y: Any, fori_loop: Any = rg.fori_loop) -> Any:
    for _ in range(90):
        x, y = fori_loop(3, numbered, (x, y))
        x = x * 0.5
    return np.sum(x * y)


def same_numbers(x: Any, y: Any, fori_loop: Any = rg.fori_loop) -> Any:
    """The numbers of the outer loop are those of the inner one."""
    x, y = fori_loop(3, numbered, (x, y))
    x, y = numbered(0, (x, y))
    return np.sum(x * y)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [loops_in_loops, same_numbers])
def test_bodies_that_are_recorded_again_are_equal(program, backend):
    f = rg.jit(program, backend=backend)
    assert longest(f.graph(X, Y, stage="traced")) < 30
    for x, y in ((X, Y), (Y, X), (X, Y)):
        assert f(x, y) == pytest.approx(program(x, y, in_turn), rel=1e-12)
