"""Calls of SciPy as users write them, on plain arguments: each must mean the same when traced."""

# ruff: noqa: PLW0108, E731 - they are written as users write them

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.special
import scipy.stats
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter
from scipy.special import logsumexp
from scipy.stats import norm

rng = np.random.default_rng(0)

V = np.array([0.5, 1.2, 3.0])
M = np.array([[0.5, 1.2, 3.0], [-1.0, 2.0, 0.3]])
UNIT = np.array([0.2, 0.55, 0.8])


class Case(NamedTuple):
    """A function of arrays and numbers, and a point at which it is smooth."""

    name: str
    call: Callable[..., Any]
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


CASES: list[Case] = []


def case(name: str, call: Callable[..., Any], *args: Any) -> None:
    CASES.append(Case(name, call, args))


# ---------------------------------------------------------------------------------------------------- special

for _options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}, {"b": np.array([1.0, 2.0, 0.0])}):
    case(f"logsumexp {_options}", lambda x, o=_options: scipy.special.logsumexp(x, **o), M)
case("logsumexp bound early", lambda x: logsumexp(x, axis=-1), M)
case("logsumexp itself", scipy.special.logsumexp, M)
case("logsumexp of traced weights", lambda x, b: scipy.special.logsumexp(x, b=b), V, V)
case(
    "logsumexp with signs",
    lambda x: scipy.special.logsumexp(x, b=np.array([1.0, -2.0, 0.0]), return_sign=True, axis=1),
    M,
)
for _axis in (None, 0, 1):
    case(f"softmax {_axis}", lambda x, a=_axis: scipy.special.softmax(x, axis=a), M)
    case(f"log_softmax {_axis}", lambda x, a=_axis: scipy.special.log_softmax(x, axis=a), M)
case("multigammaln", lambda x: scipy.special.multigammaln(x + 2.0, 3), V)
for _order in (0, 1, 2, np.array([0, 1, 2])):
    case(f"polygamma {_order}", lambda x, n=_order: scipy.special.polygamma(n, x), V)
case("zeta", lambda x: scipy.special.zeta(2.5, x), V)
case("a Bessel function of an array of orders", lambda x: scipy.special.jv(np.arange(3)[:, None], x), V)
case("a ufunc into an array", lambda x: scipy.special.erf(x, out=np.zeros(3)), V)
case("a ufunc where a mask says", lambda x: scipy.special.gammaln(x, out=np.zeros(3), where=x > 1), V)
case("a mixture of normals", lambda x, m: logsumexp(norm.logpdf(x[:, None], m, 0.5), axis=1), V, UNIT)

# ------------------------------------------------------------------------------------------------------ stats

SHAPES: dict[str, tuple[float, ...]] = {
    "norm": (),
    "t": (3.5,),
    "beta": (2.5, 1.7),
    "gamma": (2.2,),
    "chi2": (3.3,),
    "laplace": (),
    "expon": (),
    "uniform": (),
}


def of_distribution(name: str, method: str) -> Callable[..., Any]:
    return lambda x, *rest: getattr(getattr(scipy.stats, name), method)(x, *rest)


for _name, _shapes in SHAPES.items():
    for _method in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf"):
        _call = of_distribution(_name, _method)
        case(f"{_name}.{_method}", lambda x, m, s, c=_call, p=_shapes: c(x, *p, m, s), UNIT, -0.1, 1.3)
        case(f"{_name}.{_method} of numbers", lambda x, c=_call, p=_shapes: c(x, *p), 0.4)
        if _shapes and _method in ("logpdf", "pdf"):
            case(f"{_name}.{_method} of its parameters", _call, UNIT, *_shapes)
for _method in ("logpmf", "pmf", "cdf", "sf", "logcdf", "logsf"):
    _call = of_distribution("poisson", _method)
    case(f"poisson.{_method}", lambda mu, c=_call: c(np.array([0, 1, 4]), mu), V)
    case(f"poisson.{_method} moved", lambda mu, c=_call: c(np.array([1, 2, 5]), mu, 1), V)
