"""Result types: for every ufunc and operator, all kinds of operands give the dtype, shape and kind that NumPy gives."""

from __future__ import annotations

import operator
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer.array import shadow_of
from retrograd.tracer.operators import COMPARISONS
from retrograd.tracer.ufuncs import COMPOSED, UFUNCS

SCALARS = {
    "python float": 0.75,
    "f64": np.float64(1.5),
    "f32": np.float32(0.5),
    "f16": np.float16(0.25),
    "i64": np.int64(3),
    "i8": np.int8(2),
    "u8": np.uint8(5),
    "bool": np.bool_(True),
}
ARRAYS = {
    "f64[2]": np.array([0.5, 2.0]),
    "f32[2]": np.array([0.25, 3.0], np.float32),
    "f16[1]": np.array([0.5], np.float16),
    "i64[2]": np.array([1, 4]),
    "i8[2]": np.array([1, 3], np.int8),
    "u8[1]": np.array([7], np.uint8),
    "bool[2]": np.array([True, False]),
    "f64[]": np.array(0.5),
    "f32[]": np.array(0.5, np.float32),
    "i64[]": np.array(2),
    "f64[0]": np.zeros(0),
    "f32[0,1]": np.zeros((0, 1), np.float32),
}
TRACED = {**SCALARS, **ARRAYS}
STATIC = {"python int": 2, "python bool": True, "python number in the function": 0.5, "wide": np.float64(1.25)}
REAL = [*TRACED, *STATIC]
COMPLEX = {"c128": np.array([1 + 2j, 0.5j]), "c64": np.complex64(0.5 - 1j), "python complex": 0.25 + 1j}

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
]
UNARY_OPERATORS = [operator.neg, operator.pos, operator.abs, operator.invert]
HANDLED = sorted({*UFUNCS, *COMPOSED} - {np.matmul}, key=lambda f: f.__name__)
ELEMENTWISE = [f for f in HANDLED if isinstance(f, np.ufunc) and f.signature is None]


