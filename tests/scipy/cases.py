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
case("dirichlet.logpdf of all but one", lambda a: scipy.stats.dirichlet.logpdf(np.array([0.2, 0.3]), a), V)

# -------------------------------------------------------------------------------------------------- integrate

for _n in (2, 3, 4, 5, 6):
    _y = rng.standard_normal((3, _n))
    _x = np.cumsum(rng.uniform(0.5, 1.5, (3, _n)), axis=1)
    for _method in ("trapezoid", "simpson", "cumulative_trapezoid"):
        _call = lambda *a, m=_method, **o: getattr(scipy.integrate, m)(*a, **o)
        case(f"{_method} of {_n}", lambda y, c=_call: c(y), _y)
        case(f"{_method} of {_n} at points", lambda y, x, c=_call: c(y, x), _y, _x[0])
        case(f"{_method} of {_n} at points each", lambda y, x, c=_call: c(y.T, x=x.T, axis=0), _y, _x)
        case(f"{_method} of {_n} in steps", lambda y, c=_call: c(y.T, dx=0.3, axis=0), _y)
case("cumulative_trapezoid from 0", lambda y: scipy.integrate.cumulative_trapezoid(y, initial=0, axis=0), M)

# ----------------------------------------------------------------------------------------- signal and ndimage

IMAGE, KERNEL = rng.standard_normal((4, 3)), rng.standard_normal((2, 2))
LONG, SHORT = rng.standard_normal(5), rng.standard_normal(3)
for _mode in ("full", "same", "valid"):
    for _method in ("convolve", "correlate", "fftconvolve"):
        _call = lambda *a, m=_method: getattr(scipy.signal, m)(*a)
        case(f"{_method} {_mode} in 2-D", lambda x, v, c=_call, m=_mode: c(x, v, m), IMAGE, KERNEL)
        case(f"{_method} {_mode}", lambda x, v, c=_call, m=_mode: c(x, v, m), LONG, SHORT)
case("convolve valid of a shorter one", lambda x, v: scipy.signal.convolve(x, v, "valid"), SHORT, LONG)
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

A = scipy.sparse.random_array((4, 3), density=0.6, rng=rng)
for _matrix in (A.tocsr(), A.tocsc(), A.tocoo(), scipy.sparse.csr_matrix(A), scipy.sparse.csc_matrix(A), A.todok()):
    _name = type(_matrix).__name__
    case(f"{_name} @ x", lambda x, m=_matrix: m @ x, V)
    case(f"{_name} @ X", lambda x, m=_matrix: m @ x, IMAGE.T[:, :2])
    case(f"x @ {_name}", lambda x, m=_matrix: x @ m, IMAGE[:, 0])
    case(f"X @ {_name}", lambda x, m=_matrix: x @ m, IMAGE.T)
    case(f"{_name}.T @ x", lambda x, m=_matrix: m.T @ x, IMAGE[:, 0])
    case(f"{_name}.dot", lambda x, m=_matrix: m.dot(x), V)
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
for _method in ("expm", "sqrtm", "logm"):
    case(_method, lambda a, m=_method: getattr(scipy.linalg, m)(a), SQUARE)
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
case("comb with repetition", lambda n, k: scipy.special.comb(n + 2.0, k, repetition=True), V, UNIT)
case("factorial", lambda x: scipy.special.factorial(x), V)
case("lu_factor", lambda a: scipy.linalg.lu_factor(a)[0], SQUARE[::-1])
case("lu_solve of traced factors", lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b), SQUARE[::-1], V)
STIFF = scipy.sparse.csr_array(scipy.sparse.diags([-1.0, 2.5, -1.2], offsets=[-1, 0, 1], shape=(3, 3)))
for _matrix in (STIFF, STIFF.tocsc()):
    case(f"spsolve {_matrix.format}", lambda b, m=_matrix: scipy.sparse.linalg.spsolve(m, b), V)
    case(f"spsolve {_matrix.format} of columns", lambda b, m=_matrix: scipy.sparse.linalg.spsolve(m, b), COLUMNS)
