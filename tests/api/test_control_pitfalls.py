"""Faults that loops had in an early trial, each as a test, at sizes on both sides of those where storage is shared."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.programs.control import OURS, PLAIN
from tests.support import values
from tests.support.memory import measured

EXACT = 1e-10
SIZES = (3, 2047, 2048, 2049, 8192, 9001)
sizes = pytest.mark.parametrize("n", SIZES)
kinds = pytest.mark.parametrize("kind", ["counted", "counted at run time", "while", "scan"])


def repeat(ops: Any, kind: str, times: int, body: Any, init: Any) -> Any:
    """The body so many times, by each kind of loop."""
    if kind == "counted":
        return ops.fori_loop(times, lambda _, c: body(c), init)
    if kind == "counted at run time":
        return ops.fori_loop(np.int64(times) + 0 * np.sign(init[0].shape[0]), lambda _, c: body(c), init)
    if kind == "while":
        return ops.while_loop(lambda c: c[1] < times, lambda c: (body(c[0]), c[1] + 1), (init, 0))[0]
    return ops.scan(lambda c, _: (body(c), None), init, None, times)[0]


def agree(f: Any, *args: Any) -> None:
    """Values, gradients of both modes and second derivatives are those of the loop in Python."""
    every = tuple(range(len(args)))
    ours, plain = (lambda *xs, ops=ops: f(ops, *xs) for ops in (OURS, PLAIN))
    values.assert_close(rg.value_and_grad(ours, every)(*args), rg.value_and_grad(plain, every)(*args), EXACT)
    again = tuple(np.cos(np.arange(x.size, dtype=float)).reshape(x.shape) if np.ndim(x) else 0.7 for x in args)

    def along(g: Any) -> Any:
        return lambda *xs: rg.jvp(g, xs, again)[1]

    def pulled(g: Any) -> Any:
        return lambda *xs: sum(np.sum(d * w) for d, w in zip(rg.grad(g, every)(*xs), again, strict=True))

    values.assert_close(along(ours)(*args), along(plain)(*args), EXACT)
    for derivative in (along, pulled):
        values.assert_close(
            rg.grad(derivative(ours), every)(*args), rg.grad(derivative(plain), every)(*args), EXACT * 10
        )


def vector(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.2, 0.8, n)


@pytest.mark.costly
@sizes
@kinds
def test_a_carry_that_is_saved_is_not_written_in_place(n: int, kind: str) -> None:
    def f(ops: Any, x: Any, k: Any) -> Any:
        def body(c: Any) -> Any:
            (u,) = c
            new = u + k * np.sin(u)
            new[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
            return (new * new * 0.5,)

        return np.sum(repeat(ops, kind, 4, body, (x,))[0])

    agree(f, vector(n), 0.3)


@sizes
@kinds
def test_a_carry_that_is_the_result_is_not_written_afterwards(n: int, kind: str) -> None:
    def f(ops: Any, x: Any) -> Any:
        (u,) = repeat(ops, kind, 3, lambda c: (c[0] * np.exp(-c[0]),), (x,))
        v = u * 2.0
        u[0] = 5.0
        u += v
        return np.sum(u * v) + np.sum(x)

    agree(f, vector(n))


@sizes
@kinds
def test_sums_over_two_constants_have_their_own_storage(n: int, kind: str) -> None:
    def f(ops: Any, a: Any, b: Any, x: Any) -> Any:
        return np.sum(repeat(ops, kind, 3, lambda c: (c[0] * a + np.sin(b) * c[0],), (x,))[0] ** 2)

    agree(f, vector(n, 1), vector(n, 2), vector(n, 3))


@sizes
@kinds
def test_carries_that_change_places_stay_apart(n: int, kind: str) -> None:
    def f(ops: Any, x: Any, y: Any) -> Any:
        a, b, c = repeat(ops, kind, 5, lambda s: (s[1], s[0] * s[2], s[2] + 0.1), (x, y, x))
        a += b
        return np.sum(a * c)

    agree(f, vector(n, 1), vector(n, 2))


@sizes
def test_a_choice_hands_on_its_operand_untouched(n: int) -> None:
    """Its result is a value of its own, as that of every operation is that makes no view."""

    def f(ops: Any, x: Any) -> Any:
        same = (lambda v: v) if ops is OURS else np.copy
        y = ops.cond(x[0] > 0, same, lambda v: v * 2, x)
        z = ops.cond(x[0] > 10, same, lambda v: v[::-1] * 1.0, x)
        y += 1.0
        z[:2] = y[:2]
        return np.sum(y * z * x)

    agree(f, vector(n))
    x = vector(n)
    before = x.copy()
    out = rg.cond(True, lambda v: v, lambda v: v, x)
    out += 1
    values.assert_same_bits(x, before)


@sizes
def test_writes_in_a_branch_stay_in_it(n: int) -> None:
    def f(ops: Any, x: Any) -> Any:
        def branch(v: Any) -> Any:
            v = v * 1.0
            v[::2] *= x[0]
            v[1] = 3.0
            return v

        y = x * x
        z = ops.cond(np.sum(x) > 0, branch, lambda v: v, y)
        return np.sum(z * y)

    agree(f, vector(n))


@sizes
def test_writes_into_an_operand_stay_in_the_branch(n: int) -> None:
    """Whether the choice is known while recording or not."""

    def f(ops: Any, x: Any) -> Any:
        def branch(v: Any) -> Any:
            v = v if ops is OURS else np.copy(v)
            v[::2] *= 3.0
            return v

        y = x * x
        known = ops.cond(True, branch, lambda v: v, y)
        found = ops.cond(np.sum(y) > 0, branch, lambda v: v, y)
        return np.sum(known * found * y)

    agree(f, vector(n))
    x = vector(n)
    before = x.copy()
    rg.switch(1, [lambda v: v, lambda v: np.multiply(v, 2.0, out=v)], x)
    values.assert_same_bits(x, before)


def test_an_inner_loop_leaves_the_outer_index_alone() -> None:
    def f(ops: Any, xs: Any, ys: Any) -> Any:
        def outer(c: Any, x: Any) -> Any:
            inner, _ = ops.scan(lambda d, y: (np.sin(d) * y, None), c, ys)
            return inner + x, inner * x

        last, trail = ops.scan(outer, 0.3, xs)
        return last + np.sum(trail**2)

    agree(f, vector(4), vector(3, 1))
    source = rg.grad(lambda xs: f(OURS, xs, vector(3, 1))).source(vector(40))
    for function in source.split("\ndef "):
        loops = re.findall(r"^( *)for (\w+) in", function, re.MULTILINE)
        assert len({name for _, name in loops}) == len(loops)


@pytest.mark.parametrize("reverse", [False, True])
def test_two_inputs_of_one_type_keep_their_cotangents(reverse: bool) -> None:
    def f(ops: Any, xs: Any, ys: Any) -> Any:
        last, out = ops.scan(lambda c, p: (c * p[0] + p[1], p[0] * p[1] ** 2), 1.0, (xs, ys), reverse=reverse)
        return last + np.sum(out)

    agree(f, vector(4), vector(4, 1))


@kinds
def test_a_result_may_depend_on_an_input_without_a_tangent(kind: str) -> None:
    def f(ops: Any, x: Any, k: Any) -> Any:
        def body(c: Any) -> Any:
            u, v = c
            return u * k + np.floor(u), np.round(v * u) + 0.5

        u, v = repeat(ops, kind, 3, body, (x, x))
        return np.sum(u * v)

    agree(f, vector(3), 1.3)


@kinds
def test_a_linear_carry_may_start_from_a_known_zero(kind: str) -> None:
    def f(ops: Any, w: Any, x: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + w * c[1], np.sin(c[1])

        total, _ = repeat(ops, kind, 3, body, (np.zeros(3) + 0.0 * x.shape[0], x))
        return np.sum(total**2)

    agree(f, vector(3), vector(3, 1))


@kinds
def test_a_saved_state_that_is_read_twice_gets_both_cotangents(kind: str) -> None:
    def f(ops: Any, x: Any, y: Any) -> Any:
        def body(c: Any) -> Any:
            u, v = c
            return np.sin(u) * np.exp(v), np.cos(u * v) * v

        u, v = repeat(ops, kind, 3, body, (x, y))
        return np.sum(u * v)

    agree(f, vector(3), vector(3, 1))

    def third(ops: Any) -> Any:
        g = rg.grad(lambda x: f(ops, x, vector(3, 1)))
        h = rg.grad(lambda x: np.sum(g(x) ** 2))
        return rg.grad(lambda x: np.sum(h(x) * x))(vector(3))

    values.assert_close(third(OURS), third(PLAIN), EXACT)


@kinds
def test_lists_of_lists_keep_their_lengths(kind: str) -> None:
    def f(ops: Any, x: Any, k: Any) -> Any:
        def body(c: Any) -> Any:
            (u,) = c
            inner = ops.while_loop(lambda d: np.sum(d) < 5, lambda d: d * 1.5 + np.sin(d) * k, u)
            return (inner * 0.3,)

        return np.sum(repeat(ops, kind, 3, body, (x,))[0] ** 2)

    agree(f, vector(3), 0.4)


def test_what_is_cheap_constant_or_a_state_is_not_saved() -> None:
    """A cell of tanh saves its state; a state and a step by step input are not saved twice."""

    def loss(w: Any, xs: Any) -> Any:
        def body(h: Any, x: Any) -> Any:
            return np.tanh(w @ h + np.sin(x) * np.exp(-np.sum(w))), None

        return np.sum(rg.scan(body, np.zeros(3), xs)[0])

    graph = rg.grad(loss, (0, 1)).graph(np.eye(3), np.ones((5, 3)))
    forward = next(node for node in graph.nodes if node.prim.name == "scan")
    saved = [v.aval for v in forward.outputs if v.aval.steps is not None]
    assert [str(a) for a in saved] == ["f64[3]*5", "f64[3]*5"]  # the state before and after a step: references
    body = forward.attrs["body"]
    states = {*body.inputs[: forward.attrs["consts"] + forward.attrs["carry"]], *body.outputs[: forward.attrs["carry"]]}
    assert all(v in states for v in body.outputs[forward.attrs["carry"] :])


@pytest.mark.parametrize("kind", ["counted", "while", "scan"])
def test_the_states_of_a_loop_are_saved_by_reference(kind: str) -> None:
    """A cell keeps its states and nothing else: what they are before a step and after it are the same arrays."""
    steps, w, h = 60, np.eye(64) * 0.5, np.ones((32, 64))

    def loss(w: Any, h: Any) -> Any:
        return np.sum(repeat(OURS, kind, steps, lambda c: (np.tanh(c[0] @ w) * 0.9,), (h,))[0])

    assert measured(rg.grad(loss, (0, 1)), w, h) < (2 * steps + 20) * h.nbytes
    assert measured(rg.grad(loss, 1), w, h) < (steps + 20) * h.nbytes

    def cell(w: Any, h: Any) -> Any:
        return np.sum(repeat(OURS, kind, steps, lambda c: (np.tanh(c[0] @ w),), (h,))[0])

    assert measured(rg.grad(cell, (0, 1)), w, h) < (steps + 20) * h.nbytes
