"""What random calls found, each as the smallest call that shows it."""

# ruff: noqa: PLW0108 - calls are written as users write them

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.special
import scipy.stats

import retrograd as rg
from tests.fuzz.calling import difference, outcome

pytestmark = pytest.mark.whole  # a case takes milliseconds

X = np.array([0.3, -0.7, 1.1, 0.2])
ROW = np.array([[0.5, -1.5, -0.25]])
N = np.array([3, -4, 100, 7])
Z = np.array([1.25 - 0.5j, -0.75 + 2j, 0.3 + 0.7j], np.complex64)
SAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an initial value of True counts": (lambda x: np.sum(x, initial=True), (X,)),
    "a maximum from True on": (lambda x: np.max(x - 5, initial=True), (X,)),
    "a reduction of one number by hypot is its absolute value": (lambda x: np.hypot.reduce(x), (ROW,)),
    "a greatest common divisor of one number": (lambda n: np.gcd.reduce(n), (N[1:2],)),
    "a run of one number stays": (lambda x: np.hypot.reduceat(x, [1, 2]), (X,)),
    "a reduction without an initial value": (lambda x: np.subtract.reduce(x, initial=None), (X,)),
    "a product in int8 of nothing": (lambda x: np.multiply.reduce(x, dtype=np.int8), (X[:0],)),
    "sums in int8": (lambda n: np.sum(n * n, dtype=np.int8), (N,)),
    "products in uint16": (lambda n: np.prod(n, dtype=np.uint16), (N,)),
    "running sums in int8": (lambda n: np.cumsum(n * n, dtype=np.int8), (N,)),
    "running products in int16": (lambda n: n.cumprod(dtype=np.int16), (N,)),
    "running sums by the method of the ufunc": (lambda n: np.add.accumulate(n, dtype=np.int8), (N,)),
    "sums of bools in bools": (lambda n: np.sum(n > 0, dtype=bool), (N,)),
    "running sums of bools in bools": (lambda n: np.cumsum(n > 0, dtype=bool), (N,)),
    "sums of bools into bools": (lambda n: np.sum(n > 5, axis=0, out=np.zeros((), bool)), (N,)),
    "means in integers": (lambda n: np.mean(n, dtype=np.int8), (N,)),
    "variances in integers": (lambda n: np.var(n, dtype=np.int32, where=n > 0), (N,)),
    "traces in bools": (lambda x: np.trace(np.outer(x, x), dtype=bool), (X,)),
    "running sums into narrow integers": (lambda n: np.cumsum(n.astype(np.int8), out=np.zeros(4, np.int8)), (N,)),
    "means of single complex numbers": (lambda z: np.mean(z), (Z,)),
    "variances of many halves": (lambda x: np.var(np.tile(x.astype(np.float16), 20000)), (X,)),
    "deviations from a complex mean": (lambda x: np.nanvar(x, mean=np.array([0.5 - 2j])), (X,)),
    "deviations of single numbers in double": (lambda x: np.nanstd(x.astype(np.float32), dtype=np.float64), (X,)),
    "deviations of single numbers from a mean": (lambda x: np.nanstd(x.astype(np.float32), mean=[2]), (X,)),
    "places of int32": (lambda n: np.unravel_index(np.abs(n[:2]).astype(np.int32), (60, 3)), (N,)),
    "a deviation in integers": (lambda n: np.std(n, dtype=np.int64), (N,)),
    "a deviation of bools in integers": (lambda n: np.nanstd(n > 0, dtype=np.int64), (N,)),
    "a distance in half precision": (lambda x: math.dist(x.astype(np.float16), x[::-1].astype(np.float16)), (X,)),
    "no places": (lambda x: x.take([]), (X,)),
    "nothing is put": (lambda x: _flat(x.copy(), []), (X,)),
    "differences of unsigned numbers at places": (lambda n: _taken(n.copy(), [1, 1], np.uint16(9)), (N,)),
    "indices of no numbers keep their kind": (lambda n: np.ix_(n[:0].astype(np.uint8), []), (N,)),
    "a condition as a list": (lambda x: np.extract([True, False, 1, 0], x), (X,)),
    "a real number is not complex": (lambda x: np.iscomplex(float(x[0])), (X,)),
    "negative zeros that are finite": (lambda x: np.nan_to_num(_complex(x * 0, -x * 0)), (X,)),
    "a double as a bound of singles": (lambda x: np.clip(x > 0, float(x[0]), np.float32(-1.155)), (X,)),
    "integers with a fraction of degrees of freedom": (lambda n: np.var(n[:3], dtype=np.uint32, ddof=0.5), (N,)),
    "an order of another precision": (lambda x: np.linalg.norm(x.astype(np.float32), np.float64(3.5), 0), (X,)),
    "several quantiles of halves": (lambda x: np.percentile(x.astype(np.float16), [25, 75]), (X,)),
    "a level in double of singles": (lambda x: np.quantile(x.astype(np.float32), np.float64(0.3)), (X,)),
    "a percentile of singles at a double that comes in": (
        lambda x, q: [f(x.astype(np.float32), q[0]) for f in (np.percentile, np.quantile)],
        (X, np.array([0.25, 0.5])),
    ),
    "those at an array without axes": (
        lambda x, q: [f(x.astype(np.float16), np.reshape(q[:1], ())) for f in (np.percentile, np.quantile)],
        (X, np.array([0.25, 0.5])),
    ),
    "lower quantiles of singles": (lambda x: np.quantile(x.astype(np.float32), [0.1, 0.9], method="lower"), (X,)),
    "the median of one number as an array": (lambda x: np.median(float(x[0]), keepdims=True), (X,)),
    "a product into a number": (lambda x: np.dot(x, x > 0, out=np.zeros(())), (X,)),
    "a product of numbers into a number": (lambda x: np.dot(x[0], x[1], out=np.zeros(())), (X,)),
    "the step of a range of Python's numbers": (lambda x: np.linspace(False, float(x[0]), retstep=True), (X,)),
    "inverse transforms of real singles": (lambda x: np.fft.irfft(x.astype(np.float32)), (X,)),
    "those of two axes": (lambda x: np.fft.irfftn(np.outer(x, x).astype(np.float32)), (X,)),
    "complex inverse ones": (lambda x: np.fft.ifft2(np.outer(x, x).astype(np.float32)), (X,)),
    "scaled ones of halves": (lambda x: np.fft.fft(x.astype(np.float16), norm="ortho"), (X,)),
    "inverse ones of halves": (lambda x: np.fft.irfft(x.astype(np.float16), 5), (X,)),
    "scaled inverse ones of real singles along two axes": (
        lambda x: [f(np.outer(x, x).astype(np.float32), norm="forward") for f in (np.fft.irfft2, np.fft.irfftn)],
        (X,),
    ),
    "hermitian transforms of halves": (lambda x: np.fft.ihfft(x.astype(np.float16), norm="ortho"), (X,)),
    "norms of negative orders of infinities": (lambda x: np.linalg.norm(x * np.inf, -2.5), (X,)),
    "sets of singles and a number": (lambda x: np.union1d(x.astype(np.float32), 5.0), (X,)),
    "the numbers in one of two sets, one of them Python's": (
        lambda n: np.setxor1d(n.astype(np.int32), 7, assume_unique=True),
        (N,),
    ),
    "a variance by a complex mean": (lambda x: np.var(x, mean=np.array([0.5 - 2j]), correction=2), (X,)),
    "a deviation by a complex mean": (lambda x: np.std(x, mean=np.array([0.5 - 2j])), (X,)),
    "one finite number of no axes": (lambda x: np.nan_to_num(np.reshape(x[:1], ()), nan=x[1]), (X,)),
    "points at the last knot, which is repeated": (lambda x: np.interp(x, np.sort(x)[[0, -1, -1]], x[:3]), (X,)),
    "spectra of singles and infinity": (lambda x: np.fft.irfft2((np.outer(x, x) / (x > 0)).astype(np.float32)), (X,)),
    "a variance of bools by a complex mean": (lambda x: np.var(x > 0, mean=np.array([0.5 - 2j])), (X,)),
    "runs of nothing": (lambda x: np.arctan2.reduceat(x, []), (X,)),
    "sums of runs in any order": (lambda x: np.add.reduceat(np.outer(x, x) * np.pi, [1, 0, 2], axis=1), (X,)),
    "products of runs of halves": (
        lambda x: np.multiply.reduceat(np.outer(x, x).astype(np.float16), [1, 0], axis=0),
        (X,),
    ),
    "products of runs of complex numbers": (lambda z: np.multiply.reduceat(np.outer(z, z), [1, 0]), (Z,)),
    "numbers from negative zero on": (lambda x: np.arange(x[0] * -0.0, 2.5), (np.abs(X),)),
    "products with an empty list": (lambda n: [f(n[:0], []) for f in (np.dot, np.inner, np.vdot)], (N,)),
    "counts between edges": (lambda x: np.histogram(x * np.pi, 7), (X,)),
    "edges of singles in a range": (lambda x: np.histogram_bin_edges(x.astype(np.float32), 7, (-0.1, 1.3)), (X,)),
    "a mean into singles": (lambda x: np.mean(x * np.pi, out=np.zeros((), np.float32)), (X,)),
    "means of halves into doubles": (lambda x: np.mean(x.astype(np.float16), out=np.zeros(())), (X,)),
    "a sum of complex numbers into doubles": (lambda z: np.sum(z, out=np.zeros(())), (Z,)),
    "a variance of singles into complex numbers": (
        lambda x: np.var(x.astype(np.float32), out=np.zeros((), complex)),
        (X,),
    ),
    "a deviation into single complex numbers": (lambda x: np.std(x * 3, out=np.zeros((), np.complex64)), (X,)),
    "a deviation of doubles into halves": (lambda x: np.nanstd(x * 3, out=np.zeros((), np.float16)), (X,)),
    "a largest number into integers": (lambda x: np.max(x * 9, out=np.zeros((), int)), (X,)),
    "a range into halves": (lambda x: np.ptp(np.outer(x, x) * 9, 0, np.zeros(4, np.float16)), (X,)),
    "running sums of doubles into integers": (lambda x: np.cumsum(x * 9, out=np.zeros(4, int)), (X,)),
    "the median of integers into integers": (lambda n: np.nanmedian(n, out=np.zeros((), int)), (N,)),
    "a product from a number on that out= cannot hold": (
        lambda x: np.prod(x * 3, initial=-3, out=np.zeros((), np.uint8)),
        (X,),
    ),
    "a sum into narrower numbers, as casting= allows": (
        lambda n, x: np.add(n, x, out=np.zeros(4, np.int8), casting="unsafe"),
        (N, X),
    ),
    "places into narrow integers": (lambda x: np.argmax(x, out=np.zeros((), np.uint8)), (X,)),
    "running sums along a tuple of one axis": (lambda x: np.cumulative_sum(np.outer(x, x), axis=(0,)), (X,)),
    "quantiles that skip nan into integers": (lambda x: np.nanquantile(x * 9, 0.3, out=np.zeros((), int)), (X,)),
    "a trace into integers": (lambda x: np.trace(np.outer(x, x) * 9, out=np.zeros((), int)), (X,)),
    "the median of nothing into complex numbers": (
        lambda x: np.median(np.outer(x, x[:0]), 1, out=np.ones(4, complex)),
        (X,),
    ),
    "differences of singles in doubles": (
        lambda x: np.subtract.reduce(np.outer(x, x).astype(np.float32), out=np.zeros(4)),
        (X,),
    ),
    "bits of bools in unsigned integers": (
        lambda n: np.bitwise_and.reduce([n > 5, n > 0], where=[[True], [False]], out=np.zeros(4, np.uint32)),
        (N,),
    ),
    "running quotients of singles in doubles": (
        lambda x: np.divide.accumulate(x.astype(np.float32), out=np.zeros(4)),
        (X,),
    ),
    "a number for a number, also with out=": (lambda x: np.sum(x[0], out=np.zeros(())), (X,)),
    "the same for its method": (lambda x: x[0].clip(0.5, 1.0, out=np.zeros(())), (X,)),
    "a variance of complex numbers without nan": (lambda z: np.nanvar(z * 1.7), (Z,)),
    "a deviation of single complex numbers in double": (lambda z: np.nanstd(z * (0.7 - 1j), 0, np.float64), (Z,)),
    "a product of nothing from infinity on": (lambda z: np.prod(z[:0], initial=-np.inf), (Z,)),
    "a sum of nothing from negative zero on": (lambda x: np.sum(x[:0], initial=-0.0), (X,)),
    "nothing but an initial value for a number": (lambda x: np.nanmin(x[0], initial=2, where=False), (X,)),
    "the largest of one number that is not one": (lambda z: np.nanmax(z[0] * complex(1, math.nan)), (Z,)),
    "steps from a single to a double": (lambda x: np.arange(np.float32(x[0]), 4.25), (np.array([0.098, 0.3]),)),
    "steps of singles": (lambda x: np.arange(x[0], x[1], np.float32(0.3)), (np.array([0.098, 5.3], np.float32),)),
    "a range from an integer to halves": (
        lambda n, x: np.linspace(n.astype(np.int16), x.astype(np.float16), 7, retstep=True),
        (N, X),
    ),
    "a range of singles as doubles": (lambda x: np.linspace(x.astype(np.float32), -0.891, 7, dtype=float), (X,)),
    "bounds of another precision than the numbers": (lambda z, x: np.clip(z, float(x[0]), np.int64(5)), (Z, X)),
    "a comparison with a complex number that is not one": (
        lambda x: (np.reshape(x[:1], ()) >= np.complex128(complex(-1.8, math.nan)), x > complex(0.2, math.nan)),
        (X,),
    ),
    "the same between numbers": (
        lambda z: [f(z[0], np.complex128(complex(0.2, math.nan))) for f in (operator.lt, operator.ge)],
        (Z,),
    ),
    "the same by the ufunc": (lambda z: np.greater(z[0], np.complex128(complex(0.2, math.nan))), (Z,)),
    "an integer to the power of a single": (lambda n: n[0] ** np.float32(0.191), (np.array([2, 3], np.uint64),)),
    "an integer to the power of Python's number": (lambda n, x: n[0] ** float(x[0]), (np.array([2, 3]), X)),
    "a copy in the other direction": (lambda x: np.cbrt(np.tile(x, 9)[::-1].copy()), (np.arange(7.0),)),
    "a frame of complex numbers around real ones": (lambda x: np.pad(x, 1, constant_values=1j), (X,)),
    "a frame of large numbers around narrow ones": (lambda n: np.pad(n.astype(np.uint8), 1, constant_values=300), (N,)),
    "a number below unsigned ones": (lambda n: (n != -1, n[0] >= -1, n > -1, np.less(n, -1)), (N.astype(np.uint8),)),
    "a number above narrow ones": (lambda n: [f(n, 300) for f in (operator.lt, np.greater)], (N.astype(np.int8),)),
    "the least of unsigned numbers and a negative one": (lambda n: min(n[0], -1), (N.astype(np.uint8),)),
    "unsigned numbers that are close to negative ones": (lambda n: np.allclose(n, -1), (N.astype(np.uint8),)),
    "a negative choice beside unsigned numbers": (lambda n: np.where(n > 5, n, -1), (N.astype(np.uint8),)),
    "a negative number added at places": (lambda n: _accumulated(n.copy(), [0, 0], -4), (N.astype(np.uint16),)),
    "an array full of a fraction": (lambda n, x: np.full_like(n, float(x[1]) * 3), (N.astype(np.uint8), X)),
    "a number joined to singles": (
        lambda x, s: (
            np.concatenate([x.astype(np.float32), float(s[0]), 2], None),
            np.append(x.astype(np.float32), 1.5),
        ),
        (X, X),
    ),
    "a sum of nothing from a number that comes in": (
        lambda x, s: (np.sum(x[:0], initial=float(s[0])), (x[:0] * 1j).sum(initial=complex(s[0], 1))),
        (X, X),
    ),
    "a number that is flipped": (lambda x: np.flip(float(x[0])), (X,)),
    "slopes between truths": (lambda x: np.gradient(x[:3], np.array([True, False, True])), (X,)),
    "counts of truths": (lambda x: np.histogram(x > 0, 3), (X,)),
    "truths in narrow integers from the first on": (
        lambda x: np.bitwise_or.reduce([x > 0], dtype=np.uint8, initial=None),
        (X,),
    ),
    "covariances of nothing": (lambda n: np.cov(np.zeros((0, 4)), fweights=n), (N,)),
    "infinite weights of bins": (lambda x: np.histogram(x, 5, (-1, 2), weights=x / (x > 0)), (X,)),
    "weights of bins in single precision": (
        lambda x: np.histogram(x, 4, density=True, weights=np.abs(x).astype(np.float32)),
        (X,),
    ),
    "runs of one complex number": (lambda z: np.multiply.reduceat(z * (-0.0 + 1j), [0, 1, 2]), (Z,)),
    "a complex end of real lines": (lambda x, z: np.interp(x, [0.0, 1.0, 2.0], x[:3], z[0]), (X, Z)),
    "repeated points below the first": (lambda x: np.interp(x, [1.0, 0.0, 0.0], x[:3]), (np.array([-4.0, 0.0, 0.5]),)),
    "complex numbers as real parts": (lambda x: _complex(x + 0j, x * 1j), (X,)),
    "values of a list at places of a traced mask": (lambda n: _placed(n.copy(), n > 4, [1.9, 2.5]), (N,)),
    "nothing is repeated": (lambda x: np.repeat(x[:0], []), (X,)),
    "a bound of one for singular values": (lambda x: np.linalg.lstsq(np.outer(x, x) + np.eye(4), x, 1)[2], (X,)),
}


