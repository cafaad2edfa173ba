"""Closure conversion: what a function captures, by name, and the function over other values."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from numpy import zeros

import retrograd as rg

SCALE = 2.5
WEIGHTS = np.array([1.0, 2.0])
STEPS = 3


def scaled(x):
    return SCALE * x


def through_a_helper(x):
    return scaled(np.sin(x)) * 2.0


def bound_early(x):
    y = zeros(2)
    y[0] = x * WEIGHTS[0]
    y[1] = x
    return np.sum(y * WEIGHTS)


def itself(n, x):
    return x if n == 0 else SCALE * itself(n - 1, x)


def line(a, b):
    return lambda x: a * x + b


def nested(a):
    inner = line(a, 1.0)
    return lambda x: inner(inner(x))


def recursive(b):
    def down(n, x):
        return x if n == 0 else b * down(n - 1, x)

    return down


def each_other(b, c):
    def even(n, x):
        return x if n == 0 else b * odd(n - 1, x)

    def odd(n, x):
        return x if n == 0 else c * even(n - 1, x)

    return even


def in_containers(ws, fs):
    return lambda x: ws[0] * fs[0](x) + ws[1]["b"] * fs[1](x)


class Model:
    """A callable object, with numbers, text, and a function among its attributes."""

    def __init__(self, w):
        self.w, self.n, self.name = w, 3, "model"
        self.inner = lambda x, b=0.5: x * b

    def __call__(self, x):
        return self.w * x * self.n + self.inner(x)

    def method(self, x):
        return self.w * x


A, B = 1.5, 0.5
CASES = {
    "a cell": (lambda f: f(2.0) ** 2, line(A, B), {"a": 14.0, "b": 7.0}),
    "a global": (lambda f: f(2.0) ** 2, scaled, {"SCALE": 20.0}),
    "a global of a helper": (lambda f: f(2.0), through_a_helper, {"scaled": {"SCALE": 2.0 * np.sin(2.0)}}),
    "a default": (lambda f: f(2.0) ** 2, lambda x, a=A: a * x, {"a": 12.0}),
    "a keyword's default": (lambda f: f(2.0) ** 2, lambda x, *, a=A: a * x, {"a": 12.0}),
    "a partial": (lambda f: f(2.0), functools.partial(lambda w, x, b: w * x + b, A, b=B), {"b": 1.0, "w": 2.0}),
    "a partial of a closure": (
        lambda f: f(),
        functools.partial(line(A, B), 3.0),
        {"func": {"a": 3.0, "b": 1.0}, "x": A},
    ),
    "an object": (lambda f: f(2.0), Model(A), {"inner": {"b": 2.0}, "w": 6.0}),
    "a method": (lambda f: f(2.0), Model(A).method, {"inner": {"b": 0.0}, "w": 2.0}),
    "a closure in a closure": (lambda f: f(2.0), nested(A), {"inner": {"a": 7.0, "b": 1.0 + A}}),
    "a compiled function": (lambda f: f(2.0) ** 2, rg.jit(line(A, B)), {"a": 14.0, "b": 7.0}),
    "a gradient": (lambda f: f(2.0), rg.grad(lambda x, a=A: a * x**2), {"a": 4.0}),
    "recursion": (lambda f: f(3, 2.0), recursive(A), {"b": 2.0 * 3 * A**2}),
    "recursion by a global": (lambda f: f(2, 2.0), itself, {"SCALE": 2.0 * 2 * SCALE}),
    "recursion of two": (lambda f: f(3, 2.0), each_other(A, B), {"b": 4 * A * B, "odd": {"c": 2 * A**2}}),
    "trees and lists of functions": (
        lambda f: f(2.0),
        in_containers([A, {"b": B, "n": 3}], [line(A, B), np.sin]),
        {"fs": [{"a": 2 * A, "b": A}, None], "ws": [2 * A + B, {"b": np.sin(2.0), "n": None}]},
    ),
    "a ufunc": (lambda f: f(2.0), np.sin, {}),
    "a class": (lambda f: f(2.0), np.float64, {}),
    "a name bound early": (lambda f: f(2.0), bound_early, {"WEIGHTS": np.array([4.0, 2.0])}),
}
CASES["a gradient"] = (lambda f: f(2.0), rg.grad(lambda x, a=A: a * x**2), {"a": 4.0})


@pytest.mark.parametrize(("run", "f", "expected"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("form", ["captures", "pairs", "fn", "grad"])
def test_what_counts_as_captured(run, f, expected, form):
    if form == "captures":
        found = rg.vjp(run, f)[1](1.0)[0]
    elif form == "pairs":
        found = rg.vjp(run, f, fns="pairs")[1](1.0)[0].pull_into(f)
    elif form == "fn":
        found = rg.vjp(run, rg.functions.fn(f))[1](1.0)[0]
    else:
        found = rg.grad(run)(f)
    assert same(found, expected)


def same(found, expected):
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[k], expected[k]) for k in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found is expected if expected is None else np.allclose(found, expected, rtol=1e-13)


def test_a_function_over_its_own_captures_is_itself():
    f = rg.functions.fn(line(2.0, 1.0))
    assert f(3.0) == 7.0
    assert f.captures == {"a": 2.0, "b": 1.0}
    assert f.over({"a": 1.0, "b": 0.0})(3.0) == 3.0
    assert f(3.0) == 7.0
    g = rg.functions.fn(nested(2.0))
    assert g.over({"inner": {"a": 3.0, "b": 0.0}})(1.0) == 9.0
    model = Model(2.0)
    assert rg.functions.fn(model).over({"w": 1.0, "inner": {"b": 0.0}})(2.0) == 6.0
    assert model.w == 2.0
    with pytest.raises(rg.errors.TreeError):
        f.over({"a": 1.0})


def test_what_the_function_rebinds_is_shared_and_not_captured():
    count = 0.0
    scale = 2.0

    def f(x):
        nonlocal count
        count += 1.0
        return scale * x

    out, pullback = rg.vjp(lambda f: f(1.0) + f(2.0), f)
    assert count == 2.0
    assert pullback(1.0)[0] == {"scale": 3.0}
    assert out == 6.0


def test_numbers_that_are_no_floats_belong_to_the_function():
    assert rg.grad(lambda f: f(2.0))(lambda x, n=2: x**n) == {}
    assert rg.functions.fn(lambda x: x**STEPS).captures == {}


def test_a_changed_capture_is_seen_at_the_next_call():
    a = 1.0

    def f(x):
        return a * x**2

    g = rg.grad(lambda f, x: f(x), (0, 1), fns="pairs")
    assert g(f, 3.0)[1] == 6.0
    a = 10.0
    assert g(f, 3.0)[1] == 60.0
    h = rg.value_and_grad(lambda f, x: f(x))
    assert h(f, 3.0) == (90.0, {"a": 9.0})
    a = 1.0
    assert h(f, 3.0) == (9.0, {"a": 9.0})


@pytest.mark.parametrize("fns", ["captures", "pairs"])
def test_an_equal_closure_is_not_compiled_again_and_another_is(fns):
    g = rg.value_and_grad(lambda f, x: f(x) ** 2, fns=fns)
    assert [g(line(a, 1.0), 2.0)[0] for a in (1.0, 2.0, 3.0)] == [9.0, 25.0, 49.0]
    assert g.cache_info().misses == 1
    assert g(lambda x: x, 2.0)[0] == 4.0
    assert g(np.sin, 2.0)[0] == np.sin(2.0) ** 2
    assert g(np.cos, 2.0)[0] == np.cos(2.0) ** 2
    power = [g(lambda x, n=n: x**n, 2.0)[0] for n in (1, 2, 3)]
    assert power == [4.0, 16.0, 64.0]


def test_function_values_are_containers_for_every_transform():
    compiled = rg.jit(lambda f, x: f(x))
    assert [compiled(rg.functions.fn(line(a, 1.0)), 2.0) for a in (1.0, 2.0)] == [3.0, 5.0]
    assert compiled.cache_info().misses == 1
    lanes = rg.vmap(lambda f, x: f(x))(rg.functions.fn(line(np.arange(3.0), np.ones(3))), np.arange(3.0))
    np.testing.assert_array_equal(lanes, [1.0, 2.0, 5.0])
    slopes = rg.grad(lambda params: params["f"](2.0) * params["c"])({"f": rg.functions.fn(line(2.0, 1.0)), "c": 3.0})
    assert slopes["c"] == 5.0
    assert slopes["f"].captures == {"a": 6.0, "b": 3.0}
    made = rg.jit(lambda a: rg.functions.fn(lambda x: a * x))(3.0)
    assert made(2.0) == 6.0


def test_named_arguments_may_be_functions():
    def run(x, f, *, g):
        return f(x) * g(x)

    found = rg.grad(run, ("x", "f", "g"))(2.0, line(1.0, 0.5), g=line(3.0, 1.0))
    assert found[0] == 1.0 * 7.0 + 2.5 * 3.0
    assert found[1:] == ({"a": 14.0, "b": 7.0}, {"a": 5.0, "b": 2.5})
    pairs = rg.grad(run, ("g", "f"), fns="pairs")(2.0, line(1.0, 0.5), g=line(3.0, 1.0))
    assert pairs == (rg.functions.FunctionCotangent([(2.0, 2.5)]), rg.functions.FunctionCotangent([(2.0, 7.0)]))
    last = rg.grad(run, -1)(2.0, line(1.0, 0.5), g=line(3.0, 1.0))
    assert last == {"a": 14.0, "b": 7.0}


def test_auxiliary_results_come_along():
    def run(f, x):
        y = f(x)
        return y**2, {"y": y}

    for fns, df in (("captures", {"a": 20.0, "b": 10.0}), ("pairs", rg.functions.FunctionCotangent([(2.0, 10.0)]))):
        assert rg.value_and_grad(run, has_aux=True, fns=fns)(line(2.0, 1.0), 2.0) == ((25.0, {"y": 5.0}), df)
        assert rg.grad(run, has_aux=True, fns=fns)(line(2.0, 1.0), 2.0) == (df, {"y": 5.0})
        out, pullback, aux = rg.vjp(run, line(2.0, 1.0), 2.0, has_aux=True, fns=fns)
        assert (out, aux, pullback(1.0)[0]) == (25.0, {"y": 5.0}, df)


@dataclasses.dataclass
class Affine:
    """A dataclass that can be called stays a container, as it always was."""

    w: float

    def __call__(self, x):
        return self.w * x


def test_a_callable_container_is_a_container():
    assert rg.grad(lambda f, x: f(x))(Affine(2.0), 3.0) == Affine(3.0)


def test_closure_conversion_gives_a_pure_function():
    a, w = 2.0, np.array([1.0, 2.0])

    def f(x, n=2):
        return a * np.sum(w * x**n)

    x = np.array([3.0, 4.0])
    pure, captures = rg.functions.closure_convert(f, x)
    assert [np.shape(c) for c in captures] == [(), (2,)]
    assert pure(*captures, x) == f(x)
    assert pure(1.0, np.ones(2), x, 1) == 7.0
    slopes = rg.grad(pure, (0, 1, 2))(*captures, x)
    assert slopes[0] == 41.0
    np.testing.assert_array_equal(slopes[1], 2.0 * x**2)
    np.testing.assert_array_equal(slopes[2], 4.0 * w * x)
    with pytest.raises(rg.errors.OptionError, match="2 captures first"):
        pure(1.0)


def test_closure_conversion_lifts_traced_values():
    def run(a, x):
        def f(y):
            return a * y**2

        pure, captures = rg.functions.closure_convert(f, x)
        assert len(captures) == 1
        return pure(*captures, x) + rg.grad(pure, 1)(*captures, x)

    assert run(2.0, 3.0) == 30.0
    assert rg.grad(run, (0, 1))(2.0, 3.0) == (15.0, 16.0)


def test_a_traced_value_that_is_out_of_reach_is_refused_by_name():
    class Box:
        """What it holds is found neither by closure conversion nor as an argument."""

    def run(a):
        box = Box()
        box.value = a
        return rg.functions.closure_convert(lambda y: box.value * y, 1.0)

    with pytest.raises(rg.errors.CapturedTracerError, match="not found among its captures"):
        rg.jit(run)(2.0)


def test_examples_are_recorded_at_once():
    assert rg.functions.fn(np.sin, 1.0)(0.0) == 0.0
    with pytest.raises(rg.errors.UnsupportedError):
        rg.functions.fn(lambda x: x.tobytes(), np.ones(3))
    for wrong in (rg.functions.fn, rg.functions.closure_convert):
        with pytest.raises(rg.errors.OptionError, match="needs a function"):
            wrong(3.0)


def test_functions_converted_outside_a_trace_work_in_it():
    f = rg.functions.fn(bound_early).over({"WEIGHTS": np.array([2.0, 3.0])})
    assert f(1.0) == 7.0
    assert rg.grad(lambda x: f(x))(1.5) == 7.0  # noqa: PLW0108 - the function value is called inside
    pure, captures = rg.functions.closure_convert(bound_early, 1.0)
    np.testing.assert_array_equal(rg.grad(pure)(*captures, 2.0), [4.0, 2.0])


def test_tangents_of_captures_and_of_functions():
    f = rg.functions.fn(lambda x, a=2.0: np.sin(a * x))
    out, along = rg.jvp(lambda f, x: f(x) ** 2, (f, 0.5), (f.over({"a": 3.0}), 0.0))
    assert along == pytest.approx(2 * np.sin(1.0) * np.cos(1.0) * 0.5 * 3.0)
    assert rg.jvp(lambda f, x: f(x) ** 2, (f, 0.5), (np.exp, 0.0))[1] == pytest.approx(2 * np.sin(1.0) * np.exp(0.5))
    linear = rg.linearize(lambda f, x: f(x) ** 2, f, 0.5)[1]
    assert linear(f.over({"a": 3.0}), 0.0) == pytest.approx(along)
    rg.check_grads(lambda f, x: f(x) ** 2, (f, 0.5))
    with pytest.raises(rg.errors.TreeError):
        rg.jvp(lambda f, x: f(x), (np.sin, 0.5), (np.cos,))
    assert out == np.sin(1.0) ** 2