case("norm bound early", lambda x: norm.logpdf(x), V)
case("norm frozen", lambda x, m: norm(m, 2.0).logpdf(x), V, 0.1)
case("gamma frozen", lambda x, a: scipy.stats.gamma(a, scale=2.0).pdf(x), V, 2.1)
case("dirichlet.logpdf", lambda a: scipy.stats.dirichlet.logpdf([0.2, 0.3, 0.5], a), V)
case("dirichlet.pdf of many", lambda a: scipy.stats.dirichlet.pdf(np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]]), a), V)
case("dirichlet.pdf of both", scipy.stats.dirichlet.pdf, np.array([0.25, 0.25, 0.5]), V)
case("dirichlet.logpdf of all but one", lambda a: scipy.stats.dirichlet.logpdf(np.array([0.2, 0.3]), a), V)

# -------------------------------------------------------------------------------------------------- integrate

for _n in (2, 3, 4, 5, 6):
    _y = rng.standard_normal((3, _n))
    _x = np.cumsum(rng.uniform(0.5, 1.5, (3, _n)), axis=1)
    for _method in ("trapezoid", "simpson", "cumulative_trapezoid"):
        _call = lambda *a, m=_method, **o: getattr(scipy.integrate, m)(*a, **o)
        case(f"{_method} of {_n}", lambda y, c=_call: c(y), _y)
        case(f"{_method} of {_n} in a row", lambda y, d, c=_call: c(y, dx=d), _y[0], 0.5)
        case(f"{_method} of {_n} in a row at known points", lambda y, c=_call, n=_n: c(y, np.arange(n)), _y[0])
        case(f"{_method} of {_n} at points", lambda y, x, c=_call: c(y, x), _y, _x[0])
        case(f"{_method} of {_n} at points each", lambda y, x, c=_call: c(y.T, x=x.T, axis=0), _y, _x)
        case(f"{_method} of {_n} in steps", lambda y, c=_call: c(y.T, dx=0.3, axis=0), _y)
case("cumulative_trapezoid from 0", lambda y: scipy.integrate.cumulative_trapezoid(y, initial=0, axis=0), M)

# ----------------------------------------------------------------------------------------- signal and ndimage


def halves(z: Any) -> Any:
    """The real and the imaginary part."""
    return z.real, z.imag


for _method in ("correlate", "convolve"):
    case(
        f"ndimage.{_method} with complex weights",
        lambda x, w, f=_method: halves(getattr(scipy.ndimage, f)(x, w - 1j * w[::-1])),
        M[0],
        UNIT[:2],
    )
    case(
        f"ndimage.{_method} of a complex image",
        lambda x, w, f=_method: halves(getattr(scipy.ndimage, f)(x + 1j * x[::-1] ** 2, w + 2j * w**2)),
        M[1],
        UNIT,
    )

IMAGE, KERNEL = rng.standard_normal((4, 3)), rng.standard_normal((2, 2))
LONG, SHORT = rng.standard_normal(5), rng.standard_normal(3)
for _mode in ("full", "same", "valid"):
    for _method in ("convolve", "correlate", "fftconvolve"):
        _call = lambda *a, m=_method: getattr(scipy.signal, m)(*a)
        case(f"{_method} {_mode} in 2-D", lambda x, v, c=_call, m=_mode: c(x, v, m), IMAGE, KERNEL)
        case(f"{_method} {_mode}", lambda x, v, c=_call, m=_mode: c(x, v, m), LONG, SHORT)
for _method in ("convolve", "correlate"):
    case(
        f"{_method} valid of a shorter one",
        lambda x, v, m=_method: getattr(scipy.signal, m)(x, v, "valid"),
        SHORT,
        LONG,
    )
case("convolve a plain kernel", lambda x: scipy.signal.convolve(x, SHORT, method="direct"), LONG)

for _mode in ("reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror", "grid-constant"):
    for _size, _origin in ((2, 0), (3, 0), (3, -1), (3, (0, 1))):
        for _method in ("convolve", "correlate"):
            case(
                f"ndimage.{_method} {_mode} {_size} {_origin}",
                lambda x, w, f=_method, m=_mode, o=_origin: getattr(scipy.ndimage, f)(x, w, mode=m, cval=0.7, origin=o),
                IMAGE,
                rng.standard_normal((_size, _size)),
            )