def _flat(x: Any, value: Any) -> Any:
    x.flat = value
    return x


def _taken(x: Any, places: Any, value: Any) -> Any:
    np.subtract.at(x, places, value)
    return x


def _accumulated(x: Any, places: Any, value: Any) -> Any:
    np.add.at(x, places, value)
    return x


def _placed(x: Any, mask: Any, values: Any) -> Any:
    np.place(x, mask, values)
    return x


def _complex(real: Any, imag: Any) -> Any:
    made = np.zeros(real.shape, complex)
    made.real, made.imag = real, imag
    return made


@pytest.mark.filterwarnings(
    "ignore::numpy.exceptions.ComplexWarning",
    "ignore:divide by zero",
    "ignore:invalid",
    "ignore:(Mean of empty|All-NaN|Converting input)",
)
@pytest.mark.parametrize("name", SAME)
def test_calls_that_differed(name: str) -> None:
    function, args = SAME[name]
    compiled = rg.jit(function)
    with rg.config(exact=True):
        for again in (args, tuple(a[::-1].copy() for a in args)):
            expected = outcome(function, *again)
            assert not isinstance(expected, Exception)
            assert difference(compiled(*again), expected) is None


OF_SCIPY: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a density of singles by Python's numbers": (lambda x: scipy.stats.norm.cdf(x.astype(np.float32), 0.3, 3.1), (X,)),
    "a density of integers and singles": (
        lambda x: scipy.stats.norm.cdf(np.arange(4, dtype=np.int8), x.astype(np.float32), 3.1),
        (X,),
    ),
    "sums of exponentials of singles": (
        lambda x: scipy.special.logsumexp(x.astype(np.float32), b=1.972, return_sign=True),
        (X,),
    ),
    "those of singles and doubles": (lambda x: scipy.special.logsumexp(x.astype(np.float32), b=x * x), (X,)),
    "those of nothing": (lambda x: scipy.special.logsumexp(np.zeros((2, 0)) + x[:1, None], axis=1), (X,)),
    "shares beside infinity": (lambda x: scipy.special.softmax(x / 0.0), (X,)),
    "shares of integers": (lambda n: scipy.special.softmax(n.astype(np.int16)), (N,)),
    "logarithms of shares of integers": (lambda n: scipy.special.log_softmax(n.astype(np.int8)), (N,)),
    "zeta of an integer and singles": (
        lambda x: scipy.special.zeta(np.arange(2, 6, dtype=np.int8), np.abs(x.astype(np.float32))),
        (X,),
    ),
    "a norm by LAPACK": (lambda x: scipy.linalg.norm(np.outer(x, x), 1), (X,)),
    "a norm along an axis": (lambda x: scipy.linalg.norm(np.outer(x, x), axis=1), (X,)),
    "spectra of halves": (lambda x: scipy.fft.irfftn(x.astype(np.float16)), (X,)),
    "a polygamma of a number": (lambda x: scipy.special.polygamma(2, float(np.abs(x[0]))), (X,)),
    "those of a number along an axis": (
        lambda x: (scipy.special.logsumexp(x[0], axis=-1, keepdims=True), scipy.special.logsumexp(float(x[1]), axis=0)),
        (X,),
    ),
    "shares of a number": (lambda x: scipy.special.softmax(x[0], axis=-1), (X,)),
    "a factor beside what was there": (lambda x: scipy.linalg.cho_factor(np.outer(x, x) + 3 * np.eye(4))[0], (X,)),
    "a lower one": (lambda x: scipy.linalg.cho_factor(np.outer(x, x + 1) + 3 * np.eye(4), lower=True), (X,)),
    "sums of weighted exponentials of complex numbers": (
        lambda z: scipy.special.logsumexp(z * 3j, b=np.array([1.5, -2, 0.5]), return_sign=True),
        (Z,),
    ),
    "the same without a sign": (lambda z: scipy.special.logsumexp(z * 4 + 2j, b=np.array([1.5, -2, 0.5])), (Z,)),
    "singles weighted by Python's int": (lambda x: scipy.special.logsumexp(x.astype(np.float32), b=3), (X,)),
    "integers weighted by singles": (
        lambda n: scipy.special.logsumexp(n.astype(np.uint8), b=np.float32([1, 2, 3, 4])),
        (np.abs(N),),
    ),
    "a sign of nothing": (lambda x: scipy.special.logsumexp(x[:0], b=x[:0], return_sign=True), (X,)),
    "an integral of singles": (lambda x: scipy.integrate.trapezoid(x.astype(np.float32), x), (X,)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OF_SCIPY)
