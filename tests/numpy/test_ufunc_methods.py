"""The methods and options of ufuncs, and what ndarray has beside functions of NumPy."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_differentiable, assert_same, assert_traced, distinct, outcome

X = distinct((3, 4))
P = np.abs(X) / 2 + 0.5
BINARY = {
    name: ufunc
    for name, ufunc in vars(np).items()
    if isinstance(ufunc, np.ufunc) and ufunc.nin == 2 and ufunc.nout == 1 and not ufunc.signature
}
WRONG = ("arctan2", "atan2", "power", "pow")  # NumPy reduces several elements at a time, each with the first of them
SMOOTH = ("add", "subtract", "multiply", "divide", "hypot", "logaddexp", "logaddexp2", "maximum", "fmin")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [name for name in BINARY if name not in WRONG])
def test_reduce_accumulate_reduceat_and_outer(name):
    ufunc = BINARY[name]
    for x in (P, np.rint(3 * P).astype(int), P > 1):
        for axis in (0, 1, -1, None, (0, 1)):
            for keepdims in (False, True):
                assert_same_outcome(lambda x, a=axis, k=keepdims: ufunc.reduce(x, axis=a, keepdims=k), x)
        for axis in (0, 1, 2):
            assert_same_outcome(lambda x, a=axis: ufunc.accumulate(x, axis=a), x)
            assert_same_outcome(lambda x, a=axis: ufunc.reduceat(x, [0, 2, 1], axis=a), x)
        assert_same_outcome(lambda x: ufunc.outer(x[0], x[1, :2]), x)
        assert_same_outcome(lambda x: ufunc.reduce(x, axis=1, initial=1, where=x > 1), x)
        assert_same_outcome(lambda x: ufunc.reduce(x[:0]), x)
        assert_same_outcome(lambda x: ufunc.accumulate(x[:, :1], axis=1), x)


@pytest.mark.parametrize("name", WRONG)
def test_reductions_go_from_the_left(name):
    ufunc = BINARY[name]
    found = rg.jit(lambda x: ufunc.reduce(x, axis=1))(P)
    np.testing.assert_allclose(found, [functools.reduce(ufunc, row) for row in P], rtol=1e-14)


def assert_same_outcome(program: Any, x: Any) -> None:
    """NumPy's result, or an error where NumPy has one; a ufunc without a primitive is refused by name."""
    with np.errstate(all="ignore"):
        expected, found = outcome(program, [x]), outcome(rg.jit(program), [x])
    if isinstance(found, type) and issubclass(found, rg.errors.UnsupportedError):
        return
    if isinstance(expected, type):
        assert isinstance(found, type)
        return
    assert_same(found, expected, 1e-14)


@pytest.mark.parametrize("axis", [0, -1, (1,), ()])
@pytest.mark.parametrize("name", [*SMOOTH, *WRONG, "copysign", "floor_divide", "fmod"])
def test_what_is_reduced_is_a_new_array_also_of_one_entry(name, axis):
    def program(x, **options):
        x = x * 1.0
        found = BINARY[name].reduce(x, axis=axis, **options)
        found[...] = 7.0
        return x

    for x in (P[:, :1], P[:1, :1]):
        assert_same_outcome(program, x)
        assert_same_outcome(lambda x: program(x, keepdims=True), x)
        np.testing.assert_array_equal(rg.grad(lambda x: np.sum(np.square(program(x))))(x), 2 * x)


@pytest.mark.costly
@pytest.mark.parametrize("name", SMOOTH)
def test_methods_have_derivatives(name):
    ufunc = BINARY[name]
    assert_differentiable(lambda x: ufunc.reduce(x, axis=0), P)
    assert_differentiable(lambda x: ufunc.accumulate(x, axis=1), P)
    assert_differentiable(lambda x: ufunc.reduceat(x, [2, 0], axis=1), P)
    assert_differentiable(lambda x: ufunc.outer(x[0], x[1]), P)
    start = 2.0 if name != "maximum" else -2.0
    assert_differentiable(
        lambda x: ufunc.reduce(x, axis=1, initial=start, where=np.array([True, False, True, True])), P
    )


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "hypot"])
def test_at_with_repeated_places(name):
    ufunc = BINARY[name]

    def program(x, v):
        y = x * 1.0
        ufunc.at(y, ([0, 0, 2], [1, 1, 3]), v)
        return y

    assert_traced(program, P, np.array([0.7, 1.9, 0.4]))
    assert_differentiable(program, P, np.array([0.7, 1.9, 0.4]))


VALUES: dict[str, Any] = {
    "a slice": lambda y: y[:2],
    "a slice backwards": lambda y: y[1::-1],
    "one entry": lambda y: y[1:2],
    "an array without axes": lambda y: y[1:2].reshape(()),
    "a number": lambda y: y[1],
    "a view of a view": lambda y: y.reshape(3, 1)[1:].T[0],
}


