"""Loops: a scan and its derivatives are those of the loop unrolled in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support import values

RNG = np.random.default_rng(7)
W = RNG.uniform(-1, 1, (3, 3))
H = RNG.uniform(-1, 1, 3)
XS = RNG.uniform(-1, 1, (7, 3))
LENGTHS = (0, 1, 2, 7)
EXACT = 1e-11

Function = Callable[..., Any]


def unrolled(body: Function, init: Any, xs: Any = None, length: int | None = None, *, reverse: bool = False) -> Any:
    """``rg.scan`` as a loop in Python."""
    n = len(xs) if xs is not None else length or 0
    carry, ys = init, [None] * n
    for t in reversed(range(n)) if reverse else range(n):
        carry, ys[t] = body(carry, None if xs is None else xs[t])
    return carry, np.stack(ys) if n else np.zeros((0, 3))


def cell(scan: Function, *, reverse: bool = False) -> Function:
    """A recurrent cell; a number from its last state and from all its outputs."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        last, ys = scan(lambda c, x: (np.tanh(w @ c + x), c * x), h, xs, reverse=reverse)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return run


def nested(scan: Function, *, reverse: bool = False) -> Function:
    """A loop in a loop; the inner one closes over the carry and the step of the outer one."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def outer(c: Any, x: Any) -> Any:
            inner, trail = scan(lambda d, y: (np.sin(w @ d) + y * c, d * x), c, xs[:2], reverse=not reverse)
            return inner * 0.5, np.sum(trail, axis=0)

        last, ys = scan(outer, h, xs, reverse=reverse)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return run


def long_memory(scan: Function, *, reverse: bool = False) -> Function:
    """Two carries in a tree, one of them a number, and outputs in a dict."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            state, total = c
            new = np.tanh(w @ state * total) + x
            return (new, total * 0.9 + np.sum(x * state)), new * total

        (last, total), ys = scan(body, (h, np.float64(0.5)), xs, reverse=reverse)
        return np.sum(last) * total + np.sum(ys**2)

    return run


def written(scan: Function, *, reverse: bool = False) -> Function:
    """The body writes into a copy of its carry."""

    def run(w: Any, h: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            new = c.copy()
            new[1:] *= x[:2]
            new[0] = np.sum(w[0] * c)
            return new, c[::-1]

        last, ys = scan(body, h, xs, reverse=reverse)
        return np.sum(last**2) + np.sum(np.sin(ys) * 2)

    return run


PROGRAMS = (cell, nested, long_memory, written)
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
directions = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


def agree(transform: Callable[[Function], Function], program: Function, reverse: bool, *args: Any) -> None:
    """A transform of the scan gives what it gives for the unrolled loop."""
    found = transform(program(rg.scan, reverse=reverse))(*args)
    expected = transform(program(unrolled, reverse=reverse))(*args)
    values.assert_close(found, expected, EXACT)


@programs
@directions
@pytest.mark.parametrize("n", LENGTHS)
def test_values_and_gradients_are_those_of_the_unrolled_loop(program: Function, reverse: bool, n: int) -> None:
    xs = XS[:n]
    if program is nested and n < 2:
        xs = XS[:2]
    plain = program(unrolled, reverse=reverse)(W, H, xs)
    values.assert_close(rg.jit(program(rg.scan, reverse=reverse))(W, H, xs), plain, EXACT)
    agree(lambda f: rg.value_and_grad(f, argnums=(0, 1, 2)), program, reverse, W, H, xs)


@programs
@directions
@pytest.mark.parametrize("argnum", [0, 1, 2], ids=["const", "carry", "xs"])
def test_derivatives_with_respect_to_one_operand_agree(program: Function, reverse: bool, argnum: int) -> None:
    args = (W, H, XS[:3])
    f, expected = (program(scan, reverse=reverse) for scan in (rg.scan, unrolled))
    for derivative in (rg.grad, rg.jacfwd):
        every = derivative(expected, argnums=(0, 1, 2))(*args)
        values.assert_close(derivative(f, argnums=argnum)(*args), every[argnum], EXACT)


def directional(f: Function, u: tuple[Any, ...]) -> Function:
    """The number <gradient of f, u>, by reverse mode."""

    def run(*args: Any) -> Any:
        grads = rg.grad(f, argnums=(0, 1, 2))(*args)
        return sum(np.sum(g * v) for g, v in zip(grads, u, strict=True))

    return run


def along(f: Function, u: tuple[Any, ...]) -> Function:
    """The derivative of f along u, by forward mode."""
    return lambda *args: rg.jvp(f, args, u)[1]


U, V, T = (tuple(np.random.default_rng(k).uniform(-1, 1, x.shape) for x in (W, H, XS[:3])) for k in (1, 2, 3))
SECOND: dict[str, Callable[[Function], Function]] = {
    "reverse over reverse": lambda f: rg.grad(directional(f, U), argnums=(0, 1, 2)),
    "forward over reverse": lambda f: along(directional(f, U), V),
    "reverse over forward": lambda f: rg.grad(along(f, U), argnums=(0, 1, 2)),
    "forward over forward": lambda f: along(along(f, U), V),
}
THIRD: dict[str, Callable[[Function], Function]] = {
    "reverse, reverse, reverse": lambda f: rg.grad(directional(directional(f, U), V), argnums=(0, 1, 2)),
    "forward, reverse, reverse": lambda f: along(directional(directional(f, U), V), T),
    "reverse, forward, reverse": lambda f: rg.grad(along(directional(f, U), V), argnums=(0, 1, 2)),
    "reverse, forward, forward": lambda f: rg.grad(along(along(f, U), V), argnums=(0, 1, 2)),
    "forward, forward, forward": lambda f: along(along(along(f, U), V), T),
}


@programs
@directions
@pytest.mark.parametrize("modes", SECOND)
def test_second_derivatives_agree(program: Function, reverse: bool, modes: str) -> None:
    agree(SECOND[modes], program, reverse, W, H, XS[:3])


@pytest.mark.parametrize("modes", SECOND)
@pytest.mark.parametrize("n", [0, 1])
def test_second_derivatives_of_short_loops_agree(modes: str, n: int) -> None:
    def cut(f: Function) -> Function:
        return lambda w, h, xs: f(w, h, xs[:n])

    agree(lambda f: SECOND[modes](cut(f)), cell, False, W, H, XS[:3])


@pytest.mark.parametrize("program", [cell, long_memory, written], ids=lambda p: p.__name__)
@pytest.mark.parametrize("modes", THIRD)
def test_third_derivatives_agree(program: Function, modes: str) -> None:
    agree(THIRD[modes], program, False, W, H, XS[:3])


def test_second_and_third_derivatives_agree_with_differences() -> None:
    f = nested(rg.scan)
    for modes in (SECOND["forward over forward"], SECOND["forward over reverse"]):
        step, lower = 1e-3, along(f, U)

        def at(k: float, lower: Function = lower, step: float = step) -> Any:
            return lower(*(x + k * step * v for x, v in zip((W, H, XS[:3]), V, strict=True)))

        slope = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
        values.assert_close(modes(f)(W, H, XS[:3]), slope, 1e-9)


WS, HS, XSS = (RNG.uniform(-1, 1, (4, *x.shape)) for x in (W, H, XS[:3]))
AXES = [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0), (0, None, 0)]


