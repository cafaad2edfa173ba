"""Special functions where formulas cancel: large parameters, tails, and points near zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import retrograd as rg

# A function, the place of the argument, the point, and there the value and the first two derivatives by the argument.
# The numbers come from mpmath with 200 digits; None: the second derivative is not known.
Row = tuple[Any, int, tuple[float, ...], float, float, "float | None"]
ROWS: list[Row] = [
    (sp.spence, 0, (1e-17,), 1.644934066848226, -39.14394658089878, 9.999999999999995e16),
    (sp.spence, 0, (1e-12,), 1.6449340668195953, -27.63102111595618, 999999999973.369),
    (sp.spence, 0, (1e-08,), 1.644933872641418, -18.420680928159175, 99999982.5793189),
    (sp.spence, 0, (0.3,), 0.8893776242860387, -1.7199611490370514, 2.3048174061375457),
    (sp.spence, 0, (0.9999999990686774,), 9.31322574832319e-10, -1.0000000004656613, 0.5000000006208817),
    (sp.spence, 0, (1.0000009536743164,), -9.536740890326709e-07, -0.999999523163145, 0.4999993642178045),
    (sp.spence, 0, (1.75,), -0.6427612688399789, -0.7461543839138969, 0.23296774998043399),
    (sp.spence, 0, (100000000.0,), -171.30567340795017, -1.8420680928159176e-07, 1.7420681102365986e-15),
    (sp.spence, 0, (1e20,), -1062.024556162528, -4.605170185988091e-19, 4.505170185988091e-39),
    (sp.kl_div, 1, (1.0, 1000000000.0), 999999978.2767341, 0.999999999, 1e-18),
    (sp.kl_div, 1, (1.0, 1e17), 9.999999999999995e16, 1.0, 1e-34),
    (sp.kl_div, 1, (1000000000.0, 1.0), 19723265837.94641, -999999999.0, 1000000000.0),
    (sp.ellipk, 0, (-100000000000000.0,), 1.750439001207817e-06, 8.252195006039044e-21, 1.2128292509058508e-34),
    (sp.ellipk, 0, (-1e20,), 2.4412145291060347e-09, 1.1706072645530174e-29, 1.7309108968295262e-49),
    (sp.ellipk, 0, (-0.0625,), 1.5470797535511203, 0.3667771960372194, 0.38933695479102937),
    (sp.pseudo_huber, 1, (1.0, 10000.0), 9999.00005, 0.999999995, 9.999999850000003e-13),
    (sp.pseudo_huber, 1, (1.0, 0.0001), 4.999999987500001e-09, 9.999999950000001e-05, 0.9999999850000002),
    (sp.pseudo_huber, 0, (1000000000000.0, 1.0), 0.5, 2.5e-37, -7.5e-49),
    (sp.pseudo_huber, 0, (100.0, 1.0), 0.49998750062496095, 2.4997500234353125e-07, -7.498750164042814e-09),
    (sp.pseudo_huber, 0, (1.0, 100000000.0), 99999999.0, 99999998.00000001, -1.99999997),
]
SINGLE = [row for row in ROWS if isinstance(row[0], np.ufunc) and all(float(np.float32(x)) == x for x in row[2])]


def named(row: Row) -> str:
    return f"{getattr(row[0], '__name__', '')} {row[1]} {row[2]}"


def of_one(f: Any, place: int, point: tuple[Any, ...]) -> Any:
    """The function of one argument, as a function that can be traced."""
    return lambda x: f(*point[:place], x, *point[place + 1 :])


def known(row: Row, dtype: Any, rtol: float) -> None:
    """The value and the derivatives, in both modes, are those of the row."""
    f, place, numbers, value, first, second = row
    point = tuple(map(dtype, numbers))
    x, g = point[place], of_one(f, place, point)
    slope = rg.grad(g)
    tiny = float(np.finfo(dtype).tiny)

    def close(found: Any, expected: float) -> None:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=tiny)

    close(rg.jit(g)(x), value)
    close(slope(x), first)
    close(rg.jvp(g, (x,), (dtype(1),))[1], first)
    if second is not None:
        close(rg.grad(slope)(x), second)
        close(rg.jvp(slope, (x,), (dtype(1),))[1], second)


@pytest.mark.filterwarnings("ignore::retrograd.errors.IndependentOutputWarning")
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_values_and_derivatives_are_right_to_rounding(row: Row) -> None:
    known(row, np.float64, 2e-12)


@pytest.mark.parametrize("row", SINGLE, ids=named)
def test_they_are_so_in_single_precision(row: Row) -> None:
    known(row, np.float32, 5e-6)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (sp.rel_entr, [1.223143551314210, 0.8176784432060454, 0.0]),
        (sp.kl_div, [0.2231435513142098, -0.1823215567939546, -1.0]),
    ],
)
def test_entropies_of_nothing_beside_nothing_are_constant(f: Any, expected: list[float]) -> None:
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.4, 0.6, 0.0])
    np.testing.assert_allclose(rg.grad(lambda p: np.sum(f(p, q)))(p), expected, rtol=1e-14)
    np.testing.assert_allclose(rg.hessian(lambda p: np.sum(f(p, q)))(p), np.diag([2.0, 2.0, 0.0]), rtol=1e-14)
    assert np.all(np.isfinite(rg.hessian(lambda q: np.sum(f(p, q)))(q)))


def test_the_dilogarithm_of_complex_numbers_near_one() -> None:
    f = rg.grad(rg.grad(lambda z: np.real(sp.spence(z + 0j))))
    np.testing.assert_allclose(f(1 - 2.0**-30), 0.5 + 2.0**-30 * 2 / 3, rtol=1e-14)
