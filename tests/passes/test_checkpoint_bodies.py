"""Whatever stands in the body of a loop, and however large its arrays are, a plan changes no bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Function = Callable[..., Any]
RNG = np.random.default_rng(23)
STEPS = RNG.normal(size=6)


@rg.custom_vjp
def own(x: Any) -> Any:
    """A function with a derivative of its own."""
    return np.sin(x) * x


own.defvjp(lambda x: (np.sin(x) * x, x), lambda x, ct: (ct * (np.sin(x) + x * np.cos(x)),))


@rg.jit
def called(a: Any, b: Any) -> Any:
    """Large enough to be a call."""
    for _ in range(5):
        a = np.tanh(a * b) + np.sin(a) * np.exp(-b * b)
    return a


def fixed(_: Any, w: Any, c: Any, x: Any) -> Any:
    every = np.exp(w * 0.1)  # the same in each step
    return np.tanh(c * every + x), np.sum(c * every)


def ruled(_: Any, w: Any, c: Any, x: Any) -> Any:
    return own(c) * 0.5 + w * x, np.mean(c)


def branching(_: Any, w: Any, c: Any, x: Any) -> Any:
    new = rg.cond(np.sum(c) > 0, lambda c: np.sin(c) + w, lambda c: np.cos(c) * w, c)
    return new * 0.9 + x, new[0]


def counting(plan: Any, w: Any, c: Any, x: Any) -> Any:
    new = rg.fori_loop(3, lambda i, d: np.sin(d * w) + 0.1 * i, c, memory=plan)
    return new + x, np.max(new)


def wandering(plan: Any, w: Any, c: Any, x: Any) -> Any:
    new, steps = rg.while_loop(lambda s: s[1] < 4.0, lambda s: (np.tanh(s[0] + w), s[1] + 1.0), (c, 0.0), memory=plan)
    return new * 0.7 + x * steps, np.sum(new)


def writing(_: Any, w: Any, c: Any, x: Any) -> Any:
    new = np.zeros(len(c))
    new[1:] += c[:-1]
    new[:-1] *= w[1:]
    new[0] = x
    return new + np.sort(c) * 0.1, new[0]


def calling(_: Any, w: Any, c: Any, x: Any) -> Any:
    new = called(c, w)
    return new + x, np.sum(new * new)


def differentiating(plan: Any, w: Any, c: Any, x: Any) -> Any:
    def inner(v: Any) -> Any:
        return np.sum(rg.scan(lambda a, b: (np.sin(a * w) + b, None), v, np.array([0.1, 0.2, x]), memory=plan)[0])

    slope = rg.grad(inner)(c)
    return np.tanh(slope + c), np.sum(slope)


def mixed_types(_: Any, w: Any, c: Any, x: Any) -> Any:
    short = c.astype(np.float32)
    waves = np.fft.rfft(c) * (1 + 0.1j)
    return np.fft.irfft(waves, n=len(c)) * 0.9 + x * w, np.float64(np.sum(short * short))


BODIES = [fixed, ruled, branching, counting, wandering, writing, calling, differentiating, mixed_types]
PLANS = [rg.Snapshots(1), rg.Snapshots(3), rg.Snapshots(4, mixed=True), rg.Log(), rg.Periodic(2), rg.Tiered(1, 2)]


def program(body: Function, outer: Any, inner: Any) -> Function:
    def loss(w: Any, h: Any, xs: Any) -> Any:
        last, ys = rg.scan(lambda c, x: body(inner, w, c, x), h, xs, memory=outer)
        return np.sum(last**2) + np.sum(np.sin(ys))

    return loss


def bits(tree: Any) -> list[bytes]:
    if isinstance(tree, tuple):
        return [leaf for item in tree for leaf in bits(item)]
    return [np.asarray(tree).tobytes()]


@pytest.mark.costly
@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [3, 2100, 9000])  # on both sides of the sizes from which storage is used again
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_gradients_have_the_same_bits(body: Function, size: int) -> None:
    args = RNG.normal(size=size), RNG.normal(size=size), STEPS
    expected = bits(rg.value_and_grad(program(body, None, None), argnums=(0, 1, 2))(*args))
    nested = body in (counting, wandering, differentiating)
    for outer, inner in itertools.product(PLANS, (None, rg.Snapshots(2)) if nested else (None,)):
        found = rg.value_and_grad(program(body, outer, inner), argnums=(0, 1, 2))(*args)
        assert bits(found) == expected, (outer, inner)


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_second_derivatives_have_the_same_bits(body: Function) -> None:
    args = RNG.normal(size=3), RNG.normal(size=3), STEPS

    def second(outer: Any) -> list[bytes]:
        slope = rg.grad(program(body, outer, outer), argnums=(0, 1))
        return bits(rg.jvp(slope, args, args)[1])

    expected = second(None)
    for plan in (rg.Snapshots(2), rg.Log()):
        assert second(plan) == expected


@pytest.mark.parametrize("body", [fixed, counting, writing], ids=lambda f: f.__name__)
def test_lanes_have_the_same_bits(body: Function) -> None:
    w, h = RNG.normal(size=(4, 3)), RNG.normal(size=3)

    def lanes(plan: Any) -> list[bytes]:
        over = rg.vmap(program(body, plan, plan), in_axes=(0, None, None))
        return bits(rg.grad(lambda w, h: np.sum(over(w, h, STEPS)), argnums=(0, 1))(w, h))

    assert lanes(rg.Snapshots(2)) == lanes(None)
