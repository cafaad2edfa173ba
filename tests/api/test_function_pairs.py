"""Cotangents of function values as pairs: the calls, in their order, wherever they are made."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops.structural.applied import marks


def pairs(run, f, *args, ct=1.0):
    return rg.vjp(run, f, *args, fns="pairs")[1](ct)


def test_the_pairs_of_a_sum_of_products():
    def run(f, a):
        return f(a) * f(2 * a) + f(a)

    df, da = pairs(run, np.sin, 0.5)
    assert [x for x, _ in df.pairs] == [0.5, 1.0, 0.5]
    at = dict(df.normalized().pairs)
    assert at == pytest.approx({0.5: 1.8414709848078965, 1.0: 0.479425538604203}, rel=1e-14)
    assert da == pytest.approx(2.134112272494353, rel=1e-14)
    assert df == rg.functions.FunctionCotangent(at.items())


def test_copying_a_function_concatenates_its_pairs_in_the_order_of_the_calls():
    df, da = pairs(lambda f, a: f(f(a)), lambda x: x**2, 3.0)
    assert df.pairs == ((3.0, 18.0), (9.0, 1.0))
    assert da == 108.0


def test_a_function_that_is_not_called_has_the_zero_cotangent():
    df, da = pairs(lambda f, a: a**2, np.sin, 3.0)
    assert df == 0
    assert df == rg.functions.FunctionCotangent()
    assert df.pairs == ()
    assert da == 6.0


def test_captures_are_pulled_back_out_of_pairs():
    a = 2.0

    def f(x):
        return a * x + a**2

    out, pullback = rg.vjp(lambda f: f(1.0) + f(2.0) * f(3.0), f, fns="pairs")
    (df,) = pullback(1.0)
    assert out == 86.0
    assert df.pairs == ((1.0, 1.0), (2.0, 10.0), (3.0, 8.0))
    assert df.pull_into(f) == {"a": 121.0}
    assert rg.grad(lambda f: f(1.0) + f(2.0) * f(3.0))(f) == {"a": 121.0}


def test_continuations_with_several_shots_have_a_pair_for_each():
    out, pullback = rg.vjp(lambda k, x: k(x) + k(2 * x), lambda y: y**2, 3.0, fns="pairs")
    dk, dx = pullback(1.0)
    assert out == 45.0
    assert dk.pairs == ((3.0, 1.0), (6.0, 1.0))
    assert dx == 30.0


def test_map_filter_and_fold_of_python():
    c = 3.0
    times = [lambda y: c * y][0]
    assert pairs(lambda f: sum(map(f, [1.0, 2.0, 4.0])), times)[0].pull_into(times) == {"c": 7.0}
    assert pairs(lambda f: sum(map(f, [1.0, 2.0, 4.0])), times)[0].pairs == ((1.0, 1.0), (2.0, 1.0), (4.0, 1.0))
    kept = pairs(lambda f: sum(y * y for y in filter(lambda y: y > 5.0, map(f, [1.0, 2.0, 4.0]))), times)[0]
    assert kept == rg.functions.FunctionCotangent([(2.0, 12.0), (4.0, 24.0)])
    folded = pairs(lambda f: functools.reduce(f, [2.0, 5.0], 1.0), lambda x, y: c * x * y)[0]
    assert folded.pairs == (((1.0, 2.0), 15.0), ((6.0, 5.0), 1.0))
    asked = pairs(lambda p: sum(filter(p, [1.0, 2.0, 4.0])), lambda y: y > 1.5)[0]
    assert asked == 0


@pytest.mark.parametrize("over", [rg.map, lambda f, xs: rg.vmap(f)(xs)], ids=["map", "vmap"])
def test_many_elements_make_one_block(over):
    w = np.array(0.3)
    xs = np.linspace(-1.0, 1.0, 1000)

    def f(x):
        return np.sin(w * x)

    df, dx = pairs(lambda f, xs: np.sum(over(f, xs) * xs), f, xs)
    (block,) = df.blocks
    assert block.sizes == (1000,)
    assert len(df.pairs) == 1000
    np.testing.assert_array_equal([x for x, _ in df.pairs], xs)
    np.testing.assert_array_equal([ct for _, ct in df.pairs], xs)
    np.testing.assert_allclose(df.pull_into(f)["w"], np.sum(xs * xs * np.cos(w * xs)), rtol=1e-13)
    np.testing.assert_allclose(dx, np.sin(w * xs) + xs * w * np.cos(w * xs), rtol=1e-13)


def seen_by_python(run, f):
    """The inputs of all calls, as plain Python makes them."""
    inputs = []

    def noted(*args):
        inputs.append(args[0] if len(args) == 1 else args)
        return f(*args)

    run(noted)
    return inputs


def loop(body, carry, xs):
    ys = []
    for x in xs:
        carry, y = body(carry, x)
        ys.append(y)
    return carry, np.array(ys)


def test_pairs_of_loops_stand_in_the_order_of_the_calls():
    xs = np.arange(1.0, 7.0).reshape(2, 3)

    def twice(scan):
        def run(f):
            def outer(c, row):
                def inner(d, t):
                    return d + f(t * 0.1), f(d)

                d, ys = scan(inner, c, row)
                return f(d), np.sum(ys)

            return f(scan(outer, 0.5, xs)[0])

        return run

    (df,) = rg.vjp(twice(rg.scan), np.sin, fns="pairs")[1](1.0)
    np.testing.assert_allclose([x for x, _ in df.pairs], seen_by_python(twice(loop), np.sin), rtol=1e-14)


def test_pairs_of_a_loop_backwards_stand_in_the_order_of_the_calls():
    xs = np.arange(4.0)
    (df,) = rg.vjp(lambda f: rg.scan(lambda c, t: (c + f(t), c), 0.0, xs, reverse=True)[0], np.sin, fns="pairs")[1](1.0)
    assert [x for x, _ in df.pairs] == [3.0, 2.0, 1.0, 0.0]


def test_calls_in_branches_that_are_not_taken_leave_no_pair():
    def run(f, xs):
        return np.sum(rg.map(lambda t: rg.cond(t > 0, lambda: f(t), lambda: t * f(-t)), xs))

    xs = np.array([1.0, -2.0, 3.0])
    df, dx = pairs(run, np.log, xs)
    assert df == rg.functions.FunctionCotangent([(1.0, 1.0), (2.0, -2.0), (3.0, 1.0)])
    assert [x for x, _ in df.pairs] == [1.0, 2.0, 3.0]
    np.testing.assert_allclose(dx, [1.0, np.log(2.0) + 1.0, 1 / 3.0])


@pytest.mark.parametrize("x", [0.5, 2.0, 7.0])
def test_the_number_of_calls_may_depend_on_data(x):
    def run(f, x):
        total = 0.0
        while x < 10.0:
            total, x = total + f(x), x * 2.0
        return total

    df, _ = pairs(run, np.sin, x)
    np.testing.assert_array_equal([p for p, _ in df.pairs], seen_by_python(lambda f: run(f, x), np.sin))
    compiled = rg.grad(run, fns="pairs")
    for start in (0.5, 2.0, 7.0, x, 0.5):
        assert compiled(np.sin, start) == pairs(run, np.sin, start)[0]


@pytest.mark.parametrize(
    "run",
    [
        lambda f: rg.jit(lambda y: f(y) * 3.0)(2.0),
        lambda f: rg.jit(lambda: f(2.0) * 3.0)(),
        lambda f: rg.jit(lambda: sum(k * 0.1 * f(2.0) for k in range(25)) / 10.0)(),
        lambda f: rg.grad(lambda y: y**2 * f(2.0) / 2.0)(3.0),
        lambda f: rg.jvp(lambda y: y * f(2.0), (1.0,), (3.0,))[1],
        lambda f: rg.linearize(lambda y: y * f(2.0), 1.0)[1](3.0),
        lambda f: rg.vmap(lambda y: y * f(2.0))(np.arange(3.0))[1] * 3.0,
        lambda f: rg.scan(lambda c, t: (c + f(2.0), None), 0.0, np.arange(3.0))[0],
        lambda f: rg.cond(True, lambda: 3.0 * f(2.0), lambda: 0.0),
        lambda f: rg.vjp(lambda g: 1.5 * g(2.0) ** 2, f, fns="pairs")[1](1.0)[0].fold(lambda _, ct: ct),
    ],
)
def test_calls_are_seen_where_nothing_but_the_function_is_traced(run):
    (df,) = pairs(run, np.sin)
    assert df == rg.functions.FunctionCotangent([(2.0, 3.0)])
    assert rg.grad(run, fns="pairs")(np.sin) == df


def test_what_is_stopped_has_no_pair_or_a_zero_one():
    def run(f, x):
        with rg.no_grad():
            scale = f(x)
        return scale * f(2 * x) + rg.stop_gradient(f(3 * x))

    df, _ = pairs(run, np.sin, 0.5)
    assert df == rg.functions.FunctionCotangent([(1.0, np.sin(0.5))])


def test_integer_arguments_and_results_are_given_and_have_no_cotangent():
    def f(n, x):
        return n + 1, x * n

    df, dx = pairs(lambda f, x: f(2, x)[1] * f(2, x)[0] + f(f(4, x)[0], x)[1], f, 1.5)
    assert df == rg.functions.FunctionCotangent([((2, 1.5), (None, 3.0)), ((5, 1.5), (None, 1.0))])
    assert dx == 11.0


def test_the_compiled_source_has_no_mark_and_no_addition_of_nothing():
    g = rg.grad(lambda f, x: f(x) * f(np.sin(x)), (0, 1), fns="pairs")
    graph = g.graph(np.cos, 0.5)
    assert not marks(graph)
    assert "-0.0" not in str(graph)


def test_captures_of_a_known_function_fuse_with_the_rest():
    w = 1.5
    graph = rg.grad(lambda f, x: f(x) * f(2 * x)).graph(lambda y: w * y, 0.5)
    by_hand = rg.grad(lambda w, x: (w * x) * (w * (2 * x))).graph(w, 0.5)
    assert not marks(graph)
    assert [node.prim.name for node in graph.nodes] == [node.prim.name for node in by_hand.nodes]


def test_nested_functions_are_linear_in_work():
    """t₀ = a·x₀, t_d = (λ x_{d-1}. t_{d-1})(x_d + a): each body runs once, and the gradient's graph grows linearly."""
    runs = []

    def nested(a, x, depth):
        def t0(x0):
            runs.append(0)
            return a * x0

        def over(inner, level):
            def t(x_d):
                runs.append(level)
                return inner(x_d + a)

            return t

        t = t0
        for level in range(1, depth + 1):
            t = over(t, level)
        return t(x)

    assert rg.value_and_grad(nested)(2.0, 3.0, 8) == (38.0, 35.0)
    assert len(runs) <= 18
    sizes = [len(rg.grad(nested).graph(2.0, 3.0, depth).nodes) for depth in (8, 16, 32)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    assert not marks(rg.grad(nested).graph(2.0, 3.0, 8))


def test_pairs_can_be_differentiated_again():
    def paired(a, form):
        def f(x):
            return a * x**2

        df = rg.grad(lambda f, x: f(x) ** 2, fns="pairs")(f, 2.0)
        return df.pair(lambda x: x) if form == "pair" else df.pull_into(f)["a"] if form == "pull" else df.stack()[1][0]

    for form, slope in (("pair", 16.0), ("pull", 32.0), ("stack", 8.0)):
        assert paired(1.5, form) == pytest.approx(1.5 * slope)
        assert rg.grad(paired)(1.5, form) == pytest.approx(slope)
        assert rg.jit(paired)(1.5, form) == pytest.approx(1.5 * slope)


def test_lanes_of_pairings():
    def slope(x):
        return rg.vjp(lambda f, y: f(y) ** 2, np.sin, x, fns="pairs")[1](1.0)[0].pair(np.cos)

    found = rg.vmap(slope)(np.arange(3.0))
    np.testing.assert_allclose(found, 2 * np.sin(np.arange(3.0)) * np.cos(np.arange(3.0)))


def test_a_compiled_function_returns_cotangents_of_functions():
    g = rg.jit(lambda x: rg.vjp(lambda f, y: f(y) * f(2 * y), np.sin, x, fns="pairs")[1](1.0)[0])
    for x in (0.5, 0.7):
        assert g(x) == pairs(lambda f, y: f(y) * f(2 * y), np.sin, x)[0]


def test_a_written_input_is_noted_as_it_was():
    def run(f, x):
        y = x * 1.0
        total = np.sum(f(y))
        y[:] = 7.0
        return total + np.sum(f(y))

    df, _ = pairs(run, lambda x: x**2, np.array([1.0, 2.0]))
    np.testing.assert_array_equal([x for x, _ in df.pairs], [[1.0, 2.0], [7.0, 7.0]])


def test_pulling_into_a_function_that_writes_leaves_the_pairs_alone():
    w = np.array([2.0, 3.0])

    def f(x):
        x = x * 1.0
        y = np.sum(w * x)
        x[0] = 100.0
        return y + np.sum(x * w)

    def g(x):
        y = np.sum(w * x)
        x[0] = 100.0
        return y + np.sum(x * w)

    ct = rg.functions.FunctionCotangent([(np.array([1.0, 2.0]), 1.0)])
    for h in (f, g):
        np.testing.assert_array_equal(ct.pull_into(h)["w"], [101.0, 4.0])
        np.testing.assert_array_equal(ct.pairs[0][0], [1.0, 2.0])


@pytest.mark.parametrize("n", [3, 2047, 2048, 20_000])
def test_sizes_on_both_sides_of_the_thresholds(n):
    x = np.linspace(0.1, 2.0, n)

    def run(f, x):
        y = f(x)
        y[1:] += f(y[:-1])
        z = f(y * x)
        z *= y
        return np.sum(z)

    df, dx = pairs(run, lambda x: np.sin(x) * 0.5, x)
    assert [np.shape(p) for p, _ in df.pairs] == [(n,), (n - 1,), (n,)]
    eps = 1e-6
    moved = [run(lambda x, e=e: np.sin(x) * 0.5 + e * np.cos(x), x) for e in (eps, -eps)]
    assert df.pair(np.cos) == pytest.approx((moved[0] - moved[1]) / (2 * eps), rel=1e-6)
    moved = [run(lambda x: np.sin(x) * 0.5, x + e * np.sin(9 * x)) for e in (eps, -eps)]
    assert np.sum(dx * np.sin(9 * x)) == pytest.approx((moved[0] - moved[1]) / (2 * eps), rel=1e-6)


def black_box(x):
    """A function that cannot be traced: it wants plain numbers."""
    return float(format(float(x), ".20e")) ** 2


def test_a_function_that_cannot_be_traced_has_pairs():
    df = rg.grad(lambda f, x: f(x) * f(2 * x), fns="pairs")(black_box, 1.5)
    assert df == rg.functions.FunctionCotangent([(1.5, 9.0), (3.0, 2.25)])
    compiled = rg.grad(lambda f, x: np.sum(rg.map(f, x) ** 2), fns="pairs")
    for x in (np.array([1.0, 2.0]), np.array([3.0, -1.0])):
        assert compiled(black_box, x) == rg.functions.FunctionCotangent(zip(x, 2 * x**2, strict=True))
    assert compiled.cache_info().misses == 1


def test_the_derivative_of_a_function_that_cannot_be_traced_is_refused_and_a_lens_has_one():
    with pytest.raises(rg.errors.NonDifferentiableError, match="make it a lens"):
        rg.vjp(lambda f, x: f(x), black_box, 1.5, fns="pairs")
    with pytest.raises(rg.errors.TracerConversionError):
        rg.vjp(lambda f, x: f(x), black_box, 1.5)
    lens = rg.lens(lambda x: (black_box(x), lambda ct: 2.0 * float(x) * ct))
    df, dx = pairs(lambda f, x: f(x) * f(2 * x), lens, 1.5)
    assert df == rg.functions.FunctionCotangent([(1.5, 9.0), (3.0, 2.25)])
    assert dx == 4 * 4 * 1.5**3


def test_nothing_of_a_recording_is_kept():
    def once(compiled, x, w):
        def f(y):
            return y * w

        return compiled(f, x)

    compiled = rg.grad(lambda f, x: np.sum(f(x) ** 2), fns="pairs")
    x, w = np.ones(5000), np.full(5000, 2.0)
    gone = [weakref.ref(x), weakref.ref(w)]
    df = once(compiled, x, w)
    del x, w
    gc.collect()
    assert gone[1]() is None
    df = once(compiled, np.ones(5000), np.full(5000, 3.0))
    np.testing.assert_array_equal(df.pairs[0][1], np.full(5000, 6.0))
    gc.collect()
    assert gone[0]() is None


@pytest.mark.parametrize("n", [5, 1000])
def test_calls_in_a_long_loop_of_python_are_one_block_as_well(n):
    c = 3.0
    xs = np.linspace(0.0, 1.0, n)

    def f(y):
        return c * np.sin(y)

    df, dx = pairs(lambda f, xs: sum(map(f, xs)), f, xs)
    assert len(df.blocks) == (1 if n == 1000 else n)
    np.testing.assert_array_equal([x for x, _ in df.pairs], xs)
    assert df.pull_into(f)["c"] == pytest.approx(np.sum(np.sin(xs)), rel=1e-12)
    np.testing.assert_allclose(dx, c * np.cos(xs), rtol=1e-12)


def test_calls_of_long_loops_keep_their_order():
    xs = np.linspace(0.1, 1.0, 300)

    def run(f):
        y = np.zeros(300)
        for k in range(300):
            y[k] = f(xs[k] * 0.5) + f(xs[k])
        for k in range(1, 300):
            y[k] += f(y[k - 1] * 0.1)
        return np.sum(y)

    (df,) = pairs(run, np.sin)
    assert len(df.blocks) < len(df.pairs) // 2  # the first of the loops is a loop again
    np.testing.assert_allclose([x for x, _ in df.pairs], seen_by_python(run, np.sin), rtol=1e-14)


def test_forms_of_calls_are_kept_apart_in_loops():
    def run(f, x):
        for k in range(600):
            x = f(k % 3, x) if k % 5 else f(True, x)
        return x

    df, _ = pairs(run, lambda n, x: np.sin(x) + 0.01 * n, 0.5)
    seen = seen_by_python(lambda f: run(f, 0.5), lambda n, x: np.sin(x) + 0.01 * n)
    assert [(type(n), n) for (n, _), _ in df.pairs] == [(type(n), n) for n, _ in seen]
    np.testing.assert_allclose([x for (_, x), _ in df.pairs], [x for _, x in seen], rtol=1e-14)