def test_calls_of_scipy_that_differed(name: str) -> None:
    function, args = OF_SCIPY[name]
    compiled = rg.jit(function)
    for again in (args, tuple(a[::-1].copy() for a in args)):
        assert difference(compiled(*again), function(*again), close=True) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.subtract.reduce(x, out=np.zeros((), int)),
        lambda x: np.max(x, out=np.zeros((), np.uint8)),
        lambda x: np.median(x, out=np.zeros((), np.uint8)),
    ],
)
def test_reductions_whose_first_numbers_numpy_casts_are_refused(call: Callable[..., Any]) -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="astype"):
        rg.jit(call)(X)


def test_distributions_of_complex_numbers_are_refused() -> None:
    with pytest.raises(rg.errors.UnsupportedError, match="complex"):
        rg.jit(lambda z: scipy.stats.norm.pdf(z))(Z)


RAISES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an operator that writes numbers of another kind": (lambda n, x: _added(n.copy(), x), (N, X)),
    "out= of another kind": (lambda x: np.sin(x, out=np.zeros(4, int)), (X,)),
    "a ufunc's method": (lambda x: np.bitwise_and.at(x.copy(), [5], 1), (X,)),
    "a mask of two axes": (lambda x: x.compress([[True]]), (X,)),
    "several axes for one": (lambda x: x.take([0], (0,)), (X,)),
    "the same for a place": (lambda x: np.argmin(x[0:1].reshape(()), axis=()), (X,)),
    "an initial complex number": (lambda x: np.prod(x, initial=1j), (X,)),
    "an initial complex number for nothing": (lambda x: np.max(x[:0], initial=1j), (X,)),
    "a complex number of Python's as a real one": (lambda s: np.float64(s * 1j), (0.5,)),
    "the same from an iterator": (lambda s: np.fromiter([s * 1j], float), (0.5,)),
    "numbers put where a mask is, of another kind": (lambda n, x: np.putmask(n.copy(), n > 0, x), (N, X)),
    "numbers put into places, of another kind": (lambda n, x: np.place(n.copy(), n > 0, x), (N, X)),
    "a mask of several axes that is traced": (lambda x: np.compress(np.outer(x, x), x), (X,)),
    "a complex constant of pieces": (lambda x: np.piecewise(x, [x > 0], [1j]), (X,)),
    "a complex diagonal": (lambda x, s: np.fill_diagonal(np.outer(x, x), s * 1j), (X, 0.5)),
    "no frame of a mode that is not one": (lambda x: np.pad(x, 0, "full"), (X,)),
    "a mask without a value to begin with": (lambda x: np.add.reduce(x, where=x > 0, initial=None), (X,)),
    "places into doubles": (lambda x: np.argmax(x, out=np.zeros(())), (X,)),
    "integers into which quantiles are written": (lambda x: np.quantile(x, 0.3, out=np.zeros((), int)), (X,)),
    "a cast that casting= forbids": (lambda x: np.conj(x, out=np.zeros(4, complex), casting="no"), (X,)),
    "a bound without the other": (lambda x: np.clip(x, a_max=1.0), (X,)),
    "several axes to repeat along": (lambda x: x.repeat(2, (0,)), (X,)),
    "an operand without axes": (lambda x: x @ np.float64(2), (X,)),
    "running sums without axes": (lambda n: np.add.accumulate(n[0], dtype=np.int8), (N,)),
    "a list of axes": (lambda x: np.sum(np.outer(x, x), [0, 1]), (X,)),
    "a complex number for nan": (lambda x: np.nan_to_num(x, nan=1j), (X,)),
    "replacements that do not fit": (lambda x: np.nan_to_num(x, posinf=[1.0, 2.5]), (X,)),
    "negative weights of observations": (lambda x: np.cov(np.outer(x, x), aweights=x), (X,)),
    "negative counts of observations": (lambda n: np.cov(n, fweights=n), (N,)),
    "a range that is not finite": (lambda x: np.histogram(x / (x - x[0]), 3), (X,)),
    "weights of another shape than the numbers": (lambda x: np.histogram_bin_edges(x, weights=x[:3]), (X,)),
    "a cast of a product that casting= forbids": (lambda n, x: np.matmul(n, x, casting="no"), (N, X)),
    "places of values of another shape": (lambda x: np.putmask(x.copy(), [True, False], x), (X,)),
    "places of values of another length": (lambda x: np.place(x.copy(), [True, False], x), (X,)),
    "a copy of a fraction into integers": (lambda n: np.copyto(n.copy(), 0.5), (N,)),
    "a list as the end of lines": (lambda x: np.interp(x, [0.0, 1.0], x[:2], left=[1.0, 2.5]), (X,)),
    "a complex end of lines": (lambda x: np.interp(x, [0.0, 1.0], x[:2], left=1j), (X,)),
    "lengths of jumps of another shape": (lambda x: np.unwrap(x, [1.0, 2.5]), (X,)),
    "pieces that their dtype cannot hold": (lambda n: np.piecewise(n, [n > 9], [-3]), (np.abs(N).astype(np.uint8),)),
    "labels that are no integers": (lambda x: np.einsum(np.outer(x, x), [0.0, 1.0]), (X,)),
    "out= of a product that is too narrow": (
        lambda z: np.einsum("i,i->i", z, z * 1j, out=np.zeros(3, np.float32)),
        (Z,),
    ),
    "the inverse of a hermitian matrix that is not square": (
        lambda x: np.linalg.pinv(np.outer(x, x[:2]), hermitian=True),
        (X,),
    ),
    "a sum of nothing without an initial value": (lambda x: np.add.reduce(x[:0], initial=None), (X,)),
    "a complex number at a place of a row": (lambda x, s: x.copy().flat.__setitem__([1], s * 1j), (X, 0.5)),
    "a number that its type cannot hold": (lambda s: np.uint8(s), (-1.626,)),
    "places beside an unknown mode": (lambda x: np.take(x, 0, axis=(0,), mode="r"), (X,)),
}