def tried(function: Any, *operands: Any) -> Any:
    """The results as a tuple, or the kind of the error."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = function(*operands)
    except (rg.errors.UnsupportedError, rg.errors.ControlFlowError):
        raise
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError, IndexError):
        return "refused"
    return found if isinstance(found, tuple) else (found,)


def compare(function: Any, rows: list[tuple[Any, ...]], pick: Any) -> None:
    """Run a function on many rows of operands, plain and in one trace, and compare."""
    expected = [tried(function, *pick(TRACED, row)) for row in rows]
    with np.errstate(all="ignore"):
        found = rg.jit(lambda given: [tried(function, *pick(given, row)) for row in rows])(TRACED)
    for row, got, wanted in zip(rows, found, expected, strict=True):
        if isinstance(wanted, str):
            assert isinstance(got, str), row
            continue
        assert not isinstance(got, str), row
        for a, b in zip(got, wanted, strict=True):
            what = f"{row}: {a!r} is not {b!r}"
            assert type(a) is type(b), what
            assert np.asarray(a).dtype == np.asarray(b).dtype, what
            assert np.shape(a) == np.shape(b), what
            kind = np.asarray(b).dtype.kind
            if kind in "fc":
                eps = float(np.finfo(np.asarray(b).dtype).eps)
                np.testing.assert_allclose(a, b, rtol=4 * eps, atol=0, err_msg=what)
            else:
                np.testing.assert_array_equal(a, b, err_msg=what)


def pick_real(given: Any, row: tuple[str, ...]) -> list[Any]:
    return [given[name] if name in given else STATIC[name] for name in row]


FEW = ["python float", "f32", "i8", "bool", "f64[2]", "f32[2]", "i64[2]", "bool[2]", "f32[]", "python int", "wide"]
ALL_ROWS = [row for row in product(REAL, repeat=2) if not {*row} <= {*STATIC}]
FEW_ROWS = [row for row in ALL_ROWS if {*row} <= {*FEW}]
each_row = pytest.mark.parametrize(
    "rows", [pytest.param(FEW_ROWS, id="few"), pytest.param(ALL_ROWS, id="all", marks=pytest.mark.slow)]
)


@pytest.mark.parametrize("ufunc", [f for f in ELEMENTWISE if f.nin == 1], ids=lambda f: f.__name__)
def test_unary_ufuncs_have_numpys_result_types(ufunc):
    compare(ufunc, [(name,) for name in TRACED], pick_real)


@each_row
@pytest.mark.parametrize("ufunc", [f for f in ELEMENTWISE if f.nin == 2], ids=lambda f: f.__name__)
def test_binary_ufuncs_have_numpys_result_types(ufunc, rows):
    compare(ufunc, rows, pick_real)


@each_row
@pytest.mark.parametrize("op", OPERATORS, ids=lambda f: f.__name__)
def test_operators_have_numpys_result_types(op, rows):
    compare(op, rows, pick_real)


@pytest.mark.parametrize("op", UNARY_OPERATORS, ids=lambda f: f.__name__)
def test_unary_operators_have_numpys_result_types(op):
    compare(op, [(name,) for name in TRACED], pick_real)


IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow, operator.ifloordiv]


@each_row
@pytest.mark.parametrize("op", IN_PLACE, ids=lambda f: f.__name__)
def test_assignments_in_place_keep_the_dtype_and_refuse_what_numpy_refuses(op, rows):
    def apply(x: Any, y: Any) -> Any:
        return op(x.copy() if isinstance(shadow_of(x), np.ndarray) else x, y)

    compare(apply, rows, pick_real)


REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "sum of axis 0": lambda x: np.sum(x, axis=0),
    "sum with keepdims": lambda x: np.sum(x, keepdims=True),
    "sum as f32": lambda x: np.sum(x, dtype=np.float32),
    "sum by method": lambda x: x.sum(axis=-1),
    "add.reduce": np.add.reduce,
    "reshape": lambda x: np.reshape(x, -1),
    "ravel": np.ravel,
    "transpose": np.transpose,
    "copy": np.copy,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "full_like": lambda x: np.full_like(x, 1),
    "where": lambda x: np.where(x, x, 0),
    "astype": lambda x: x.astype("f4"),
    "where with a number": lambda x: np.where(x > 0, x, 0.5),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "concatenate": lambda x: np.concatenate([np.ravel(x), np.ones(1, np.float32)]),
    "dot": lambda x: np.dot(x, x),
    "stack": lambda x: np.stack([x, x]),
    "array": lambda x: np.array([x, x]),
    "full": lambda x: np.full((2, 2), x),
    "matmul": lambda x: np.ravel(x) @ np.ravel(x),
    "squeeze": np.squeeze,
    "an element": lambda x: np.ravel(x)[0],
    "an element by a list": lambda x: np.ravel(x)[[0]],
    "an element of an array": lambda x: np.ravel(x)[0, ...],
    "item": lambda x: x.item(),
    "max of two": lambda x: np.maximum(x, x),
    "empty index": lambda x: x[()],
    "ellipsis": lambda x: x[...],
    "new axis": lambda x: x[None],
    "linspace": lambda x: np.linspace(0, 1, 3) * x,
    "arange": lambda x: np.arange(2) * np.ravel(x)[0],
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *np.shape(x))),
    "asarray": lambda x: np.asarray(x)[...],
    "atleast_1d": np.atleast_1d,
    "result_type": lambda x: np.ones(2, np.result_type(x, np.int8)),
}


@pytest.mark.parametrize("function", REDUCTIONS.values(), ids=REDUCTIONS.keys())
def test_functions_have_numpys_result_types(function):
    names = [name for name in TRACED if name != "python float" or not isinstance(tried(function, 0.75), str)]
    plain = {name: tried(function, TRACED[name]) for name in names}

    def traced(given: Any) -> Any:
        results = {}
        for name in names:
            try:
                results[name] = tried(function, given[name])
            except rg.errors.UnsupportedError:
                results[name] = None
        return results

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
        found = rg.jit(traced)(TRACED)
    for name in names:
        got, wanted = found[name], plain[name]
        if got is None:
            continue
        if isinstance(wanted, str):
            assert isinstance(got, str), name
            continue
        for a, b in zip(got, wanted, strict=True):
            what = f"{name}: {a!r} is not {b!r}"
            assert type(a) is type(b), what
            assert np.asarray(a).dtype == np.asarray(b).dtype, what
            np.testing.assert_allclose(a, b, rtol=1e-3 if np.asarray(b).dtype == np.float16 else 1e-6, err_msg=what)


@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, np.exp], ids=lambda f: f.__name__
)
def test_complex_operands(op):
    rows = list(COMPLEX) if op is np.exp else list(product([*COMPLEX, "real"], repeat=2))
    values = {**COMPLEX, "real": np.float32(2.0)}
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    found = rg.jit(lambda given: [op(*(given[n] for n in row)) for row in rows])(values)
    for row, a in zip(rows, found, strict=True):
        b = op(*(values[n] for n in row))
        assert type(a) is type(b), row
        assert np.asarray(a).dtype == np.asarray(b).dtype, row
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_powers_by_plain_numbers_are_bitwise_those_of_numpy():
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        x = np.abs(rng.standard_normal(100)).astype(dtype) + 0.1  # fewer than become products
        for n in (2, 3, -1, -2, 0, 1, 0.5, 2.0, 1.5, -0.5, np.float64(2.0), np.float32(2.0), np.int64(2), True):
            for given in (x, x[0], x[:1].reshape(())):
                found = rg.jit(lambda v, n=n: v**n)(given)
                expected = given**n
                assert type(found) is type(expected), (n, dtype)
                assert found.dtype == expected.dtype, (n, dtype)
                np.testing.assert_array_equal(found, expected)


def test_elementwise_results_are_bitwise_those_of_numpy():
    rng = np.random.default_rng(1)
    x, y = np.abs(rng.standard_normal((2, 100))) + 0.1
    for ufunc in ELEMENTWISE:
        for a, b in ((x, y), (x[0], y[0])):
            operands = (a, b)[: ufunc.nin]
            expected = tried(ufunc, *operands)
            if isinstance(expected, str):
                continue
            with np.errstate(all="ignore"):
                found = rg.jit(lambda *v, ufunc=ufunc: ufunc(*v))(*operands)
            for got, wanted in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
                np.testing.assert_array_max_ulp(np.asarray(got, float), np.asarray(wanted, float), 1)


@pytest.mark.parametrize("name", sorted(COMPARISONS))
def test_comparisons_of_whole_numbers_of_python(name: str) -> None:
    """NumPy compares two of them as objects, which no graph contains."""
    compare, operate = COMPARISONS[name], getattr(operator, name)
    for b in (2, -3, 2**70, True):

        def function(x: Any, b: int = b) -> Any:
            a = x.item()
            answers = [compare(a, b), compare(b, a), compare(a, a), operate(a, b), operate(b, a)]
            return [*answers, np.where(compare(a, b), x, 0.5)]

        for a in (2, 2**62 + 1, -1):
            x = np.array(a)
            compiled = rg.jit(function)
            for found, expected in zip(compiled(x), function(x), strict=True):
                assert np.array_equal(found, expected)
                assert np.asarray(found).dtype == np.asarray(expected).dtype
            assert "object" not in str(compiled.at(x).graph)


HUGE = -(2**63) - 1, -(2**63), 2**63 - 1, 2**63, 2**70


def test_whole_numbers_of_python_are_results_of_any_size() -> None:
    assert rg.jit(lambda x: (x, HUGE))(1.5) == (1.5, HUGE)
    assert rg.grad(lambda x: (x * x, {"n": HUGE}), has_aux=True)(1.5) == (3.0, {"n": HUGE})
    square = rg.jit(lambda n, x: n * n + 1)
    assert [square(n, 1.0) for n in (10**18, 10**10, 3, 10**18)] == [10**36 + 1, 10**20 + 1, 10, 10**36 + 1]


def test_loops_take_whole_numbers_of_64_bits() -> None:
    for n in (-(2**63), 2**63 - 1):
        assert rg.jit(lambda x, n=n: rg.fori_loop(3, lambda _, c: (c[0], c[1] * x), (n, 1.0)))(2.0) == (n, 8.0)
    with pytest.raises(rg.errors.CarryError, match="an array cannot hold the integer"):
        rg.jit(lambda x: rg.fori_loop(3, lambda _, c: (c[0], c[1] * x), (2**63, 1.0)))(2.0)
