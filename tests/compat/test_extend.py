"""primitive and its rules: what is traced, what runs as plain Python, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from retrograd.compat.autograd.numpy.numpy_vjps import unbroadcast_f

from retrograd.compat.autograd import deriv, elementwise_grad, grad, hessian, jacobian, make_jvp, make_vjp
from retrograd.compat.autograd.extend import (
    Box,
    SparseObject,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    vspace,
)
from retrograd.errors import NonDifferentiableError, OptionError

X = np.array([0.3, -0.7, 1.1])


def twice_sine():
    """A primitive with a wrong rule, so that it shows that the rule is used."""
    f = primitive(np.sin)
    defvjp(f, lambda ans, x: lambda g: 2.0 * g * np.cos(x))
    return f


def test_the_rule_is_used_and_not_the_body():
    f = twice_sine()
    np.testing.assert_array_equal(f(X), np.sin(X))
    np.testing.assert_allclose(elementwise_grad(f)(X), 2 * np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(make_vjp(f)(X)[0](X), 2 * np.cos(X) * X, rtol=1e-15)
    np.testing.assert_allclose(make_jvp(f)(X)(X)[1], 2 * np.cos(X) * X, rtol=1e-15)
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(f))(X), -2 * np.sin(X), rtol=1e-15)


def by_ctypes(x):
    """A body that nothing can trace: it needs plain numbers."""
    return np.array([math.exp(float.fromhex(float(v).hex())) for v in np.ravel(x).tolist()]).reshape(np.shape(x))


def test_a_body_that_cannot_be_traced_runs_as_python():
    f = primitive(by_ctypes)
    defvjp(f, lambda ans, x: lambda g: g * ans)
    np.testing.assert_allclose(elementwise_grad(f)(X), np.exp(X), rtol=1e-15)
    np.testing.assert_allclose(grad(lambda x: np.sum(np.sin(f(x) * x)))(X), np.cos(np.exp(X) * X) * np.exp(X) * (X + 1))
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(f))(X), np.exp(X), rtol=1e-14)
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(elementwise_grad(f)))(X), np.exp(X), rtol=1e-14)


def test_a_rule_that_calls_the_function_is_used_for_second_derivatives():
    """With 2 f for its derivative, a function has 4 f for the second one, whatever its body is."""
    for body in (np.cos, by_ctypes):
        f = primitive(body)
        defvjp(f, lambda ans, x, f=f: lambda g: g * 2.0 * f(x))
        np.testing.assert_allclose(elementwise_grad(f)(X), 2 * body(X), rtol=1e-14)
        np.testing.assert_allclose(elementwise_grad(elementwise_grad(f))(X), 4 * body(X), rtol=1e-14)
        np.testing.assert_allclose(elementwise_grad(elementwise_grad(elementwise_grad(f)))(X), 8 * body(X), rtol=1e-14)


@pytest.mark.parametrize(
    "define",
    [
        lambda f: defvjp(f, lambda ans, x: lambda g: g * 2.0 * ans),
        lambda f: defjvp(f, lambda g, ans, x: g * 2.0 * ans),
    ],
)
@pytest.mark.parametrize("body", [np.cos, by_ctypes])
def test_the_result_in_a_rule_has_the_derivatives_of_the_rule(define, body):
    f = primitive(body)
    define(f)
    slope = elementwise_grad(f)
    np.testing.assert_allclose(slope(X), 2 * body(X), rtol=1e-14)
    np.testing.assert_allclose(elementwise_grad(slope)(X), 4 * body(X), rtol=1e-14)
    third = elementwise_grad(elementwise_grad(slope))
    np.testing.assert_allclose(third(X), 8 * body(X), rtol=1e-14)
    with pytest.raises(NonDifferentiableError, match=r"result_within_rules_of_rules|host function"):
        elementwise_grad(third)(X)


def test_a_rule_that_is_defined_anew_is_used():
    f = twice_sine()

    def loss(x):
        return np.sum(f(x))

    np.testing.assert_allclose(grad(loss)(X), 2 * np.cos(X))
    defvjp(f, lambda ans, x: lambda g: 5.0 * g)
    np.testing.assert_allclose(grad(loss)(X), 5.0)


FACTORS = {"k": 2.0}


def test_what_rules_read_is_watched(monkeypatch):
    rules = (
        lambda f: defvjp(f, lambda ans, x: lambda g: g * FACTORS["k"]),
        lambda f: defvjp_argnum(f, lambda k, ans, args, kwargs: lambda g: g * FACTORS["k"]),
        lambda f: defvjp_argnums(f, lambda ks, ans, args, kwargs: lambda g: [g * FACTORS["k"] for _ in ks]),
        lambda f: defjvp(f, lambda g, ans, x: g * FACTORS["k"]),
        lambda f: defjvp_argnum(f, lambda k, g, ans, args, kwargs: g * FACTORS["k"]),
        lambda f: defjvp_argnums(f, lambda ks, gs, ans, args, kwargs: gs[0] * FACTORS["k"]),
    )
    made = []
    for define in rules:
        f = primitive(np.sin)
        define(f)
        made.append(grad(lambda x, f=f: np.sum(f(x))))
    for slope in made:
        np.testing.assert_array_equal(slope(X), 2.0)
    monkeypatch.setitem(FACTORS, "k", 3.0)
    for slope in made:
        np.testing.assert_array_equal(slope(X), 3.0)


def test_a_rule_that_cannot_be_traced_runs_as_python():
    f = primitive(np.exp)
    defvjp(f, lambda ans, x: lambda g: g * 3.0 * by_ctypes(x))
    np.testing.assert_allclose(elementwise_grad(f)(X), 3 * np.exp(X), rtol=1e-15)


def test_several_arguments_options_and_none():
    f = primitive(lambda x, y, z, power=1: x**power * y * z)
    defvjp(
        f,
        lambda ans, x, y, z, power=1: lambda g: g * power * x ** (power - 1) * y * z,
        None,
        lambda ans, x, y, z, power=1: lambda g: g * ans / z,
    )
    found = grad(lambda x, y, z: f(x, y, z, power=3), [0, 1, 2])(2.0, 5.0, 7.0)
    np.testing.assert_allclose(found, [3 * 4 * 35, 0.0, 40.0])
    np.testing.assert_allclose(grad(f, [0, 2])(2.0, 5.0, 7.0, power=2), [140.0, 20.0])


def test_rules_for_some_arguments():
    f = primitive(lambda x, y: x * y)
    defvjp(f, lambda ans, x, y: lambda g: g * x, argnums=(1,))
    assert float(grad(f, 1)(3.0, 4.0)) == 3.0
    assert float(grad(lambda y: f(3.0, y))(4.0)) == 3.0
    for call in (lambda: grad(f, 0)(3.0, 4.0), lambda: deriv(f, 0)(3.0, 4.0), lambda: grad(f, [0, 1])(3.0, 4.0)):
        with pytest.raises(NonDifferentiableError, match="argument_without_a_rule"):
            call()


def test_a_primitive_without_rules_has_values_and_no_derivative():
    f = primitive(lambda x, scale=1.0: x * scale)
    assert float(grad(lambda x: x + f(2.0))(1.0)) == 1.0
    with pytest.raises(NonDifferentiableError):
        grad(f)(1.0)
    with pytest.raises(NonDifferentiableError):  # by a keyword
        grad(lambda s: f(2.0, scale=s))(1.0)


def test_rules_of_all_arguments_at_once():
    f = primitive(lambda x, y: x * y)
    defvjp_argnum(f, lambda k, ans, args, kwargs: lambda g: g * args[1 - k])
    np.testing.assert_allclose(grad(f, [0, 1])(3.0, 4.0), [4.0, 3.0])
    seen = []

    def maker(argnums, ans, args, kwargs):
        seen.append(tuple(argnums))
        return lambda g: [g * args[1 - k] for k in argnums]

    defvjp_argnums(f, maker)
    np.testing.assert_allclose(grad(f, [0, 1])(3.0, 4.0), [4.0, 3.0])
    assert set(seen) == {(0, 1)}


def test_tangents():
    f = primitive(lambda x, y: np.sin(x) * y)
    defjvp(f, lambda g, ans, x, y: g * np.cos(x) * y, "same")
    np.testing.assert_allclose(make_jvp(f, (0, 1))(0.5, 2.0)((1.0, 10.0))[1], np.cos(0.5) * 2 + 10 * np.sin(0.5))
    np.testing.assert_allclose(grad(f, [0, 1])(0.5, 2.0), [np.cos(0.5) * 2, np.sin(0.5)])
    defjvp(f, None, "same")
    np.testing.assert_allclose(grad(f, [0, 1])(0.5, 2.0), [0.0, np.sin(0.5)])
    defjvp_argnum(f, lambda k, g, ans, args, kwargs: g * (k + 1.0))
    np.testing.assert_allclose(grad(f, [0, 1])(0.5, 2.0), [1.0, 2.0])
    defjvp_argnums(f, lambda ks, gs, ans, args, kwargs: sum(3.0 * g for g in gs))
    np.testing.assert_allclose(grad(f, [0, 1])(0.5, 2.0), [3.0, 3.0])
    linear = primitive(lambda x, y: 2 * x - 3 * y)
    def_linear(linear)
    np.testing.assert_allclose(grad(linear, [0, 1])(0.5, 2.0), [2.0, -3.0])
    bare = primitive(lambda x, y: x * y)
    defjvp(bare, "same")
    with pytest.raises(NonDifferentiableError, match="argument_without_a_rule"):
        grad(bare, 1)(1.0, 2.0)


def test_methods():
    class Model:
        def __init__(self, k):
            self.k = k

        @primitive
        def energy(self, x):
            return self.k * x**2

    defvjp(Model.energy, None, lambda ans, self, x: lambda g: g * 2.0 * self.k * x)
    assert float(grad(Model(3.0).energy)(2.0)) == 12.0
    assert float(grad(lambda x: Model(5.0).energy(x))(2.0)) == 20.0


def test_results_may_be_containers():
    f = primitive(lambda x: (x * 2.0, {"s": np.sum(x)}))
    defvjp(f, lambda ans, x: lambda g: g[0] * 2.0 + g[1]["s"])
    np.testing.assert_allclose(grad(lambda x: np.sum(f(x)[0] * x) + f(x)[1]["s"])(X), 4 * X + 1)


def test_notrace_primitive_gives_constants():
    f = notrace_primitive(lambda x: x * 2.0)
    np.testing.assert_array_equal(f(X), 2 * X)
    np.testing.assert_allclose(grad(lambda x: np.sum(f(x) * x))(X), 2 * X)
    hosted = notrace_primitive(by_ctypes)
    np.testing.assert_allclose(grad(lambda x: np.sum(hosted(x) * x))(X), np.exp(X))


def test_unbroadcast_f():
    f = primitive(lambda x, y: x * y)
    defvjp(
        f,
        lambda ans, x, y: unbroadcast_f(x, lambda g: g * y),
        lambda ans, x, y: unbroadcast_f(y, lambda g: g * x),
    )
    a, b = np.arange(6.0).reshape(2, 3), np.array([[2.0], [3.0]])
    found = grad(lambda a, b, c: np.sum(f(f(a, b), c)), [0, 1, 2])(a, b, 5.0)
    expected = grad(lambda a, b, c: np.sum(a * b * c), [0, 1, 2])(a, b, 5.0)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y)


def test_the_derivative_of_the_rule_goes_through_another_primitive():
    """The incomplete gamma function: its rule is NumPy, its second derivative that of the rule."""
    f = primitive(scipy.special.gammainc)
    defvjp(f, lambda ans, a, x: lambda g: g * np.exp(-x) * x ** (a - 1) / math.gamma(a), argnums=(1,))
    x = np.array([0.5, 2.0])
    density = np.exp(-x) * x**1.5 / math.gamma(2.5)
    np.testing.assert_allclose(elementwise_grad(f, 1)(2.5, x), density, rtol=1e-14)
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(f, 1), 1)(2.5, x), density * (1.5 / x - 1), rtol=1e-13)
    assert jacobian(f, 1)(2.5, x).shape == (2, 2)
    assert hessian(lambda x: np.sum(f(2.5, x)))(x).shape == (2, 2)


def test_one_compiled_object_for_a_function_with_a_primitive():
    f = twice_sine()

    def loss(x):
        return np.sum(f(x) * x)

    for k in range(4):
        grad(loss)(X + k)
    assert grad(loss).cache_info().misses == 1


def test_rules_are_for_primitives():
    with pytest.raises(OptionError, match="not a primitive"):
        defvjp(np.sin, lambda ans, x: lambda g: g)
    with pytest.raises(OptionError):
        defvjp(primitive(np.sin), 3)
    with pytest.raises(OptionError):
        defjvp(primitive(np.sin), "other")
    assert primitive(twice_sine()) is not None
    assert not isinstance(X, Box)


@pytest.mark.parametrize("traced", [True, False])
def test_a_rule_may_return_a_sparse_object(traced):
    at = np.array([0, 2, 0])

    @primitive
    def picked(x, at):
        return x[at]

    def pull_of(ans, x, at):
        def pull(g):
            def added(v):
                np.add.at(v, at, g if traced else np.array([float(str(float(part))) for part in g]))
                return v

            return SparseObject(vspace(x), added)

        return pull

    defvjp(picked, pull_of, None)
    slope = grad(lambda x: np.sum(picked(x, at) ** 2) + np.sum(x))
    np.testing.assert_allclose(slope(X), 2 * X * [2.0, 0.0, 1.0] + 1.0)
    if traced:
        np.testing.assert_allclose(jacobian(lambda x: picked(x, at) ** 2)(X), 2 * X[at, None] * np.eye(3)[at])