def _added(n: Any, x: Any) -> Any:
    n += x
    return n


@pytest.mark.parametrize("name", RAISES)
def test_errors_are_numpys(name: str) -> None:
    function, args = RAISES[name]
    with pytest.raises(Exception) as expected:  # noqa: PT011 - which one is what is asked
        function(*args)
    with pytest.raises(type(expected.value)) as found:
        rg.jit(function)(*args)
    assert type(found.value) is type(expected.value)


SPECIAL = (math.inf, -math.inf, math.nan, 0.0, -0.0, 0.5, -2.5, 3.0, 1e308, 5e-324)
OF_MATH: dict[str, Callable[[float, float], Any]] = {
    "isclose": lambda x, y: math.isclose(x, y),
    "isclose within bounds": lambda x, y: math.isclose(x, y, rel_tol=0.1, abs_tol=3.0),
    "remainder": lambda x, y: math.remainder(x, y),
    "dist": lambda x, y: math.dist((x, y), (y, 0.5)),
    "hypot": lambda x, y: math.hypot(x, y, 0.5),
    "fmod": lambda x, y: math.fmod(x, y),
    "atan2": lambda x, y: math.atan2(x, y),
    "pow": lambda x, y: math.pow(x, y),
    "lgamma": lambda x, y: math.lgamma(x),
    "ldexp": lambda x, y: (math.ldexp(x, -1100), math.ldexp(x, 1500 if x < 1e-300 else 3)),
}