# ---------------------------------------------------------------------------------------- filters and spectra

draws = np.random.default_rng(1)
NUMERATOR, DENOMINATOR = np.array([0.3, 0.2, -0.1]), np.array([1.3, -0.4, 0.2, 0.1])
SIGNALS, STATES = draws.standard_normal((2, 17)), draws.standard_normal((2, 3))
SECTIONS = np.delete(scipy.signal.butter(4, 0.4, output="sos"), 3, axis=1)


def sections(x: Any) -> Any:
    """Second-order sections, without the column of ones."""
    return np.concatenate([x[:, :3], np.ones((len(x), 1)), x[:, 3:]], axis=1)


def parts(found: Any) -> Any:
    """What was found, with complex arrays as two real ones."""
    return (found[0], found[1].real, found[1].imag)


case("lfilter", scipy.signal.lfilter, NUMERATOR, DENOMINATOR, SIGNALS)
case("lfilter bound early", lambda b, a, x: lfilter(b, a, x, axis=0), NUMERATOR, DENOMINATOR, SIGNALS.T)
case("lfilter without feedback", lambda b, a, x: lfilter(b, a, x[0]), NUMERATOR, 2.0, SIGNALS)
case("lfilter of plain coefficients", lambda x: lfilter(NUMERATOR, DENOMINATOR, x), SIGNALS)
case("lfilter from a state", lambda b, a, x, z: lfilter(b, a, x, zi=z), NUMERATOR, DENOMINATOR, SIGNALS, STATES)
case("lfilter from a column", lambda b, x, z: lfilter(b, [2.0], x.T, 0, z), NUMERATOR, SIGNALS, STATES.T[:2])
case("lfilter of less than its state", lambda a, x, z: lfilter([0.3], a, x, zi=z), DENOMINATOR, SIGNALS[:, :2], STATES)
case("lfilter_zi", lambda b, a: scipy.signal.lfilter_zi(b, a), NUMERATOR, DENOMINATOR)
for _padtype in ("odd", "even", "constant", None):
    case(
        f"filtfilt {_padtype}",
        lambda b, a, x, p=_padtype: scipy.signal.filtfilt(b, a, x.T, 0, p, padlen=5),
        NUMERATOR,
        DENOMINATOR,
        SIGNALS,
    )
case("filtfilt", lambda x: scipy.signal.filtfilt(NUMERATOR, DENOMINATOR, x), SIGNALS)
case("sosfilt", lambda s, x: scipy.signal.sosfilt(sections(s), x), SECTIONS, SIGNALS)
case(
    "sosfilt from states",
    lambda s, x, z: scipy.signal.sosfilt(sections(s), x.T, 0, z),
    SECTIONS,
    SIGNALS,
    draws.standard_normal((2, 2, 2)),
)
case("sosfilt_zi", lambda s: scipy.signal.sosfilt_zi(sections(s)), SECTIONS)
case("sosfiltfilt", lambda s, x: scipy.signal.sosfiltfilt(sections(s), x, padlen=4), SECTIONS, SIGNALS)
for _options in ({"worN": 6}, {"worN": 5, "whole": True, "fs": 3.0}, {"worN": 4, "include_nyquist": True}):
    case(f"freqz {_options}", lambda b, a, o=_options: parts(scipy.signal.freqz(b, a, **o)), NUMERATOR, DENOMINATOR)
    case(f"freqz without feedback {_options}", lambda b, o=_options: parts(scipy.signal.freqz(b, **o)), NUMERATOR)
case("freqz at points", lambda b, a, w: parts(scipy.signal.freqz(b, a, w)), NUMERATOR, DENOMINATOR, UNIT)
case("freqz_sos", lambda s: parts(scipy.signal.freqz_sos(sections(s), 5)), SECTIONS)
case("sosfreqz", lambda s: parts(scipy.signal.sosfreqz(sections(s), 5)), SECTIONS)
for _n in (None, 17, 20):
    case(f"hilbert {_n}", lambda x, n=_n: abs(scipy.signal.hilbert(x, n)), SIGNALS[:, :16])
