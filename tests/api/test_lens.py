"""Lenses: the document's examples, the laws on random lenses, host calls, and wrong uses."""

from __future__ import annotations

import gc
import inspect
import json
import math
import weakref
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.tracer.tree import flatten

L = rg.lens


@rg.lens
def cube(x):
    return x**3, lambda ct: 3 * x**2 * ct


@rg.lens
def times_sine(x):
    s = np.sin(x)
    return x * s, lambda ct: (s + x * np.cos(x)) * ct


def numbers(x):
    return np.frombuffer(x.tobytes()).tolist()


@rg.lens
def by_python(x):
    """Neither part can be traced: both ask for the memory of an array, as a library would."""
    sines, cosines = (np.array([f(v) for v in numbers(x)]) for f in (math.sin, math.cos))
    return sines, lambda ct: np.array(numbers(ct)) * cosines


ATOMS = {
    "cube": cube,
    "times_sine": times_sine,
    "by_python": by_python,
    "sin": L.of(np.sin),
    "tanh": L.of(np.tanh),
    "scale": L.of(lambda x: 3.0 * x),
    "shift": L.of(lambda x: x - 0.3),
    "gauss": L.of(lambda x: np.exp(-x * x)),
    "reverse": L.of(lambda x: x[::-1] * x),
}
atoms = st.sampled_from(sorted(ATOMS)).map(ATOMS.__getitem__)
lenses = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] >> p[1]),
        st.tuples(inner, inner).map(lambda p: (p[0] & p[1]) >> L.add),
        st.tuples(inner, inner).map(lambda p: L.copy(2) >> (p[0] * p[1]) >> L.of(lambda a, b: a * b)),
    ),
    max_leaves=5,
)
points = st.lists(st.floats(-1.0, 1.0).map(lambda x: round(x, 3)), min_size=3, max_size=3).map(np.array)


def same_bits(found: Any, expected: Any) -> None:
    (xs, spec), (ys, other) = flatten(found), flatten(expected)
    assert spec == other
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y), strict=True)


def close(found: Any, expected: Any) -> None:
    (xs, spec), (ys, other) = flatten(found), flatten(expected)
    assert spec == other
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def equal_lenses(f: Any, g: Any, source: Any, ct: Any, same: Any = close) -> None:
    (v, pull), (w, other) = f.at(source), g.at(source)
    same(v, w)
    same(pull(ct), other(ct))


# ----------------------------------------------------------------------------------------- the document's examples


def test_a_custom_operation_is_a_value_and_a_pullback():
    @rg.lens
    def program(x):
        y1 = x + 1
        y2 = x * y1
        y3 = y1 * y2

        def pull(cts):
            c1, c2, c3 = cts
            c2 = c2 + c3 * y1
            c1 = c1 + c3 * y2 + c2 * x
            return c2 * y1 + c1

        return (y1, y2, y3), pull

    value, pull = program.at(2.0)
    assert value == (3.0, 6.0, 18.0)
    assert pull((1.0, 10.0, 100.0)) == 2151.0
    assert program(2.0) == value


def test_fan_in_by_composition_and_by_zip():
    sin, exp, mul = L.of(np.sin), L.of(np.exp), L.of(lambda a, b: a * b)
    unit = L.unit(0.5)
    for value, pull in (
        ((sin & exp) >> mul).at(0.5),
        unit.bind(sin).zip(unit.bind(exp)).bind(mul),
        L.zip(unit.bind(sin), unit.bind(exp)).bind(mul),
    ):
        assert value == pytest.approx(0.790439083213615, rel=1e-15)
        assert pull(1.0) == pytest.approx(2.237328119797784, rel=1e-15)


def test_bind_takes_any_function_that_returns_the_pair():
    halved = L.unit(8.0).bind(lambda a: (a / 2, lambda ct: ct / 2)).bind(cube)
    assert (halved.value, halved.pull(1.0)) == (64.0, 24.0)


# ---------------------------------------------------------------------------------------------------------- laws