@pytest.mark.parametrize("target", [lambda y: y, lambda y: y[::-1]], ids=["whole", "backwards"])
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power", "hypot"])
def test_at_reads_views_of_its_target_before_it_writes(name, value, target):
    def program(x):
        y = x * 1.0
        BINARY[name].at(target(y), [1, 1], VALUES[value](y))
        return y

    assert_traced(program, P[0, :3])
    assert_differentiable(program, P[0, :3], order=1)


def test_lanes_of_a_reduction_step_by_step():
    several = np.stack([P, P + 1])
    found = rg.vmap(rg.grad(lambda x: np.sum(np.hypot.reduce(x, axis=1))))(several)
    np.testing.assert_allclose(found, several / np.sqrt(np.sum(several**2, axis=2, keepdims=True)), rtol=1e-14)


OPTIONS: dict[str, Any] = {
    "dtype": lambda x: np.add(x, 1, dtype=np.float32, casting="same_kind"),
    "casting": lambda x: np.sqrt(x, dtype=np.float32, casting="safe"),
    "signature": lambda x: np.add(x, 1, signature="ff->f", casting="same_kind"),
    "signature of types": lambda x: np.multiply(x, 2, signature=(np.float64, np.float64, None)),
    "signature that does not cast": lambda x: np.add(x, 1, signature="ll->l"),
    "out": lambda x: np.exp(x, out=np.zeros((3, 4))),
    "out of two": lambda x: np.modf(x, out=(np.zeros((3, 4)), None)),
    "out and where": lambda x: np.log(x, out=np.ones((3, 4)), where=x > 1),
    "out that is too small": lambda x: np.exp(x, out=np.zeros(4)),
    "out of a reduction": lambda x: np.add.reduce(x, axis=1, out=np.zeros(3)),
    "reduction with a dtype": lambda x: np.add.reduce(x, dtype=np.float32),
    "accumulation with a dtype": lambda x: np.multiply.accumulate(x, dtype=np.complex128),
    "accumulation into": lambda x: np.hypot.accumulate(x, axis=1, out=np.zeros((3, 4))),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    program = OPTIONS[name]
    assert_same(outcome(rg.jit(program), [P]), outcome(program, [P]), 1e-14)


def test_where_without_out_is_refused_since_numpy_leaves_memory_as_it_was():
    with pytest.raises(rg.errors.UnsupportedError, match="without out="):
        rg.jit(lambda x: np.log(x, where=x > 1))(P)


# ------------------------------------------------------------------------------------------------- ndarray


def through_flat(x):
    y = x * 2
    view = y[:, ::2]
    y.flat[1] = x[0, 0]
    y.flat[[4, 6]] = x[1, :2]
    view.flat = [1.0, 2.0]
    return y, view.flat[1:3], list(y.flat)[:2], len(y.flat), y.flat.copy()


MEMBERS: dict[str, Any] = {
    "flat": through_flat,
    "tolist": lambda x: x[:2, :2].tolist(),
    "tolist of a number": lambda x: x[0, 0].tolist(),
    "view": lambda x: x.view() + x.view(x.dtype),
    "device": lambda x: (x.device, x.to_device("cpu") * 2),
    "item": lambda x: (x.item(3), x.item(1, 2), x[0, 0].item()),
    "the array namespace": lambda x: x.__array_namespace__().sum(x),
    "fill": lambda x: (y := x * 1, y.fill(x[0, 0]), y)[0],
    "sort": lambda x: (y := x * 1, y.sort(axis=0), y)[0],
    "partition": lambda x: (y := x * 1, y.partition(1, axis=0), y.max(axis=0))[2],
    "put": lambda x: (y := x * 1, y.put([0, 1], x[1, :2]), y)[0],
    "choose": lambda x: np.array([0, 1, 2, 0]).choose(x) if isinstance(x, np.ndarray) else x[[0, 1, 2, 0], range(4)],
    "parts": lambda x: ((x * 1j).real, (x * 1j).imag, x.mT, x.T),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_members_of_ndarray(name):
    program = MEMBERS[name]
    for x in (X, X + 0.5):
        assert_same(rg.jit(program)(x), program(x))


@pytest.mark.parametrize(
    "name",
    [
        "tobytes",
        "tofile",
        "dump",
        "dumps",
        "byteswap",
        "getfield",
        "setfield",
        "setflags",
        "flags",
        "strides",
        "data",
        "base",
        "ctypes",
    ],
)
def test_what_concerns_memory_is_refused_by_name(name):
    with pytest.raises((rg.errors.UnsupportedError, rg.errors.TracerConversionError)):
        rg.jit(lambda x: (m := getattr(x, name), m(0) if callable(m) else m))(X)


def test_writes_through_flat_have_derivatives():
    assert_differentiable(lambda x: through_flat(x)[0], X)


@pytest.mark.parametrize("x", [[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [-1.0, 2.0], [0.0, -2.0]])
def test_second_derivatives_of_hypot_reduce_are_those_of_a_norm(x: list[float]) -> None:
    expected = rg.hessian(np.linalg.norm)(np.array(x))
    for f in (np.hypot.reduce, lambda x: math.hypot(*x)):
        np.testing.assert_allclose(rg.hessian(f)(np.array(x)), expected, atol=1e-15)