@pytest.mark.parametrize("name", OF_MATH)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_math_at_infinities_and_extremes(name: str) -> None:
    function = OF_MATH[name]
    compiled = rg.jit(function)
    compiled(0.5, 0.25)
    for x in SPECIAL:
        for y in SPECIAL:
            expected = outcome(function, x, y)
            if not isinstance(expected, Exception):
                assert difference(compiled(x, y), expected, close=True) is None, (x, y)


def test_fsum_rounds_once() -> None:
    values = [1e16, 1.0, -1e16, 1e-300, 0.1, -5e-324, 3.0]
    compiled = rg.jit(lambda x: math.fsum(x))
    assert compiled(np.array(values)) == math.fsum(values) != np.sum(values)
    assert rg.jit(lambda x, y: math.fsum([x, 1, y, 0.1]))(1e16, -1e16) == math.fsum([1e16, 1, -1e16, 0.1])
    assert compiled(np.zeros(7)) == 0.0
    assert math.isinf(compiled(np.array([math.inf, *values[1:]])))
    rg.check_grads(lambda x: math.fsum(x * x), (X,), order=2)
    lanes = np.array([values, values[::-1]])
    assert rg.vmap(lambda x: math.fsum(x))(lanes).tolist() == [math.fsum(values)] * 2


