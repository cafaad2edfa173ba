"""custom_vjp, custom_jvp, user primitives, stop_gradient, no_grad."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import retrograd as rg

X = np.array([0.1, 0.2, 0.3])
Y = np.array([1.0, 2.0, 3.0])


def by_vjp():
    @rg.custom_vjp
    def f(x, y):
        return np.sin(x) * y

    f.defvjp(lambda x, y: (np.sin(x) * y, (np.cos(x), np.sin(x), y)), lambda r, ct: (r[0] * ct * r[2], r[1] * ct))
    return f


def by_jvp():
    @rg.custom_jvp
    def f(x, y):
        return np.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return f(x, y), np.cos(x) * y * tx + np.sin(x) * ty

    return f


def plain(x, y):
    return np.sin(x) * y


@pytest.fixture(params=[by_vjp, by_jvp], ids=["custom_vjp", "custom_jvp"])
def custom(request):
    return request.param()


def loss(f):
    return lambda x, y: np.sum(f(x, y) ** 2)


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_the_value_is_the_functions(custom):
    np.testing.assert_array_equal(custom(X, Y), plain(X, Y))


def test_gradients_in_all_arguments(custom):
    close(rg.grad(loss(custom), (0, 1))(X, Y), rg.grad(loss(plain), (0, 1))(X, Y))


def test_forward_mode(custom):
    close(rg.jvp(loss(custom), (X, Y), (Y, X)), rg.jvp(loss(plain), (X, Y), (Y, X)))


def test_second_and_third_order(custom):
    close([rg.hessian(loss(custom))(X, Y)], [rg.hessian(loss(plain))(X, Y)])
    rg.check_grads(loss(custom), (X, Y), order=3)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_lanes(custom, axes):
    xs = np.stack([X, 2 * X]) if axes[0] == 0 else X
    ys = np.stack([Y, 3 * Y]) if axes[1] == 0 else Y

    def total(f):
        return lambda x, y: np.sum(rg.vmap(f, in_axes=axes)(x, y) ** 2)

    close(rg.grad(total(custom), (0, 1))(xs, ys), rg.grad(total(plain), (0, 1))(xs, ys))
    close(
        rg.vmap(rg.grad(loss(custom), (0, 1)), in_axes=axes)(xs, ys),
        rg.vmap(rg.grad(loss(plain), (0, 1)), in_axes=axes)(xs, ys),
    )


def test_the_rule_is_used_and_not_the_bodys_derivative():
    @rg.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, ()), lambda r, ct: (np.clip(ct, -1.0, 1.0),))
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(5.0 * clipped(x)))(X), np.ones(3))


def test_trees_and_none():
    @rg.custom_vjp
    def f(params, x):
        return params["w"] * x + params["b"]

    f.defvjp(lambda p, x: (p["w"] * x + p["b"], x), lambda x, ct: ({"w": ct * x, "b": ct}, None))
    grads = rg.grad(lambda p, x: np.sum(f(p, x)), (0, 1))({"w": Y, "b": X}, X)
    np.testing.assert_array_equal(grads[0]["w"], X)
    np.testing.assert_array_equal(grads[1], np.zeros(3))


def test_a_function_without_a_rule_is_refused():
    with pytest.raises(rg.errors.OptionError, match="defvjp"):
        rg.grad(lambda x: np.sum(rg.custom_vjp(np.sin)(x)))(X)


def test_closing_over_a_traced_value_is_refused():
    def outer(x):
        f = rg.custom_vjp(lambda y: y * x)
        f.defvjp(lambda y: (y * x, ()), lambda r, ct: (ct,))
        return np.sum(f(x))

    with pytest.raises(rg.errors.CapturedTracerError):
        rg.grad(outer)(X)


def test_a_bwd_of_the_wrong_length_is_refused():
    f = rg.custom_vjp(plain)
    f.defvjp(lambda x, y: (plain(x, y), ()), lambda r, ct: (ct,))
    with pytest.raises(rg.errors.TreeError, match="2 cotangents"):
        rg.grad(loss(f))(X, Y)


def test_a_stopped_value_is_a_constant_in_every_mode():
    def f(x):
        return np.sum(x * rg.stop_gradient(np.exp(x)))

    np.testing.assert_allclose(rg.grad(f)(X), np.exp(X))
    np.testing.assert_allclose(rg.jvp(f, (X,), (Y,))[1], np.sum(Y * np.exp(X)))
    assert "stop_gradient" not in rg.grad(f).source(X)


def test_no_grad_stops_what_is_computed_inside():
    def f(x):
        with rg.no_grad():
            scale = np.exp(x)
        return np.sum(scale * x)

    np.testing.assert_allclose(rg.grad(f)(X), np.exp(X))


def test_a_user_primitive_is_one_node():
    cube_root = rg.primitive(
        "cube_root_of_a_test", emit="np.cbrt({0})", diff=[rg.push(lambda t, out, x: t / (3 * out * out))]
    )
    f = rg.jit(lambda x: np.sum(cube_root(x) * 2.0))
    assert "np.cbrt(x)" in f.source(X)
    rg.check_grads(lambda x: np.sum(cube_root(x)), (X,), order=3)
    np.testing.assert_allclose(rg.vmap(rg.grad(cube_root))(X), X ** (-2 / 3) / 3)
    with pytest.raises(rg.errors.OptionError):
        rg.primitive("cos", emit="np.cbrt({0})")


@pytest.mark.parametrize(
    "use",
    [
        lambda f: rg.grad(f)(1.0),
        lambda f: rg.jvp(f, (1.0,), (1.0,))[1],
        lambda f: rg.vjp(f, 1.0)[1](1.0)[0],
        lambda f: rg.vmap(rg.grad(f))(np.ones(2))[1],
        lambda f: rg.grad(lambda x: rg.scan(lambda c, _: (f(c), None), x, None, 1)[0])(1.0),
        lambda f: rg.grad(rg.checkpoint(lambda x: f(x) * 1.0))(1.0),
    ],
)
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_a_rule_that_is_set_anew_counts_from_then_on(kind: str, use: Any) -> None:
    def set_rule(f: Any, slope: float) -> None:
        if kind == "jvp":
            f.defjvp(lambda primals, tangents: (f(*primals), slope * tangents[0]))
        else:
            f.defvjp(lambda x: (f(x), None), lambda _, ct: (slope * ct,))

    made = (rg.custom_jvp if kind == "jvp" else rg.custom_vjp)(lambda x: 2.0 * x)

    def program(x: Any) -> Any:
        return made(x) + 0.0

    if kind == "vjp" and "jvp" in use.__code__.co_names:
        pytest.skip("a rule for pullbacks gives no tangents")
    for slope in (5.0, 5.0, 7.0, 5.0, -1.0):
        set_rule(made, slope)
        assert use(made) == slope
        assert use(program) == slope


def test_a_bwd_that_is_not_linear_is_the_users_fault_in_forward_mode():
    f = rg.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (x**2, x), lambda x, ct: (np.exp(ct),))
    with pytest.raises(rg.errors.OptionError, match="the bwd of custom_vjp, but exp is not linear") as caught:
        rg.jvp(lambda x: np.sum(f(x)), (np.ones(2),), (np.ones(2),))
    assert "rg.custom_jvp" in caught.value.remedy


def with_rules(fwd: Any, bwd: Any) -> Any:
    f = rg.custom_vjp(lambda x: x * 2.0)
    f.defvjp(fwd, bwd)
    return f


def with_rule(rule: Any) -> Any:
    f = rg.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    return f


def test_residuals_may_be_any_objects() -> None:
    f = with_rules(
        lambda x: (x * 2.0, (x, "twice", {"power": 3, "at": slice(1, 2)}, np.sin)),
        lambda r, ct: (ct * r[3](r[0]) ** r[2]["power"] * (1.0 if r[1] == "twice" else 0.0),),
    )
    np.testing.assert_allclose(rg.grad(f)(0.7), np.sin(0.7) ** 3)
    np.testing.assert_allclose(rg.vmap(rg.grad(f))(X), np.sin(X) ** 3)
    np.testing.assert_allclose(rg.jit(rg.grad(rg.grad(f)))(0.7), 3.0 * np.sin(0.7) ** 2 * np.cos(0.7))


WRONG = {
    "shape of a cotangent": (with_rules(lambda x: (x * 2, x), lambda r, ct: (np.ones(2),)), "bwd returns is f64"),
    "shape of an output": (with_rules(lambda x: (np.ones(2), x), lambda r, ct: (ct,)), "output of fwd is f64"),
    "complex cotangent": (with_rules(lambda x: (x * 2, x), lambda r, ct: (ct * 1j,)), "expected float"),
    "text": (with_rules(lambda x: (x * 2, x), lambda r, ct: ("two",)), "cotangent of type str"),
    "shape of a tangent": (with_rule(lambda p, t: (p[0] * 2, t[0] * np.ones(2))), "tangent that the rule returns"),
    "shape of a value": (with_rule(lambda p, t: (p[0] * np.ones(2), t[0])), "output of the rule"),
    "not linear": (with_rule(lambda p, t: (p[0] * 2, t[0] ** 2)), "not linear in its tangents: pow"),
}


@pytest.mark.parametrize(("f", "told"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("use", [rg.grad, rg.jit], ids=["grad", "jit"])
def test_rules_that_return_what_does_not_fit_are_refused(f: Any, told: str, use: Any) -> None:
    with pytest.raises(rg.errors.UserError, match=told) as caught:
        use(lambda x: f(x) * 1.0)(0.5)
    assert "test_custom_rules.py" in str(caught.value)


@pytest.mark.parametrize("kind", [rg.custom_vjp, rg.custom_jvp])
def test_keywords_and_defaults(kind: Any) -> None:
    f = kind(lambda x, y=5.0: x * y)
    if kind is rg.custom_vjp:
        f.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (ct * r[1] * 10.0, ct * r[0] * 10.0))
    else:
        f.defjvp(lambda p, t: (p[0] * p[1], 10.0 * (t[0] * p[1] + t[1] * p[0])))
    assert (f(2.0), f(2.0, y=3.0), f(y=3.0, x=2.0)) == (10.0, 6.0, 6.0)
    assert (rg.grad(f)(2.0), rg.grad(lambda x: f(x, y=3.0))(2.0)) == (50.0, 30.0)
    assert rg.grad(lambda y: f(y=y, x=2.0))(3.0) == 20.0
    with pytest.raises(TypeError, match="'z'"):
        f(2.0, z=1.0)


def test_arguments_by_keyword_alone_are_refused() -> None:
    f = rg.custom_vjp(lambda x, *, y=5.0: x * y)
    f.defvjp(lambda x: (x * 5.0, None), lambda r, ct: (ct * 5.0,))
    assert rg.grad(f)(2.0) == 5.0
    with pytest.raises(rg.errors.ArgnumsError, match="y by keyword alone"):
        f(2.0, y=3.0)