def looped(f: Function, axes: tuple[int | None, ...]) -> Function:
    """``rg.vmap`` as a loop in Python, without trees."""

    def run(*args: Any) -> Any:
        each = [f(*(x if a is None else x[k] for x, a in zip(args, axes, strict=True))) for k in range(4)]
        return values.stacked(each)

    return run


@programs
@pytest.mark.parametrize("axes", AXES, ids=["consts", "carry", "xs", "all", "consts and xs"])
def test_lanes_of_a_loop_and_of_its_derivatives_are_loops(program: Function, axes: tuple[int | None, ...]) -> None:
    args = [many if a == 0 else one for a, many, one in zip(axes, (WS, HS, XSS), (W, H, XS[:3]), strict=True)]
    f = program(rg.scan, reverse=program is cell)
    for g in (f, rg.grad(f, argnums=(0, 1, 2)), along(f, U), SECOND["forward over reverse"](f)):
        values.assert_close(rg.vmap(g, in_axes=axes)(*args), looped(g, axes)(*args), EXACT)


@programs
@pytest.mark.parametrize("axes", AXES, ids=["consts", "carry", "xs", "all", "consts and xs"])
def test_lanes_of_second_gradients_are_loops(program: Function, axes: tuple[int | None, ...]) -> None:
    args = [many if a == 0 else one for a, many, one in zip(axes, (WS, HS, XSS), (W, H, XS[:3]), strict=True)]
    g = SECOND["reverse over reverse"](program(rg.scan))
    values.assert_close(rg.vmap(g, in_axes=axes)(*args), looped(g, axes)(*args), EXACT)


@programs
@pytest.mark.parametrize("axes", AXES, ids=["consts", "carry", "xs", "all", "consts and xs"])
def test_gradients_of_lanes_are_gradients_of_a_loop(program: Function, axes: tuple[int | None, ...]) -> None:
    args = [many if a == 0 else one for a, many, one in zip(axes, (WS, HS, XSS), (W, H, XS[:3]), strict=True)]

    def of_lanes(scan: Function) -> Function:
        f = program(scan)
        return lambda *xs: np.sum(np.sin((rg.vmap(f, in_axes=axes) if scan is rg.scan else in_turn(f))(*xs)))

    def in_turn(f: Function) -> Function:
        return lambda *xs: np.stack(
            [f(*(x if a is None else x[k] for x, a in zip(xs, axes, strict=True))) for k in range(4)]
        )

    found, expected = (rg.grad(of_lanes(scan), argnums=(0, 1, 2))(*args) for scan in (rg.scan, unrolled))
    values.assert_close(found, expected, EXACT)


