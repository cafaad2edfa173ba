"""Elementwise derivatives where rules have a choice: ties, edges, cancellation; and complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, assert_traced, distinct

Function = Callable[..., Any]


def slope(function: Function, x: float, order: int = 1) -> float:
    """A derivative at a point, by reverse mode."""
    for _ in range(order):
        function = rg.grad(function)
    return float(function(x))


EDGES: dict[str, tuple[Function, float, float]] = {
    "abs at 0": (np.abs, 0.0, 0.0),
    "fabs at 0": (np.fabs, 0.0, 0.0),
    "abs at -0": (abs, -0.0, 0.0),
    "sqrt at 0": (np.sqrt, 0.0, np.inf),
    "x**0. at 0": (lambda x: x**0.0 + 0 * x, 0.0, 0.0),
    "x**y at 0, 0": (lambda x: np.power(x, np.array([0.0, 1.0]))[0], 0.0, 0.0),
    "0**y at 2": (lambda y: np.power(0.0, y), 2.0, 0.0),
    "maximum(x, 0) at 0": (lambda x: np.maximum(x, 0), 0.0, 0.5),
    "maximum(0, x) at 0": (lambda x: np.maximum(0, x), 0.0, 0.5),
    "minimum(x, 0) at 0": (lambda x: np.minimum(x, 0), 0.0, 0.5),
    "fmax at a tie": (lambda x: np.fmax(x, 1.0), 1.0, 0.5),
    "fmin of x and nan": (lambda x: np.fmin(np.nan, x), 1.0, 1.0),
    "maximum(x, x)": (lambda x: np.maximum(x, x), 1.0, 1.0),
    "clip inside": (lambda x: np.clip(x, 0, 1), 0.5, 1.0),
    "clip at a bound": (lambda x: np.clip(x, 0, 1), 1.0, 0.5),
    "clip outside": (lambda x: np.clip(x, 0, 1), 1.5, 0.0),
    "clip at an array": (lambda x: np.clip(x, np.array(0.0), np.array(1.0)), 0.0, 0.5),
    "hypot at 0, 0": (lambda x: np.hypot(x, 0.0), 0.0, 0.0),
    "arctan2 at 0, 0": (lambda x: np.arctan2(x, 0.0), 0.0, 0.0),
    "copysign at 0": (lambda x: np.copysign(x, -1.0), 0.0, 0.0),
    "sinc at 0": (np.sinc, 0.0, 0.0),
    "i0 at 0": (lambda x: np.i0(x)[()], 0.0, 0.0),
    "where at 0": (lambda x: np.where(x > 0, x, 0.0)[()], 0.0, 0.0),
    "heaviside(0, x)": (lambda x: np.heaviside(0.0, x), 0.3, 1.0),
}


@pytest.mark.parametrize("name", EDGES)
def test_conventions_at_edges(name):
    function, x, expected = EDGES[name]
    with np.errstate(divide="ignore"):
        assert slope(function, x) == expected
        assert rg.grad(lambda x: np.sum(function(x[0])))(np.array([x])) == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_in_arrays_share_equally(dtype):
    x = np.array([-1.0, 0.0, 2.0, 0.0], dtype)
    relu = rg.grad(lambda x: np.sum(np.maximum(x, 0)))(x)
    assert relu.dtype == dtype
    np.testing.assert_array_equal(relu, [0.0, 0.5, 1.0, 0.5])
    np.testing.assert_array_equal(rg.grad(lambda x: np.sum(np.clip(x, -1, 2)))(x), [0.5, 1.0, 0.5, 1.0])
    both = rg.grad(lambda x, y: np.sum(np.minimum(x, y)), argnums=(0, 1))(x, np.array([0.0, 0.0, 0.0, 0.0], dtype))
    np.testing.assert_array_equal(both, [[1.0, 0.5, 0.0, 0.5], [0.0, 0.5, 1.0, 0.5]])


STABLE: dict[str, tuple[Function, float, int, float]] = {
    "expm1 far below 0": (np.expm1, -50.0, 1, np.exp(-50.0)),
    "log1p near 0": (np.log1p, 1e-20, 2, -1.0),
    "logaddexp far above": (lambda x: np.logaddexp(x, 0.0), 1000.0, 1, 1.0),
    "logaddexp far below": (lambda x: np.logaddexp(x, 0.0), -700.0, 1, np.exp(-700.0)),
    "logaddexp of -inf": (lambda x: np.logaddexp(-np.inf, x), -np.inf, 1, 0.0),
    "hypot of large ones": (lambda x: np.hypot(x, 4e200), 3e200, 1, 0.6),
    "arcsin near 1": (np.arcsin, 1 - 2.0**-50, 1, 1 / np.sqrt(2.0**-49 - 2.0**-100)),
    "arctanh near 1": (np.arctanh, 1 - 2.0**-50, 1, 1 / (2.0**-49 - 2.0**-100)),
    "arccosh near 1": (np.arccosh, 1 + 2.0**-50, 1, 1 / np.sqrt(2.0**-49 + 2.0**-100)),
    "sinc near 0": (np.sinc, 1e-9, 1, -(np.pi**2) / 3 * 1e-9),
    "sinc'' at 0": (np.sinc, 0.0, 2, -(np.pi**2) / 3),
    "sinc'''' at 0": (np.sinc, 0.0, 4, np.pi**4 / 5),
    "i0 near 0": (lambda x: np.i0(x)[()], 1e-9, 1, 0.5e-9),
    "i0'' at 0": (lambda x: np.i0(x)[()], 0.0, 2, 0.5),
    "i0'''' at 0": (lambda x: np.i0(x)[()], 0.0, 4, 0.375),
    "fmod near a multiple": (lambda y: np.fmod(np.nextafter(3.0, 0.0), y), 1.0, 1, -2.0),
    "remainder below 0": (lambda y: np.remainder(-1e-30, y), 1.0, 1, 1.0),
}


@pytest.mark.parametrize("name", STABLE)
def test_rules_are_stable(name):
    function, x, order, expected = STABLE[name]
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(slope(function, x, order), expected, rtol=1e-13)


def test_the_source_of_relu_reads_like_hand_written_numpy():
    source = rg.grad(lambda x: np.sum(np.maximum(x, 0))).source(np.ones(3))
    body = [line.split("#")[0].strip() for line in source.partition("):\n")[2].splitlines()]
    assert body == ["v1 = x > 0.0", "v2 = x == 0.0", "v3 = v1.astype(np.float64)", "v3[v2] = 0.5", "return v3"]


def complex_numbers(size: int = 4) -> Any:
    """Numbers in the first quadrant."""
    rng = np.random.default_rng(0)
    return rng.uniform(0.3, 1.5, size) + 1j * rng.uniform(0.2, 0.6, size)


def test_gradients_of_complex_arguments_follow_jax():
    z = complex_numbers()
    cases: list[tuple[Function, Any]] = [
        (lambda z: np.abs(z) ** 2, 2 * z.conj()),
        (lambda z: z.real, np.ones(4)),
        (lambda z: z.imag, np.full(4, -1j)),
        (lambda z: np.conj(z).real, np.ones(4)),
        (lambda z: (z * (2 - 3j)).real, np.full(4, 2 - 3j)),
        (np.abs, np.conj(z) / np.abs(z)),
        (np.angle, -1j / z),
        (lambda z: np.exp(z).real, np.exp(z)),
    ]
    for function, expected in cases:
        for dtype in (np.complex128, np.complex64):
            found = rg.grad(lambda z, f=function: np.sum(f(z)))(z.astype(dtype))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.complex64 else 1e-14)


def test_a_real_argument_of_a_complex_function_has_a_real_gradient():
    def power(x):
        return np.sum(np.abs(np.exp(1j * x) + x) ** 2)

    x = np.array([0.5, 1.5], np.float32)
    found = rg.grad(power)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 2 * x + 2 * np.cos(x) - 2 * x * np.sin(x), rtol=1e-6)


def test_parts_of_a_complex_array_are_views():
    def function(z):
        w = z * 1
        r = w.real
        w[0] = 5 + 5j
        return r, w.imag

    assert_traced(function, complex_numbers())


CONSTANTS = [2.5 - 1j, 1j, -1j, complex(0.0, -1.0), complex(np.inf, 1.0), complex(1.0, np.nan), 3 + 0j, 0.3 - 0.5j]


@pytest.mark.parametrize("constant", CONSTANTS, ids=str)
def test_complex_constants(constant):
    for dtype in "DFdf":
        x = complex_numbers().astype(dtype) if dtype in "DF" else np.array([0.5, 1.5, 0.5], dtype)
        with np.errstate(all="ignore"):
            assert_traced(lambda x: (x + constant, constant * x, np.where(x == x[0], constant, x)), x)


def test_comparisons_of_complex_numbers():
    z = np.array([1 + 1j, 2 - 1j, 1 + 2j, 0j])
    assert_traced(lambda z, w: (z == w, z != w, z < w, z >= w, z == 0, z != 1 + 1j), z, z[::-1].copy())


def test_a_lost_imaginary_part_is_warned_about_as_by_numpy():
    with pytest.warns(np.exceptions.ComplexWarning):
        rg.jit(lambda z: z.astype(float))(np.array([1 + 2j]))


CUT = (
    np.sqrt,
    np.log,
    np.log2,
    np.log10,
    np.log1p,
    np.arcsin,
    np.arccos,
    np.arctan,
    np.arcsinh,
    np.arccosh,
    np.arctanh,
)
POWERS: dict[str, Function] = {
    "z**0.5": lambda z: z**0.5,
    "z**1.5": lambda z: z**1.5,
    "z**(0.3+0.2j)": lambda z: z ** (0.3 + 0.2j),
    "power": lambda z: np.power(z, -1.5),
    "log(z**2)": lambda z: np.log(z * z),
}
CUTS = {f.__name__: f for f in CUT} | POWERS
FAR = (-3.0, -1.7, -0.4, 0.3, 1.7, 3.0)
ON_AXES = [complex(a, b) for a in FAR for b in (0.0, -0.0)] + [complex(a, b) for a in (0.0, -0.0) for b in FAR]


def from_its_side(function: Function, z: complex, step: float = 1e-5) -> complex:
    """The derivative along the axis that z lies on, and which function does not leave: zeros keep their signs."""

    def at(s: float) -> Any:
        along = complex(z.real + s, z.imag) if abs(z.imag) < abs(z.real) else complex(z.real, z.imag + s)
        return function(np.complex128(along))

    return complex((at(step) - at(-step)) / (2 * step)) / (1 if abs(z.imag) < abs(z.real) else 1j)


@pytest.mark.parametrize("name", CUTS)
def test_derivatives_on_branch_cuts_are_those_of_the_side_that_the_zero_names(name):
    function = CUTS[name]
    z = np.array([z for z in ON_AXES if np.isfinite(function(np.complex128(z)))])
    expected = [from_its_side(function, complex(p)) for p in z]
    for direction in (1.0, 1j):
        found = rg.jvp(function, (z,), (np.full(z.shape, direction),))[1] / direction
        np.testing.assert_allclose(found, expected, rtol=1e-7)
        (backward,) = rg.vjp(function, z)[1](np.full(z.shape, direction))
        np.testing.assert_allclose(backward / direction, expected, rtol=1e-7)
    ones = [rg.jvp(function, (np.complex128(p),), (np.complex128(1),))[1] for p in z]
    np.testing.assert_allclose(ones, expected, rtol=1e-7)


KNOTS = {
    "both ends": [-np.inf, 0.0, 1.0, np.inf],
    "the first": [-np.inf, 0.0, 1.0, 2.0],
    "the last": [0.0, 1.0, 2.0, np.inf],
    "none": [0.0, 1.0, 2.0, 3.0],
}


@pytest.mark.parametrize("options", [{}, {"left": -7.0, "right": 9.0}], ids=["", "ends"])
@pytest.mark.parametrize("knots", KNOTS)
def test_interpolation_at_infinite_knots_and_points(knots, options):
    xp, fp = np.array(KNOTS[knots]), np.array([0.5, 1.0, 2.5, 3.0])
    x = np.array([-np.inf, -5.0, 0.25, 0.5, 1.5, 7.0, np.inf, np.nan])
    for values in (fp, fp + 1j * fp[::-1]):
        with np.errstate(invalid="ignore"):
            assert_traced(lambda x, v: np.interp(x, xp, v, **options), x, values)
    rg.check_grads(lambda x, v: np.interp(x, xp, v, **options), (x[1:-2], fp), order=2)
    gradient = rg.grad(lambda v: np.sum(np.interp(x[:-1], xp, v, **options)))(fp)
    eye = [np.nansum(np.interp(x[:-1], xp, row, **dict.fromkeys(options, 0.0))) for row in np.eye(4)]
    np.testing.assert_allclose(gradient, eye)


def test_polynomials_at_infinite_points_are_those_of_numpy():
    x = np.array([np.inf, -np.inf, np.nan, 0.5])
    with np.errstate(invalid="ignore"):
        assert_traced(np.polyval, np.array([1.0, -2.0, 3.0]), x)
        assert_traced(np.polyval, np.array([2.0]), x)


@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_there_may_be_no_levels_of_quantiles(name: str) -> None:
    function = getattr(np, name)
    for x in (distinct((2, 3)), distinct((2, 3), "f"), np.arange(6).reshape(2, 3)):
        for axis in (None, 0, (0, 1)):
            assert_traced(lambda x, a=axis: function(x, [], axis=a), x)
    x = distinct((2, 3))
    value, dot = rg.jvp(lambda x: function(x, [], axis=1), (x,), (x,))
    assert dot.shape == value.shape == (0, 2)
    found = rg.grad(lambda x: np.sum(function(x, [])) + np.sum(x))(x)
    np.testing.assert_array_equal(found, np.ones_like(x))


def test_there_may_be_no_traced_levels_of_quantiles() -> None:
    x, levels = distinct((2, 3)), np.zeros(0)
    assert_traced(lambda x, q: np.quantile(x, q, axis=0), x, levels)
    found = rg.grad(lambda x, q: np.sum(np.quantile(x, q)) + np.sum(x), argnums=(0, 1))(x, levels)
    assert_same(found, (np.ones_like(x), levels))
