"""SciPy's functions mean the same on traced arguments: values, derivatives in both modes to second order, lanes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.special
import scipy.stats

import retrograd as rg
from retrograd import errors
from tests.scipy.cases import CASES, Case
from tests.support.functions import assert_traced

each_call = pytest.mark.parametrize("case", CASES, ids=map(str, CASES))


def assert_alike(found, expected):
    for x, y in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        assert type(x) is type(y)
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), np.asarray(y).dtype)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


@each_call
def test_a_traced_call_gives_what_scipy_gives(case: Case):
    assert_alike(rg.jit(case.call)(*case.args), case.call(*case.args))


def nested(x: Any, shape: tuple[int, ...]) -> Any:
    """Lists of the numbers of an array, which may be traced."""
    return [nested(row, shape[1:]) for row in x] if shape else x


@each_call
def test_lists_of_traced_numbers_are_arrays(case: Case):
    call = case.call
    for k, x in enumerate(map(np.asarray, case.args)):
        args = [*case.args]
        if x.ndim and 0 < x.size < 60:
            try:
                expected = call(*args[:k], x.tolist(), *args[k + 1 :])
            except (AttributeError, IndexError, TypeError):
                continue  # the program needs an array there
            found = rg.jit(lambda x, *args, k=k, n=x.shape: call(*args[:k], nested(x, n), *args[k:]))(
                x, *args[:k], *args[k + 1 :]
            )
            for a, b in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:logm result")
@each_call
def test_single_precision_is_treated_as_scipy_treats_it(case: Case):
    """The same dtypes; values to single precision, for SciPy and NumPy round intermediate results differently."""
    args = [np.asarray(x, np.float32)[()] for x in case.args]
    expected = case.call(*args)
    if any(map(np.iscomplexobj, expected if isinstance(expected, tuple) else (expected,))):
        pytest.skip("SciPy's logm of a real matrix in single precision is complex")
    found = rg.jit(case.call)(*args)
    for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
        assert (type(x), np.asarray(x).dtype) == (type(y), np.asarray(y).dtype)
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


@pytest.mark.filterwarnings("ignore:logm result")
@each_call
def test_derivatives_have_the_precision_of_values_and_arguments(case: Case):
    """In single precision, as in double: tangents have the dtypes of values, gradients those of arguments."""
    args, call = tuple(np.asarray(x, np.float32)[()] for x in case.args), rg.jit(case.call)

    def total(*args):
        found = call(*args)
        return sum(np.sum(np.real(x)) for x in (found if isinstance(found, tuple) else (found,)))

    slopes = rg.grad(total, tuple(range(len(args))))
    for f in (call, slopes):
        found, moved = (v if isinstance(v, tuple) else (v,) for v in rg.jvp(f, args, args))
        assert [x.dtype for x in map(np.asarray, moved)] == [x.dtype for x in map(np.asarray, found)]
    assert {np.asarray(x).dtype for x in found} == {np.dtype(np.float32)}


@pytest.mark.costly
@pytest.mark.sampled(4)
@each_call
def test_derivatives_hold_to_second_order(case: Case):
    rg.check_grads(case.call, case.args, order=2)


@each_call
def test_lanes_are_a_loop(case: Case):
    lanes = [tuple(x * scale for x in case.args) for scale in (1.0, 0.99)]
    found = rg.vmap(case.call)(*(np.stack(column) for column in zip(*lanes, strict=True)))
    for k, lane in enumerate(lanes):
        for x, y in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, case.call(*lane))), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-12, atol=1e-13)


def test_functions_of_scipy_are_checked_and_mapped_as_they_are():
    function, x = scipy.special.logsumexp, np.array([[0.3, -0.5], [1.2, 0.4]])
    rg.check_grads(function, (x[0],), order=2)
    np.testing.assert_allclose(rg.map(function, x), [function(row) for row in x], rtol=1e-15)


def test_outside_a_trace_nothing_is_changed():
    before = scipy.special.logsumexp, scipy.stats.rv_continuous.logpdf
    rg.grad(lambda x: scipy.special.logsumexp(x) + scipy.stats.norm.logpdf(x[0]))(np.ones(3))
    assert (scipy.special.logsumexp, scipy.stats.rv_continuous.logpdf) == before


def test_the_names_of_retrograd_scipy_are_scipys_own_for_plain_arguments():
    assert rg.scipy.special.logsumexp([0.0, 0.0]) == scipy.special.logsumexp([0.0, 0.0])
    np.testing.assert_array_equal(rg.scipy.special.softmax(np.ones(2)), [0.5, 0.5])


def test_importing_retrograd_does_not_import_scipy():
    program = "import sys, retrograd.scipy.stats, retrograd.scipy.sparse; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_module_that_uses_scipy_imports_it_and_runs_alone():
    source = rg.grad(lambda x: np.sum(scipy.special.gammaln(x))).source(np.ones(3))
    scope: dict = {}
    exec(source, scope)
    assert "import scipy.special\n" in source
    assert "runs on NumPy and SciPy" in source
    assert "scipy" not in rg.grad(lambda x: np.sum(np.exp(x))).source(np.ones(3))


def test_large_arrays_reuse_memory_and_stay_right():
    x = np.linspace(0.5, 3.0, 20_000)
    found = rg.grad(lambda x: np.sum(scipy.special.gammaln(x) * scipy.special.erf(x)))(x)
    g, e = scipy.special.gammaln(x), scipy.special.erf(x)
    expected = scipy.special.digamma(x) * e + g * 2 / np.sqrt(np.pi) * np.exp(-x * x)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


ORDERS = {
    "jv": lambda v: scipy.special.jv(v, 1.0),
    "kve": lambda v: scipy.special.kve(v, 1.0),
    "hyp2f1": lambda v: scipy.special.hyp2f1(v, 1.0, 2.0, 0.5),
    "zeta": lambda v: scipy.special.zeta(v, 2.0),
    "expn": lambda v: scipy.special.expn(v, 2.0),
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("mode", ["grad", "jvp"])
def test_an_order_without_a_known_derivative_is_refused_by_name(name, mode):
    with pytest.raises(errors.NonDifferentiableError, match=f"scipy.special.{name}"):
        rg.grad(ORDERS[name])(2.0) if mode == "grad" else rg.jvp(ORDERS[name], (2.0,), (1.0,))
    assert np.isfinite(rg.jit(ORDERS[name])(2.0))


def test_what_is_not_in_a_table_is_refused_by_name():
    for call, name in (
        (lambda x: scipy.stats.cauchy.logpdf(x, 0.0), "scipy.stats.cauchy.logpdf"),
        (lambda x: scipy.stats.lognorm.pdf(x, 3.0), "scipy.stats.lognorm.pdf"),
        (lambda x: scipy.special.airy(x)[0], "scipy.special.airy"),
    ):
        with pytest.raises(errors.UnsupportedError, match=name):
            rg.grad(call)(0.5)


EDGES = np.array([-1.0, 2.0, np.nan, 0.0, 1.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["norm", "t", "beta", "gamma", "chi2", "laplace", "expon", "uniform"])
@pytest.mark.parametrize("method", ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"])
def test_beside_the_support_and_without_a_distribution_it_is_as_scipy_has_it(name, method):
    shapes = {"t": (3.5,), "beta": (2.5, 1.7), "gamma": (2.2,), "chi2": (3.3,)}.get(name, ())

    def call(x, *parameters):
        return getattr(getattr(scipy.stats, name), method)(x, *parameters)

    assert_alike(rg.jit(lambda x: call(x, *shapes))(EDGES), call(EDGES, *shapes))
    for scale in (-1.0, 0.0):
        assert_alike(rg.jit(lambda x, s: call(x, *shapes, 0.0, s))(EDGES, scale), call(EDGES, *shapes, 0.0, scale))
    if shapes:
        wrong = [-s for s in shapes]
        assert_alike(rg.jit(call)(EDGES, *wrong), call(EDGES, *wrong))


def test_a_density_has_a_gradient_where_some_points_lie_beside_its_support():
    x = np.array([-1.0, 0.5, 2.0])
    slope = rg.grad(lambda a: np.sum(scipy.stats.beta.pdf(x, a, 1.0)))(2.0)
    np.testing.assert_allclose(slope, rg.grad(lambda a: scipy.stats.beta.pdf(0.5, a, 1.0))(2.0))


def test_explicit_imports_work_where_names_are_not_followed():
    table = [rg.scipy.special.softmax, rg.scipy.linalg.expm, rg.scipy.fft.rfft]
    x = np.array([0.5, 1.2, 3.0])
    np.testing.assert_allclose(rg.grad(lambda x: table[0](x)[0])(x), rg.grad(lambda x: scipy.special.softmax(x)[0])(x))
    assert table[0](x).sum() == pytest.approx(1.0)
    assert rg.scipy.special.gammaln is scipy.special.gammaln
    assert rg.scipy.stats.norm is scipy.stats.norm
    with pytest.raises(AttributeError):
        rg.scipy.special.no_such_function  # noqa: B018 - the lookup is what fails


def test_substitutes_work_in_loops_branches_and_lanes():
    def step(total, x):
        return total + scipy.special.logsumexp(np.array([x, total])), scipy.stats.norm.logpdf(x, total)

    def f(x):
        total, densities = rg.scan(step, 0.0, x)
        chosen = rg.cond(total > 1.0, lambda: scipy.special.gammaln(total), lambda: scipy.special.erf(total))
        return chosen + np.sum(densities)

    x = np.array([0.5, 1.2, 3.0])
    rg.check_grads(f, (x,), order=2)
    np.testing.assert_allclose(rg.vmap(f)(np.stack([x, -x])), [f(x), f(-x)], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["norm", "t", "beta", "gamma", "chi2", "laplace", "expon", "uniform"])
def test_quantiles_beside_0_and_1_are_nan(name):
    shapes = {"t": (3.5,), "beta": (2.5, 1.7), "gamma": (2.2,), "chi2": (3.3,)}.get(name, ())
    q = np.array([-0.5, 0.0, 0.3, 1.0, 1.5, np.nan])
    found = rg.jit(lambda q: getattr(scipy.stats, name).ppf(q, *shapes))(q)
    np.testing.assert_allclose(found, getattr(scipy.stats, name).ppf(q, *shapes), rtol=1e-12)


def test_whole_numbers_are_convolved_as_whole_numbers():
    x, v = np.array([1, 2, 3]), np.array([1, -1])
    for f in (scipy.signal.convolve, scipy.signal.correlate):
        assert_alike(rg.jit(lambda x, v, n=f.__name__: getattr(scipy.signal, n)(x, v))(x, v), f(x, v))
    with pytest.raises(errors.UnsupportedError, match="image of integers"):
        rg.jit(lambda x: scipy.ndimage.convolve(x, v))(x)


@pytest.mark.parametrize("a", [1e-3, 0.3, 1.0, 2.5, 40.0, 3e3])
@pytest.mark.parametrize("ratio", [1e-3, 0.5, 0.99, 1.01, 1.6, 4.0])
def test_the_incomplete_gamma_function_has_a_derivative_by_its_first_argument(a, ratio):
    x = a * ratio

    smaller = scipy.special.gammaincc if ratio > 1 else scipy.special.gammainc  # the one that differences resolve

    def difference(h):
        return np.log(smaller(a * (1 + h), x) / smaller(a * (1 - h), x)) / (2 * h * a)

    slope = rg.grad(lambda a: scipy.special.gammainc(a, x))(a)
    if smaller(a, x) == 0:
        assert abs(slope) < 1e-300
        return
    expected = (4 * difference(5e-4) - difference(1e-3)) / 3 * smaller(a, x)
    np.testing.assert_allclose(slope, -expected if ratio > 1 else expected, rtol=1e-5)
    np.testing.assert_allclose(rg.grad(lambda a: scipy.special.gammaincc(a, x))(a), -slope)
    mixed = rg.grad(lambda x: rg.grad(lambda a: scipy.special.gammainc(a, x))(a))(x)
    other = rg.grad(lambda a: rg.grad(lambda x: scipy.special.gammainc(a, x))(x))(a)
    np.testing.assert_allclose(mixed, other, rtol=1e-9)


def test_the_quantile_of_a_gamma_distribution_has_a_derivative_by_its_shape():
    rg.check_grads(lambda a: scipy.stats.gamma.ppf(np.array([0.1, 0.5, 0.95]), a), (2.3,), order=1)
    rg.check_grads(lambda a: scipy.stats.gamma.cdf(np.array([0.1, 2.5, 9.5]), a), (2.3,), order=1)
    with pytest.raises(errors.NonDifferentiableError, match="twice"):
        rg.grad(rg.grad(lambda a: scipy.stats.gamma.cdf(2.0, a)))(2.3)


@pytest.mark.parametrize("a", [0.01, 0.7, 2.5, 60.0])
@pytest.mark.parametrize("b", [0.02, 1.0, 3.5, 400.0])
@pytest.mark.parametrize("x", [1e-6, 0.05, 0.4, 0.9, 0.999])
def test_the_incomplete_beta_function_has_derivatives_by_its_first_two_arguments(a, b, x):
    point = np.array([a, b])
    lower = scipy.special.betainc(a, b, x) < 0.5
    f = scipy.special.betainc if lower else scipy.special.betaincc  # the one that differences resolve
    if f(a, b, x) < 1e-280:
        pytest.skip("too small for differences")
    for k in (0, 1):
        slope = rg.grad(lambda p: scipy.special.betainc(p[0], p[1], x))(point)[k]

        def difference(h, k=k):
            up, down = (point * np.where(np.arange(2) == k, 1 + s * h, 1) for s in (1, -1))
            return np.log(f(*up, x) / f(*down, x)) / (2 * h * point[k])

        expected = (4 * difference(5e-5) - difference(1e-4)) / 3 * f(a, b, x)
        np.testing.assert_allclose(slope, expected if lower else -expected, rtol=1e-6)


@pytest.mark.parametrize("df", [0.4, 1.0, 3.5, 80.0])
@pytest.mark.parametrize("x", [-1e6, -30.0, -2.0, -1e-3, -1e-9, 0.0, 0.5, 4.0, 1e3])
def test_students_distribution_has_a_derivative_by_its_degrees_of_freedom(df, x):
    slope = rg.grad(lambda df: scipy.stats.t.cdf(x, df))(df)
    if x == 0 or scipy.special.stdtr(df, -abs(x)) < 1e-280:
        assert abs(slope) < 1e-270
    elif abs(x) < 1e-2:  # x times the derivative of the density at 0
        at_zero = rg.grad(lambda df: scipy.stats.t.pdf(0.0, df))(df)
        np.testing.assert_allclose(slope, x * at_zero, rtol=1e-5)
    else:
        tail = scipy.special.stdtr(df, -abs(x))

        def difference(h):
            up, down = (scipy.special.stdtr(df * (1 + s * h), -abs(x)) for s in (1, -1))
            return np.log(up / down) / (2 * h * df)

        expected = (4 * difference(5e-4) - difference(1e-3)) / 3 * tail
        np.testing.assert_allclose(slope, -expected if x > 0 else expected, rtol=1e-6)


@pytest.mark.parametrize(
    "points", [None, [0, 1, 4, 6], np.array([0.0, 0.5, 0.7, 2.0], "f")], ids=["dx", "list", "single"]
)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "f2", "f4", "f8"])
def test_the_trapezoidal_rule_adds_in_the_dtype_of_the_samples(dtype: str, points: Any) -> None:
    y = np.array([[1, 0, 1, 1], [100, 90, 3, 0]]).astype(dtype)
    assert_traced(lambda y: scipy.integrate.trapezoid(y, points), y)
    assert_traced(lambda y: scipy.integrate.trapezoid(y, dx=2, axis=0), y)


MATRIX_FUNCTIONS = ["logm", "sqrtm", "cholesky", "cho_factor", "lu_factor", "block_diag"]


def test_stacks_of_vectors_are_refused_too() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    for f in (scipy.linalg.toeplitz, lambda x: scipy.linalg.toeplitz(x[0], x)):
        with pytest.raises(rg.errors.UnsupportedError, match="vmap"):
            rg.jit(f)(x)
    for found, row in zip(rg.vmap(scipy.linalg.toeplitz)(x), x, strict=True):
        np.testing.assert_array_equal(found, scipy.linalg.toeplitz(row))
    assert_traced(lambda x: scipy.linalg.toeplitz(x[0, 0], x[1]), x)


@pytest.mark.parametrize("name", MATRIX_FUNCTIONS)
def test_stacks_of_matrices_are_refused_with_the_way_to_map_over_them(name: str) -> None:
    stack = np.stack([2 * np.eye(2), 3 * np.eye(2)])
    function = getattr(scipy.linalg, name)
    with pytest.raises(rg.errors.UnsupportedError, match="vmap"):
        rg.jit(function)(stack)
    if name not in ("cho_factor", "lu_factor"):
        np.testing.assert_allclose(rg.vmap(function)(stack), [function(a) for a in stack], rtol=1e-14)


def test_complex_signals_are_correlated_as_scipy_does() -> None:
    x, v = np.array([1.0, 2j, 3.0 - 1j]), np.arange(5) * (1.0 + 2j)
    for mode in ("full", "same", "valid"):
        assert_traced(lambda x, v, m=mode: scipy.signal.correlate(x, v, m), x, v)


def test_lists_of_traced_numbers_are_signals_and_samples() -> None:
    for name in ("convolve", "correlate", "fftconvolve"):
        assert_traced(lambda s, n=name: getattr(scipy.signal, n)([s, 2 * s, s * s], [0.0, s, 3 * s]), 1.3)
    assert_traced(lambda s: scipy.integrate.simpson([s, 2 * s, s * s], [0.0, s, 3 * s]), 1.3)


RIGHT_SIDES = {
    "solve_triangular": scipy.linalg.solve_triangular,
    "cho_solve": lambda a, b: scipy.linalg.cho_solve((a, True), b),
    "lu_solve": lambda a, b: scipy.linalg.lu_solve((a, np.array([0, 1])), b),
    "solve_banded": lambda a, b: scipy.linalg.solve_banded((0, 1), a, b),
    "solve_sylvester": lambda a, b: scipy.linalg.solve_sylvester(a, a, b),
    "solve_continuous_lyapunov": scipy.linalg.solve_continuous_lyapunov,
    "solve_discrete_lyapunov": lambda a, b: scipy.linalg.solve_discrete_lyapunov(0.1 * a, b),
}


@pytest.mark.parametrize("name", RIGHT_SIDES)
def test_stacks_of_right_sides_are_refused_with_the_way_to_map_over_them(name: str) -> None:
    call, a = RIGHT_SIDES[name], np.array([[2.0, 1.0], [1.0, 3.0]])
    stack = np.arange(12.0).reshape(3, 2, 2)
    with pytest.raises(errors.UnsupportedError, match="vmap"):
        rg.jit(call)(a, stack)
    found = rg.vmap(call, in_axes=(None, 0))(a, stack)
    np.testing.assert_allclose(found, [call(a, b) for b in stack], rtol=1e-12)


def test_factors_of_a_matrix_that_is_not_square_are_refused() -> None:
    with pytest.raises(errors.UnsupportedError, match="not square"):
        rg.jit(scipy.linalg.lu_factor)(np.ones((2, 3)))


def test_empty_stacks_and_empty_images() -> None:
    for shape in ((0, 2, 2), (2, 0, 0)):
        assert_alike(rg.jit(scipy.linalg.expm)(np.zeros(shape)), scipy.linalg.expm(np.zeros(shape)))
    for name in ("convolve", "correlate"):
        for shape in ((0, 3), (3, 0)):
            call = lambda x, n=name: getattr(scipy.ndimage, n)(x, np.ones((3, 3)))  # noqa: E731 - asked twice
            assert_alike(rg.jit(call)(np.ones(shape)), call(np.ones(shape)))


@pytest.mark.filterwarnings("ignore:logm result")
@pytest.mark.parametrize("kind", ["f", "F"])
def test_logarithms_are_in_double_precision(kind: str) -> None:
    a = np.array([[2.0, 0.5], [0.3, 1.0]], kind)
    found, expected = rg.jit(scipy.linalg.logm)(a), scipy.linalg.logm(a)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # SciPy's has the digits of single precision


@pytest.mark.filterwarnings("ignore:Matrix is singular")
def test_a_singular_matrix_has_no_logarithm() -> None:
    f = rg.jit(scipy.linalg.logm)
    f(np.eye(2))
    assert np.isnan(f(np.diag([0.0, 5.0]))).all()
    with pytest.raises(errors.UnsupportedError, match="singular"):
        rg.jit(scipy.linalg.logm)(np.diag([0.0, 5.0]))


def test_a_sparse_matrix_times_a_traced_number_is_refused() -> None:
    matrix = scipy.sparse.csr_matrix(np.eye(2))
    for call in (lambda s: matrix * s, lambda s: s * matrix, matrix.dot):
        with pytest.raises(errors.UnsupportedError, match="toarray"):
            rg.jit(call)(2.0)