case("hilbert along an axis", lambda x: scipy.signal.hilbert(x, axis=0).imag, SIGNALS)
for _mode in ("interp", "mirror", "constant", "nearest", "wrap"):
    for _size, _deriv in ((7, 0), (6, 1), (5, 2)):
        case(
            f"savgol_filter {_mode} {_size} {_deriv}",
            lambda x, d, s=_size, n=_deriv, m=_mode: scipy.signal.savgol_filter(x, s, 3, n, d, mode=m, cval=0.7),
            SIGNALS,
            0.8,
        )
case("savgol_filter along an axis", lambda x: scipy.signal.savgol_filter(x, 5, 2, axis=0), SIGNALS.T)
case("savgol_coeffs", lambda d: scipy.signal.savgol_coeffs(5, 2, 1, d), 0.8)
for _trend in ("linear", "constant"):
    case(f"detrend {_trend}", lambda x, t=_trend: scipy.signal.detrend(x, 0, t), SIGNALS.T)
case("detrend pieces", lambda x: scipy.signal.detrend(x, bp=[5, 6]), SIGNALS)
for _options in (
    {"nperseg": 8},
    {"nperseg": 5, "nfft": 8, "noverlap": 2, "scaling": "spectrum", "fs": 3.0},
    {"nperseg": 4, "return_onesided": False, "detrend": "linear"},
    {"window": np.hanning(8)[1:], "detrend": False},
):
    case(f"welch {sorted(_options)}", lambda x, o=_options: scipy.signal.welch(x, **o), SIGNALS)
    case(f"csd {sorted(_options)}", lambda x, o=_options: parts(scipy.signal.csd(x[0], x[1, :15], **o)), SIGNALS)
case("welch by medians", lambda x: scipy.signal.welch(x.T, nperseg=8, average="median", axis=0), SIGNALS)
case("csd by medians", lambda x: parts(scipy.signal.csd(x[0], x[1], nperseg=6, average="median")), SIGNALS)
case("welch of a traced window", lambda w: scipy.signal.welch(SIGNALS, window=w), V)
for _n in (None, 8, 20):
    case(f"periodogram {_n}", lambda x, n=_n: scipy.signal.periodogram(x, nfft=n), SIGNALS)
case("coherence", lambda x: scipy.signal.coherence(x[0], x[1], nperseg=6, detrend=False), SIGNALS)

# --------------------------------------------------------------------------------------- interpolate and sparse

KNOTS, VALUES = np.cumsum(rng.uniform(0.5, 1.0, 7)), rng.standard_normal((2, 7, 3))
POINTS = np.array([[KNOTS[0] + 0.1, 2.2], [3.1, KNOTS[-1] + 0.3]])
SPLINES = {
    "CubicSpline": scipy.interpolate.CubicSpline(KNOTS, VALUES[0, :, 0]),
    "CubicSpline along an axis": scipy.interpolate.CubicSpline(KNOTS, VALUES, axis=1),
    "periodic CubicSpline": scipy.interpolate.CubicSpline(
        KNOTS, np.append(VALUES[0, :-1, 0], VALUES[0, 0, 0]), bc_type="periodic"
    ),
    "BSpline": scipy.interpolate.make_interp_spline(KNOTS, VALUES[0, :, 0]),
    "BSpline of columns": scipy.interpolate.make_interp_spline(KNOTS, VALUES, k=5, axis=1),
    "periodic BSpline": scipy.interpolate.make_interp_spline(
        KNOTS, np.append(VALUES[0, :-1, 0], VALUES[0, 0, 0]), bc_type="periodic"
    ),
    "PchipInterpolator": scipy.interpolate.PchipInterpolator(KNOTS, VALUES[0, :, 0]),
}
for _name, _spline in SPLINES.items():
    for _nu in (0, 1, 2):
        case(f"{_name} {_nu}", lambda x, s=_spline, n=_nu: s(x, n), POINTS)
    case(f"{_name} of a number", lambda x, s=_spline: s(x), 2.2)
    case(f"{_name} inside only", lambda x, s=_spline: s(x, extrapolate=False), POINTS[:, 0])

