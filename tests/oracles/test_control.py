"""Choices and loops give what JAX's give: values, gradients, second derivatives, lanes."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support import values

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax

EXACT = 1e-11
RNG = np.random.default_rng(5)
W = RNG.uniform(-0.6, 0.6, (4, 4))
X = RNG.uniform(-1, 1, 4)
XS = RNG.uniform(-1, 1, (6, 4))

OURS = SimpleNamespace(
    np=np,
    cond=rg.cond,
    switch=rg.switch,
    scan=rg.scan,
    map=rg.map,
    while_loop=rg.while_loop,
    fori=rg.fori_loop,
    associative=rg.associative_scan,
)
THEIRS = SimpleNamespace(
    np=jnp,
    cond=lax.cond,
    switch=lax.switch,
    scan=lax.scan,
    map=lax.map,
    while_loop=lax.while_loop,
    fori=lambda n, body, init: lax.fori_loop(0, n, body, init),
    associative=lax.associative_scan,
)

Program = Callable[[Any, Any, Any, Any], Any]


def rnn(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    last, ys = ops.scan(lambda h, u: (ops.np.tanh(w @ h + u), h * u), x, xs)
    return ops.np.sum(last**2) + ops.np.sum(ops.np.sin(ys))


def backwards(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    last, ys = ops.scan(lambda h, u: (ops.np.sin(w @ h) * u, ops.np.sum(h)), x, xs, reverse=True)
    return ops.np.sum(last) + ops.np.sum(ys**2)


def choice_in_a_scan(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    def body(h: Any, u: Any) -> Any:
        h = ops.cond(ops.np.sum(u) > 0, lambda v: ops.np.tanh(w @ v), lambda v: v * ops.np.cos(u), h)
        return h, h[0]

    last, ys = ops.scan(body, x, xs)
    return ops.np.sum(last**2) + ops.np.sum(ys)


def scan_in_a_scan(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    def outer(h: Any, u: Any) -> Any:
        inner, ys = ops.scan(lambda k, v: (ops.np.sin(k * v) + u, k[0]), h, w)
        return inner * 0.5, ops.np.sum(ys)

    last, ys = ops.scan(outer, x, xs)
    return ops.np.sum(last) + ops.np.sum(ys**2)


def several_branches(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    def body(i: Any, h: Any) -> Any:
        return ops.switch(i % 3, [lambda v: w @ v, ops.np.sin, lambda v: v * x], h)

    return ops.np.sum(ops.fori(5, body, x) ** 2)


def mapped(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    return ops.np.sum(ops.map(lambda u: ops.np.exp(w @ u) * x, xs) ** 2)


def recurrence(ops: Any, w: Any, x: Any, xs: Any) -> Any:
    a, b = ops.associative(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (xs * 0.5, xs**2 * x))
    return ops.np.sum(a) + ops.np.sum(ops.np.sin(b))


PROGRAMS: list[Program] = [rnn, backwards, choice_in_a_scan, scan_in_a_scan, several_branches, mapped, recurrence]
over_programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def compare(found: Any, expected: Any) -> None:
    values.assert_close(found, jax.tree_util.tree_map(np.asarray, expected), EXACT)


@over_programs
def test_derivatives_are_those_of_jax(program: Program) -> None:
    every = (0, 1, 2)
    ours, theirs = (lambda *a, ops=ops: program(ops, *a) for ops in (OURS, THEIRS))
    compare(rg.value_and_grad(ours, every)(W, X, XS), jax.jit(jax.value_and_grad(theirs, every))(W, X, XS))
    compare(rg.hessian(ours, 1)(W, X, XS), jax.jit(jax.hessian(theirs, 1))(W, X, XS))

    def squared(grad: Any, ops: Any, f: Any) -> Any:
        return grad(lambda w, x, xs: sum(ops.np.sum(g**2) for g in grad(f, every)(w, x, xs)), every)

    compare(squared(rg.grad, OURS, ours)(W, X, XS), jax.jit(squared(jax.grad, THEIRS, theirs))(W, X, XS))


@over_programs
def test_lanes_are_those_of_jax(program: Program) -> None:
    ws, xss = np.stack([W, W.T, W * 0.5]), np.stack([XS, XS[::-1], -XS])
    axes = (0, None, 0)
    ours, theirs = (lambda *a, ops=ops: program(ops, *a) for ops in (OURS, THEIRS))
    compare(rg.vmap(ours, axes)(ws, X, xss), jax.vmap(theirs, axes)(ws, X, xss))
    g, h = rg.grad(ours, (0, 1, 2)), jax.grad(theirs, (0, 1, 2))
    compare(rg.vmap(g, axes)(ws, X, xss), jax.jit(jax.vmap(h, axes))(ws, X, xss))


def settling(ops: Any, w: Any, x: Any) -> Any:
    """A while loop: JAX differentiates it forwards only, so both do."""
    last, n = ops.while_loop(
        lambda c: ops.np.sum(c[0] ** 2) > 0.05, lambda c: (ops.np.tanh(w @ c[0]) * 0.9, c[1] + 1), (x, 0)
    )
    return ops.np.sum(last) * n


def test_while_loops_are_those_of_jax() -> None:
    ours, theirs = (lambda *a, ops=ops: settling(ops, *a) for ops in (OURS, THEIRS))
    compare(ours(W, X), jax.jit(theirs)(W, X))
    direction = (np.cos(W), np.sin(X))
    compare(rg.jvp(ours, (W, X), direction), jax.jvp(theirs, (W, X), direction))
    compare(rg.grad(ours, (0, 1))(W, X), tuple(jax.jacfwd(theirs, (0, 1))(W, X)))
    compare(rg.hessian(ours, 1)(W, X), jax.jacfwd(jax.jacfwd(theirs, 1), 1)(W, X))
    ws = np.stack([W, W * 0.3, W * 0.01])
    compare(rg.vmap(ours, (0, None))(ws, X), jax.vmap(theirs, (0, None))(ws, X))
    compare(rg.vmap(rg.grad(ours), (0, None))(ws, X), jax.vmap(jax.jacfwd(theirs), (0, None))(ws, X))
