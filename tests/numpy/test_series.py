"""numpy.polynomial: functions of series and their classes, of traced coefficients and at traced points."""

# ruff: noqa: PLW0108 - calls are written as users write them

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial.chebyshev import chebval

import retrograd as rg

BASES = {
    "polynomial": ("poly", "Polynomial"),
    "chebyshev": ("cheb", "Chebyshev"),
    "legendre": ("leg", "Legendre"),
    "hermite": ("herm", "Hermite"),
    "hermite_e": ("herme", "HermiteE"),
    "laguerre": ("lag", "Laguerre"),
}
rng = np.random.default_rng(0)
C, D, X = rng.standard_normal(5), rng.standard_normal(3), rng.uniform(-1, 1, (2, 3))
C2, C3, Y = rng.standard_normal((3, 2)), rng.standard_normal((2, 2, 2)), rng.standard_normal(6)

# Of a function by its short name, and of the class
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "val": (lambda f, _: f("val"), (X, C)),
    "val of columns": (lambda f, _: f("val"), (X, C2)),
    "val of numbers": (lambda f, _: f("val"), (0.3, C)),
    "val without axes": (lambda f, _: lambda x, c: f("val")(x, c, tensor=False), (X[0, :2], C2)),
    "der": (lambda f, _: lambda c: f("der")(c, 2, 0.5), (C,)),
    "der along an axis": (lambda f, _: lambda c: f("der")(c, axis=1), (C2,)),
    "int": (lambda f, _: lambda c, k, l: f("int")(c, 2, [k, 1.0], l, 2.0), (C, 0.3, 0.1)),
    "add": (lambda f, _: f("add"), (C, D)),
    "sub": (lambda f, _: f("sub"), (D, C)),
    "mul": (lambda f, _: f("mul"), (C, D)),
    "mulx": (lambda f, _: lambda c: f("mulx")(c), (C,)),
    "pow": (lambda f, _: lambda c: f("pow")(c, 3), (D,)),
    "div": (lambda f, _: f("div"), (C, D)),
    "vander": (lambda f, _: lambda x: f("vander")(x, 3), (X,)),
    "vander2d": (lambda f, _: lambda x, y: f("vander2d")(x, y, [2, 1]), tuple(X)),
    "val2d": (lambda f, _: f("val2d"), (*X, C2)),
    "grid2d": (lambda f, _: f("grid2d"), (*X, C2)),
    "val3d": (lambda f, _: lambda x, y, c: f("val3d")(x, y, y, c), (*X, C3)),
    "grid3d": (lambda f, _: lambda x, y, c: f("grid3d")(x, y, y, c), (*X, C3)),
    "fromroots": (lambda f, _: lambda c: f("fromroots")(c), (D,)),
    "fit": (lambda f, _: lambda y: f("fit")(np.arange(6.0), y, 2), (Y,)),
    "a series": (lambda _, cls: lambda x, c: cls(c)(x), (X, C)),
    "a derivative": (lambda _, cls: lambda x, c: cls(c, domain=[0, 3.0]).deriv()(x), (X, C)),
    "an integral": (lambda _, cls: lambda x, c: cls(c, [0, 3.0]).integ(2, k=[1, 2], lbnd=0.3)(x), (X, C)),
    "arithmetic": (lambda _, cls: lambda x, c, d: (cls(c) * cls(d) - 2 * cls(d) + cls(c) ** 2 / 2)(x), (X, C, D)),
    "numbers": (lambda _, cls: lambda x, c, t: (t * cls(c) * t + t - cls(c))(x), (X, C, 0.3)),
    "coefficients": (lambda _, cls: lambda c, d: (cls(c) + cls(d)).coef, (C, D)),
    "division": (lambda _, cls: lambda c, d: divmod(cls(c), cls(d))[1].coef, (C, D)),
    "conversion": (lambda _, cls: lambda c: cls(c).convert(kind=Polynomial).coef, (C,)),
    "points": (lambda _, cls: lambda c: cls(c).linspace(4)[1], (C,)),
    "a fit": (lambda _, cls: lambda y: cls.fit(np.arange(6.0), y, 2).coef, (Y,)),
    "composition": (lambda _, cls: lambda c, d: cls(c)(cls(d)).coef, (D, D)),
}


def call_of(base: str, name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    short, cls = BASES[base]
    module = importlib.import_module(f"numpy.polynomial.{base}")
    make, args = CALLS[name]
    function = make(lambda end: lambda *a, **o: getattr(module, short + end)(*a, **o), getattr(module, cls))
    return function, args


each_base = pytest.mark.parametrize("base", BASES)
each_call = pytest.mark.parametrize("name", CALLS)


@pytest.mark.sampled(4)
@each_base
@each_call
def test_a_traced_call_gives_what_numpy_gives(base, name):
    call, args = call_of(base, name)
    found, expected = rg.jit(call)(*args), call(*args)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), np.asarray(y).dtype)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.sampled(24)
@each_base
@each_call
def test_derivatives_hold_to_second_order(base, name):
    rg.check_grads(*call_of(base, name), order=2)


@pytest.mark.sampled(12)
@each_base
@each_call
def test_lanes_are_a_loop(base, name):
    call, args = call_of(base, name)
    lanes = [tuple(x * scale for x in args) for scale in (1.0, 0.99)]
    found = rg.vmap(call)(*(np.stack(column) for column in zip(*lanes, strict=True)))
    for k, lane in enumerate(lanes):
        for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, call(*lane))), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-11, atol=1e-12)


def test_names_bound_early_and_series_from_outside():
    series = Chebyshev(C, domain=[0.0, 2.0])
    for call in (lambda x: chebval(x, C), lambda x: np.polynomial.chebyshev.chebval(x, C), series, lambda x: series(x)):
        np.testing.assert_allclose(rg.jit(call)(X), call(X), rtol=1e-13)
        rg.check_grads(call, (X,), order=2)


def test_leading_zeros_are_dropped_as_in_numpy():
    f = rg.jit(lambda c, d: np.polynomial.polynomial.polyadd(c, d))
    for d in (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -3.0]), np.array([1.0, -2.0, -3.0])):
        c = np.array([1.0, 2.0, 3.0])
        np.testing.assert_array_equal(f(c, d), np.polynomial.polynomial.polyadd(c, d), strict=True)


def test_outside_a_trace_nothing_is_changed():
    before = dict(vars(Chebyshev)), dict(vars(np.polynomial.polyutils))
    rg.grad(lambda c: Chebyshev(c)(0.3))(C)
    assert (dict(vars(Chebyshev)), dict(vars(np.polynomial.polyutils))) == before