def test_slopes_of_remainders_and_distances() -> None:
    for point in ((7.3, 2.1), (-6.9, 2.1), (0.4, -3.0)):
        rg.check_grads(lambda x, y: math.remainder(x, y) ** 2, point, order=2)
        rg.check_grads(lambda x, y: math.dist((x, 1.0), (y, 0.5)), point, order=2)


def test_a_function_of_the_users_is_not_called_again_for_its_error() -> None:
    calls = []

    def fails(row: Any) -> Any:
        calls.append(row)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        rg.jit(lambda x: np.apply_along_axis(fails, 0, x))(X)
    assert len(calls) == 1


def test_a_complex_number_of_pythons_and_numpys_double_give_numpys_number() -> None:
    for f in (np.add, np.multiply, np.subtract, np.true_divide):
        found = rg.jit(lambda a, b, f=f: f(a, b))(1.5 + 2j, np.float64(0.75))
        assert difference(found, f(1.5 + 2j, np.float64(0.75))) is None
    plus = rg.jit(lambda a, b: a + b)
    assert difference(plus(1.5 + 2j, np.float64(0.75)), (1.5 + 2j) + np.float64(0.75)) is None


def test_levels_that_come_in_count_like_numpys_and_pythons_numbers() -> None:
    x = np.array([0.25, -1.5, 3.0, 0.125], np.float32)
    for level in (0.3, np.float64(0.3), np.array(0.3)):
        for f in (np.quantile, np.percentile):
            assert difference(rg.jit(f)(x, level), f(x, level), close=True) is None
    lanes = rg.vmap(lambda q: np.quantile(x, q))(np.array([0.1, 0.5]))
    assert difference(lanes, np.quantile(x, np.array([0.1, 0.5]))) is None


