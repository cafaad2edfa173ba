"""Elementwise functions over dtypes and layouts, against NumPy and finite differences."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import LAYOUTS, assert_differentiable, assert_same, assert_traced

Function = Callable[..., Any]
Interval = tuple[float, float]

# function, interval of its argument, dtypes
UNARY: dict[str, tuple[Function, Interval, str]] = {
    "positive": (np.positive, (-1.5, 1.5), "dfD"),
    "negative": (np.negative, (-1.5, 1.5), "dfD"),
    "reciprocal": (np.reciprocal, (0.3, 1.5), "dfD"),
    "square": (np.square, (-1.5, 1.5), "dfD"),
    "sqrt": (np.sqrt, (0.3, 1.5), "dfD"),
    "cbrt": (np.cbrt, (-1.5, -0.3), "df"),
    "x**3": (lambda x: x**3, (-1.5, 1.5), "dfD"),
    "x**-1.5": (lambda x: x**-1.5, (0.3, 1.5), "dfD"),
    "2**x": (lambda x: 2**x, (-1.5, 1.5), "dfD"),
    "exp": (np.exp, (-1.5, 1.5), "dfD"),
    "exp2": (np.exp2, (-1.5, 1.5), "dfD"),
    "expm1": (np.expm1, (-1.5, 1.5), "dfD"),
    "log": (np.log, (0.3, 1.5), "dfD"),
    "log2": (np.log2, (0.3, 1.5), "dfD"),
    "log10": (np.log10, (0.3, 1.5), "dfD"),
    "log1p": (np.log1p, (-0.6, 1.5), "dfD"),
    "sin": (np.sin, (-1.5, 1.5), "dfD"),
    "cos": (np.cos, (-1.5, 1.5), "dfD"),
    "tan": (np.tan, (-1.0, 1.0), "dfD"),
    "arcsin": (np.arcsin, (-0.7, 0.7), "dfD"),
    "arccos": (np.arccos, (-0.7, 0.7), "dfD"),
    "atan": (np.atan, (-1.5, 1.5), "dfD"),
    "sinh": (np.sinh, (-1.5, 1.5), "dfD"),
    "cosh": (np.cosh, (-1.5, 1.5), "dfD"),
    "tanh": (np.tanh, (-1.5, 1.5), "dfD"),
    "asinh": (np.asinh, (-1.5, 1.5), "dfD"),
    "arccosh": (np.arccosh, (1.3, 3.0), "dfD"),
    "arccosh left of 0": (np.arccosh, (-3.0, -1.3), "D"),
    "arctanh": (np.arctanh, (-0.7, 0.7), "dfD"),
    "deg2rad": (np.deg2rad, (-90.0, 90.0), "df"),
    "radians": (np.radians, (-90.0, 90.0), "df"),
    "rad2deg": (np.rad2deg, (-1.5, 1.5), "df"),
    "degrees": (np.degrees, (-1.5, 1.5), "df"),
    "sinc": (np.sinc, (0.3, 2.0), "dfD"),
    "sinc near 0": (np.sinc, (-0.2, 0.2), "dfD"),
    "i0": (np.i0, (-3.0, 3.0), "df"),
    "i0 far from 0": (np.i0, (30.0, 31.0), "d"),
    "abs": (np.abs, (0.3, 1.5), "dfD"),
    "abs()": (abs, (-1.5, -0.3), "dfD"),
    "fabs": (np.fabs, (-1.5, -0.3), "df"),
    "sign": (lambda x: x * np.sign(x), (-1.5, -0.3), "dfD"),
    "conj": (np.conj, (-1.5, 1.5), "dfD"),
    "conjugate()": (lambda x: x * x.conjugate(), (-1.5, 1.5), "dfD"),
    "real": (lambda x: np.real(x) * x.real, (-1.5, 1.5), "dfD"),
    "imag": (lambda x: np.imag(x) * x + x.imag, (-1.5, 1.5), "dfD"),
    "angle": (lambda x: np.angle(x) + x, (0.3, 1.5), "dfD"),
    "angle in degrees": (lambda x: np.angle(x * x, deg=True), (0.3, 1.5), "dD"),
    "real_if_close": (np.real_if_close, (0.3, 1.5), "df"),
    "nan_to_num": (lambda x: np.nan_to_num(x, posinf=1.0), (-1.5, 1.5), "dfD"),
    "heaviside": (lambda x: x * np.heaviside(x, 0.5), (0.3, 1.5), "df"),
    "floor": (lambda x: x * np.floor(x), (1.2, 1.8), "df"),
    "ceil": (lambda x: x * np.ceil(x), (1.2, 1.8), "df"),
    "trunc": (lambda x: x * np.trunc(x), (-1.8, -1.2), "df"),
    "fix": (lambda x: x * np.fix(x), (-1.8, -1.2), "df"),
    "rint": (lambda x: x * np.rint(x), (-1.4, -1.1), "df"),
    "round": (lambda x: x * np.round(x), (1.1, 1.4), "df"),
    "round()": (lambda x: x * np.round(x, 1) ** 0 + np.around(x), (1.1, 1.4), "df"),
    "modf": (lambda x: np.modf(x)[0] * np.modf(x)[1], (-1.8, -1.2), "df"),
    "frexp": (lambda x: np.frexp(x)[0] * x + np.frexp(x)[1], (1.2, 1.8), "df"),
    "clip": (lambda x: np.clip(x, 0.2, 0.8), (0.3, 0.7), "df"),
    "clip to a large int": (lambda x: np.clip(x, 0.2, 2**70), (0.1, 0.7), "df"),
    "clip below": (lambda x: np.clip(x, 0.2, None), (-0.7, 0.1), "df"),
    "clip()": (lambda x: np.positive(x).clip(0.2, 0.8), (0.3, 0.7), "df"),
    "clip above": (lambda x: np.clip(x, max=0.2), (0.3, 0.7), "df"),
    "select": (lambda x: np.select([x > 1, x > 0], [x * x, np.sin(x)], 3 * x), (0.2, 0.8), "df"),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x > 0], [lambda v: v * v, np.log]), (0.2, 0.8), "df"),
}

# function, intervals of its arguments, dtypes
BINARY: dict[str, tuple[Function, Interval, Interval, str]] = {
    "add": (np.add, (-1.5, 1.5), (-1.5, 1.5), "dfD"),
    "subtract": (np.subtract, (-1.5, 1.5), (-1.5, 1.5), "dfD"),
    "multiply": (np.multiply, (-1.5, 1.5), (-1.5, 1.5), "dfD"),
    "divide": (np.divide, (-1.5, 1.5), (0.5, 1.5), "dfD"),
    "power": (np.power, (0.3, 1.5), (-1.5, 1.5), "dfD"),
    "float_power": (np.float_power, (0.3, 1.5), (-1.5, 1.5), "dD"),
    "arctan2": (np.arctan2, (0.3, 1.5), (-1.5, -0.3), "df"),
    "hypot": (np.hypot, (0.3, 1.5), (-1.5, -0.3), "df"),
    "logaddexp": (np.logaddexp, (-1.5, 1.5), (-1.5, 1.5), "df"),
    "logaddexp2": (np.logaddexp2, (-1.5, 1.5), (-1.5, 1.5), "df"),
    "maximum": (np.maximum, (-1.5, 0.0), (0.1, 1.5), "dfD"),
    "minimum": (np.minimum, (-1.5, 0.0), (0.1, 1.5), "dfD"),
    "fmax": (np.fmax, (-1.5, 0.0), (0.1, 1.5), "df"),
    "fmin": (np.fmin, (-1.5, 0.0), (0.1, 1.5), "df"),
    "floor_divide": (lambda x, y: x * np.floor_divide(x, y), (2.4, 2.5), (0.98, 1.0), "df"),
    "remainder": (np.remainder, (-2.5, -2.4), (0.98, 1.0), "df"),
    "fmod": (np.fmod, (-2.5, -2.4), (0.98, 1.0), "df"),
    "divmod": (lambda x, y: np.divmod(x, y)[0] * np.divmod(x, y)[1], (2.4, 2.5), (0.98, 1.0), "df"),
    "copysign": (np.copysign, (0.3, 1.5), (-1.5, -0.3), "df"),
    "nextafter": (np.nextafter, (0.3, 1.5), (2.0, 3.0), "df"),
    "ldexp": (lambda x, y: np.ldexp(x, 3) * y, (0.3, 1.5), (2.0, 3.0), "df"),
    "heaviside": (lambda x, y: y * np.heaviside(x, y), (0.3, 1.5), (2.0, 3.0), "df"),
    "clip": (lambda x, y: np.clip(x, y, 2 * y), (2.0, 3.0), (0.1, 0.2), "df"),
    "where": (lambda x, y: np.where(x > 0.9, x, y * y), (1.0, 1.5), (0.1, 0.2), "dfD"),
    "angle": (lambda x, y: np.angle(x + 1j * y), (0.3, 1.5), (0.3, 1.5), "d"),
    "x + 1j y": (lambda x, y: np.exp(x + 1j * y), (0.3, 1.5), (0.3, 1.5), "d"),
}


def drawn(interval: Interval, shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Random numbers, whose imaginary part, if any, is not small."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(*interval, shape)
    return np.asarray(x + 1j * rng.uniform(0.2, 0.6, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def each(function: Function, count: int = 1) -> Function:
    """The function of every ``count`` arguments, all in one trace."""
    return lambda *args: [function(*args[k : k + count]) for k in range(0, len(args), count)]


@pytest.mark.costly
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_argument(name):
    function, interval, dtypes = UNARY[name]
    for dtype in dtypes:
        x = drawn(interval, (2, 3), dtype)
        scalar = drawn(interval, (), dtype, 1)
        points = [*(layout(x) for layout in LAYOUTS.values()), scalar, scalar[()], x[:0], x[:1, :1]]
        with np.errstate(all="ignore"):
            assert_traced(each(function), *points, *([scalar.item()] if dtype in "dD" else []))
        assert_differentiable(each(function), *points, order=1)
        if dtype != "f":
            assert_differentiable(each(function), x, scalar[()], x[:0], order=2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_arguments(name):
    function, first, second, dtypes = BINARY[name]
    for dtype in dtypes:
        points: list[Any] = []
        for p, q in (((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 3), (3,)), ((1,), (2, 2))):
            points += [drawn(first, p, dtype, len(points)), drawn(second, q, dtype, len(points) + 1)]
        points += [drawn(first, (), dtype)[()], drawn(second, (2,), dtype)]
        x, y = drawn(first, (2, 3), dtype), drawn(second, (2, 3), dtype)
        points += [LAYOUTS["transposed"](x), LAYOUTS["negative stride"](y), LAYOUTS["broadcast"](x), y[::-1]]
        if dtype in "dD":
            points += [x, float(y.real[0, 0]), float(x.real[0, 0]), float(y.real[0, 1])]
            points += [x.astype("f" if dtype == "d" else "F"), y]
        assert_traced(each(function, 2), *points)
        assert_differentiable(each(function, 2), *points[:12], order=1)
        if dtype != "f":
            assert_differentiable(function, points[0], points[1], order=2)


INTEGERS: dict[str, Function] = {
    "arithmetic": lambda i, j: (i + j, i - j, i * j, i // j, i % j, -i, abs(i), +i),
    "division": lambda i, j: (i / j, i**2, np.power(i, j), np.float_power(i, j), np.sqrt(j), np.exp(i)),
    "divmod": lambda i, j: (*divmod(i, j), *np.divmod(i, j), 7 // j, 7 % j, divmod(-7, j)),
    "bits": lambda i, j: (i & j, i | j, i ^ j, ~i, i << j, i >> j, 5 & i, 5 | i, 5 ^ i, 1 << j, 100 >> j),
    "bit functions": lambda i, j: (np.bitwise_count(i), np.bitwise_not(i), np.gcd(i, j), np.lcm(i, j)),
    "bools": lambda i, j: ((i > 2) & (j > 1), (i > 2) | (j > 1), (i > 2) ^ (j > 1), ~(i > 2)),
    "logic": lambda i, j: (
        np.logical_and(i, j),
        np.logical_or(i, j),
        np.logical_xor(i, j > 2),
        np.logical_not(i),
        np.invert(i > 1),
    ),
    "comparisons": lambda i, j: (i < j, i <= j, i > j, i >= j, i == j, i != j, i > 2, i == 2.5),
    "rounding": lambda i, j: (np.floor(i), np.round(i), np.round(i, -1), np.trunc(j), np.fix(i), np.ceil(i)),
    "predicates": lambda i, j: (np.isfinite(i), np.isnan(i), np.isinf(i), np.isreal(i), np.iscomplex(j), np.sign(i)),
    "extrema": lambda i, j: (np.maximum(i, j), np.fmin(i, 2), np.clip(i, -1, 2), np.clip(i, 0.5, 2), i.clip(j, None)),
    "others": lambda i, j: (np.nan_to_num(i), np.real(i), np.imag(i), np.conj(i), i.conj(), i**2, np.fmod(i, j)),
    "choices": lambda i, j: (np.where(i > j, i, 0.5), np.where(i, j, 1), np.select([i > 1, j > 2], [i, 2.5])),
    "pieces": lambda i, j: np.piecewise(i, [i > 1], [lambda v: v / 2, 7]) + j,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    i, j = np.array([-3, 0, 5, 12]), np.array([1, 2, 3, 4])
    function = INTEGERS[name]
    for dtype in (np.int64, np.int32, np.int8):
        assert_traced(lambda x, y: tuple(function(x, y)), i.astype(dtype), j.astype(dtype))
    assert_traced(lambda x, y: tuple(function(x, y)), i, j.astype(np.int32))
    if name != "pieces":
        assert_traced(lambda x, y: tuple(function(x, y)), np.int64(6), np.int64(4))


def test_unsigned_integers():
    i = np.array([0, 7, 255], np.uint8)
    assert_traced(lambda i: (i + 1, i * i, ~i, i >> 1, i / 2, i // 2, np.maximum(i, 3)), i)


PYTHON: dict[str, Function] = {
    "floats": lambda x, n: (x + n, x - 1, x * n, x / n, x // n, x % n, x**n, -x, +x, abs(-x), *divmod(x, n)),
    "ints": lambda x, n: (n + 1, n - 1, n * n, n / 2, n // 2, n % 2, n**2, -n, ~n, n << 2, n >> 1, n & 3, n | 4, n ^ 1),
    "comparisons": lambda x, n: (x < n, x <= 1, x > n, x == n, x != n, (x > 0) & (n > 0)),
    "functions": lambda x, n: (np.sin(x), np.floor(x), np.isnan(x), np.maximum(x, n), np.abs(x), np.ldexp(x, n)),
    "parts": lambda x, n: (x.real, x.imag, x.conjugate(), n.real, n.conjugate()),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_numbers(name):
    assert_traced(PYTHON[name], 2.6, 3)


def test_python_complex_numbers():
    def function(z, x):
        return z + x, z * z, z / 2, z**2, abs(z), z.real, z.imag, z.conjugate(), -z, z == x, np.exp(z), np.abs(z)

    assert_traced(function, 1.5 - 0.5j, 2.0)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 1e300])


def test_special_values():
    def function(x, y):
        return (
            np.isnan(x),
            np.isinf(x),
            np.isfinite(x),
            np.isposinf(x),
            np.isneginf(x),
            np.signbit(x),
            np.nan_to_num(x),
            np.nan_to_num(x, nan=2.0, posinf=3.0, neginf=np.array(-4.0)),
            np.isclose(x, y),
            np.array_equiv(x, y),
            np.isclose(x, y, equal_nan=True),
            np.allclose(x, x),
            np.array_equal(x, y, equal_nan=True),
            np.maximum(x, y),
            np.fmax(x, y),
            np.fmin(x, y),
            np.copysign(x, y),
            np.sign(x),
            np.clip(x, -1, 1),
            np.spacing(x[3:]),
            np.frexp(x),
            np.modf(x),
            np.hypot(x, y),
            np.logaddexp(x, y),
            np.heaviside(x, y),
        )

    with np.errstate(all="ignore"):
        for y in (SPECIAL, SPECIAL[::-1].copy(), np.zeros(8)):
            assert_same(rg.jit(function)(SPECIAL, y), function(SPECIAL, y))


def test_nan_to_num_of_complex_numbers_and_in_place():
    def in_place(x):
        y = x * 1
        z = np.nan_to_num(y, copy=False, nan=5.0)
        z[-1] = 7
        return y

    z = np.array([complex(np.nan, 1), complex(2, -np.inf), 3 - 1j])
    assert_traced(lambda z: np.nan_to_num(z, nan=0.5, neginf=-3.0), z)
    with np.errstate(all="ignore"):
        assert_traced(in_place, SPECIAL)


def test_unwrap():
    p = np.cumsum(np.array([[0.3, 2.5, 3.3, -2.0], [3.5, -3.4, 1.0, 4.0]]), axis=1)
    assert_traced(lambda p: (np.unwrap(p), np.unwrap(p, axis=0), np.unwrap(p, 4.0), np.unwrap(p, period=3.0)), p)
    assert_traced(lambda p: np.unwrap(p, period=4), np.array([0, 1, 2, -1, 0, 5]))
    assert_differentiable(lambda p: np.unwrap(p, axis=0) * p, p)
    weights, half = np.arange(1.0, 5.0), np.array([0.0, 180.0, 0.0, 180.0])  # steps of half a period are no jumps
    np.testing.assert_array_equal(rg.grad(lambda p: np.sum(weights * np.unwrap(p, period=360)))(half), weights)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_operators_in_place_and_reflected(name):
    plain, in_place = getattr(operator, name), getattr(operator, f"i{name}")

    def function(x, y):
        a = x * 1
        b = a
        c = in_place(a, y)
        d = in_place(a[0], y)
        return a, b, c, d, plain(2.5, x), plain(x, 2), plain(np.arange(1.0, 4.0), x), plain(np.float64(1.5), x)

    x, y = drawn((2.4, 2.5), (2, 3), "d"), drawn((0.98, 1.0), (3,), "d")
    assert_traced(function, x, y)
    if name != "floordiv":
        rg.check_grads(function, (x, y), order=1)


def test_operators_in_place_on_integers():
    def function(i, j):
        a = i * 1
        a &= j
        a |= 8
        a ^= i
        a <<= 2
        a >>= 1
        a //= 3
        a %= 5
        return a

    assert_traced(function, np.array([3, 9, 27]), np.array([1, 3, 5]))


def test_out_where_and_dtype():
    def function(x, y):
        a = np.zeros_like(x)
        b = np.log(y, out=a, where=x > 0)
        c = np.divide(1.0, x, out=np.ones_like(x), where=x != 0)
        d, e = np.divmod(x, y, out=(np.zeros_like(x), np.zeros_like(x)))
        f = np.add(x, y, dtype=np.float32)
        g = np.modf(x, out=(None, np.zeros_like(x)))
        np.clip(x, 0.1, 0.5, out=x)
        np.round(y, 1, out=y)
        return a, b, c, d, e, f, g, x, y, np.multiply(x, 2, dtype=complex), np.add(x, 1, casting="no")

    x, y = np.array([0.3, 0.0, -0.7, 2.0]), np.array([0.5, 1.5, -2.5, 3.0])
    compiled = rg.jit(function)
    with np.errstate(all="raise"):
        assert_same(compiled(x, y), function(x.copy(), y.copy()))


def test_plain_operands_with_a_traced_out():
    w = np.array([1.0, 4.0])

    def function(x):
        y = x * 1
        np.sqrt(w, out=y)
        z = np.modf(2.5, out=(None, y * 2))
        return y, z, np.maximum(1.0, w, out=x)

    compiled = rg.jit(function)
    for x in (np.array([7.0, 8.0]), np.array([5.0, 6.0])):
        assert_same(compiled(x), function(x.copy()))


def test_elements_left_out_by_where_have_zero_gradients():
    x = np.array([4.0, 0.0, -1.0])
    cases = [
        (np.log, x > 0, [0.25, 0.0, 0.0]),
        (np.sqrt, x > 0, [0.25, 0.0, 0.0]),
        (np.reciprocal, x != 0, [-1 / 16, 0.0, -1.0]),
        (np.arccosh, x > 1, [1 / np.sqrt(15), 0.0, 0.0]),
        (np.exp, x > 0, [np.exp(4), 0.0, 0.0]),
    ]
    with np.errstate(all="raise"):
        for function, mask, expected in cases:
            slope = rg.grad(lambda x, f=function, m=mask: np.sum(f(x, out=np.zeros_like(x), where=m)))(x)
            np.testing.assert_allclose(slope, expected, rtol=1e-14)


def test_an_old_value_that_where_keeps_passes_its_gradient():
    def function(x, y):
        return np.sum(np.square(x, out=y * 1, where=np.array([True, False])))

    x, y = rg.grad(function, argnums=(0, 1))(np.array([3.0, 5.0]), np.array([7.0, 9.0]))
    np.testing.assert_array_equal(x, [6.0, 0.0])
    np.testing.assert_array_equal(y, [0.0, 1.0])


OUTSIDE = np.zeros(3)
REFUSED: dict[str, tuple[Function, type[Exception], str]] = {
    "where without out": (lambda x: np.sqrt(x, where=x > 0), rg.errors.UnsupportedError, "pass out="),
    "out from outside": (lambda x: np.sqrt(x, out=OUTSIDE), rg.errors.CapturedWriteError, "inside the traced function"),
    "complex into real": (lambda x: np.multiply(x, 1j, out=x), TypeError, "same_kind"),
    "complex added in place": (lambda x: operator.iadd(x, 1j), TypeError, "same_kind"),
    "complex floor": (lambda x: np.floor(x * 1j), TypeError, "not supported"),
    "an unknown ufunc": (np._core.umath._ones_like, rg.errors.UnsupportedError, "other NumPy functions"),
    "casting": (lambda x: np.add(x, 1, dtype=np.float32, casting="safe"), TypeError, "safe"),
    "mask": (lambda x: np.sqrt(x, out=x, where=x), TypeError, "bool"),
    "bits of floats": (lambda x: x & 1, TypeError, "not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    function, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        rg.jit(function)(np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("number", [0.0, -0.0, 2.5, -1e30, np.inf, -np.inf, np.nan])
def test_logaddexp_of_a_number_has_the_slope_of_that_of_arrays(number: float, dtype: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 30.0, -800.0, 1e30, -1e30, np.inf, -np.inf, np.nan]
    x = np.array(values, dtype)
    for function in (np.logaddexp, np.logaddexp2):

        def of_number(x: Any, function: Any = function) -> Any:
            return np.sum(function(x, np.asarray(number, x.dtype)[()]))

        def of_arrays(x: Any, y: Any, function: Any = function) -> Any:
            return np.sum(function(x, y))

        with np.errstate(all="ignore"):
            found = rg.grad(of_number)(x)
            np.testing.assert_array_equal(found, rg.grad(of_arrays)(x, np.full_like(x, number)))
        lowest = str(np.finfo(dtype).min)
        assert (f"{lowest[:8]}" in rg.grad(of_number).source(x)) == (not number > -np.inf)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u4", "i8", "u8"])
@pytest.mark.parametrize(
    "bounds", [(-1, 5), (1, 300), (-300, 5), (-(2**70), 2**70), (None, 2**70), (-1, None)], ids=str
)
def test_clip_takes_bounds_beyond_a_dtype(dtype: str, bounds: tuple[int | None, int | None]) -> None:
    x = np.array([0, 1, 7, 100], dtype)
    for a in (x, x[2], x[:1].reshape(())):
        found, expected = rg.jit(lambda a: np.clip(a, *bounds))(a), np.clip(a, *bounds)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