for _name in ("CubicSpline along an axis", "PchipInterpolator", "BSpline", "BSpline of columns", "periodic BSpline"):
    for _extrapolate in (True, False, "periodic"):
        case(
            f"integral of a {_name}, {_extrapolate}",
            lambda x, s=SPLINES[_name], e=_extrapolate: s.integrate(x, 3.1, e) + s.integrate(1.9, x + 0.4, e),
            2.2,
        )
case("integral of a BSpline beyond its ends", lambda x: SPLINES["BSpline"].integrate(-x, x + 99.0, False), 2.2)
case(
    "integral of a periodic CubicSpline through traced values",
    lambda y, x: CubicSpline(KNOTS, np.append(y, y[0]), bc_type="periodic").integrate(-x, 9 * x),
    VALUES[0, :-1, 0],
    2.2,
)

ENDS = ("not-a-knot", "natural", "clamped", ((1, 0.3), (2, -0.4)))
for _ends in ENDS:
    for _nu in (0, 1, 2):
        case(
            f"CubicSpline through traced values {_ends} {_nu}",
            lambda x, y, t, n=_nu, e=_ends: scipy.interpolate.CubicSpline(x, y, bc_type=e)(t, n),
            KNOTS,
            VALUES[0, :, 0],
            POINTS,
        )
case(
    "periodic CubicSpline through traced values",
    lambda y, t: scipy.interpolate.CubicSpline(KNOTS, np.append(y, y[0]), bc_type="periodic")(t, 1),
    VALUES[0, :-1, 0],
    POINTS,
)
case("CubicSpline through traced columns", lambda y, t: CubicSpline(KNOTS, y, axis=1)(t), VALUES, POINTS)
for _n in (2, 3):
    case(f"CubicSpline through {_n}", lambda y, t, n=_n: CubicSpline(KNOTS[:n], y)(t), VALUES[0, :_n, 0], 2.2)

A = scipy.sparse.random_array((4, 3), density=0.6, rng=rng)
for _matrix in (A.tocsr(), A.tocsc(), A.tocoo(), scipy.sparse.csr_matrix(A), scipy.sparse.csc_matrix(A), A.todok()):
    _name = type(_matrix).__name__
    case(f"{_name} @ x", lambda x, m=_matrix: m @ x, V)
    case(f"{_name} @ X", lambda x, m=_matrix: m @ x, IMAGE.T[:, :2])
    case(f"x @ {_name}", lambda x, m=_matrix: x @ m, IMAGE[:, 0])
    case(f"X @ {_name}", lambda x, m=_matrix: x @ m, IMAGE.T)
    case(f"{_name}.T @ x", lambda x, m=_matrix: m.T @ x, IMAGE[:, 0])
    case(f"{_name}.dot", lambda x, m=_matrix: m.dot(x), V)
for _name, _vector in (("vector", scipy.sparse.coo_array(V)), ("row", A.tocsr()[1])):
    case(f"sparse {_name} @ x", lambda x, m=_vector: m @ x, V)
    case(f"sparse {_name}.dot", lambda x, m=_vector: m.dot(x), IMAGE.T[:, :2])
    case(f"x @ sparse {_name}", lambda x, m=_vector: x @ m, V)
case("csr_matrix * x", lambda x: scipy.sparse.csr_matrix(A) * x, V)

# ------------------------------------------------------------------------------------------------------ linalg

SQUARE = 2 * np.eye(3) + 0.3 * rng.standard_normal((3, 3))
BANDS = np.array([[0.3], [2.0], [0.2]]) + 0.1 * rng.standard_normal((3, 4))
COLUMNS = rng.standard_normal((3, 2))
for _lower in (False, True):
    for _trans in (0, "T", 2):
        case(
            f"solve_triangular {_lower} {_trans}",
            lambda a, b, l=_lower, t=_trans: scipy.linalg.solve_triangular(a, b, t, l),
            SQUARE,
            COLUMNS,
        )
    case(f"cholesky {_lower}", lambda a, l=_lower: scipy.linalg.cholesky(a @ a.T, l), SQUARE)
    case(
        f"cho_solve {_lower}",
        lambda a, b, l=_lower: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a @ a.T, l), b),
        SQUARE,
        COLUMNS,
    )
    _factor = scipy.linalg.cho_factor(SQUARE @ SQUARE.T, _lower)
    case(f"cho_solve of a factor made before {_lower}", lambda b, f=_factor: scipy.linalg.cho_solve(f, b), V)
