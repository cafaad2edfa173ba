"""Options by which other packages call the same transforms: has_aux, axis_size, static_argnums and the like."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.3, -0.7, 1.1])


def with_aux(x, k=2.0):
    return np.sin(x) * k, {"n": len(x), "label": "run", "square": x * x, "mask": x > 0}


@pytest.mark.parametrize("jac", [rg.jacfwd, rg.jacrev, rg.jacobian])
def test_a_jacobian_returns_what_the_function_returns_beside_its_output(jac):
    found, aux = jac(with_aux, has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(2 * np.cos(X)), rtol=1e-15)
    assert (aux["n"], aux["label"]) == (3, "run")
    np.testing.assert_array_equal(aux["square"], X * X)
    np.testing.assert_array_equal(aux["mask"], X > 0)
    by_two, _ = jac(with_aux, (0, "k"), has_aux=True)(X, k=2.0)
    np.testing.assert_allclose(by_two[1], np.sin(X), rtol=1e-15)
    inside = rg.grad(lambda x: np.sum(jac(with_aux, has_aux=True)(x)[1]["square"] ** 2))(X)
    np.testing.assert_allclose(inside, 4 * X**3, rtol=1e-14)


def test_a_function_with_aux_is_run_once_for_its_jacobian():
    runs = []

    def f(x):
        runs.append(1)
        return np.sin(x), x.sum()

    for jac in (rg.jacfwd, rg.jacrev):
        runs.clear()
        jac(f, has_aux=True)(X)
        assert len(runs) == 1


def test_a_hessian_returns_what_the_function_returns_beside_its_output():
    found, aux = rg.hessian(lambda x: (np.sum(x**3), x[0]), has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(6 * X), rtol=1e-15)
    assert aux == X[0]


@pytest.mark.parametrize("jac", [rg.jacfwd, rg.jacrev, rg.jacobian])
def test_has_aux_wants_a_pair(jac):
    with pytest.raises(rg.errors.OptionError, match="a pair"):
        jac(np.sin, has_aux=True)(X)


@pytest.mark.parametrize("jac", [rg.hessian, rg.jacobian])
def test_a_sparse_matrix_comes_without_aux(jac):
    with pytest.raises(rg.errors.OptionError, match="sparse"):
        jac(with_aux, has_aux=True, sparse=True)


def test_axis_size_gives_the_lanes_where_no_argument_is_mapped():
    shared = rg.vmap(lambda x: 2 * x, in_axes=None, axis_size=2)(X)
    np.testing.assert_array_equal(shared, [2 * X, 2 * X])
    assert rg.vmap(lambda: 1.5, axis_size=3)().tolist() == [1.5] * 3
    np.testing.assert_array_equal(rg.vmap(np.sin, axis_size=3)(X), np.sin(X))
    assert rg.vmap(np.sin, in_axes=None, axis_size=0)(1.0).shape == (0,)
    slope = rg.grad(lambda x: np.sum(rg.vmap(np.sin, in_axes=None, axis_size=4)(x)))(0.0)
    assert slope == 4.0


def test_axis_size_agrees_with_the_mapped_axes():
    with pytest.raises(rg.errors.ShapeError, match="axis_size=4"):
        rg.vmap(np.sin, axis_size=4)(X)
    with pytest.raises(rg.errors.ShapeError, match="axis_size"):
        rg.vmap(np.sin, in_axes=None)(X)
    for wrong in (-1, 2.0, True):
        with pytest.raises(rg.errors.OptionError, match="axis_size"):
            rg.vmap(np.sin, axis_size=wrong)


def test_one_jvp_rule_for_each_argument():
    @rg.custom_jvp
    def f(x, y, n):
        return {"a": x * y, "b": y**n}

    f.defjvps(
        lambda t, out, x, y, n: {"a": t * y, "b": 0.0 * t},
        lambda t, out, x, y, n: {"a": x * t, "b": n * t * out["b"] / y},
        None,
    )
    out, dot = rg.jvp(lambda x, y: f(x, y, 3), (2.0, 5.0), (1.0, 10.0))
    assert (out["a"], out["b"]) == (10.0, 125.0)
    assert (dot["a"], dot["b"]) == (25.0, 750.0)
    gradient = rg.grad(lambda x, y: np.sum(f(x, y, 3)["a"]), (0, 1))(X, 2 * X)
    np.testing.assert_allclose(gradient, (2 * X, X))
    np.testing.assert_allclose(rg.vmap(rg.grad(lambda y: f(1.0, y, 3)["b"]))(X), 3 * X**2)


def test_without_a_rule_an_argument_of_defjvps_counts_as_constant():
    f = rg.custom_jvp(lambda x, y: x * y)
    f.defjvps(None, None)
    np.testing.assert_array_equal(rg.jacfwd(f, 1)(X, X), np.zeros((3, 3)))
    f.defjvps(lambda t, out, x, y: t * y)
    with pytest.raises(rg.errors.TreeError, match="1 rules for 2"):
        rg.grad(lambda x: np.sum(f(x, x)))(X)


def test_arguments_of_custom_vjp_that_count_as_constants_come_first_in_bwd():
    seen = []

    @rg.custom_vjp(nondiff_argnums=(0, 2))
    def apply(f, x, axis, scale):
        return scale * np.sum(f(x), axis=axis)

    def fwd(f, x, axis, scale):
        return apply(f, x, axis, scale), (x, scale)

    def bwd(f, axis, residuals, ct):
        x, scale = residuals
        seen.append((f, axis))
        return rg.vjp(lambda x: scale * np.sum(f(x), axis=axis), x)[1](ct)[0], None

    apply.defvjp(fwd, bwd)
    m = np.outer(X, X)
    found = rg.grad(lambda x: np.sum(apply(np.sin, x, 0, 2.0) ** 2))(m)
    expected = rg.grad(lambda x: np.sum((2.0 * np.sum(np.sin(x), axis=0)) ** 2))(m)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert seen[-1][1] == 0
    np.testing.assert_array_equal(apply(np.sin, m, 1, 1.0), np.sum(np.sin(m), axis=1))


def test_a_traced_argument_of_custom_vjp_may_count_as_constant():
    @rg.custom_vjp(nondiff_argnums=1)
    def power(x, p):
        return np.sum(x) ** p["p"]

    power.defvjp(lambda x, p: (power(x, p), x), lambda p, x, ct: (ct * p["p"] * np.sum(x) ** (p["p"] - 1) + 0 * x,))
    both = rg.grad(lambda x, p: power(x, {"p": p}), (0, 1))(X, 3.0)
    np.testing.assert_allclose(both[0], np.full(3, 3 * np.sum(X) ** 2), rtol=1e-14)
    assert both[1] == 0.0
    pushed = rg.jvp(lambda x: power(x, {"p": 3.0}), (X,), (X,))[1]
    np.testing.assert_allclose(pushed, 3 * np.sum(X) ** 3, rtol=1e-14)


def test_nondiff_argnums_name_arguments():
    f = rg.custom_vjp(np.sin, nondiff_argnums=(2,))
    f.defvjp(lambda x: (x, x), lambda c, x, ct: ())
    with pytest.raises(rg.errors.ArgnumsError, match="nondiff_argnums"):
        f(X)


def test_static_arguments_are_plain_numbers_and_compile_by_value():
    seen = []

    def f(x, n, scale=1.0):
        seen.append((type(n), type(scale)))
        return x[:n] * scale if scale > 0 else x

    g = rg.jit(f, static_argnums=1, static_argnames=("scale",))
    for n, scale in [(2, 3.0), (1, 3.0), (2, 3.0), (2, -1.0), (3, 3.0), (2, 3.0)]:
        np.testing.assert_array_equal(g(X, n, scale), f(X, n, scale))
        np.testing.assert_array_equal(g(X, n=n, scale=scale), f(X, n, scale))
    assert set(seen) == {(int, float)}
    assert g.cache_info().misses == 8  # four values, by position and by name
    assert "scale" not in g.source(X, 2, 3.0)


def test_floats_beside_arrays_alone_are_static_by_value_as_well():
    g = rg.jit(lambda x, p: p * x, static_argnums=(1,))
    assert [float(g(2.0, p)) for p in (1.0, 3.0, 1.0, 5.0)] == [2.0, 6.0, 2.0, 10.0]
    assert g(1.0, 0.0) == 0.0
    assert np.signbit(g(1.0, -0.0))
    assert type(g(np.float32(1), 1)) is np.float32
    assert g.cache_info().misses == 6


def test_static_ints_are_never_traced_though_they_vary():
    kinds = []

    @rg.jit(static_argnums=1)
    def f(x, step):
        kinds.append(type(step))
        return x * step

    for step in range(5):
        np.testing.assert_array_equal(f(X, step), X * step)
    assert kinds == [int] * 5


def test_static_containers_and_objects():
    g = rg.jit(lambda x, options: options["f"](x) * options["k"][0], static_argnums=1)
    assert g(1.0, {"f": np.exp, "k": (2.0, "a")}) == 2 * np.exp(1.0)
    assert g(1.0, {"f": np.exp, "k": (3.0, "a")}) == 3 * np.exp(1.0)
    assert g(1.0, {"f": np.cos, "k": (3.0, "a")}) == 3 * np.cos(1.0)


def test_static_arguments_of_methods_are_counted_without_the_instance():
    class Model:
        weight = 2.0

        @rg.jit(static_argnums=1)
        def power(self, x, n):
            return self.weight * x**n

    assert [float(Model().power(3.0, n)) for n in (1, 2)] == [6.0, 18.0]


def test_a_function_with_static_arguments_is_differentiated():
    power = rg.jit(lambda x, n: np.sum(x**n), static_argnums=-1)
    np.testing.assert_allclose(rg.grad(power)(X, 3), 3 * X**2, rtol=1e-15)
    np.testing.assert_allclose(rg.grad(lambda x: power(x, 2) + power(x, n=3))(X), 2 * X + 3 * X**2, rtol=1e-15)


@pytest.mark.parametrize("wrong", [{"static_argnums": "n"}, {"static_argnames": 1}, {"static_argnums": True}])
def test_static_arguments_are_named_by_position_or_name(wrong):
    with pytest.raises(rg.errors.OptionError, match="static_arg"):
        rg.jit(np.sin, **wrong)


def test_arrays_and_traced_values_cannot_be_static():
    g = rg.jit(lambda x, p: x * p, static_argnames="p")
    with pytest.raises(rg.errors.OptionError, match="an array"):
        g(X, X)
    with pytest.raises(rg.errors.OptionError, match="a traced value"):
        rg.grad(lambda p: np.sum(g(X, p)))(1.0)
    with pytest.raises(rg.errors.ArgnumsError, match="static_argnums"):
        rg.jit(lambda x: x, static_argnums=3)(X)


def test_a_python_int_as_carry_takes_the_floats_of_the_body():
    total, seen = rg.scan(lambda c, x: (c + x, c), 0, X)
    np.testing.assert_allclose(total, np.sum(X))
    np.testing.assert_allclose(seen, [0.0, *np.cumsum(X)[:2]])
    assert rg.fori_loop(3, lambda i, c: c + 0.5, 0) == 1.5
    assert rg.while_loop(lambda c: c < 3, lambda c: c + 0.75, 0) == 3.0
    count, values = rg.scan(lambda c, x: ((c[0] + 1, c[1] + 1j * x), None), (0, 0), X)[0]
    assert (type(count), values) == (np.int64, 1j * np.sum(X))


def test_a_promoted_carry_is_differentiated():
    def last(init):
        return lambda a, xs: rg.scan(lambda c, x: (np.sin(c) + a * x, None), init, xs)[0]

    for derivative in (rg.grad, rg.jacfwd):
        np.testing.assert_array_equal(derivative(last(0))(0.5, X), derivative(last(0.0))(0.5, X))
    lanes = [rg.vmap(last(init), in_axes=(0, None))(X, X) for init in (0, 0.0)]
    np.testing.assert_array_equal(*lanes)
    traced = rg.grad(lambda a: rg.fori_loop(3, lambda i, c: c * a + i, 1))
    np.testing.assert_allclose(traced(2.0), 3 * 4 + 1)  # a³ + a + 2


def test_other_carries_keep_their_dtype():
    for init in (np.int64(0), np.zeros((), int), (0, np.float32(1))):
        with pytest.raises(rg.errors.CarryError):
            rg.scan(lambda c, x: (c + x if not isinstance(c, tuple) else (c[0], c[1] + x), None), init, X)
    with pytest.raises(rg.errors.CarryError):
        rg.scan(lambda c, x: (np.float32(c), None), 0.0, X)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint64, np.array])
def test_the_index_of_a_fori_loop_is_that_of_range(kind):
    squares = rg.jit(lambda a, b: rg.fori_loop(a, b, lambda i, c: c + i * i, 0))
    assert squares(kind(90), kind(127)) == sum(i * i for i in range(90, 127))
    halves = rg.jit(lambda a, b: rg.fori_loop(a, b, lambda i, c: c + 2**-i, 0.0))
    assert halves(kind(1), kind(4)) == 0.875
    product = rg.jit(lambda a, c: rg.fori_loop(a, 4, lambda i, c: c * i, c))(kind(2), np.float32(1))
    assert (product, product.dtype) == (6, np.float32)


def test_fori_loop_over_all_of_a_small_range():
    squares = rg.jit(lambda a, b: rg.fori_loop(a, b, lambda i, c: c + i * i, 0))
    assert squares(np.int8(-100), np.int8(100)) == 666_700


def test_fori_loop_between_two_bounds():
    def steps(lower, upper):
        return rg.fori_loop(lower, upper, lambda i, c: 10 * c + i, 0)

    assert [int(steps(a, b)) for a, b in ((2, 5), (0, 3), (-1, 2), (5, 2))] == [234, 12, -99, 0]
    traced = rg.jit(steps)
    assert [int(traced(np.uint8(a), np.array(b))) for a, b in ((2, 5), (3, 5), (5, 2))] == [234, 34, 0]
    assert int(rg.jit(lambda x: steps(1, 4) * x)(1.0)) == 123
    slope = rg.grad(lambda x: rg.fori_loop(1, 4, lambda i, c: c + X[i - 1] * x**i, 0))(2.0)
    np.testing.assert_allclose(slope, X @ [1, 4, 12])
    with pytest.raises(rg.errors.OptionError, match="number of steps"):
        rg.fori_loop(0.5, 3, lambda i, c: c, 0.0)
    with pytest.raises(TypeError, match="3 or 4"):
        rg.fori_loop(0, 3, lambda i, c: c, 0.0, 1)


def test_bodies_of_loops_outside_compiled_functions_read_plain_arrays_by_the_count():
    def total(table):
        return rg.fori_loop(3, lambda i, c: c + table[i], 0.0)

    assert total(X) == sum(X)
    assert total(2 * X) == sum(2 * X)
    assert rg.fori_loop(1, 3, lambda i, c: c + X[i] * X[-i], 0.0) == X[1] * X[-1] + X[2] * X[-2]
    assert rg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + X[c[0]]), (0, 0.0))[1] == sum(X)


@pytest.mark.parametrize("memory", [np.int64(10**6), 1e6, np.float64(1e6), "1e6", "1e3 kB", "50 %", "100%"])
def test_budgets_in_any_number(memory):
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(np.sin(x)), memory=memory)(X), np.cos(X))
    loop = rg.grad(lambda x: np.sum(rg.fori_loop(5, lambda i, c: np.sin(c), x, memory=memory)))
    np.testing.assert_array_equal(loop(X), rg.grad(lambda x: np.sum(rg.fori_loop(5, lambda i, c: np.sin(c), x)))(X))


@pytest.mark.parametrize("memory", [0, -1, 0.5, float("nan"), np.inf, True, "0 %", "101 %", "1e6 %", np.ones(2)])
def test_what_is_no_budget(memory):
    with pytest.raises(rg.errors.OptionError, match="nor a number of bytes"):
        rg.grad(np.sin, memory=memory)
