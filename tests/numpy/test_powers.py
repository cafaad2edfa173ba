"""Powers: NumPy, the interpreter and the generated source give the same bits for every spelling and exponent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.ir.evaluate import evaluate
from tests.support.functions import assert_differentiable, assert_traced

EXPONENTS = [2, 2.0, 1, 1.0, 0.5, -1, -1.0, 0, 0.0, 3, 3.0, 2.5, -2]
DTYPES = ["f2", "f4", "f8", "c8", "c16", "i4", "i8"]
SPELLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, n: x**n,
    "ufunc": np.power,
    "array of exponents": lambda x, n: x ** np.full(np.shape(x), n),
    "ufunc of an array of exponents": lambda x, n: np.power(x, np.full(np.shape(x), n)),
    "reflected": lambda x, n: n**x,
}


def example(dtype: str) -> np.ndarray[Any, Any]:
    if dtype.startswith("i"):
        return np.arange(1, 400, dtype=dtype)
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.gamma(2.0, size=400), -rng.gamma(2.0, size=100), [-np.inf, np.inf, np.nan, -0.0, 0.0]])
    return (x + 1j * x[::-1] if dtype.startswith("c") else x).astype(dtype)


def same(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes() and np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("n", EXPONENTS, ids=repr)
def test_powers_have_numpys_bits(n: float, spelling: str, dtype: str) -> None:
    x = example(dtype)
    for operand in (x, x[:1], x[3], np.array(x[3])):
        compiled = rg.jit(lambda x: SPELLINGS[spelling](x, n))
        try:
            expected = SPELLINGS[spelling](operand, n)
        except ValueError as fault:
            with pytest.raises(ValueError, match=str(fault)):
                compiled(operand)
            continue
        with rg.config(exact=True):  # without it, long arrays have products in place of a few powers
            assert same(compiled(operand), expected)
        recorded = compiled.graph(operand, stage="traced")
        captured = compiled.graph(operand).inputs[1:]
        if not captured:
            assert same(evaluate(recorded, [operand])[0], expected)


@pytest.mark.parametrize("n", [2.5, 3.0, -2.0, 1.7])
def test_traced_exponents_have_numpys_bits(n: float) -> None:
    x = np.abs(example("f8")[:500])
    for operand in (x, *x[:50]):
        assert same(rg.jit(lambda x, n: x**n)(operand, n), operand**n)
        assert same(rg.jit(np.power)(operand, n), np.power(operand, n))


# Real functions of a Python float, whose power is complex where the base is negative.
ROOTS: dict[str, Callable[[float], Any]] = {
    "modulus": lambda y: abs(y**1.5) * 2.0,
    "real part": lambda y: np.real(y**1.5) + y,
    "modulus of a function": lambda y: np.abs(np.sin(y**1.5)),
    "exponent that is traced": lambda y: abs((y + 0.1) ** (y + 0.5)),
    "negative base": lambda y: abs((-2.0) ** y),
    "loop": lambda y: abs(rg.fori_loop(2, lambda k, q: np.sin(q), y**1.5)),
}


@pytest.mark.costly
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("f", ROOTS.values(), ids=ROOTS)
def test_powers_of_pythons_floats_become_complex_at_later_calls(f: Callable[[float], Any], backend: str) -> None:
    slope = rg.value_and_grad(f, backend=backend)
    for y in (0.35, -0.35, 1.2, 0.9, -1.2):
        value, found = slope(y)
        assert isinstance(value, float)
        np.testing.assert_allclose(value, f(y), rtol=1e-14)
        np.testing.assert_allclose(found, (f(y + 1e-6) - f(y - 1e-6)) / 2e-6, rtol=1e-6)


def test_sums_of_squares_are_not_asked_for_their_sign() -> None:
    def pull(x: float, y: float) -> Any:
        return 1.0 / (x**2 + y * y + 0.01) ** 1.5 + abs(x) ** 0.5 + (x * x) ** 0.3

    prims = {prim.name for prim in rg.grad(pull).at(0.3, -0.4).graph.prims}
    assert "guard" not in prims
    assert "guard" in {prim.name for prim in rg.jit(lambda x, y: (x * y + 1.0) ** 1.5).at(0.3, -0.4).graph.prims}
    rg.check_grads(pull, (0.3, -0.4), order=2)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("n", [3.0, 4.0, 1.5, -1.5, -2.0, -3.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_long_arrays_lose_no_small_results(n: float, backend: str, dtype: str) -> None:
    """A base whose square overflows has an inverse square that is subnormal."""
    tiny, size = np.finfo(dtype).tiny, 300
    e = np.log10(tiny) / n if n < 0 else 0.0
    x = np.geomspace(*(10.0 ** (-e - 2), 10.0 ** (-e + 2)) if n < 0 else (1e-3, 1e3), size).astype(dtype)
    x[:4] = 0.0, -0.0, np.inf, np.nan
    with np.errstate(all="ignore"):
        found, expected = rg.jit(lambda x: x**n, backend=backend)(x), np.power(x, x.dtype.type(n))
        near = np.abs(found - expected) <= 3 * np.spacing(np.abs(expected))
    assert np.all(near | (found == expected) | (np.isnan(found) & np.isnan(expected)))


def test_powers_of_whole_numbers_of_python_ask_for_the_sign_of_the_exponent() -> None:
    power, remainder = rg.jit(lambda n: 3**n), rg.jit(lambda n, x: x * ((-3) ** n % 1000))
    for n in (2, -2, 40, 3, -1, 5, 40):
        assert type(power(n)) is type(3**n)
        assert power(n) == 3**n
        assert remainder(n, 1.0) == (-3) ** n % 1000


@pytest.mark.parametrize("items", [[1, 2, 3], (1.5, 0.0), [[1, 2], [3, 4]], [2], [], [True, False], range(3)], ids=str)
def test_numbers_to_the_power_of_lists_and_the_other_way_round(items: Any) -> None:
    numbers = (np.sum, np.argmax, lambda x: x[0], lambda x: x[0] * 1j, lambda x: x[:1])
    for number in numbers:

        def program(x: Any, number: Any = number) -> Any:
            return number(x) ** items, items ** number(x)

        assert_traced(program, np.array([1.3, 2.1]))
    if items:
        assert_differentiable(lambda x: (np.sum(x) ** items, [v + 0.5 for v in [1, 2]] ** x[0]), np.array([1.3, 2.1]))
