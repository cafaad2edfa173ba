"""Compiled functions inside compiled functions, adjoints, cotangent spaces, Jacobians, settings."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import retrograd as rg

X = np.random.default_rng(0).standard_normal((2, 3))
W = np.random.default_rng(1).standard_normal((3, 3))


@rg.jit
def block(x, w):
    for _ in range(6):
        x = np.tanh(x @ w) + 0.1 * x
    return x, np.sum(x)


def net(x, w):
    total = 0.0
    for _ in range(3):
        x, s = block(x, w)
        total = total + s * s
    return total


def flat(x, w):
    total = 0.0
    for _ in range(3):
        x, s = block.__wrapped__(x, w)
        total = total + s * s
    return total


def test_a_call_is_one_node_of_one_function():
    graph = rg.trace(net)(X, W)
    calls = [node for node in graph.nodes if node.prim.name == "call"]
    assert len(calls) == 3
    assert len({id(node.attrs["body"]) for node in calls}) == 1
    source = rg.jit(net).source(X, W)
    assert source.count("def block(") == 1
    assert source.count(" = block(x") == 2  # the last call needs one result only, and has a narrower body
    assert source.count("def block") == 2


def test_called_and_inlined_derivatives_are_equal():
    for transform in (rg.grad, rg.hessian):
        np.testing.assert_allclose(transform(net, 1)(X, W), transform(flat, 1)(X, W), rtol=1e-10, atol=1e-10)
    xs = np.stack([X, 2 * X])
    mapped = rg.vmap(rg.grad(net), in_axes=(0, None))(xs, W)
    np.testing.assert_allclose(mapped[1], rg.grad(flat)(2 * X, W), rtol=1e-12)
    np.testing.assert_allclose(rg.jvp(net, (X, W), (X, W))[1], rg.jvp(flat, (X, W), (X, W))[1], rtol=1e-12)


def test_adjoints_compose_against_the_direction():
    f, g = np.sin, np.exp
    x, ct = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    whole = rg.adjoint(lambda x: g(f(x)))(x)(ct)
    np.testing.assert_allclose(whole, rg.adjoint(f)(x)(rg.adjoint(g)(f(x))(ct)))


def test_a_cotangent_of_another_space_is_refused():
    pull = rg.adjoint(np.sin)(np.ones(3))
    with pytest.raises(rg.errors.ShapeError):
        pull(np.ones(4))
    with pytest.raises(rg.errors.TreeError):
        pull((np.ones(3), np.ones(3)))
    with pytest.raises(rg.errors.ShapeError):
        rg.cotangent_space({"a": np.ones(2)}).check({"a": np.ones(3)})


def test_a_cotangent_space_has_a_basis():
    space = rg.cotangent_space((np.ones(2, np.float32), 1.0))
    basis = list(space.basis())
    assert len(basis) == space.dimension == 3
    assert basis[0][0].dtype == np.float32
    assert space.zero()[1] == 0.0


def test_a_cotangent_space_has_none_where_a_gradient_has():
    point = {"x": np.ones(2), "n": 3, "name": "a", "k": np.arange(2)}
    space = rg.cotangent_space(point)
    gradient = rg.grad(lambda p: np.sum(p["x"] ** p["n"]))(point)
    assert space.check(gradient)["n"] is None
    assert space.zero()["k"] is None
    assert space.dimension == len(list(space.basis())) == 2
    with pytest.raises(rg.errors.TreeError):
        space.check({**gradient, "n": 1.0})
    with pytest.raises(rg.errors.NonDifferentiableError):
        rg.cotangent_space({"n": 3})


def test_jacobians_agree_in_all_modes():
    def f(x):
        return np.concatenate([np.sin(x) * x[0], x[1:] ** 2])

    x = np.array([0.5, -0.2, 0.9])
    expected = rg.jacfwd(f)(x)
    assert expected.shape == (5, 3)
    for mode in ("auto", "fwd", "rev"):
        np.testing.assert_allclose(rg.jacobian(f, mode=mode)(x), expected, rtol=1e-13, atol=1e-15)
    with pytest.raises(rg.errors.OptionError):
        rg.jacobian(f, mode="sideways")


def test_hvp_is_the_hessian_times_a_vector():
    def f(x):
        return np.sum(x**3) + x[0] * x[1]

    x, v = np.array([0.5, -0.2, 0.9]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(rg.hvp(f)(x, v), rg.hessian(f)(x) @ v)


def test_settings_hold_for_the_block_and_the_thread():
    seen = []
    with rg.config(exact=True, verify=2):
        assert rg.config.exact
        other = threading.Thread(target=lambda: seen.append(rg.config.exact))
        other.start()
        other.join()
        rg.grad(lambda x: np.sum(np.sin(x)))(np.ones(3))
    assert seen == [False]
    assert not rg.config.exact
    assert rg.config.verify == 0


def test_each_setting_has_its_own_compilation():
    f = rg.jit(lambda x: np.sum(x / x))
    x = np.array([1.0, np.inf])
    with np.errstate(invalid="ignore"):
        assert np.isnan(f(x))
        with rg.config(fast=True):
            assert f(x) == 2.0
        assert np.isnan(f(x))


@pytest.mark.parametrize("wrong", [{"exact": 1}, {"verify": 7}, {"speed": True}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(rg.errors.OptionError), rg.config(**wrong):
        pass
    with pytest.raises(AttributeError):
        _ = rg.config.speed
