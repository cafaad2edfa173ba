# ruff: noqa: PLW0108 - each call is recorded
"""Python functions over elements, NumPy's iterators, counts of traced places, and complex numbers of traced parts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_differentiable, assert_same, assert_traced, distinct

Function = Callable[..., Any]
X = distinct((2, 3))
V = distinct((4,))

power = np.vectorize(lambda e, n: e**n, excluded=["n"])
first_excluded = np.vectorize(lambda table, e: table[0] * e + table[1], excluded=[0])
doubled = np.frompyfunc(lambda e: 2 * e * e, 1, 1)
sum_and_product = np.frompyfunc(lambda a, b: (a + b, a * b), 2, 2)


@np.vectorize
def decorated(e: Any) -> Any:
    return np.sin(e) * e


@np.vectorize(otypes=[float], signature="(n),()->(n)")
def scaled(v: Any, s: Any) -> Any:
    return v * s


def _written(x: Any) -> Any:
    y = np.copy(x)
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for e in it:
            e[...] = e * e
    return y


def _by_hand(x: Any) -> Any:
    total, it = 0.0, np.nditer([x, np.arange(3.0)], flags=["multi_index", "c_index"])
    while not it.finished:
        total = total + it[0] ** 2 * it[1] * (1 + it.multi_index[0] + it.index)
        it.iternext()
    return total


def _allocated(x: Any) -> Any:
    it = np.nditer([x, None])
    for a, b in it:
        b[...] = a * a
    return it.operands[1]


def _in_order(x: Any) -> Any:
    return np.stack([k * e for k, e in enumerate(np.nditer(x, order="F"))])


def _assembled(x: Any) -> Any:
    y = np.zeros((2, 3))
    for at in np.ndindex(2, 3):
        y[at] = x[at] ** 2
    return y


PROGRAMS: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "vectorize": (lambda x: np.vectorize(lambda e: e * e)(x), (X,)),
    "vectorize broadcast": (lambda x, v: np.vectorize(lambda a, b: a * b + a)(x, v[:3]), (X, V)),
    "vectorize a number": (lambda x: np.vectorize(lambda e: e * e)(x[0, 0]), (X,)),
    "vectorize otypes": (lambda x: np.vectorize(lambda e: (e, e * 2), otypes=[float, np.float32])(x)[0], (X,)),
    "vectorize cache": (lambda x: np.vectorize(lambda e: e**3, cache=True)(x), (X,)),
    "vectorize excluded name": (lambda x: power(x, n=2), (X,)),
    "vectorize excluded place": (lambda x, v: first_excluded(v, x), (X, V)),
    "vectorize keyword": (lambda x: np.vectorize(lambda a, b=1.0: a * b)(x, b=x * 2), (X,)),
    "vectorize decorator": (lambda x: decorated(x), (X,)),
    "vectorize signature": (lambda x: np.vectorize(np.inner, signature="(n),(n)->()")(x, x), (X,)),
    "vectorize signature with new axes": (
        lambda x: np.vectorize(lambda v: (np.outer(v, v), v[0]), signature="(n)->(m,k),()")(x)[0],
        (X,),
    ),
    "vectorize signature decorator": (lambda x, v: scaled(x, v[:2]), (X, V)),
    "vectorize places": (lambda x: np.vectorize(lambda k: x[0, k])(np.arange(3)), (X,)),
    "frompyfunc": (lambda x: doubled(x).astype(float), (X,)),
    "frompyfunc results": (lambda x: sum_and_product(x, 3.0)[1].astype(float), (X,)),
    "frompyfunc inside": (lambda x: np.frompyfunc(lambda e: e / (1 + e * e), 1, 1)(x).astype(float), (X,)),
    "ndenumerate": (lambda x: sum((e * e * (i + 2 * j) for (i, j), e in np.ndenumerate(x)), 0.0), (X,)),
    "ndindex": (_assembled, (X,)),
    "nditer": (lambda x: sum((e * e for e in np.nditer(x)), 0.0), (X,)),
    "nditer by hand": (_by_hand, (X,)),
    "nditer writing": (_written, (X,)),
    "nditer allocating": (_allocated, (X,)),
    "nditer in order": (_in_order, (X,)),
    "bincount": (lambda v: np.bincount(np.argsort(v), v * v, minlength=6), (V,)),
    "complex of parts": (lambda x: x * abs(complex(x[0, 0], x[0, 1]) ** 2), (X,)),
    "complex by names": (lambda x: x * abs(complex(real=x[0, 0], imag=2.0) * complex(1.0, x[0, 1])), (X,)),
    "complex of complex parts": (lambda x: x * abs(complex(x[0, 0] * (1 + 2j), x[0, 1] * 1j)), (X,)),
    "apply_over_axes": (lambda x: np.apply_over_axes(np.sum, x * x, [0, 1]), (X,)),
    "place": (lambda x: (y := np.copy(x), np.place(y, x > 0, x[0] * 2))[0], (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name: str) -> None:
    function, args = PROGRAMS[name]
    assert_traced(function, *args)
    assert_differentiable(function, *args)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("place", "bincount", "complex of parts")])
def test_lanes(name: str) -> None:
    function, args = PROGRAMS[name]
    stacked = [np.stack([x, x + 0.25]) for x in args]
    found = rg.vmap(function)(*stacked)
    for k in range(2):
        np.testing.assert_allclose(found[k], function(*(x[k] for x in stacked)), rtol=1e-13)


def test_functions_see_what_python_numbers_they_get_in_numpy() -> None:
    seen: list[Any] = []
    for run in (lambda f: f, rg.jit):
        seen.append([])
        run(lambda x: np.vectorize(lambda e: seen[-1].append(isinstance(e, np.generic)) or e)(x))(np.float32([1, 2]))
    assert seen[0] == seen[1] == [True, False, False]


def test_dtypes_and_conversions_are_those_of_objects() -> None:
    for function in (
        lambda x: np.vectorize(lambda e: e * 2, otypes="i")(x),
        lambda x: np.vectorize(lambda e: e * 2, otypes=[complex])(x),
        lambda x: np.vectorize(lambda e: 1 if e > 100 else 2.7)(x),
        lambda x: np.vectorize(lambda e: e > 0)(x),
        lambda x: np.vectorize(lambda e: e * 1j, otypes=[float])(x),
        lambda x: np.vectorize(lambda e: (e, e))(x),
        lambda x: np.vectorize(lambda e: e)(x[:0]),
        lambda x: np.vectorize(lambda e: e, otypes=[float])(x[:0]),
        lambda x: np.vectorize(np.inner, signature="(n),(n)->()")(x, x[0]),
        lambda x: np.vectorize(str)(np.arange(3)).tolist() == ["0", "1", "2"],
    ):
        for x in (X, np.arange(6).reshape(2, 3), X.astype(np.float32)):
            assert_traced(function, x)


SCALE = {"by": 2.0}


def test_what_the_function_of_a_ufunc_reads_is_watched() -> None:
    by_ufunc = np.frompyfunc(lambda e: e * SCALE["by"], 1, 1)
    by_class = np.vectorize(lambda e: e * SCALE["by"])
    functions = [rg.jit(lambda x, f=f: np.sum(x) * f(3.0) + np.sum(f(x))) for f in (by_ufunc, by_class)]
    try:
        for SCALE["by"] in (2.0, 5.0, 2.0):
            for f in functions:
                assert f(V) == pytest.approx(4 * SCALE["by"] * np.sum(V), rel=1e-14)
    finally:
        SCALE["by"] = 2.0


def test_counts_of_traced_places_have_the_length_of_each_call() -> None:
    count = rg.jit(lambda k: np.bincount(k, minlength=2))
    for k in ([1, 4], [1, 2], [0, 0], [3, 3]):
        assert_same(count(np.array(k)), np.bincount(k, minlength=2))
    bools = rg.jit(lambda v: np.bincount(v > 0, v))
    assert_same(bools(V), np.bincount(V > 0, V))
    with pytest.raises(ValueError, match="negative"):
        count(np.array([-1, 2]))
    with pytest.raises(rg.errors.UnsupportedError, match=r"np\.add\.at"):
        rg.scan(lambda c, k: (c, np.bincount(k)), 0.0, np.array([[1, 2], [0, 1]]))


def test_signs_of_zero_and_infinities_survive_in_complex_numbers() -> None:
    f = rg.jit(lambda a, b: (complex(a, b), complex(a), complex(imag=b)))
    for a, b in ((-0.0, -0.0), (1.0, np.inf), (np.nan, 2.0), (-np.inf, -0.0)):
        assert [repr(z) for z in f(a, b)] == [repr(z) for z in (complex(a, b), complex(a), complex(imag=b))]


def test_texts_of_traced_values_are_marked() -> None:
    texts: list[str] = []

    def f(x: Any) -> Any:
        texts.extend(text(x) for text in (np.array2string, np.array_repr, np.array_str))
        texts.append(np.array2string(np.zeros(2)))
        return x

    rg.jit(f)(V)
    assert all(text.startswith("<traced") for text in texts[:3])
    assert texts[3] == "[0. 0.]"


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (lambda x: list(np.nditer(x, flags=["external_loop"])), rg.errors.UnsupportedError, "external_loop"),
        (lambda x: np.nditer(x, op_dtypes=["f4"]), rg.errors.UnsupportedError, "op_dtypes"),
        (lambda x: [e.fill(0) for e in np.nditer(x)], rg.errors.ReadOnlyError, "read-only"),
        (lambda x: np.frompyfunc(max, 2, 1).reduce(x[0]), rg.errors.UnsupportedError, "in a loop"),
        (lambda x: np.vectorize(lambda e: e, otypes=[object])(x), rg.errors.UnsupportedError, "dtype of numbers"),
        (lambda x: complex(x[0, 0] * 1j, "2"), TypeError, "string"),
    ],
)
def test_what_is_refused(function: Function, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        rg.jit(function)(X)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2,), (0,)])
@pytest.mark.parametrize("convert", [lambda x: float(x) * 2.0, lambda x: complex(x) * 2.0])
def test_arrays_become_numbers_where_the_installed_numpy_lets_them(convert, shape):
    def f(x):
        try:
            return convert(x)
        except TypeError:
            return -1.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert rg.jit(f)(np.full(shape, 3.0)) == f(np.full(shape, 3.0))
