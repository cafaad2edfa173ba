"""Small arrays on numbers give NumPy's bits, types and signs of zeros: special values, bools and Python's floats."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.codegen.numpy.plain_numbers import regions, small_arrays

pytestmark = pytest.mark.filterwarnings("ignore")

MADE = "number is float else"
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 5e-324, -1e-310, 1e308, -1e308, np.inf, -np.inf, np.nan]
ROWS = [np.array(row) for row in zip(*[iter(SPECIAL * 3)] * 3, strict=True)][:9]
FINITE = [np.array(row) for row in ([0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [1.0, -0.0, 0.5], [-2.5, 3.0, 5e-324])]
UNARY = [
    *("absolute", "arctan", "cbrt", "ceil", "cos", "exp", "expm1", "fabs", "floor", "isfinite", "isinf"),
    *("isnan", "log", "log1p", "logical_not", "negative", "positive", "reciprocal", "rint", "sign", "signbit", "sin"),
    *("sqrt", "square", "tanh", "trunc"),
]
BINARY = [
    *(
        "add",
        "arctan2",
        "bitwise_or",
        "copysign",
        "divide",
        "equal",
        "floor_divide",
        "greater",
        "heaviside",
        "less_equal",
    ),
    *("logaddexp", "logical_and", "logical_xor", "maximum", "minimum", "multiply", "power", "remainder", "subtract"),
]
SIGNS_AT_TIES = platform.machine() in ("x86_64", "AMD64")  # other processors may prefer 0.0 to -0.0
KINDS: dict[str, Callable[..., Any]] = {
    "float": lambda x, a: x,
    "comparison": lambda x, a: x > 0.25,
    "not": lambda x, a: np.logical_not(x),
    "bool as float": lambda x, a: np.logical_or(x > 1, x < -2).astype(float),
    "Python's float": lambda x, a: a,
}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The shortest functions run on numbers, too, and as NumPy would round them."""
    monkeypatch.setattr(regions, "FEWEST", 0)
    monkeypatch.setattr(regions, "SHORT", 0)
    monkeypatch.setattr(small_arrays, "_quicker", _apart)
    with rg.config(exact=True):
        yield


def _apart(graph: Any, made: Any) -> Any:
    try:
        return made.graph()
    except small_arrays._StaysWhole:
        return None


def assert_numpys(f: Callable[..., Any], *rows: Any, on_numbers: bool = True, signs: bool = True) -> None:
    """The bits of all results, their dtypes and types, at each row of arguments."""
    compiled = rg.jit(f)
    for args in rows:
        for found, expected in zip(compiled(*args), f(*args), strict=True):
            assert type(found) is type(expected)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            np.testing.assert_array_equal(found, expected, err_msg=str(args))
            known = ~np.isnan(expected) & signs  # a nan has a sign, of which IEEE says nothing
            np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known], err_msg=str(args))
    assert (MADE in compiled.source(*rows[0])) == on_numbers


def test_each_function_of_one_operand() -> None:
    for name in UNARY:
        function = getattr(np, name)
        assert_numpys(lambda x, f=function: (told(f(x)), x * 0.5), *((x,) for x in [*FINITE, *ROWS]))


@pytest.mark.whole
@pytest.mark.parametrize("name", BINARY)
def test_each_function_of_two_operands_of_all_kinds(name: str) -> None:
    function = getattr(np, name)
    rows = [(x, np.roll(x, 1), a) for x, a in zip([*FINITE, *ROWS], itertools.cycle([0.0, -0.0, 0.5]), strict=False)]
    for p in KINDS.values():
        of_floats = [q for q in KINDS.values() if _dtype(lambda x, a, p=p, q=q: function(p(x, a), q(x, a))) == "d"]
        of_bools = [q for q in KINDS.values() if _dtype(lambda x, a, p=p, q=q: function(p(x, a), q(x, a))) == "?"]

        def f(x: Any, y: Any, a: float, p: Any = p, made: Any = (*of_floats, *of_bools)) -> Any:
            return (x * 0.5, *(told(function(p(x, a), q(y, a))) for q in made))

        if of_floats or of_bools:
            assert_numpys(f, *rows, on_numbers=name != "power", signs=_signs(name))