@given(lenses, points, points)
def test_left_identity(f, x, ct):
    (value, pull), expected = L.unit(x).bind(f), f.at(x)
    same_bits(value, expected.value)
    same_bits(pull(ct), expected.pull(ct))
    equal_lenses(L.id >> f, f, x, ct, same_bits)


@given(lenses, points, points)
def test_right_identity(f, x, ct):
    bound = f.at(x).bind(L.unit)
    same_bits(bound.value, f.at(x).value)
    same_bits(bound.pull(ct), f.at(x).pull(ct))
    equal_lenses(f >> L.id, f, x, ct, same_bits)


@given(lenses, lenses, lenses, points, points)
def test_associativity(f, g, h, x, ct):
    equal_lenses((f >> g) >> h, f >> (g >> h), x, ct, same_bits)
    one, other = f.at(x).bind(g).bind(h), f.at(x).bind(lambda b: g.at(b).bind(h))
    same_bits(one.value, other.value)
    same_bits(one.pull(ct), other.pull(ct))


@given(lenses, lenses, points, points)
def test_the_pullback_of_a_composition_is_the_composition_of_pullbacks(f, g, x, ct):
    value, pull = (f >> g).at(x)
    bound = f.at(x).bind(g)
    close(value, bound.value)
    close(pull(ct), bound.pull(ct))


@given(lenses, lenses, points, points)
def test_vjp_of_plain_functions_composes_like_lenses(f, g, x, ct):
    out, pullback = rg.vjp(lambda x: g(f(x)), x)
    value, pull = (f >> g).at(x)
    close(out, value)
    close(pullback(ct)[0], pull(ct))


@given(lenses, lenses, lenses, lenses, points, points, points, points)
def test_interchange(f, g, h, k, x, y, ct, dt):
    equal_lenses((f * g) >> (h * k), (f >> h) * (g >> k), (x, y), (ct, dt))


@given(lenses, lenses, points, points, points)
def test_fan_out_is_copy_and_then_both(f, g, x, ct, dt):
    equal_lenses(f & g, L.copy(2) >> (f * g), x, (ct, dt))


@given(lenses, lenses, points, points, points, points)
def test_swap_is_natural_and_its_own_inverse(f, g, x, y, ct, dt):
    equal_lenses((f * g) >> L.swap, L.swap >> (g * f), (x, y), (ct, dt))
    equal_lenses(L.swap >> L.swap, L.id, (x, y), (ct, dt))


@given(lenses, lenses, points, points)
def test_projections_undo_fan_out(f, g, x, ct):
    equal_lenses((f & g) >> L.proj(0), f, x, ct)
    equal_lenses((f & g) >> L.proj(1), g, x, ct)


@given(lenses, points)
def test_drop_and_constants_pull_zero(f, x):
    same_bits((f >> L.drop).at(x).pull(()), np.zeros(3))
    value, pull = (f >> L.const(2.5)).at(x)
    assert value == 2.5
    same_bits(pull(1.0), np.zeros(3))


@given(lenses, points)
def test_random_lenses_pass_the_check(f, x):
    rg.check_lens(f, x)


@given(lenses, points, points, points)
def test_a_pullback_is_a_value(f, x, ct, dt):
    first, second = f.at(x), f.at(x + 0.5)
    a = first.pull(ct)
    f(x - 0.5)
    b = second.pull(dt)
    same_bits(first.pull(ct), a)
    same_bits(second.pull(dt), b)
    same_bits(f.at(x).pull(ct), a)


# ------------------------------------------------------------------------------------------------- graphs inside


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_n_uses_make_n_minus_1_additions_in_the_adjoint(n):
    weights = np.arange(1.0, n + 1)
    uses = L.copy(n) >> L.of(lambda *xs: [w * np.sin(x) for w, x in zip(weights, xs, strict=True)])
    graph = rg.grad(lambda x: reduce(lambda a, b: a * b, uses(cube(x)))).graph(0.7, stage="adjoint")
    assert sum(node.prim.name == "add" for node in graph.nodes) == n - 1


