"""Transforms of transforms, closures over outer values, and functions called in many ways."""

from __future__ import annotations

import math

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.5, -1.0, 2.0])


def test_three_gradients_of_a_cube():
    def cube(x):
        return x**3

    assert rg.grad(cube)(2.0) == 12.0
    assert rg.grad(rg.grad(cube))(2.0) == 12.0
    assert rg.grad(rg.grad(rg.grad(cube)))(2.0) == 6.0
    with pytest.warns(rg.errors.IndependentOutputWarning):
        assert rg.grad(rg.grad(rg.grad(rg.grad(cube))))(2.0) == 0.0


def test_perturbations_are_not_confused():
    assert rg.grad(lambda x: x * rg.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert rg.jvp(lambda x: x * rg.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1] == 1.0
    assert rg.grad(lambda x: x * rg.grad(lambda y: x * y)(2.0))(3.0) == 6.0
    assert rg.grad(lambda x: rg.grad(lambda y: rg.grad(lambda z: x * y * z)(1.0))(2.0))(3.0) == 1.0


@pytest.mark.parametrize("order", range(1, 7))
def test_high_derivatives_of_the_sine(order):
    f = np.sin
    for k in range(order):
        f = rg.grad(f) if k % 2 else rg.jacfwd(f)
    assert f(0.3) == pytest.approx(math.sin(0.3 + order * math.pi / 2), rel=1e-12)


OUTER = {
    "jit": rg.jit,
    "grad": rg.grad,
    "vmap": rg.vmap,
    "jacfwd": rg.jacfwd,
    "jacrev": rg.jacrev,
    "hessian": rg.hessian,
}


@pytest.mark.parametrize("first", ["jit", "grad", "hessian", "value_and_grad", "jacrev", "vmap"])
@pytest.mark.parametrize("second", ["jit", "grad", "jacfwd", "vmap", "value_and_grad"])
def test_transforms_compose_in_any_order(first, second):
    """On numbers: each transform's result, computed by hand for f(x) = x**4 + 2 x**2."""
    derivatives = {0: lambda x: x**4 + 2 * x**2, 1: lambda x: 4 * x**3 + 4 * x, 2: lambda x: 12 * x**2 + 4}
    derivatives[3] = lambda x: 24 * x
    orders = {"jit": 0, "vmap": 0, "grad": 1, "jacfwd": 1, "jacrev": 1, "value_and_grad": 1, "hessian": 2}
    transforms = {**OUTER, "value_and_grad": lambda f: lambda x: rg.value_and_grad(f)(x)[1]}
    inner = transforms[first](derivatives[0]) if first != "vmap" else lambda x: rg.vmap(derivatives[0])(x.reshape(1))[0]
    order = orders[first] + orders[second]
    x = 1.25
    composed = transforms[second](inner)
    found = composed(np.array([x]))[0] if second == "vmap" else composed(np.float64(x))
    assert found == pytest.approx(derivatives[order](x), rel=1e-13)


def test_inner_functions_close_over_outer_values_at_every_level():
    def f(a, b):
        def g(x):
            def h(y):
                return np.sum(a * x * y**2) + np.sum(b)

            return np.sum(rg.grad(h)(x) * a)

        return rg.grad(g)(b)

    expected = 4 * X**2 * (X + 1)
    np.testing.assert_allclose(rg.jit(f)(X, X + 1), expected)
    np.testing.assert_allclose(f(X, X + 1), expected)
    slopes = rg.grad(lambda a, b: np.sum(f(a, b)), (0, 1))(X, X + 1)
    np.testing.assert_allclose(slopes[0], 8 * X * (X + 1))
    np.testing.assert_allclose(slopes[1], 4 * X**2)


def test_jit_inside_jit_is_the_plain_function():
    inner = rg.jit(lambda x, n: {"y": x * n, "s": "text"})
    outer = rg.jit(lambda x: (inner(x, 3)["y"] + inner(x, 4)["y"], inner(x, 3)["s"]))
    np.testing.assert_array_equal(outer(X)[0], 7 * X)
    assert outer(X)[1] == "text"
    assert outer.cache_info().misses == 1


def test_a_compiled_function_called_in_many_traces():
    inner = rg.jit(lambda x: np.sin(x) * x)
    for k in range(1, 4):
        x = np.arange(1.0, k + 1)
        slope = rg.grad(lambda x: np.sum(inner(x) ** 2))(x)
        f = np.sin(x) * x
        np.testing.assert_allclose(slope, 2 * f * (np.cos(x) * x + np.sin(x)), rtol=1e-13)


def test_recursion():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    assert rg.grad(power)(1.1, 13) == pytest.approx(13 * 1.1**12)

    @rg.jit
    def compiled_power(x, n):
        return x if n == 1 else x * compiled_power(x, n - 1)

    assert compiled_power(1.1, 13) == pytest.approx(1.1**13)
    assert rg.grad(compiled_power)(1.1, 5) == pytest.approx(5 * 1.1**4)


def test_python_runs_the_python():
    class Counter:
        def __init__(self):
            self.seen = []

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.seen.append("left")

    def numbers(x):
        for k in range(3):
            yield x * k

    @rg.jit
    def f(x, names):
        counter = Counter()
        with counter:
            total = sum(numbers(x))
        try:
            names.index("nowhere to be found") if names[0] == "a" else {}[names[0]]
        except KeyError as fault:
            name = fault.args[0]
        finally:
            total = total + 1.0
        parts = {n: total * k for k, n in enumerate(names)}
        total, *rest = [v for _, v in sorted(parts.items())]
        return total, rest, name, counter.seen

    total, rest, name, seen = f(2.0, ("b", "a"))
    assert (total, rest, name, seen) == (7.0, [0.0], "b", ["left"])


def test_the_same_function_object_under_many_transforms():
    def f(x):
        return np.sum(x**2)

    a, b = rg.grad(f), rg.grad(f)
    np.testing.assert_array_equal(a(X), b(X))
    assert a.cache_info() == b.cache_info()
    assert a is not b


def test_shapes_and_dtypes_are_known_while_tracing():
    @rg.jit
    def f(x):
        assert x.shape == (3,)
        assert x.dtype == np.float64
        assert len(x) == 3
        assert x.ndim == 1
        assert x.size == 3
        (n,) = x.shape
        return x * n

    np.testing.assert_array_equal(f(X), 3 * X)


def test_shared_work_stays_linear():
    def f(x):
        for _ in range(60):
            x = x + x
        return x

    assert rg.grad(f)(1.0) == 2.0**60
    assert len(rg.grad(f).graph(1.0).nodes) <= 200
    assert rg.hessian(lambda x: f(x) * x)(1.0) == 2.0**61
