"""Special functions and distributions where formulas cancel: large parameters, tails, and points near zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st

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
    (st.t.logpdf, 0, (0.5, 1000000.0), -1.0439388925796598, -0.5000003749999062, -1.0000002499995626),
    (st.t.logpdf, 0, (2.0, 1000000000000.0), -2.918938533202923, -1.999999999994, -0.999999999989),
    (st.t.logpdf, 0, (0.5, 3.0), -1.1609742649705825, -0.6153846153846154, -1.0414201183431953),
    (st.t.logpdf, 0, (100000000.0, 0.1), -23.43909136086261, -1.1e-08, 1.1e-16),
    (st.t.logpdf, 1, (0.5, 100000000.0), -1.0439385367984226, 3.593749997395833e-17, -7.1874999921875e-25),
    (st.t.logpdf, 1, (0.5, 1000000.0), -1.0439388925796598, 3.593749739582147e-13, -7.187499218745254e-19),
    (st.t.logpdf, 1, (-3.0, 25.0), -4.926236968356848, -0.015695610033334258, 0.0010019609910384701),
    (st.t.logpdf, 1, (2.0, 19.0), -2.8426427408508115, -0.003302870745121002, 0.0002833820896853313),
    (st.t.logpdf, 1, (100000000.0, 0.1), -23.43909136086261, -9.69103042012054, -94.3328795202648),
    (st.beta.pdf, 0, (0.3333, 100000.0, 200000.0), 463.2042266123324, 20150.2525097545, -624506467.019234),
    (st.beta.pdf, 0, (0.4, 3.0, 2.0), 1.1520000000000001, 3.84, -4.800000000000002),
    (st.beta.logpdf, 1, (0.3333, 100000.0, 200000.0), 6.13816805102789, -9.66716595926621e-05, -6.666711111271605e-06),
    (st.beta.logpdf, 1, (1e-05, 2.0, 100000.0), 10.512940464936895, -0.4227693352067994, -0.6449240669982242),
    (st.beta.logpdf, 1, (0.9, 0.001, 0.5), -5.652592229170331, 998.5116277941361, -999996.7245112157),
    (st.beta.logpdf, 2, (0.3333, 100000.0, 200000.0), 6.13816805102789, 5.083208453242809e-05, -1.6666736111257716e-06),
    (st.beta.logpdf, 2, (1e-05, 2.0, 100000.0), 10.512940464936895, 9.999850000666653e-06, -1.999980000299996e-10),
    (st.gamma.pdf, 0, (1001000.0, 1000000.0), 0.00024180950473148182, -2.4180950473148184e-07, 4.831358735893743e-13),
    (
        st.gamma.pdf,
        0,
        (100000000.0, 100000000.0),
        3.989422800689808e-05,
        -3.989422800689808e-13,
        -3.989422720901352e-13,
    ),
    (st.gamma.pdf, 0, (30.0, 12.0), 4.152824966082277e-05, -2.6301224785187755e-05, 1.6149874868097743e-05),
    (st.gamma.logpdf, 1, (1001000.0, 1000000.0), -8.32736031232006, 0.0010000003331668665, -1.0000005000001667e-06),
    (st.gamma.logpdf, 1, (30.0, 12.0), -10.089136647590177, 0.9585357016863434, -0.08690187287176838),
    (st.gamma.logpdf, 1, (0.001, 1e-05), -4.606233491466479, 99993.66944393668, -10000000001.644909),
    (st.poisson.logpmf, 1, (1000000.0, 1001000.0), -8.326360811986977, -0.000999000999000999, -9.98002996004994e-07),
    (st.poisson.logpmf, 1, (3.0, 2.0), -1.712317927548219, 0.5, -0.75),
    (sp.gammainc, 1, (10000.0, 10000.0), 0.5013298083399552, 0.003989389558962826, -3.989389558962826e-07),
    (sp.gammainc, 1, (1000000.0, 1000000.0), 0.5001329807608725, 0.00039894224715624404, -3.98942247156244e-10),
    (sp.gammainc, 1, (2.0, 3.0), 0.8008517265285442, 0.14936120510359183, -0.09957413673572789),
    (sp.gammainc, 0, (10000.0, 10000.0), 0.5013298083399552, -0.003989456049453668, None),
    (sp.gammainc, 0, (100000.0, 101000.0), 0.9991915784870744, -8.742674516500273e-06, None),
    (sp.gammainc, 0, (2.0, 3.0), 0.8008517265285442, -0.19742541957920248, None),
    (sp.betainc, 2, (1000.0, 2000.0, 0.3333), 0.5001718802520619, 46.350368056511755, -48.68422602446737),
    (sp.betainc, 2, (2.0, 3.0, 0.4), 0.5248, 1.728, -1.4400000000000004),
    (sp.betainc, 0, (1000.0, 2000.0, 0.3333), 0.5001718802520619, -0.01030294331027588, None),
    (sp.betainc, 0, (2.0, 3.0, 0.4), 0.5248, -0.24086937608755657, None),
    (sp.betainc, 1, (1000.0, 2000.0, 0.3333), 0.5001718802520619, 0.005150656077552409, None),
    (sp.betainc, 1, (2.0, 3.0, 0.4), 0.5248, 0.15634433641359877, None),
    (sp.stdtr, 0, (100000000.0, 1.0), 0.8413447448586894, 1.2098536165464486e-17, None),
    (sp.stdtr, 0, (1000000.0, -3.0), 0.0013499312707108985, -3.323929851838475e-14, None),
    (sp.stdtr, 0, (10000.0, 1.0), 0.8413326478347855, 1.2097931284023154e-09, None),
    (sp.stdtr, 0, (31.0, 2.6), 0.9929234801227135, 8.412679725094334e-05, None),
    (sp.stdtr, 0, (29.0, 2.4), 0.9884803993280885, 0.00012058020741296479, None),
    (sp.stdtr, 1, (100000000.0, 1.0), 0.8413447448586894, 0.24197072330928973, -0.24197072330928973),
    (sp.stdtr, 1, (10000.0, -6.0), 1.0208092364613077e-09, 6.264056543174258e-09, 3.7453265935603285e-08),
    (sp.stdtr, 1, (2.0, 1.0), 0.7886751345948129, 0.19245008972987526, -0.19245008972987526),
    (sp.betaln, 0, (100000000.0, 2.0), -36.84136149790473, -1.9999999900000002e-08, 1.9999999800000003e-16),
    (sp.betaln, 0, (2.0, 100000000.0), -36.84136149790473, -17.9978964238539, 0.6449340568482266),
    (sp.betaln, 0, (2.0, 3.0), -2.4849066497880004, -1.0833333333333333, 0.4236111111111111),
    (sp.betaln, 0, (3.0, 1e-09), 20.723265835446412, -3.9493406677116953e-10, 1.5411380625971888e-10),
    (sp.poch, 0, (100000000.0, 0.5), 9999.9999875, 5.00000000625e-05, -2.500000009375e-13),
    (sp.poch, 0, (2.0, 1.5), 3.3233509704478426, 2.2611159619047143, 0.4929531925054868),
    (sp.poch, 0, (0.0, 3.0), 0.0, 2.0, 6.0),
    (sp.poch, 0, (0.0, 0.5), 0.0, 1.772453850905516, -4.914285557711104),
    (sp.binom, 0, (10.0, 11.0), 0.0, 0.09090909090909091, 0.5325396825396825),
    (sp.binom, 1, (10.0, 11.0), 0.0, -0.09090909090909091, 0.5490686081595173),
    (sp.binom, 1, (10.0, -1.0), 0.0, 0.09090909090909091, 0.5490686081595173),
    (sp.binom, 0, (0.5, 1.5), 0.0, 0.6666666666666666, 0.8182741851734792),
    (sp.binom, 1, (0.5, 1.5), 0.0, -0.6666666666666666, 1.707163074062368),
    (st.t.ppf, 1, (1e-200, 1.0), -3.183098861837907e199, 1.461612602791489e202, None),
    (st.t.ppf, 1, (1e-200, 2.0), -7.071067811865475e99, 8.105512328516407e101, None),
    (st.t.ppf, 0, (1e-12, 1.0), -318309886183.7907, 3.183098861837907e23, -6.366197723675814e35),
    (sp.stdtr, 0, (1.0, -1e10), 3.183098861837907e-11, -7.267875331733521e-10, None),
    (st.laplace.logcdf, 0, (-800.0,), -800.6931471805599, 1.0, 0.0),
    (st.laplace.logcdf, 0, (1.0,), -0.20326705491519534, 0.2253996735605641, -0.2762046864017729),
    (st.laplace.logcdf, 0, (50.0,), -9.643749239819589e-23, 9.643749239819589e-23, -9.643749239819589e-23),
    (st.laplace.logsf, 0, (800.0,), -800.6931471805599, -1.0, 0.0),
    (st.laplace.logsf, 0, (-1.0,), -0.20326705491519534, -0.2253996735605641, -0.2762046864017729),
    (st.laplace.logsf, 0, (-50.0,), -9.643749239819589e-23, -9.643749239819589e-23, -9.643749239819589e-23),
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


# The same without the value, where it or the second derivative has fewer digits.
SLOPES: list[tuple[Any, int, tuple[float, ...], float, float]] = [
    (sp.binom, 0, (1e-08, 3.0), 0.3333333233333334, -0.99999999),
    (sp.binom, 1, (1e-08, 3.0), -0.3333333294444443, 0.22222218936384247),
    (sp.binom, 0, (-0.7, 1e-09), 1.2245364547922527e-08, -7.527253659015254e-08),
    (sp.binom, 0, (1e09, -1.2), 3.2671762349462742e-21, -7.187787708975237e-30),
    (sp.binom, 1, (-0.7, 0.3), -3.333333333333333, 2.7201651735648866),
    (sp.poch, 0, (0.3, 1e-09), 1.2245364465581778e-08, -7.527253580356233e-08),
    (sp.poch, 0, (-200.5, 100.0), -8.209044805935865e216, 5.590553564096369e216),
    (sp.poch, 0, (-1.0, 0.5), 3.544907701811032, -2.738755711800145),
    (st.poisson.logsf, 1, (170.0, 1.0), 170.00584755562585, -170.9999662059285),
    (st.chi2.logcdf, 0, (1.0, 300.0), 149.50332211344374, -149.99998910971965),
    (st.beta.logcdf, 0, (1e-08, 38.0, 2.0), 3799999999.025641, -3.8e17),
    (st.beta.logsf, 0, (0.999, 2.0, 100.0), -99999.00891972242, -100000000.98223993),
    (st.t.logcdf, 0, (-10000000000.0, 29.0), 2.9e-09, 2.9e-19),
    (st.t.logsf, 0, (100000.0, 60.0), -0.0005999999964580645, 5.999999893741937e-09),
]


@pytest.mark.parametrize(("f", "place", "point", "first", "second"), SLOPES)
def test_derivatives_are_right_where_values_are_tiny(
    f: Any, place: int, point: tuple[float, ...], first: float, second: float
) -> None:
    x, g = point[place], of_one(f, place, point)
    np.testing.assert_allclose(rg.grad(g)(x), first, rtol=2e-12)
    np.testing.assert_allclose(rg.jvp(g, (x,), (1.0,))[1], first, rtol=2e-12)
    np.testing.assert_allclose(rg.grad(rg.grad(g))(x), second, rtol=1e-10)
    np.testing.assert_allclose(rg.hessian(g)(x), second, rtol=1e-10)


@pytest.mark.parametrize(
    ("f", "x", "shape", "slope"),
    [
        (st.chi2.logcdf, 1.0, 300.0, -2.853567052287965),
        (st.t.logcdf, -1e10, 29.0, -20.859147305412005),
    ],
)
def test_slopes_by_parameters_are_right_where_values_are_tiny(f: Any, x: float, shape: float, slope: float) -> None:
    np.testing.assert_allclose(rg.grad(f, 1)(x, shape), slope, rtol=2e-12)


@pytest.mark.parametrize(
    ("f", "points"),
    [
        (sp.binom, [(0.5, 1.5), (10.0, 3.0), (10.0, -1.0), (10.3, 12.2), (0.2, 0.3), (-0.7, 1e-9)]),
        (sp.poch, [(-1.0, 0.5), (2.0, 1.5), (-3.3, 5.0), (0.3, 0.4), (0.3, 1e-9), (-40.7, 10.1)]),
    ],
)
def test_arrays_of_both_sides_of_a_pole_have_derivatives_of_their_elements(f: Any, points: Any) -> None:
    x, y = np.array(points).T

    def total(x: Any, y: Any) -> Any:
        return np.sum(f(x, y))

    for i in (0, 1):
        slope = rg.grad(f, i)
        expected = [slope(*p) for p in points]
        np.testing.assert_allclose(rg.grad(total, i)(x, y), expected, rtol=1e-14)
        np.testing.assert_allclose(rg.vmap(slope)(x, y), expected, rtol=1e-14)
        single = rg.vmap(slope)(x[:5].astype(np.float32), y[:5].astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected[:5], rtol=5e-6)
        for j in (0, 1):
            bends = [rg.grad(slope, j)(*p) for p in points]
            np.testing.assert_allclose(rg.vmap(rg.grad(slope, j))(x, y), bends, rtol=1e-13)


@pytest.mark.parametrize(("x", "p"), [(1e-3, 5.0), (1e-8, 5.0), (1e5, -3.0), (2.0, 1e-9), (2.0, 0.7), (0.5, -2.0)])
def test_the_hessian_of_boxcox_is_symmetric(x: float, p: float) -> None:
    expected = x ** (p - 1) * np.log(x)
    np.testing.assert_allclose(rg.grad(rg.grad(sp.boxcox, 1), 0)(x, p), expected, rtol=1e-14)
    np.testing.assert_allclose(rg.grad(rg.grad(sp.boxcox, 0), 1)(x, p), expected, rtol=1e-14)


def test_the_slope_of_boxcox_by_the_power_is_right_at_the_edges() -> None:
    with np.errstate(over="ignore"):
        assert rg.grad(sp.boxcox, 1)(10.0, 400.0) == np.inf
    assert rg.grad(rg.grad(sp.boxcox, 1), 0)(0.0, 0.5) == 0.0
    near = rg.grad(sp.boxcox, 1)(np.float32(2.0), np.float32(-1.09375))  # of parts that nearly cancel
    np.testing.assert_allclose(near, 0.1473243775128907, rtol=5e-7)


@pytest.mark.parametrize("name", ["t", "gamma", "beta", "poisson"])
def test_densities_of_ordinary_parameters_are_those_of_scipy(name: str) -> None:
    shapes = np.array([0.01, 0.5, 1.0, 3.0, 9.9, 10.1, 11.0, 19.9, 20.1, 40.0])
    x, a, b = np.meshgrid([1e-300, 0.0, 0.25, 0.5, 0.999, 1.0, 12.0], shapes, shapes)
    f = st.poisson.logpmf if name == "poisson" else getattr(st, name).logpdf
    args = {"poisson": (np.ceil(x), a), "beta": (x, a, b)}.get(name, (x, a))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(rg.jit(f)(*args), f(*args), rtol=1e-12, atol=4e-14)


def test_the_mixed_derivatives_of_students_density_do_not_cancel() -> None:
    hessian = rg.hessian(lambda p: st.t.logpdf(p[0], p[1]))(np.array([0.5, 1e8]))
    np.testing.assert_allclose([hessian[0, 1], hessian[1, 0]], 0.375e-16, rtol=1e-7)


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


EXTREMES: list[tuple[Any, tuple[float, ...]]] = [
    (st.gamma.logpdf, (0.5, np.inf)),
    (st.chi2.logpdf, (0.5, np.inf)),
    (st.poisson.logpmf, (np.inf, 0.5)),
    (st.gamma.logpdf, (1e200, 1e200)),
    (st.t.logpdf, (0.5, 0.0)),
    (st.t.logpdf, (np.inf, 3.0)),
    (st.t.logpdf, (np.nan, 30.0)),
    (sp.stdtr, (0.0, 1.0)),
]


@pytest.mark.parametrize(("f", "args"), EXTREMES)
def test_extremes_are_scipys_for_numbers_and_arrays(f: Any, args: tuple[float, ...]) -> None:
    with np.errstate(all="ignore"):
        for given in (args, tuple(np.full(3, x) for x in args)):
            np.testing.assert_array_equal(rg.jit(f)(*given), f(*given))
        for k in range(len(args)):
            rg.grad(f, k)(*args)


FREEDOMS = np.array([3.0, np.inf, 50.0, 1e300])  # of infinitely many, Student's distribution is the normal one
POINTS = np.array([0.5, 1.0, 0.9, -1.0])


@pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", "sf", "logcdf"])
def test_students_distribution_of_infinitely_many_degrees_of_freedom(name: str) -> None:
    f, normal = getattr(st.t, name), getattr(st.norm, name)
    slope, normal_slope = rg.grad(f), rg.grad(normal)
    for df in (np.inf, 1e300):
        np.testing.assert_allclose(rg.jit(f)(1.0, df), normal(1.0), rtol=1e-15)
        np.testing.assert_allclose(slope(1.0, df), normal_slope(1.0), rtol=1e-15)
        np.testing.assert_allclose(rg.grad(slope)(1.0, df), rg.grad(normal_slope)(1.0), rtol=1e-14, atol=1e-15)
        assert rg.grad(lambda df: f(1.0, df))(df) == 0.0
    np.testing.assert_allclose(rg.jit(f)(POINTS, FREEDOMS), f(POINTS, FREEDOMS), rtol=1e-12)
    slopes = rg.grad(lambda x, df: np.sum(f(x, df)), argnums=(0, 1))
    each = [rg.grad(f, argnums=(0, 1))(x, df) for x, df in zip(POINTS, FREEDOMS, strict=True)]
    np.testing.assert_allclose(slopes(POINTS, FREEDOMS), np.transpose(each), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: st.gamma.logpdf(x, 20.0), -1.0),
        (lambda mu: st.poisson.logpmf(20.0, mu), -1.0),
        (lambda x: st.chi2.logpdf(x, 5.0), -0.5),
        (lambda y: sp.kl_div(1.0, y), 1.0),
    ],
)
def test_slopes_at_infinity_have_their_limits(f: Any, slope: float) -> None:
    with np.errstate(invalid="ignore"):  # for the values, which are nan as SciPy's
        assert rg.grad(f)(np.inf) == slope
        np.testing.assert_array_equal(rg.grad(lambda x: np.sum(f(x)))(np.full(2, np.inf)), [slope, slope])
        assert rg.grad(rg.grad(f))(np.inf) == 0.0