def test_no_use_is_a_symbolic_zero():
    with pytest.warns(rg.errors.IndependentOutputWarning):
        graph = rg.grad(lambda x, y: L.proj(0)(x, y) * 2.0, argnums=1).graph(1.0, np.ones(4))
    assert [node.prim.name for node in graph.nodes] == ["const"]


def test_a_lens_is_compiled_with_the_rest():
    gradient = rg.grad(lambda x: np.sum(cube(np.sin(x))))
    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(gradient(x), 3 * np.sin(x) ** 2 * np.cos(x), rtol=1e-14)
    assert "host" not in gradient.source(x)


def test_the_pullback_that_is_given_is_used_and_not_the_derivative():
    clipped = L(lambda x: (x * 1.0, lambda ct: np.minimum(ct, 1.0)))
    assert rg.grad(lambda x: 5.0 * clipped(x))(2.0) == 1.0
    assert rg.grad(rg.grad(lambda x: cube(x) * 1.0))(2.0) == 12.0


@pytest.mark.parametrize("size", [3, 2047, 2048, 9000])
def test_host_calls_below_and_above_the_thresholds_of_storage(size):
    def loss(f):
        def run(x):
            y = np.sin(x)
            z = f(y) * y
            return np.sum(z * z + y)

        return run

    x = np.linspace(-1.0, 1.0, size)
    found = rg.value_and_grad(loss(by_python))(x)
    expected = rg.value_and_grad(loss(np.sin))(x)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13, atol=1e-15)


def test_a_plain_numpy_pullback_beside_a_traced_value_is_one_host_call():
    def solve(A, b):
        x = A @ b

        def pull(ct):
            return np.outer(numbers(ct), b), A.T @ ct

        return x, pull

    A, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, -2.0])
    gradient = rg.grad(lambda A, b: np.sum(L(solve)(A, b) ** 2), argnums=(0, 1))
    expected = rg.grad(lambda A, b: np.sum((A @ b) ** 2), argnums=(0, 1))(A, b)
    same_bits(gradient(A, b), expected)
    assert sum(node.prim.name == "host" for node in gradient.graph(A, b).nodes) == 1


def test_a_traced_lens_is_differentiated_in_both_modes_and_twice():
    x = np.array([0.3, -0.7, 1.1])
    for f in (cube, times_sine, (cube & times_sine) >> L.add, cube >> times_sine):
        rg.check_grads(f, (x,), order=2)
    np.testing.assert_allclose(rg.jvp(cube, (x,), (np.ones(3),))[1], 3 * x**2, rtol=1e-14)
    np.testing.assert_allclose(rg.hessian(lambda x: np.sum(cube(x)))(x), np.diag(6 * x), rtol=1e-13)
    np.testing.assert_allclose(rg.vmap(rg.grad(cube))(x), 3 * x**2, rtol=1e-14)


def test_lanes_of_a_host_call_are_a_loop():
    gradient = rg.grad(lambda x: np.sum(by_python(x) * x))
    xs = np.random.default_rng(0).normal(size=(4, 3))
    same_bits(rg.vmap(gradient)(xs), np.stack([gradient(x) for x in xs]))


def test_host_true_and_host_false_decide():
    always = L(lambda x: (x * x, lambda ct: 2 * x * ct), host=True)
    assert rg.grad(lambda x: always(x) * 1.0)(3.0) == 6.0
    source = rg.grad(lambda x: always(x) * 1.0).source(3.0)
    assert "_host_" in source
    assert "runs on NumPy and functions of the program that made it." in source
    never = L(by_python.__wrapped__, host=False)
    with pytest.raises(rg.errors.UnsupportedError):
        never(np.ones(3))


def test_forward_mode_through_a_host_pullback_is_refused():
    with pytest.raises(rg.errors.NonDifferentiableError, match="host function"):
        rg.hessian(lambda x: np.sum(by_python(x) ** 2))(np.ones(3))


