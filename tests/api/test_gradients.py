"""grad and value_and_grad: which arguments, which numbers, which types."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import retrograd as rg

X = np.array([1.0, -2.0, 3.0])


def loss(x, y=2.0, *, scale=1.0):
    """A documented loss."""
    return scale * np.sum(x**2) * y


class Model:
    def __init__(self, w):
        self.w = w

    @rg.grad
    def slope(self, x):
        return np.sum(self.w * x**2)

    @rg.value_and_grad(argnums=1)
    def second(self, x, y):
        return np.sum(self.w * x * y)

    @rg.jit
    def apply(self, x):
        return self.w * x

    @rg.hessian
    def curvature(self, x):
        return np.sum(self.w * x**3)

    @rg.jacfwd
    def forward(self, x):
        return self.w * x

    @rg.jacrev(argnums=0)
    def backward(self, x):
        return self.w * x

    @rg.vmap
    def lanes(self, x):
        return np.sum(self.w * x)

    @staticmethod
    @rg.jit
    def double(x):
        return 2.0 * x

    @classmethod
    @rg.jit
    def triple(cls, x):
        assert cls is Model
        return 3.0 * x

    sine = rg.jit(np.sin)

    def __call__(self, x):
        return np.sum(self.w * x**2)


# ------------------------------------------------------------------------------------------------- argnums


def product(a, b, c):
    return np.sum(a * b**2 * c**3)


ARGS = (np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0.5, 0.25]))
SLOPES = (ARGS[1] ** 2 * ARGS[2] ** 3, 2 * ARGS[0] * ARGS[1] * ARGS[2] ** 3, 3 * ARGS[0] * ARGS[1] ** 2 * ARGS[2] ** 2)


@pytest.mark.parametrize(
    ("argnums", "chosen"),
    [
        (0, 0),
        (1, 1),
        (2, 2),
        (-1, 2),
        (-3, 0),
        ("a", 0),
        ("c", 2),
        (np.int64(1), 1),
        ((0,), [0]),
        ([1], [1]),
        ((2, 0), [2, 0]),
        ((0, 1, 2), [0, 1, 2]),
        (["c", 0, -2], [2, 0, 1]),
        (("b",), [1]),
    ],
)
def test_argnums_choose_arguments_and_a_tuple_of_them_gives_a_tuple(argnums, chosen):
    found = rg.grad(product, argnums)(*ARGS)
    value, again = rg.value_and_grad(product, argnums)(*ARGS)
    assert value == pytest.approx(product(*ARGS), rel=1e-15)
    for got in (found, again):
        if isinstance(chosen, list):
            assert type(got) is tuple
            assert len(got) == len(chosen)
            for g, k in zip(got, chosen, strict=True):
                np.testing.assert_allclose(g, SLOPES[k], rtol=1e-14)
        else:
            np.testing.assert_allclose(got, SLOPES[chosen], rtol=1e-14)


def test_an_argument_can_be_named_and_passed_by_keyword():
    a, b, c = ARGS
    np.testing.assert_allclose(rg.grad(product, "c")(a, b, c=c), SLOPES[2], rtol=1e-14)
    first, third = rg.grad(product, ("a", "c"))(a, c=c, b=b)
    np.testing.assert_allclose(first, SLOPES[0], rtol=1e-14)
    np.testing.assert_allclose(third, SLOPES[2], rtol=1e-14)


def test_keyword_arguments_and_defaults_mean_what_they_mean_in_python():
    assert rg.value_and_grad(loss)(3.0) == (18.0, 12.0)
    assert rg.value_and_grad(loss)(3.0, 5.0) == (45.0, 30.0)
    assert rg.value_and_grad(loss)(3.0, y=5.0, scale=2.0) == (90.0, 60.0)
    assert rg.value_and_grad(loss, "scale")(3.0, scale=2.0) == (36.0, 18.0)
    assert rg.grad(loss, (0, "scale"))(3.0, 1.0, scale=2.0) == (12.0, 9.0)


def test_functions_with_star_arguments():
    def f(*xs, **options):
        return sum(np.sum(x) * (k + 1) for k, x in enumerate(xs)) * options["scale"]

    for k in range(3):
        assert rg.grad(f, k)(1.0, 2.0, 3.0, scale=2.0) == 2.0 * (k + 1)
    assert rg.grad(f, (2, 0))(1.0, 2.0, 3.0, scale=2.0) == (6.0, 2.0)
    assert rg.grad(f, "scale")(1.0, 2.0, scale=2.0) == 5.0


def test_a_static_argument_may_be_anything_that_can_be_compared():
    def f(x, power, name, flag, nothing, key, function):
        assert nothing is None
        assert (name, key) == ("cube", (1, "a"))
        return function(x**power) if flag else 0.0 * np.sum(x)

    arguments = ("cube", True, None, (1, "a"), np.sum)
    np.testing.assert_array_equal(rg.grad(f)(X, 3, *arguments), 3 * X**2)
    np.testing.assert_array_equal(rg.grad(f)(X, 2, *arguments), 2 * X)


def test_another_static_value_compiles_again_and_equal_ones_do_not():
    f = rg.jit(lambda x, n, name: x * n if name == "times" else x + n)
    assert f(2.0, 3, "times") == 6.0
    assert f(2.0, 4, "times") == 8.0
    assert f(2.0, 3, "plus") == 5.0
    assert f(2.0, True, "times") == 2.0
    assert f(5.0, 3, "times") == 15.0
    info = f.cache_info()
    assert (info.hits, info.misses, info.size) == (1, 4, 4)


# --------------------------------------------------------------------------------------------------- has_aux


def test_aux_comes_beside_the_gradient():
    def f(x):
        return np.sum(x**2), {"doubled": 2 * x, "name": "f", "count": 3, "none": None, "mean": x.mean()}

    slope, aux = rg.grad(f, has_aux=True)(X)
    (value, again), other = rg.value_and_grad(f, has_aux=True)(X)
    assert value == 14.0
    for g in (slope, other):
        np.testing.assert_array_equal(g, 2 * X)
    for a in (aux, again):
        np.testing.assert_array_equal(a["doubled"], 2 * X)
        assert (a["name"], a["count"], a["none"]) == ("f", 3, None)
        assert a["mean"] == pytest.approx(X.mean())


@pytest.mark.parametrize("aux", [(), None, "text", 3, (1, (2.0, None)), {}])
def test_aux_may_be_static_or_empty(aux):
    slope, found = rg.grad(lambda x: (np.sum(x), aux), has_aux=True)(X)
    np.testing.assert_array_equal(slope, np.ones(3))
    assert found == aux


def test_aux_has_no_derivative():
    slope, aux = rg.grad(lambda x: (np.sum(x**2), np.exp(x)), has_aux=True)(X)
    np.testing.assert_array_equal(slope, 2 * X)
    np.testing.assert_array_equal(aux, np.exp(X))


# ------------------------------------------------------------------------------------------------ decorators


def test_transforms_are_decorators_with_and_without_parentheses():
    @rg.grad
    def a(x):
        return np.sum(x**2)

    @rg.grad()
    def b(x):
        return np.sum(x**2)

    @rg.grad(argnums=0, has_aux=True)
    def c(x):
        return np.sum(x**2), 1

    @rg.value_and_grad()
    def d(x):
        return np.sum(x**2)

    @rg.jit()
    @rg.hessian()
    def e(x):
        return np.sum(x**2)

    @rg.vmap(in_axes=0)
    def f(x):
        return x**2

    @rg.jacfwd(argnums=0)
    @rg.jit
    def g(x):
        return x**2

    np.testing.assert_array_equal(a(X), 2 * X)
    np.testing.assert_array_equal(b(X), 2 * X)
    np.testing.assert_array_equal(c(X)[0], 2 * X)
    np.testing.assert_array_equal(d(X)[1], 2 * X)
    np.testing.assert_array_equal(e(X), 2 * np.eye(3))
    np.testing.assert_array_equal(f(X), X**2)
    np.testing.assert_array_equal(g(X), np.diag(2 * X))


@pytest.mark.parametrize("transform", [rg.jit, rg.grad, rg.value_and_grad, rg.vmap, rg.jacfwd, rg.jacrev, rg.hessian])
def test_a_compiled_function_looks_like_its_function(transform):
    compiled = transform(loss)
    assert compiled.__name__ == "loss"
    assert compiled.__doc__ == "A documented loss."
    assert compiled.__module__ == __name__
    assert compiled.__wrapped__ is loss
    assert str(inspect.signature(compiled)) == "(x, y=2.0, *, scale=1.0)"
    assert "loss" in repr(compiled)


def test_methods_differentiate_their_first_argument_after_self():
    model, other = Model(np.array([1.0, 2.0, 3.0])), Model(np.array([5.0, 5.0, 5.0]))
    for m in (model, other, model):
        np.testing.assert_array_equal(m.slope(X), 2 * m.w * X)
        value, slope = m.second(X, X)
        assert value == np.sum(m.w * X * X)
        np.testing.assert_array_equal(slope, m.w * X)
        np.testing.assert_array_equal(m.apply(X), m.w * X)
        np.testing.assert_allclose(m.curvature(X), np.diag(6 * m.w * X))
        np.testing.assert_array_equal(m.forward(X), np.diag(m.w))
        np.testing.assert_array_equal(m.backward(X), np.diag(m.w))
        np.testing.assert_array_equal(m.lanes(np.array([1.0, 2.0])), [np.sum(m.w), 2 * np.sum(m.w)])
        np.testing.assert_array_equal(m.double(X), 2 * X)
        np.testing.assert_array_equal(m.triple(X), 3 * X)
        np.testing.assert_array_equal(m.sine(X), np.sin(X))
    np.testing.assert_array_equal(Model.double(X), 2 * X)
    np.testing.assert_array_equal(Model.triple(X), 3 * X)


def test_each_instance_compiles_once():
    model, other = Model(np.ones(3)), Model(np.ones(3))
    for _ in range(3):
        model.slope(X)
        model.forward(X)
    other.slope(X)
    assert model.slope.cache_info().misses <= 1  # an instance elsewhere may have read the same
    assert model.slope.cache_info().hits >= 2
    assert model.forward.cache_info().misses <= 1
    assert other.slope.cache_info().misses == 0  # the other reads the same
    assert Model.slope.cache_info().misses == 0


def test_an_instance_without_weak_references_works():
    class Slim:
        __slots__ = ("w",)

        @rg.grad
        def slope(self, x):
            return np.sum(self.w * x**2)

    slim = Slim()
    slim.w = 3.0
    for _ in range(3):
        np.testing.assert_array_equal(slim.slope(X), 6 * X)
    assert slim.slope.cache_info().misses == 1


def test_callable_objects_partials_bound_methods_and_builtins_are_functions():
    model = Model(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(rg.grad(model)(X), 2 * model.w * X)
    np.testing.assert_array_equal(rg.grad(model.__call__)(X), 2 * model.w * X)
    np.testing.assert_array_equal(rg.grad(functools.partial(loss, y=5.0))(X), 10 * X)
    np.testing.assert_array_equal(rg.grad(functools.partial(product, ARGS[0]), 1)(*ARGS[1:]), SLOPES[2])
    np.testing.assert_array_equal(rg.grad(np.sum)(X), np.ones(3))
    np.testing.assert_array_equal(rg.grad(sum)(X), np.ones(3))
    np.testing.assert_array_equal(rg.jit(np.sin)(X), np.sin(X))
    assert rg.grad(np.sin)(0.0) == 1.0
    assert rg.grad(abs)(-3.0) == -1.0


# ---------------------------------------------------------------------------------------------- kinds of numbers


def test_a_python_float_gives_a_float64_that_python_takes_for_a_float():
    for found in (rg.grad(np.sin)(0.5), *rg.value_and_grad(np.sin)(0.5), rg.jit(np.sin)(0.5)):
        assert isinstance(found, np.float64)
        assert isinstance(found, float)
    assert isinstance(rg.jit(lambda x: x * 2)(0.5), float)
    assert isinstance(rg.grad(lambda x: x * 3.0)(0.5), float)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (1, 1, 1)])
def test_a_gradient_has_the_shape_and_dtype_of_its_argument(dtype, shape):
    x = np.full(shape, 0.5, dtype)

    def f(x):
        return np.sum(np.sin(x) * x)

    value, slope = rg.value_and_grad(f)(x)
    assert slope.shape == shape
    assert slope.dtype == dtype
    assert value.dtype == dtype
    np.testing.assert_allclose(slope, np.sin(0.5) + 0.5 * np.cos(0.5), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_wide_constant_does_not_widen_the_gradient(dtype):
    wide = np.array([1.0, 2.0, 3.0])
    x = np.ones(3, dtype)
    value, slope = rg.value_and_grad(lambda x: np.sum(x * wide))(x)
    assert value.dtype == np.float64
    assert slope.dtype == dtype
    np.testing.assert_array_equal(slope, wide.astype(dtype))
    assert rg.grad(lambda x: np.sum(2.0 * x + 1))(x).dtype == dtype
    assert rg.grad(lambda x: np.sum(np.float64(2.0) * x))(x).dtype == dtype
    assert rg.grad(lambda x: np.sum(x.astype(np.float64) ** 2))(x).dtype == dtype


def test_numpy_scalars_and_0d_arrays_stay_what_they_are():
    for x in (np.float64(0.5), np.float32(0.5), np.array(0.5), np.array(0.5, np.float32)):
        slope = rg.grad(np.sin)(x)
        assert type(slope) is type(x)
        assert slope.dtype == x.dtype
        assert slope.shape == ()
        found = rg.jit(lambda v: v)(x)
        assert type(found) is type(x)
        assert found.dtype == x.dtype


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
def test_an_output_of_size_one_counts_as_a_number(shape):
    value, slope = rg.value_and_grad(lambda x: np.sum(x**2).reshape(shape))(X)
    assert value.shape == shape
    np.testing.assert_array_equal(slope, 2 * X)


def test_an_empty_argument_has_an_empty_gradient():
    for shape in ((0,), (0, 3), (2, 0)):
        value, slope = rg.value_and_grad(lambda x: np.sum(x**2))(np.zeros(shape))
        assert value == 0.0
        assert slope.shape == shape
    value, slopes = rg.value_and_grad(lambda x, y: np.sum(x) + np.sum(y), (0, 1))(np.zeros(0), X)
    assert value == 2.0
    assert slopes[0].shape == (0,)
    np.testing.assert_array_equal(slopes[1], np.ones(3))


def test_a_gradient_that_nothing_reaches_is_zero():
    with pytest.warns(rg.errors.IndependentOutputWarning):
        slope = rg.grad(lambda x, y: np.sum(y))(X, X)
    np.testing.assert_array_equal(slope, np.zeros(3))
    slopes = rg.grad(lambda x, y: np.sum(y), (0, 1))(X, X)
    np.testing.assert_array_equal(slopes, [np.zeros(3), np.ones(3)])


LAYOUTS = {
    "contiguous": lambda x: x,
    "negative strides": lambda x: np.flip(np.flip(x).copy()),
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "a field of bytes": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "misaligned": lambda x: np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_where_an_argument_lies_in_memory_does_not_matter(layout):
    x = np.arange(6.0).reshape(2, 3) + 0.5
    given = layout(x)
    np.testing.assert_array_equal(given, x)

    def f(x):
        y = x.reshape(-1)
        y[1] = 0.25
        return np.sum(np.sin(x) * np.arange(6.0).reshape(2, 3)) + np.sum(y[::-1][:2] * x.T[0])

    f_jit, f_grad = rg.jit(f), rg.grad(f)
    for first, second in ((x, given), (given, x)):
        assert f_jit(first) == pytest.approx(f(x.copy()), rel=1e-15)
        assert f_jit(second) == pytest.approx(f(x.copy()), rel=1e-15)
        np.testing.assert_allclose(f_grad(first), f_grad(second), rtol=1e-15)
    np.testing.assert_allclose(rg.vjp(f, given)[1](1.0)[0], f_grad(x), rtol=1e-15)
    np.testing.assert_allclose(rg.hessian(f)(given), rg.hessian(f)(x), rtol=1e-15)


def test_a_memory_map_is_an_array(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for found in (rg.jit(lambda x: x)(mapped), rg.grad(lambda x: np.sum(x**2) / 2)(mapped)):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(rg.jit(lambda x: x * mapped)(X), X * X)


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "i8", "?"])
def test_integer_and_bool_arrays_pass_through_undifferentiated(kind):
    picks = np.array([0, 1, 1], kind)
    slope = rg.grad(lambda x, k: np.sum(x * k))(X, picks)
    np.testing.assert_array_equal(slope, picks.astype(float))
    np.testing.assert_array_equal(rg.jit(lambda k: k)(picks), picks)
    assert rg.jit(lambda k: k)(picks).dtype == picks.dtype
