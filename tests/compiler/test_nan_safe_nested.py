"""nan_safe reaches every body: of loops, choices, calls, regions, rules and equations, and nested derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import odeint

import retrograd as rg

X = np.array([0.0, 2.0, -1.0])


def safe(x):
    """The derivative of the logarithm at 0 is infinite there, and its cotangent is zero."""
    return np.sum(np.where(x > 0, np.log(x), 0.0))


def scanned(x):
    return rg.scan(lambda c, _: (c + safe(x), None), 0.0, length=3)[0] / 3


def repeated(x):
    return rg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + safe(x)), (0, 0.0))[1] / 3


def branched(x):
    return rg.cond(np.sum(x) > 0, safe, np.sum, x)


@rg.jit
def long(x):
    for _ in range(20):
        x = np.sin(np.where(x > 0, np.log(x), 0.0)) + np.where(x > 0, x, 0.0)
    return np.where(x > 0, np.log(x), 0.0)


def called(x):
    return np.sum(long(x))


def called_twice(x):
    return np.sum(long(long(x)))


subgraph = rg.subgraph(safe)
region = rg.checkpoint(safe)


def in_a_region_in_a_loop(x):
    return rg.scan(lambda c, _: (c + region(x), None), 0.0, length=3)[0] / 3


@rg.custom_jvp
def ruled(x):
    return safe(x)


@ruled.defjvp
def _ruled(primals, tangents):
    (x,), (t,) = primals, tangents
    return safe(x), np.sum(np.where(x > 0, t / x, 0.0))


@rg.custom_vjp
def pulled(x):
    return safe(x)


pulled.defvjp(lambda x: (safe(x), x), lambda x, ct: (np.where(x > 0, ct / x, 0.0),))


def solved(x):
    return np.sum(
        odeint(lambda y, t, x: y * 0.0 + np.where(x > 0, np.log(x), 0.0), np.zeros(3), np.arange(2.0), (x,))[-1]
    )


BODIES = [safe, scanned, repeated, branched, called, called_twice, subgraph, region, in_a_region_in_a_loop, ruled]


def expected(function):
    """Differences at the points that are no edges."""
    h = 1e-6
    with np.errstate(all="ignore"):
        return [(function(X + d) - function(X - d)) / (2 * h) for d in h * np.eye(3)]


def forms(function):
    """The same gradient with the option, the setting, and by other ways."""
    yield "grad", rg.grad(function, nan_safe=True)(X)
    yield "value_and_grad", rg.value_and_grad(function, nan_safe=True)(X)[1]
    yield "inside a plain jit", rg.jit(rg.grad(function, nan_safe=True))(X)
    yield "inside a safe jit", rg.jit(rg.grad(function), nan_safe=True)(X)
    yield "of a jit", rg.grad(rg.jit(function), nan_safe=True)(X)
    yield "vmap", rg.vmap(rg.grad(function, nan_safe=True))(X[None])[0]
    with rg.config(nan_safe=True):
        yield "setting", rg.grad(function)(X)
        yield "vjp", rg.vjp(function, X)[1](1.0)[0]
        yield "vjp with a budget", rg.vjp(function, X, memory="1 MB")[1](1.0)[0]
        yield "jvp", [rg.jvp(function, (X,), (d,))[1] for d in np.eye(3)]
        linear = rg.linearize(function, X)[1]
        yield "linearize", [linear(d) for d in np.eye(3)]
        yield "jacfwd", rg.jacfwd(function)(X)
        pull = rg.vjp(function, X)[1]
    yield "a pullback called outside of the setting", pull(1.0)[0]


@pytest.mark.parametrize("function", BODIES, ids=lambda f: getattr(f, "__name__", "ruled"))
def test_every_body_is_nan_safe(function):
    with np.errstate(all="ignore"):
        assert np.isnan(rg.grad(function)(X)[0])
        right = expected(function)
        for name, found in forms(function):
            assert np.isfinite(found).all(), name
            np.testing.assert_allclose(found[1:], right[1:], atol=1e-6, err_msg=name)
        assert np.isnan(rg.grad(function)(X)[0])


@pytest.mark.parametrize("function", BODIES, ids=lambda f: getattr(f, "__name__", "ruled"))
def test_a_nested_derivative_has_its_own_setting(function):
    def plain(x):
        return np.sum(rg.grad(function)(x) * np.array([0.0, 1.0, 0.0]))

    def annihilating(x):
        return np.sum(rg.grad(function, nan_safe=True)(x) * np.array([0.0, 1.0, 0.0]))

    with np.errstate(all="ignore"):
        assert np.isfinite(rg.grad(plain, nan_safe=True)(X)).all()  # the outer one holds for what is inside
        assert np.isfinite(annihilating(X))
        assert np.isnan(plain(X))
        with rg.config(nan_safe=True):
            assert np.isfinite(rg.grad(annihilating)(X)).all()


def test_a_rule_for_the_pullback_is_nan_safe_in_second_order():
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(rg.grad(pulled)(X), [0.0, 0.5, 0.0])
        curved = rg.grad(lambda x: np.sum(rg.grad(pulled)(x)))
        assert np.isnan(curved(X)[0])
        with rg.config(nan_safe=True):
            np.testing.assert_allclose(curved(X), [0.0, -0.25, 0.0])


def test_an_equation_is_nan_safe_although_its_derivative_is_made_later():
    with np.errstate(all="ignore"):
        found = rg.grad(solved, nan_safe=True)(X)
        np.testing.assert_allclose(found, [0.0, 0.5, 0.0], atol=1e-6)
        with rg.config(nan_safe=True):
            pull, linear = rg.vjp(solved, X)[1], rg.linearize(solved, X)[1]
        np.testing.assert_allclose(pull(1.0)[0], found, atol=1e-6)
        np.testing.assert_allclose([linear(d) for d in np.eye(3)], found, atol=1e-6)