def test_powers_of_floats_are_complex_where_pythons_are() -> None:
    for pairs in ([(-0.5, 0.3), (0.5, 0.3), (-0.5, 2.0)], [(0.5, 0.3), (-0.5, 0.3), (-0.5, 2.0)]):
        compiled = rg.jit(lambda x, n: x**n * 2)
        for x, n in pairs:
            assert difference(compiled(x, n), x**n * 2) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda w: np.cov(ROW, aweights=w),
        lambda w: np.cov(ROW, fweights=np.ones(3, int), aweights=w),
        lambda w: np.histogram(w / (w + 0.25), 3),
        lambda w: np.histogram_bin_edges(np.sqrt(w)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_later_calls_raise_what_numpy_raises_for_their_numbers(call: Callable[..., Any]) -> None:
    compiled = rg.jit(call)
    assert difference(compiled(np.abs(ROW[0])), call(np.abs(ROW[0])), close=True) is None
    with pytest.raises(ValueError, match=r"negative|finite"):
        call(ROW[0])
    with pytest.raises(ValueError, match=r"negative|finite"):
        compiled(ROW[0])


def test_weights_of_bins_and_observations_have_slopes() -> None:
    rg.check_grads(lambda w: np.histogram(X, 3, (-1, 1), weights=w**2)[0], (X,), order=2)
    rg.check_grads(lambda w: np.cov(ROW * [[1], [2]], aweights=w), (np.abs(ROW[0]),), order=2)


def test_tangents_of_arrays_without_axes_may_be_numbers() -> None:
    def replaced(z: Any, x: Any) -> Any:
        made = z.copy()
        made.real = x
        return made * 2

    point = (np.array(1.5 - 2j), np.float64(0.5))
    assert rg.jvp(replaced, point, (np.complex128(1 + 1j), np.float64(3.0)))[1] == 6 + 2j


def test_reductions_from_an_identity_have_slopes() -> None:
    rg.check_grads(lambda x: np.hypot.reduce(x, axis=0), (ROW,), order=2)
    rg.check_grads(lambda x: np.sum(x, initial=True) ** 2, (X,), order=2)


def test_slopes_by_parameters_of_beta_distributions_with_operands_of_several_shapes() -> None:
    column = np.array([[1.5], [2.25]])
    for call in (
        lambda a, b: scipy.special.betainc(a, b, 0.4),
        lambda a, b: scipy.special.betaincc(a, b, 0.4),
        lambda a, b: scipy.stats.beta.sf(0.4, a, b),
    ):
        rg.check_grads(call, (np.array([0.75, 1.25, 3.0]), column), order=1)
        rg.check_grads(call, (0.75, column), order=1)
