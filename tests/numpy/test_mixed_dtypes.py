"""Functions of two arrays of any two dtypes: NumPy's results and dtypes (NEP 50), and gradients in the own dtypes."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from tests.support.functions import assert_same, outcome

RNG = np.random.default_rng(0)
ARRAYS = {d: (RNG.normal(size=(3, 3)) + 3 * np.eye(3)).astype(d) for d in "efdFDlib?"}
FUNCTIONS: dict[str, Any] = {
    "add": np.add,
    "power": np.power,
    "hypot": np.hypot,
    "arctan2": np.arctan2,
    "maximum": np.maximum,
    "logaddexp": np.logaddexp,
    "where": lambda a, b: np.where(a > 1, a, b),
    "select": lambda a, b: np.select([a > 1], [a], b),
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "stack": lambda a, b: np.stack([a, b]),
    "append": np.append,
    "insert": lambda a, b: np.insert(a, 1, b[0], axis=0),
    "matmul": np.matmul,
    "inner": np.inner,
    "outer": np.outer,
    "vdot": np.vdot,
    "tensordot": np.tensordot,
    "kron": np.kron,
    "cross": np.cross,
    "multi_dot": lambda a, b: np.linalg.multi_dot([a, b, a]),
    "solve": np.linalg.solve,
    "lstsq": lambda a, b: np.linalg.lstsq(a, b)[0],
    "cov": np.cov,
    "convolve": lambda a, b: np.convolve(a[0], b[0]),
    "polyval": lambda a, b: np.polyval(a[0], b),
    "polyfit": lambda a, b: np.polyfit(a[0], b[0], 1),
    "interp": lambda a, b: np.interp(a[0], np.arange(3), b[0]),
    "trapezoid": np.trapezoid,
    "average": lambda a, b: np.average(a, weights=b),
    "isin": np.isin,
    "union1d": np.union1d,
    "ldexp": lambda a, b: np.ldexp(a, 2) + b,
    "quantile": lambda a, b: np.quantile(a, 0.3) + b,
}
SMOOTH = ("add", "hypot", "where", "matmul", "kron", "solve", "cov", "convolve", "polyval", "trapezoid", "average")


@pytest.mark.costly
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_numpy(name: str) -> None:
    function, compiled = FUNCTIONS[name], rg.jit(FUNCTIONS[name])
    for left, right in itertools.product(ARRAYS, ARRAYS):
        args = [ARRAYS[left], ARRAYS[right]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, found = outcome(function, args), outcome(compiled, args)
        if isinstance(expected, type):
            assert isinstance(found, type)
            continue
        coarse = 2e-4 if "e" in left + right else 1e-6 if set("fF") & {left, right} else 1e-13
        try:
            assert_same(found, expected, coarse)
        except Exception as fault:
            fault.add_note(f"{name} of {np.dtype(left)} and {np.dtype(right)}")
            raise


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_have_the_dtypes_of_their_arguments(name: str) -> None:
    function = FUNCTIONS[name]
    for left, right in itertools.product("efdFD", "efdFD"):
        args = [ARRAYS[left], ARRAYS[right]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(outcome(function, args), type):
                continue
            found = rg.grad(lambda a, b: np.sum(np.real(function(a, b))), argnums=(0, 1))(*args)
        for ct, x in zip(found, args, strict=True):
            assert (ct.dtype, ct.shape) == (x.dtype, x.shape)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "?", "D"])
@pytest.mark.parametrize("number", [1j, 2.7, -0.0, np.nan, 3, 300, True], ids=str)
def test_plain_numbers_are_cast_as_numpy_casts_them_where_all_may_be_lost(number: complex, dtype: str) -> None:
    for a in ARRAYS.values():
        for ufunc in (np.add, np.maximum):

            def program(a: Any, ufunc: Any = ufunc) -> Any:
                return ufunc(a, number, dtype=dtype, casting="unsafe")

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected, found = outcome(program, [a]), outcome(rg.jit(program), [a])
            if isinstance(found, type) and issubclass(found, rg.errors.UnsupportedError):
                continue
            assert_same(found, expected)
