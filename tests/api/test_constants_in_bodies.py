"""Transforms of functions with loops, at constants, inside of the bodies of control flow: their results are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg

Function = Callable[..., Any]


def loop(s: Any) -> Any:
    return rg.fori_loop(5, lambda i, c: np.sin(c), s)


def until(s: Any) -> Any:
    return rg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, np.sin(c[1])), (0, s))[1]


def folded(s: Any) -> Any:
    for _ in range(600):
        s = s + 0.001 * np.sin(s)
    return s


def mapped(s: Any) -> Any:
    return np.sum(rg.map(loop, s * np.arange(5.0)))


FUNCTIONS: list[Function] = [loop, until, folded, mapped]
TRANSFORMS: dict[str, Callable[[Function], Any]] = {
    "plain": lambda f: f(0.5),
    "jit": lambda f: rg.jit(f)(0.5),
    "grad": lambda f: rg.grad(f)(0.5),
    "jacfwd": lambda f: rg.jacfwd(f)(0.5),
    "hessian": lambda f: rg.hessian(f)(0.5),
    "jvp": lambda f: rg.jvp(f, (0.5,), (1.0,))[1],
    "vjp": lambda f: rg.vjp(f, 0.5)[1](1.0)[0],
    "linearize": lambda f: rg.linearize(f, 0.5)[1](1.0),
    "vmap": lambda f: np.sum(rg.vmap(rg.grad(f))(np.array([0.5, 0.4]))),
}
BODIES: dict[str, Callable[[Callable[[], Any], Any], Any]] = {
    "scan": lambda k, a: rg.scan(lambda c, x: (c + k() * x, c), a, np.ones(3))[0] - 2 * k(),
    "fori_loop": lambda k, a: rg.fori_loop(3, lambda i, c: c + k(), a) - 2 * k(),
    "while_loop": lambda k, a: rg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + k()), (0, a))[1] - 2 * k(),
    "cond": lambda k, a: rg.cond(a > 0, lambda a: a + k(), lambda a: a - k(), a),
    "map": lambda k, a: rg.map(lambda x: x + k(), a * np.ones(3))[0],
    "try_catch": lambda k, a: rg.try_catch(lambda: a + k(), lambda e: 0.0),
    "checkpoint": lambda k, a: rg.checkpoint(lambda a: a + k())(a),
    "vmap": lambda k, a: rg.vmap(lambda x: x + k())(a * np.ones(3))[0],
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: getattr(f, "__name__", ""))
def test_the_result_is_that_of_the_same_call_outside(f: Function, transform: str, body: str) -> None:
    known = TRANSFORMS[transform]
    expected = 0.3 + known(f)

    def g(a: Any) -> Any:
        return BODIES[body](lambda: known(f), a)

    assert np.isclose(g(0.3), expected, rtol=1e-12)
    assert np.isclose(rg.jit(g)(0.3), expected, rtol=1e-12)
    value, slope = rg.value_and_grad(g)(0.3)
    assert np.isclose(value, expected, rtol=1e-12)
    assert slope == 1.0