def test_powers_by_one_number() -> None:
    """NumPy takes roots and squares for some exponents; of arrays of exponents it does not ask."""
    for n in (0.5, 2.0, -1.0, 0.0, 1.0, 3.0):
        assert_numpys(lambda x, a: (np.power(x, a), np.power(x > 0.25, a)), *((x, n) for x in [*FINITE, *ROWS]))


def _signs(name: str) -> bool:
    """Whether the signs of zeros are known: NumPy's extrema of 0.0 and -0.0 are those of the processor."""
    return SIGNS_AT_TIES or not name.startswith(("maximum", "minimum", "largest", "smallest"))


def told(x: Any) -> Any:
    """The number that tells of a bool: arrays of bools do not go out of code on numbers."""
    return np.where(x, 2.0, 3.0) if x.dtype == bool else x


def _dtype(f: Callable[..., Any]) -> str | None:
    """The letter of the dtype of an array that a function makes; None if it makes none."""
    try:
        found = f(np.array([0.5, 1.5]), 0.5)
    except TypeError:  # there is no difference of bools
        return None
    return found.dtype.char if isinstance(found, np.ndarray) else None


@pytest.mark.whole
@pytest.mark.parametrize("name", ["where", "clip", "concatenate", "stack", "array", "setitem", "bools"])
def test_what_puts_numbers_and_bools_together(name: str) -> None:
    def assigned(x: Any, b: Any) -> Any:
        y = np.zeros(3)
        y[1:] = b[1:]
        return y

    f: Callable[..., Any] = {
        "where": lambda x, b: np.where(b, x, b),
        "clip": lambda x, b: np.clip(x, b, 2.0),
        "concatenate": lambda x, b: np.concatenate([b, x]),
        "stack": lambda x, b: np.ravel(np.stack([x, b])),
        "array": lambda x, b: np.array([b[0], x[1]]),
        "setitem": assigned,
        "bools": lambda x, b: np.abs(b),
    }[name]
    for made in (lambda x: x > 0.25, np.logical_not):
        compiled = rg.jit(lambda x, made=made: (f(x, made(x)), x * 2.0))
        for x in (*FINITE, *ROWS):
            found, expected = compiled(x)[0], f(x, made(x))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


SUMS: dict[str, Callable[[Any], Any]] = {
    "all": np.sum,
    "mean": np.mean,
    "reduce": np.add.reduce,
    "no axis": lambda x: np.sum(x, axis=()),
    "an axis": lambda x: np.sum(x, axis=0, keepdims=True),
    "one element": lambda x: np.sum(x[:1]),
    "a number": lambda x: np.sum(x[0]),
    "from zero": lambda x: np.sum(x, initial=0.0),
    "masked": lambda x: np.sum(x, where=x < 1.0),
    "squares": lambda x: np.sum(x * x),
    "differences": lambda x: np.sum((x - x) * -1.0 + x),
    "a sum of sums": lambda x: np.sum(x + x + x),
    "largest": np.max,
    "smallest": np.min,
    "largest over no axis": lambda x: np.max(x, axis=()),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 12])
def test_reductions_of_zeros_of_both_signs(name: str, n: int) -> None:
    signs = (-1.0) ** np.arange(n)
    rows = [np.full(n, -0.0), np.full(n, 0.0), 0.0 * signs, -0.0 * signs]
    assert_numpys(lambda x: (SUMS[name](x * 0.5 - 0.0),), *((x,) for x in rows), signs=_signs(name))


@pytest.mark.parametrize("n", [3, 8])
def test_gradients_through_sums_of_negative_zeros(n: int) -> None:
    def slopes(x: Any) -> Any:
        return (np.ones(n) / np.sum(x) * 2.0,)

    slope = rg.grad(lambda x: np.sum(np.log(np.sum(x) * np.ones(n))) * 2.0)
    x = np.full(n, -0.0)
    np.testing.assert_array_equal(slope(x), slopes(x)[0] * n)


def test_long_chains_of_sums_are_looked_through_at_once() -> None:
    def f(x: Any) -> Any:
        for _ in range(60):
            x = x + x
        return (np.sum(x),)

    assert_numpys(f, (np.full(3, -0.0),))