# ------------------------------------------------------------------------------------------------------ structure


@dataclass
class Layer:
    W: Any
    b: Any
    n: int


def test_gradients_of_a_dataclass_add_field_by_field_and_leave_other_fields_out():
    layer = Layer(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, -0.5]), 3)
    twice = L.copy(2) >> L.of(lambda p, q: np.sum(p.W @ p.b) + np.sum(q.W * q.n))
    gradient = twice.at(layer).pull(1.0)
    assert isinstance(gradient, Layer)
    np.testing.assert_array_equal(gradient.W, np.array([[0.5, -0.5]] * 2) + 3.0)
    np.testing.assert_array_equal(gradient.b, [4.0, 6.0])
    assert gradient.n is None


def test_integers_among_the_arguments_have_no_cotangent():
    @rg.lens
    def power(x, n):
        return x**n, lambda ct: (n * x ** (n - 1) * ct, None)

    value, pull = power.at(2.0, 3)
    assert (value, pull(1.0)) == (8.0, (12.0, None))
    value, pull = (L.of(lambda x, n: (x * x, n)) >> power).at(2.0, 3)
    assert pull(1.0)[0] == 6 * 2.0**5


def test_a_user_pullback_of_a_dataclass_may_leave_fields_out():
    @rg.lens
    def total(layer):
        return np.sum(layer.W) * layer.n, lambda ct: Layer(np.full((2, 2), 3.0) * ct, None, None)

    gradient = total.at(Layer(np.ones((2, 2)), np.ones(2), 3)).pull(2.0)
    np.testing.assert_array_equal(gradient.W, np.full((2, 2), 6.0))
    np.testing.assert_array_equal(gradient.b, np.zeros(2))


def test_stop_gradient_and_no_grad_hold_inside_lenses():
    assert L.of(lambda x: x * rg.stop_gradient(x)).at(3.0).pull(1.0) == 3.0

    def half(x):
        with rg.no_grad():
            y = cube(x)
        return y * x

    assert L.of(half).at(2.0).pull(1.0) == 8.0


def test_what_was_compiled_under_no_grad_is_differentiated_elsewhere():
    inner = rg.jit(lambda x: x**3)

    def half(x):
        with rg.no_grad():
            y = inner(x)
        return y * x

    assert rg.grad(half)(2.0) == 8.0
    assert rg.grad(lambda x: inner(x) * 1.0)(2.0) == 12.0


def arrays_behind(x: Any) -> list[Any]:
    """The arrays that a closure holds, also in closures and lists of its own."""
    if isinstance(x, np.ndarray):
        return [x]
    inside = [c.cell_contents for c in x.__closure__ or ()] if inspect.isfunction(x) else x
    return [a for y in inside for a in arrays_behind(y)] if isinstance(inside, (list, tuple)) else []


def test_dropping_a_pullback_frees_its_residuals():
    value, pullback = rg.vjp(lambda x: np.sum(cube(np.exp(x))), np.linspace(0.0, 1.0, 5000))
    kept = [weakref.ref(r) for r in arrays_behind(pullback)]
    assert kept
    assert all(r() is not None for r in kept)
    del pullback
    gc.collect()
    assert all(r() is None for r in kept)
    assert value > 0


# ------------------------------------------------------------------------------------------------------ wrong uses


@pytest.mark.parametrize(
    ("law", "wrong"),
    [
        ("additivity", lambda x: (x, lambda ct: ct * ct)),
        ("additivity", lambda x: (x, lambda ct: ct + 1.0)),
        ("derivative", lambda x: (x * x, lambda ct: x * ct)),
        ("derivative", lambda x: (np.sin(x), lambda ct: -np.cos(x) * ct)),
    ],
)
@pytest.mark.parametrize("point", [0.7, np.array([0.3, 0.7])])
def test_a_broken_law_is_named(law, wrong, point):
    with pytest.raises(rg.errors.LensLawError) as caught:
        rg.check_lens(wrong, point)
    assert caught.value.law == law


