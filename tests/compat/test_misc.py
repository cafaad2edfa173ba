"""Trees as vectors, optimisers, fixed points, convolutions, spaces, and checks."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.signal

from retrograd.compat.autograd import elementwise_grad, grad, hessian, jacobian, value_and_grad
from retrograd.compat.autograd.core import make_jvp, make_vjp
from retrograd.compat.autograd.extend import VSpace, defvjp, primitive, vspace
from retrograd.compat.autograd.misc import const_graph, flatten
from retrograd.compat.autograd.misc.fixed_points import fixed_point
from retrograd.compat.autograd.misc.flatten import flatten_func
from retrograd.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from retrograd.compat.autograd.scipy.signal import convolve
from retrograd.compat.autograd.test_util import (
    check_equivalent,
    check_grads,
    check_jvp,
    check_vjp,
    combo_check,
    make_numerical_jvp,
    scalar_close,
)
from retrograd.compat.autograd.util import func, quick_grad_check, subval, subvals, toposort
from retrograd.compat.autograd.wrap_util import get_doc, get_name, unary_to_nary, wrap_nary_f, wraps
from retrograd.eager import Tensor
from retrograd.errors import (
    GradientCheckError,
    IndependentOutputWarning,
    NonDifferentiableError,
    OptionError,
    ShapeError,
    TreeError,
)

TREE = {"b": [np.array([[1.0, 2.0]]), 3.0], "a": (np.array([4.0, 5.0]), {}), "c": []}


def test_flatten_sorts_keys_and_keeps_their_order():
    vector, unflatten = flatten(TREE)
    np.testing.assert_array_equal(vector, [4.0, 5.0, 1.0, 2.0, 3.0])
    again = unflatten(2 * vector)
    assert list(again) == ["b", "a", "c"]
    np.testing.assert_array_equal(again["b"][0], [[2.0, 4.0]])
    assert (float(again["b"][1]), again["a"][1], again["c"]) == (6.0, {}, [])
    assert flatten(TREE)[1] == unflatten
    assert hash(flatten(TREE)[1]) == hash(unflatten)
    assert flatten([1.0])[1] != unflatten
    assert flatten(())[0].shape == (0,)


def test_flatten_and_unflatten_are_traced():
    vector, unflatten = flatten(TREE)
    np.testing.assert_array_equal(grad(lambda v: np.sum(unflatten(v)["b"][0] ** 2))(vector), [0, 0, 2, 4, 0])
    slopes = grad(lambda p: np.sum(flatten(p)[0] * np.arange(5.0)))({"y": np.ones(3), "x": np.zeros((1, 2))})
    np.testing.assert_array_equal(slopes["y"], [2.0, 3.0, 4.0])
    mixed, back = flatten([1j * np.ones(2), 3.0])
    assert mixed.dtype.kind == "c"
    assert back(mixed)[1].dtype.kind == "f"


def test_unflatten_made_anew_compiles_nothing():
    data = np.arange(4.0)

    def loss(p):
        return np.sum((p["a"] * data - p["b"]) ** 2)

    def stepped(p):
        vector, unflatten = flatten(p)
        slope = grad(lambda v: loss(unflatten(v)))
        return unflatten(vector - 0.1 * slope(vector)), slope

    p = {"b": np.ones(4), "a": 1.0}
    for _ in range(3):
        before, (p, slope) = p, stepped(p)
        assert list(p) == ["b", "a"]
        rest = before["a"] * data - before["b"]
        np.testing.assert_allclose(p["a"], before["a"] - 0.2 * np.sum(rest * data), rtol=1e-14)
    assert slope.cache_info().misses == 0
    kinds = [next(iter(flatten({key: 2.0})[1](np.ones(1)))) for key in (1, True, 1.0)]
    assert list(map(type, kinds)) == [int, bool, float]
    assert flatten({"a": 1.0, "b": 2.0})[1] is not flatten({"b": 2.0, "a": 1.0})[1]


def test_flatten_refuses_what_has_no_entries():
    with pytest.raises(TreeError):
        flatten({"a": "text"})
    with pytest.raises(ShapeError):
        flatten([1.0, 2.0])[1](np.zeros(3))


def test_flatten_func():
    flat, unflatten, x = flatten_func(lambda p, k: {"y": k * p["x"] ** 2}, {"x": np.array([1.0, 2.0])})
    np.testing.assert_array_equal(jacobian(flat)(x, 3.0), np.diag([6.0, 12.0]))
    np.testing.assert_array_equal(unflatten(x)["x"], [1.0, 2.0])


START = {"w": np.array([1.0, -1.0]), "k": 2.0}


def first_steps(optimize, count, **options):
    told = []
    slope = grad(lambda p, i: np.sum(p["w"] ** 2) + (p["k"] - 0.1 * i) ** 2)
    end = optimize(slope, START, lambda x, i, g: told.append((x, i, g)), num_iters=count, **options)
    assert slope.cache_info().misses <= 2
    assert [i for _, i, _ in told] == list(range(count))
    np.testing.assert_array_equal(told[0][0]["w"], START["w"])
    np.testing.assert_allclose(told[0][2]["w"], 2 * START["w"])
    return [x["w"] for x, _, _ in told] + [end["w"]]


def test_sgd():
    steps = first_steps(sgd, 3, step_size=0.5, mass=0.0)
    np.testing.assert_allclose(steps, [START["w"], 0 * START["w"], 0 * START["w"], 0 * START["w"]])
    first, second, third = first_steps(sgd, 2, step_size=0.1, mass=0.9)
    np.testing.assert_allclose(second, first * (1 - 0.02))
    np.testing.assert_allclose(third, second - 0.1 * (0.9 * 0.2 * first + 0.1 * 2 * second))


def test_rmsprop():
    w, after = first_steps(rmsprop, 1, step_size=0.1, gamma=0.9)
    np.testing.assert_allclose(after, w - 0.1 * 2 * w / (np.sqrt(0.9 + 0.1 * 4 * w**2) + 1e-8))


def test_adam():
    w, after = first_steps(adam, 1, step_size=0.1)
    np.testing.assert_allclose(after, w - 0.1 * np.sign(w), rtol=1e-7)
    assert abs(float(adam(grad(lambda x, i: (x - 1.0) ** 2), 0.0, num_iters=500, step_size=0.05)) - 1.0) < 1e-3


def test_a_hyperparameter_through_an_optimiser():
    def loss_after(rate):
        return sgd(lambda x, i: 2 * x, 1.0, num_iters=3, step_size=rate, mass=0.0) ** 2

    np.testing.assert_allclose(loss_after(0.1), 0.8**6)
    np.testing.assert_allclose(grad(loss_after)(0.1), 6 * 0.8**5 * -2)


def test_fixed_points():
    def distance(x, y):
        return np.max(np.abs(x - y))

    def settled(a, start=1.0):
        return fixed_point(lambda a: lambda x: np.cos(a * x), a, start, distance, 1e-13)

    x = settled(0.8)
    slope = -x * np.sin(0.8 * x) / (1 + 0.8 * np.sin(0.8 * x))
    np.testing.assert_allclose(grad(settled)(0.8), slope, rtol=1e-10)
    with pytest.warns(IndependentOutputWarning):
        assert float(grad(settled, 1)(0.8, 1.0)) == 0.0
    np.testing.assert_allclose(
        grad(grad(settled))(0.8), (grad(settled)(0.801) - grad(settled)(0.799)) / 2e-3, rtol=1e-4
    )
    m = np.array([[0.2, 0.1], [0.0, 0.3]])
    linear = grad(lambda b: np.sum(fixed_point(lambda b: lambda x: m @ x + b, b, np.zeros(2), distance, 1e-14)))
    np.testing.assert_allclose(linear(np.ones(2)), np.linalg.solve(np.eye(2) - m.T, np.ones(2)), rtol=1e-10)


def test_const_graph():
    f = const_graph(lambda a, x, k=1.0: a * x * k, 2.0, k=3.0)
    assert float(f(4.0)) == 24.0
    assert float(grad(f)(4.0)) == 6.0


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("shapes", [((5,), (3,)), ((6, 5), (2, 3)), ((4, 4, 4), (2, 1, 3))])
def test_convolve_is_that_of_scipy(mode, shapes):
    a, b = (RNG.normal(size=shape) for shape in shapes)
    np.testing.assert_allclose(
        convolve(a, b, mode=mode), scipy.signal.convolve(a, b, mode=mode), rtol=1e-12, atol=1e-13
    )
    if mode != "same":
        np.testing.assert_allclose(convolve(b, a, mode=mode), convolve(a, b, mode=mode), rtol=1e-12, atol=1e-13)
    check_grads(convolve, (0, 1), order=1)(a, b, mode=mode)


@pytest.mark.parametrize("mode", ["full", "valid"])
def test_convolve_over_some_axes(mode):
    pictures, filters = RNG.normal(size=(2, 3, 6, 5)), RNG.normal(size=(3, 4, 2, 3))
    found = convolve(pictures, filters, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode=mode)
    for n in range(2):
        for k in range(4):
            expected = sum(scipy.signal.convolve(pictures[n, c], filters[c, k], mode=mode) for c in range(3))
            np.testing.assert_allclose(found[n, k], expected, rtol=1e-12, atol=1e-13)
    turned = convolve(filters, pictures, axes=([2, 3], [2, 3]), dot_axes=([0], [1]), mode=mode)
    np.testing.assert_allclose(turned, np.swapaxes(found, 0, 1), rtol=1e-12, atol=1e-13)
    every = convolve(pictures, filters, axes=([-2, -1], [-2, -1]), mode=mode)
    assert every.shape == (2, 3, 3, 4, *found.shape[2:])
    check_grads(lambda p, f: convolve(p, f, axes=([2], [2]), dot_axes=([1], [0]), mode=mode), (0, 1), order=1)(
        pictures[:, :, :, 0], filters[:, :, :, 0]
    )


def test_convolve_refuses():
    for call, error in (
        (lambda: convolve(np.ones(3), np.ones(2), mode="half"), OptionError),
        (lambda: convolve(np.ones((3, 1)), np.ones((2, 2)), mode="valid"), ShapeError),
        (lambda: convolve(np.ones((3, 1)), np.ones((2, 2)), axes=([0, 0], [0, 1])), ShapeError),
        (lambda: convolve(np.ones((3, 1)), np.ones((2, 2)), axes=([0], [0]), dot_axes=([1], [])), ShapeError),
    ):
        with pytest.raises(error):
            call()


def test_spaces():
    space = vspace({"w": np.zeros((2, 3)), "z": 1j})
    assert isinstance(space, VSpace)
    assert (space.size, space.iscomplex) == (8, True)
    assert vspace(np.zeros((2, 3))).shape == (2, 3)
    assert vspace(np.zeros((2, 3))).ndim == 2
    assert space.shape["w"] == vspace(np.ones((2, 3)))
    assert [s.size for s in vspace([1.0, np.ones(2)]).shape] == [1, 2]
    assert hash(vspace(1.0)) == hash(vspace(2.0))
    assert vspace(1.0) != vspace(1j)
    assert vspace(np.arange(3)).dtype == float
    basis = list(space.standard_basis())
    assert len(basis) == 8
    x, y = space.randn(), space.randn()
    gram = [[float(space.inner_prod(a, b)) for a in basis] for b in basis]
    np.testing.assert_array_equal(gram, np.eye(8))
    total = space.add(x, space.scalar_mul(y, -2.0))
    np.testing.assert_allclose(total["w"], x["w"] - 2 * y["w"])
    np.testing.assert_allclose(space.mut_add(None, x)["z"], x["z"])
    np.testing.assert_allclose(space.covector(x)["z"], np.conj(x["z"]))
    np.testing.assert_allclose(
        space.inner_prod(x, y), np.sum(x["w"] * y["w"]) + (np.conj(x["z"]) * y["z"]).real, rtol=1e-12
    )
    assert complex(space.ones()["z"]) == 1 + 1j
    assert not np.any(space.zeros()["w"])
    with pytest.raises(NonDifferentiableError):
        vspace("text")
    slope = grad(lambda v: vspace(v).inner_prod(v, v))(np.ones(2))
    np.testing.assert_array_equal(slope, [2.0, 2.0])


def test_checks():
    check_grads(lambda x, k: k * np.sin(x), modes=["rev"], order=1)(np.ones(2), 2)
    reverse = partial(check_grads, modes=["fwd"], order=1)
    reverse(np.multiply, (0, 1))(2, 3.0)
    combo_check(lambda x, y, power: x**power * y, [0, 1], order=1)([1.0, 2.0], [3.0], power=[2, 3])
    wrong = primitive(np.sin)
    defvjp(wrong, lambda ans, x: lambda g: g)
    with pytest.raises(GradientCheckError):
        check_grads(wrong, order=1)(0.5)
    with pytest.raises(OptionError):
        check_grads(np.sin, modes=["backwards"])(0.0)


def test_parts_of_checks():
    for check in (check_vjp, check_jvp):
        check(lambda p: p["x"] ** 2 * np.sin(p["y"]), {"x": np.ones(2), "y": 3.0})
    wrong = primitive(np.sin)
    defvjp(wrong, lambda ans, x: lambda g: g)
    for check in (check_vjp, check_jvp):
        with pytest.raises(GradientCheckError):
            check(wrong, 0.5)
    check_equivalent({"a": [1.0, np.ones(2)]}, {"a": [1.0 + 1e-9, np.ones(2)]})
    for other in ([1.0, np.ones(3)], (1.0, np.ones(2)), [1.0, np.zeros(2)], [1.0, 1j * np.ones(2)]):
        with pytest.raises(AssertionError):
            check_equivalent([1.0, np.ones(2)], other)
    assert [scalar_close(1.0, b) for b in (1.0, 1 + 1e-7, 1 + 1e-5, -1.0)] == [True, True, False, False]
    assert scalar_close(0.0, 0.0)
    assert scalar_close(1e8, 1e8 + 1.0)


def test_numerical_derivatives_of_trees():
    jvp = make_numerical_jvp(lambda p: [p["x"] ** 2, 1j * p["x"] * p["y"]], {"x": np.array([1.0, 2.0]), "y": 3.0})
    squares, products = jvp({"x": np.array([1.0, 10.0]), "y": 1.0})
    np.testing.assert_allclose(squares, [2.0, 40.0], rtol=1e-8)
    np.testing.assert_allclose(products, [4.0j, 32.0j], rtol=1e-8)


def test_small_functions():
    assert subvals([1, 2, 3], [(0, "a"), (-1, "c")]) == ("a", 2, "c")
    assert subval((1, 2), 1, 5) == (1, 5)
    assert func(np.sin) is np.sin
    x = Tensor(1.0, requires_grad=True)
    y = x * x
    walked = list(toposort((y + y * x).grad_fn, lambda node: [n for n, _ in node.next_functions if n]))
    assert [node.name for node in walked] == ["add", "multiply", "multiply", "AccumulateGrad"]
    with pytest.warns(DeprecationWarning, match="check_grads"):
        quick_grad_check(lambda x, k, s=1.0: s * np.sum(x**k), np.ones(2), (3,), {"s": 2.0}, verbose=False, eps=1e-5)
    wrong = primitive(np.sin)
    defvjp(wrong, lambda ans, x: lambda g: g)
    with pytest.warns(DeprecationWarning, match="check_grads"), pytest.raises(GradientCheckError):
        quick_grad_check(wrong, 0.5)


def test_names_of_operators():
    @wraps(np.sin, "{op}_of_{fun}", "{op}: {doc}", op="slope")
    def slope(x):
        return x

    assert (slope.__name__, slope.__doc__[:10]) == ("slope_of_sin", "slope: sin")
    assert wrap_nary_f(np.sin, grad, [0, 1])(lambda x: x).__name__ == "grad_of_sin_wrt_argnum_(0, 1)"
    assert (get_name(3), get_doc(test_names_of_operators)) == ("[unknown name]", "")


def test_operators_of_the_users_own():
    @unary_to_nary
    def diagonal(f, x, factor=1.0):
        return factor * np.diag(hessian(f)(x))

    np.testing.assert_allclose(diagonal(lambda a, b: np.sum(a * b**3), 1, factor=2.0)(2.0, np.ones(2)), [24.0, 24.0])
    assert diagonal(np.sum).__name__ == "diagonal_of_sum_wrt_argnum_0"
    pair = unary_to_nary(lambda f, x: make_vjp(f, x)[0](1.0))
    assert [float(v) for v in pair(lambda a, b: a * b, (0, 1))(3.0, 4.0)] == [4.0, 3.0]
    assert float(make_jvp(np.sin, 0.0)(2.0)[1]) == 2.0


def test_scipy_takes_what_operators_make():
    from scipy.optimize import minimize  # noqa: PLC0415 - here alone

    found = minimize(value_and_grad(lambda x: np.sum((x - 3.0) ** 4)), np.zeros(2), jac=True, tol=1e-12)
    np.testing.assert_allclose(found.x, 3.0, atol=1e-2)
    assert elementwise_grad(np.tanh)(0.0) == 1.0
