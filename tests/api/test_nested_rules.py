"""Rules of the user's around loops, branches, solvers and regions, and pullbacks at plain points inside of traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import retrograd as rg

Function = Any
BACKENDS = ("numpy", "native")


@rg.implicit(lambda y, a: y - np.sin(a))
def inner(a: Any) -> Any:
    return np.sin(a)


@rg.implicit(lambda y, a: y - inner(a))
def outer(a: Any) -> Any:
    return inner(a)


def sines(s: Any) -> Any:
    return rg.fori_loop(5, lambda i, c: np.sin(c), s)


def until(s: Any) -> Any:
    return rg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, np.sin(c[1])), (0, s))[1]


def branch(s: Any) -> Any:
    return rg.cond(s > 0, sines, np.cos, s)


def choice(s: Any) -> Any:
    return rg.switch((s > 0) * 1, [np.cos, sines], s)


def nested(s: Any) -> Any:
    return rg.fori_loop(3, lambda i, c: sines(c), s)


def folded(s: Any) -> Any:
    for _ in range(600):
        s = s + 0.001 * np.sin(s)
    return s


def part(s: Any) -> Any:
    return rg.subgraph(np.sin)(s)


def region(s: Any) -> Any:
    return rg.checkpoint(np.sin)(s)


def scattered(s: Any) -> Any:
    z = np.zeros(3)
    np.add.at(z, np.array([0, 2, 0]), s * np.arange(1.0, 4.0))
    return np.sum(z**2)


def density(s: Any) -> Any:
    a = np.array([[2.0, 0.3], [0.3, 1.0]])
    return scipy.stats.multivariate_normal.logpdf(np.array([0.1, 0.2]), np.zeros(2), a * s)


FUNCTIONS: list[Function] = [
    outer, sines, until, branch, choice, nested, folded, part, region, scattered, density,
]  # fmt: skip
each = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: getattr(f, "__name__", "outer"))


def slope(f: Function, x: float) -> float:
    h = 1e-6
    return float((f(x + h) - f(x - h)) / (2 * h))


def by_jvp(f: Function) -> Function:
    made: Any = rg.custom_jvp(f)
    made.defjvp(lambda p, t: rg.jvp(f, p, t))
    return made


def by_vjp(f: Function) -> Function:
    made: Any = rg.custom_vjp(f)
    made.defvjp(lambda x: (f(x), x), lambda x, ct: rg.vjp(f, x)[1](ct))
    return made


@pytest.mark.parametrize("backend", BACKENDS)
@each
def test_a_rule_that_differentiates_in_one_mode_serves_the_other(f: Function, backend: Any) -> None:
    expected = slope(f, 0.5)
    forward, reverse = by_jvp(f), by_vjp(f)
    backward: Any = rg.grad(forward, backend=backend)
    assert np.isclose(backward(0.5), expected, rtol=1e-6)
    assert np.isclose(rg.vjp(forward, 0.5)[1](1.0)[0], expected, rtol=1e-6)
    assert np.isclose(rg.linearize(forward, 0.5)[1](1.0), expected, rtol=1e-6)
    assert np.isclose(rg.jvp(reverse, (0.5,), (1.0,), backend=backend)[1], expected, rtol=1e-6)
    assert np.isclose(rg.jit(rg.jacfwd(reverse), backend=backend)(0.5), expected, rtol=1e-6)


@each
def test_second_derivatives_and_lanes_of_such_rules(f: Function) -> None:
    xs = np.array([0.4, 0.5])
    first = np.array([slope(f, x) for x in xs])
    second = slope(rg.grad(f), 0.5)
    twice: Any = rg.grad(rg.grad(by_jvp(f)))
    assert np.isclose(twice(0.5), second, rtol=1e-5)
    assert np.allclose(rg.vmap(rg.grad(by_jvp(f)))(xs), first, rtol=1e-6)
    assert np.allclose(rg.vmap(rg.jacfwd(by_vjp(f)))(xs), first, rtol=1e-6)


def by_hand(p: Any, t: Any) -> Any:
    """Value and tangent in the loops of one loop."""

    def step(i: Any, c: Any) -> Any:
        return rg.fori_loop(5, lambda i, c: (np.sin(c[0]), np.cos(c[0]) * c[1]), c)

    return rg.fori_loop(3, step, (p[0], t[0]))


def squared(p: Any, t: Any) -> Any:
    return rg.fori_loop(3, lambda i, c: (np.sin(c[0]), c[1] * c[1]), (p[0], t[0]))


def test_rules_with_loops_are_checked() -> None:
    made = rg.custom_jvp(nested)
    made.defjvp(by_hand)
    assert np.isclose(rg.grad(made)(0.5), slope(nested, 0.5), rtol=1e-6)
    made = rg.custom_jvp(nested)
    made.defjvp(squared)
    with pytest.raises(rg.errors.NonDifferentiableError, match="not linear in its tangents"):
        rg.grad(made)(0.5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_solver_may_use_another_solver(backend: Any) -> None:
    xs = np.array([0.4, 0.5])
    assert np.isclose(rg.jit(outer, backend=backend)(0.4), np.sin(0.4))
    assert np.allclose(rg.vmap(outer)(xs), np.sin(xs))
    assert np.isclose(rg.hessian(outer)(0.4), -np.sin(0.4))


@each
def test_the_pullback_at_a_plain_point_takes_traced_cotangents(f: Function) -> None:
    expected = slope(f, 0.5)
    pulled = rg.jit(lambda ct: rg.vjp(f, 0.5)[1](ct)[0])
    pushed = rg.jit(lambda t: 1.0 * rg.linearize(f, 0.5)[1](t))
    for ct in (1.0, 2.0):
        assert np.isclose(pulled(ct), ct * expected, rtol=1e-6)
        assert np.isclose(pushed(ct), ct * expected, rtol=1e-6)
    assert np.isclose(rg.grad(lambda ct: rg.vjp(f, 0.5)[1](ct - 1.0)[0])(0.3), expected, rtol=1e-6)
    many = rg.vmap(lambda ct: rg.vjp(f, 0.5)[1](ct)[0])(np.array([1.0, 2.0]))
    assert np.allclose(many, [expected, 2 * expected], rtol=1e-6)
    carried = rg.scan(lambda c, x: (c + rg.vjp(f, 0.5)[1](c)[0], c), 0.3, np.ones(3))[0]
    assert np.isclose(carried, 0.3 * (1 + expected) ** 3, rtol=1e-6)


def test_such_a_pullback_of_a_loop_with_a_plan() -> None:
    for plan in (rg.Snapshots(2), rg.Log()):

        def planned(s: Any, plan: Any = plan) -> Any:
            return rg.fori_loop(5, lambda i, c: np.sin(c), s, memory=plan)

        pulled = rg.jit(lambda ct, f=planned: rg.vjp(f, np.ones(2))[1](ct)[0])
        assert np.allclose(pulled(np.ones(2)), slope(sines, 1.0), rtol=1e-6)


def doubled(v: Any) -> Any:
    return 2.0 * v


def test_regions_and_stopped_gradients_are_linear_maps() -> None:
    assert rg.linear_transpose(rg.checkpoint(doubled), 0.4)(3.0) == (6.0,)
    assert rg.linear_transpose(lambda x: rg.stop_gradient(2 * x), 1.0)(3.0) == (6.0,)
    assert rg.grad(lambda x: rg.stop_gradient(x) * x)(3.0) == 3.0