case("solve_triangular unit", lambda a, b: scipy.linalg.solve_triangular(a, b, unit_diagonal=True), SQUARE, V)
LU = scipy.linalg.lu_factor(COLUMNS @ COLUMNS.T + SQUARE[::-1])
for _trans in (0, 1):
    case(f"lu_solve {_trans}", lambda b, t=_trans: scipy.linalg.lu_solve(LU, b, t), V)
case("solve_banded", lambda ab, b: scipy.linalg.solve_banded((1, 1), ab, b), BANDS, LONG[:4])
case("solve_banded of columns", lambda ab, b: scipy.linalg.solve_banded((1, 1), ab, b), BANDS, IMAGE)
case("solve_sylvester", lambda a, b, q: scipy.linalg.solve_sylvester(a, b, q), SQUARE, SQUARE[:2, :2], COLUMNS)
case("solve_continuous_lyapunov", lambda a, q: scipy.linalg.solve_continuous_lyapunov(a, q), SQUARE, SQUARE.T)
for _method in ("direct", "bilinear"):
    case(
        f"solve_discrete_lyapunov, {_method}",
        lambda a, q, m=_method: scipy.linalg.solve_discrete_lyapunov(0.3 * a, q, m),
        SQUARE,
        SQUARE.T,
    )
case("solve_discrete_lyapunov", lambda a, q: scipy.linalg.solve_discrete_lyapunov(0.3 * a, q), SQUARE, SQUARE.T)
case("solve", lambda a, b: scipy.linalg.solve(a, b), SQUARE, V)
case("inv", lambda a: scipy.linalg.inv(a), SQUARE)
case("det", lambda a: scipy.linalg.det(a), SQUARE)
case("det of a complex matrix", lambda a: halves(scipy.linalg.det(a + 1j * a.T)), SQUARE)
for _method in ("expm", "sqrtm", "logm"):
    case(_method, lambda a, m=_method: getattr(scipy.linalg, m)(a), SQUARE)
case("expm of a number", scipy.linalg.expm, 0.7)
case("qr of a tall matrix, R alone", lambda a: scipy.linalg.qr(a, mode="r"), M.T)
case("qr of a wide matrix, R alone", lambda a: scipy.linalg.qr(a, mode="r"), M)
case("expm of an angle", lambda t: scipy.linalg.expm(t * np.array([[0.0, 1.0], [-1.0, 0.0]])), 0.7)
case("expm of a complex matrix", lambda t: np.abs(scipy.linalg.expm(1j * t * SQUARE)[0, 1]), 0.7)
case("toeplitz", lambda c, r: scipy.linalg.toeplitz(c, r), V, LONG)
case("symmetric toeplitz", lambda c: scipy.linalg.toeplitz(c), V)
case("block_diag", lambda a, b, c: scipy.linalg.block_diag(a, b, c), M, V, 2.0)

COVARIANCE = SQUARE @ SQUARE.T
NORMAL = scipy.stats.multivariate_normal
FROZEN = NORMAL(UNIT, COVARIANCE)
for _method in ("logpdf", "pdf"):
    case(f"multivariate_normal.{_method}", lambda x, m, c, f=_method: getattr(NORMAL, f)(x, m, c), V, UNIT, COVARIANCE)
    case(f"multivariate_normal.{_method} of many", lambda x, m, f=_method: getattr(NORMAL, f)(x, m, 2.0), M, UNIT)
    case(f"multivariate_normal.{_method} frozen", lambda x, f=_method: getattr(FROZEN, f)(x), M)
