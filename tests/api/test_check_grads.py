"""check_grads passes what is right, and shows the worst entry of what is wrong."""

from __future__ import annotations

import re

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.5, -1.0, 2.0])

RIGHT = {
    "elementwise": (lambda x: np.sin(x) * np.exp(x), (X,)),
    "a number": (lambda x: x**3, (1.5,)),
    "several arguments": (lambda x, y: np.sum(x * y**2), (X, X)),
    "a tree": (lambda d: {"p": d["a"] * d["b"][0], "n": 3}, ({"a": X, "b": [X]},)),
    "integers beside floats": (lambda x, d: x * d["k"] * d["w"], (X, {"k": np.array([1, 2, 3]), "w": 2.0})),
    "float32": (lambda x: np.sum(x * x), (X.astype(np.float32),)),
    "an empty array": (lambda x: x * 2, (np.zeros(0),)),
    "a matrix": (lambda a: a @ a, (np.eye(2) + 0.5,)),
    "a scan": (lambda xs: rg.scan(lambda c, x: (np.sin(c) * x, c), 0.5, xs), (X,)),
    "a compiled function": (rg.jit(np.tanh), (X,)),
    "a gradient": (rg.grad(lambda x: np.sum(np.sin(x))), (X,)),
}


@pytest.mark.parametrize(("f", "args"), RIGHT.values(), ids=RIGHT.keys())
def test_right_derivatives_pass(f, args):
    rg.check_grads(f, args)
    rg.check_grads(f, list(args), order=1, modes=["rev"])


def with_rule(factor):
    @rg.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda primals, tangents: (primals[0] ** 3, factor(primals[0]) * tangents[0]))
    return cube


def with_pullback(factor):
    @rg.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (factor(x) * ct,))
    return cube


@pytest.mark.parametrize("make", [with_rule, with_pullback])
def test_a_right_rule_passes_and_wrong_ones_are_caught(make):
    modes = ("fwd", "rev") if make is with_rule else ("rev",)
    rg.check_grads(make(lambda x: 3 * x**2), (X,), modes=modes)
    for wrong in (lambda x: 3.001 * x**2, lambda x: 0 * x, lambda x: -3 * x**2, lambda x: 3 * x**2 + 1e-4):
        with pytest.raises(rg.errors.GradientCheckError):
            rg.check_grads(make(wrong), (X,), order=1, modes=modes)


def test_a_wrong_second_derivative_is_caught_at_order_two_only():
    @rg.custom_jvp
    def slope(x):
        return 3 * x**2

    slope.defjvp(lambda primals, tangents: (3 * primals[0] ** 2, 5 * primals[0] * tangents[0]))

    @rg.custom_jvp
    def cube(x):
        return x**3

    cube.defjvp(lambda primals, tangents: (primals[0] ** 3, slope(primals[0]) * tangents[0]))
    rg.check_grads(cube, (X,), order=1)
    with pytest.raises(rg.errors.GradientCheckError, match=r"forward over forward mode gives .* of order 2 by"):
        rg.check_grads(cube, (X,), order=2)


def test_the_message_shows_the_mode_and_the_worst_entry():
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return x**2, 2 * x * t * np.array([1.0, 1.0, 1.5])

    f = rg.custom_jvp(lambda x: x**2)
    f.defjvp(rule)
    expected = "forward mode gives 6 for the derivative of result[2] by args[0][2], but central differences give 4"
    with pytest.raises(rg.errors.GradientCheckError, match=re.escape(expected)):
        rg.check_grads(f, (X,))


def test_the_message_names_the_leaf_and_the_entry():
    @rg.custom_vjp
    def product(a, b):
        return a * b

    product.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (ct * kept[1], ct * kept[0] * [1.0, 1.0, 3.0]))
    expected = "derivative of the sum of all results by args[1]['w'][2], but central differences give 1"
    with pytest.raises(rg.errors.GradientCheckError, match=re.escape(expected)):
        rg.check_grads(lambda a, d: {"y": product(a, d["w"])}, (np.ones(3), {"w": X}), modes="rev")


def test_an_error_between_the_entries_that_are_tried_is_one_along_a_direction():
    size = 200
    f = rg.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * np.where(np.arange(size) == size - 1, 2, 1)))
    with pytest.raises(rg.errors.GradientCheckError, match=r"result\[199\] by a random direction"):
        rg.check_grads(f, (np.ones(size),), order=1, modes="fwd")


def test_arguments_that_are_not_differentiated_may_be_anything():
    def f(x, how, table, options):
        return getattr(np, how)(x) * len(table) if options is not None else x

    args = (X, "sin", {"a": "text", "b": object()}, range(2))
    rg.grad(lambda *a: np.sum(f(*a)))(*args)
    rg.check_grads(f, args)
    rg.check_grads(f, (X, "cos", {}, None))


def test_a_point_without_floating_point_numbers_is_refused():
    with pytest.raises(rg.errors.NonDifferentiableError, match="check_grads got no floating-point number"):
        rg.check_grads(lambda k, s: k, (3, "text"))


def test_a_nan_is_no_agreement():
    f = rg.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * np.nan))
    with pytest.raises(rg.errors.GradientCheckError):
        rg.check_grads(f, (X,), order=1)


def test_tolerances_decide():
    f = rg.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] * 1.01))
    rg.check_grads(f, (X,), order=1, atol=0.1, rtol=0.1)
    with pytest.raises(rg.errors.GradientCheckError):
        rg.check_grads(f, (X,), order=1, atol=1e-4, rtol=1e-4)


def test_a_mode_that_is_not_asked_for_is_not_checked():
    f = rg.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (ct * 2.0,))
    with pytest.raises(rg.errors.GradientCheckError, match="reverse mode gives 2 for the derivative of the sum"):
        rg.check_grads(f, (X,), order=1, modes=("rev",))


def test_arguments_stay():
    x = X.copy()
    rg.check_grads(np.sin, (x,))
    np.testing.assert_array_equal(x, X)