def test_jvp_of_a_pullback_agrees() -> None:
    def pulled(scan: Function) -> Function:
        def run(w: Any, h: Any, xs: Any) -> Any:
            _, pullback = rg.vjp(lambda c: cell(scan)(w, c, xs), h)
            return pullback(np.sum(w))[0]

        return along(run, U)

    values.assert_close(pulled(rg.scan)(W, H, XS[:3]), pulled(unrolled)(W, H, XS[:3]), EXACT)


@directions
def test_a_body_may_close_over_tracers_of_several_transforms(reverse: bool) -> None:
    def run(scan: Function) -> Function:
        def f(w: Any, h: Any, xs: Any) -> Any:
            def slope(s: Any) -> Any:
                last, _ = scan(lambda c, x: (np.sin(w @ c) * s + x * np.sum(h), c), h, xs, reverse=reverse)
                return np.sum(last * w[0])

            return rg.grad(slope)(np.float64(0.7)) * np.sum(h)

        return rg.grad(f, argnums=(0, 1, 2))

    values.assert_close(run(rg.scan)(W, H, XS[:3]), run(unrolled)(W, H, XS[:3]), EXACT)


def test_a_gradient_may_be_taken_inside_a_body() -> None:
    def run(scan: Function) -> Function:
        def f(w: Any, h: Any, xs: Any) -> Any:
            last, ys = scan(lambda c, x: (rg.grad(lambda v: np.sum(np.sin(w @ v) * x))(c), np.sum(c)), h, xs)
            return np.sum(last) + np.sum(ys**2)

        return rg.grad(f, argnums=(0, 1, 2))

    values.assert_close(run(rg.scan)(W, H, XS[:3]), run(unrolled)(W, H, XS[:3]), EXACT)


def test_lanes_may_be_made_inside_a_body() -> None:
    def run(scan: Function) -> Function:
        def f(w: Any, h: Any, xs: Any) -> Any:
            last, _ = scan(lambda c, x: (rg.vmap(lambda row, v: np.tanh(row @ c) * v)(w, x), x), h, xs)
            return np.sum(last**2)

        return rg.grad(f, argnums=(0, 1, 2))

    values.assert_close(run(rg.scan)(W, H, XS[:3]), run(unrolled)(W, H, XS[:3]), EXACT)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_a_loop_keeps_its_dtype(dtype: Any) -> None:
    args = [x.astype(dtype) for x in (W, H, XS[:3])]

    def f(scan: Function) -> Function:
        return lambda w, h, xs: scan(lambda c, x: (np.sin(w @ c) + x, c * x), h, xs)

    found, tangent = rg.jvp(f(rg.scan), args, args)
    expected, slope = rg.jvp(f(unrolled), args, args)
    values.assert_close([*found, *tangent], [*expected, *slope], 1e-5 if dtype is np.float32 else EXACT)
    assert {x.dtype for x in (*found, *tangent)} == {np.dtype(dtype)}


def test_integer_carries_have_no_tangent_and_count() -> None:
    def run(scan: Function) -> Function:
        def f(x: Any) -> Any:
            (n, last), _ = scan(lambda c, y: ((c[0] + 1, c[1] * y + c[0]), y), (np.int64(0), np.float64(1.0)), x)
            return last * n

        return rg.value_and_grad(f)

    values.assert_close(run(rg.scan)(XS[:, 0]), run(unrolled)(XS[:, 0]), EXACT)


def test_a_carry_may_be_returned_untouched_and_swapped() -> None:
    def run(scan: Function) -> Function:
        def f(w: Any, h: Any, xs: Any) -> Any:
            (p, q, r), ys = scan(lambda c, x: ((c[1], c[0] * x, c[2]), c[0] + c[2]), (h, h * 2, h), xs)
            return np.sum(p * q) + np.sum(r) + np.sum(ys**2) + np.sum(w) * 0

        return rg.grad(f, argnums=(1, 2))

    values.assert_close(run(rg.scan)(W, H, XS[:3]), run(unrolled)(W, H, XS[:3]), EXACT)


def test_results_of_a_loop_belong_to_the_caller() -> None:
    h = H.copy()
    last, ys = rg.scan(lambda c, x: (c, x), h, XS[:0])
    last += 1
    ys = rg.scan(lambda c, x: (c, c), h, XS)[1]
    ys += 1
    (p, q), _ = rg.scan(lambda c, x: ((c[0], c[0]), x), (h, h * 2), XS)
    p += 1
    assert not np.shares_memory(p, q)
    values.assert_same_bits(h, H)