case("multivariate_normal.logpdf in one dimension", lambda x, c: NORMAL.logpdf(x, 0.1, c), V, 0.8)
case("multivariate_normal.logpdf of variances", lambda x, c: NORMAL.logpdf(x, UNIT, c), M, V)
PAIR, OF_PAIR = np.array([[0.5, 0.3], [1.0, -2.0], [np.inf, 0.4]]), np.array([[2.0, 0.6], [0.6, 1.0]])
case("multivariate_normal.cdf of pairs", lambda x, m, c: NORMAL.cdf(x, m, c), PAIR[:2], PAIR[1] / 3, OF_PAIR)
case("multivariate_normal.cdf of infinite pairs", lambda m, c: NORMAL.cdf(PAIR, m, c), PAIR[1] / 3, OF_PAIR)
case(
    "multivariate_normal.cdf of a box", lambda x, y: NORMAL.cdf(x, None, OF_PAIR, lower_limit=y), PAIR[:2], PAIR[0] - 3
)
case("multivariate_normal.cdf frozen", lambda x: NORMAL(PAIR[1], OF_PAIR).cdf(x), PAIR[:2])
case("multivariate_normal.cdf in one dimension", lambda x, c: NORMAL.cdf(x, 0.1, c, lower_limit=-2.0), V, 0.8)
case("multivariate_normal.entropy", lambda c: NORMAL.entropy(None, c), COVARIANCE)

case("svd", lambda a: abs(scipy.linalg.svd(a)[0]), SQUARE)
case("svd of a wide matrix", lambda a: abs(scipy.linalg.svd(a, full_matrices=False)[2]), M)
case("svd without vectors", lambda a: scipy.linalg.svd(a, compute_uv=False), M)
case("svdvals", lambda a: scipy.linalg.svdvals(a), M)
for _mode in ("full", "economic", "r"):
    case(f"qr {_mode}", lambda a, m=_mode: scipy.linalg.qr(a, mode=m)[0 if m == "r" else 1], SQUARE)
for _lower in (True, False):
    case(f"eigvalsh {_lower}", lambda a, l=_lower: scipy.linalg.eigvalsh(a, lower=l), SQUARE + np.diag(V))
    case(f"eigh {_lower}", lambda a, l=_lower: scipy.linalg.eigh(a, lower=l, eigvals_only=True), SQUARE + np.diag(V))
case("norm", lambda a: scipy.linalg.norm(a), M)
case("norm along an axis", lambda a: scipy.linalg.norm(a, axis=1), M)
case("pinv", lambda a: scipy.linalg.pinv(a), M)
for _method in ("fft", "ifft", "rfft", "hfft"):
    case(f"fft.{_method}", lambda x, m=_method: abs(getattr(scipy.fft, m)(x, 4)), V)
case("fft2 and shift", lambda x: abs(scipy.fft.fftshift(scipy.fft.fft2(x))[0]), M)
case("irfft of rfft", lambda x: scipy.fft.irfft(scipy.fft.rfft(x) ** 2, n=3, norm="ortho"), V)
case("lambertw", lambda x: scipy.special.lambertw(x).real, V)
case("another branch of lambertw", lambda x: abs(scipy.special.lambertw(x, -1)), V)
case("comb", lambda n, k: scipy.special.comb(n + 2.0, k), V, UNIT)
case("comb of a known number", lambda n: scipy.special.comb(n + 2.0, 2), V)
case("comb with repetition", lambda n, k: scipy.special.comb(n + 2.0, k, repetition=True), V, UNIT)
case("factorial", lambda x: scipy.special.factorial(x), V)
case("lu_factor", lambda a: scipy.linalg.lu_factor(a)[0], SQUARE[::-1])
case("lu_solve of traced factors", lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b), SQUARE[::-1], V)
STIFF = scipy.sparse.csr_array(scipy.sparse.diags([-1.0, 2.5, -1.2], offsets=[-1, 0, 1], shape=(3, 3)))
for _matrix in (STIFF, STIFF.tocsc()):
    case(f"spsolve {_matrix.format}", lambda b, m=_matrix: scipy.sparse.linalg.spsolve(m, b), V)
    case(f"spsolve {_matrix.format} of a column", lambda b, m=_matrix: scipy.sparse.linalg.spsolve(m, b[:, None]), V)
    case(f"spsolve {_matrix.format} of columns", lambda b, m=_matrix: scipy.sparse.linalg.spsolve(m, b), COLUMNS)