def test_a_pullback_that_remembers_breaks_repetition():
    calls = []

    def drifting(x):
        def pull(ct):
            calls.append(float(ct))
            return ct * len(calls)

        return x * 1.0, pull

    with pytest.raises(rg.errors.LensLawError) as caught:
        rg.check_lens(L(drifting, host=True), 2.0)
    assert caught.value.law == "repetition"


def test_a_captured_traced_value_is_named():
    def f(x, weight):
        return L(lambda a: (a * weight, lambda ct: ct * weight))(x)

    with pytest.raises(rg.errors.CapturedTracerError, match="weight: float"):
        rg.grad(f)(1.0, 2.0)

    def g(x, weight):
        return L(lambda a: (a * 2.0, lambda ct: ct * weight))(x)

    with pytest.raises(rg.errors.CapturedTracerError, match="weight: float"):
        rg.grad(g)(1.0, 2.0)

    def h(x):
        half = 0.5 * x
        return L(lambda a: (a * half, lambda ct: ct * half))(x)

    with pytest.raises(rg.errors.CapturedTracerError, match="half: float"):
        rg.grad(h)(1.0)


def test_captured_arrays_and_numbers_are_constants():
    weight = np.arange(3.0)
    scaled = L(lambda a: (a * weight, lambda ct: ct * weight))
    same_bits(rg.grad(lambda x: np.sum(scaled(x)))(np.ones(3)), weight)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: L(lambda x: x)(1.0), rg.errors.TreeError),
        (lambda: L(lambda x, y: (x * y, lambda ct: ct * y)).at(1.0, 2.0).pull(1.0), rg.errors.TreeError),
        (lambda: L(lambda x: (np.sum(x), lambda ct: ct)).at(np.ones(3)).pull(1.0), rg.errors.ShapeError),
        (lambda: cube >> np.sin, rg.errors.OptionError),
        (lambda: np.sin >> cube, rg.errors.OptionError),
        (lambda: (cube * cube)(1.0, 2.0, 3.0), rg.errors.TreeError),
        (lambda: cube.at(np.ones(3)).pull(np.ones(4)), rg.errors.ShapeError),
        (lambda: cube.at(3), rg.errors.NonDifferentiableError),
        (lambda: cube.at(1.0).zip(cube.at(2.0)), rg.errors.RecordMismatchError),
        (lambda: L(lambda x: (x, lambda ct: ct), host="yes"), rg.errors.OptionError),
    ],
)
def test_a_wrong_use_is_a_named_error(wrong, error):
    with pytest.raises(error):
        wrong()


def test_host_calls_inside_loops_branches_and_subgraphs():
    @rg.subgraph(inline=0)
    def cell(x):
        return by_python(x) * 0.9 + 0.1

    def looped(f):
        return lambda x: np.sum(rg.scan(lambda c, _: (f(c), None), x, None, 4)[0])

    def branched(f):
        return lambda x: np.sum(rg.cond(x[0] > 0, f, np.cos, x))

    plain = lambda x: np.sin(x) * 0.9 + 0.1  # noqa: E731 - a twin of cell
    for x in (np.array([0.3, -0.4]), np.array([-0.3, 0.4])):
        for around in (looped, branched):
            found, expected = rg.grad(around(cell))(x), rg.grad(around(plain))(x)
            np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_lens_that_no_trace_can_follow_is_called_whatever_complains():
    @rg.lens
    def stored(x):
        kept = json.loads(json.dumps({"x": float(x)}))["x"]
        return kept**2, lambda ct: 2 * kept * ct

    assert stored(1.5) == 2.25
    assert rg.grad(lambda x: stored(x) * x)(1.5) == 3 * 1.5**2

    @rg.lens
    def wrong(x):
        raise TypeError("the user's own")

    for call in (wrong, rg.grad(wrong)):
        with pytest.raises(TypeError, match="the user's own"):
            call(1.5)
