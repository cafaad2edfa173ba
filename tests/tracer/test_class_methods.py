"""Methods of SciPy's classes are ours during traces only, in the tracing context only."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from scipy.interpolate import CubicSpline

import retrograd as rg

X = np.array([0.3, 1.2, 2.0])
MATRIX = scipy.sparse.csr_array(np.diag(X))
HELD = [X]  # what is reached through a list is not followed
SPLINE = CubicSpline(np.arange(4.0), np.arange(4.0) ** 3)


def methods():
    found = (
        scipy.stats.rv_continuous.logpdf,
        scipy.sparse.csr_array.__matmul__,
        scipy.sparse.coo_array.dot,
        CubicSpline.__call__,
    )
    return [(method, method.__code__) for method in found]


def test_a_trace_puts_the_methods_back_also_after_an_error():
    before = methods()

    def f(x):
        assert methods() != before
        inner = rg.grad(lambda y: np.sum(SPLINE(y)))(x)  # a trace inside
        assert methods() != before
        return inner

    rg.jit(f)(X)
    assert methods() == before
    with pytest.raises(ZeroDivisionError):
        rg.jit(lambda x: 1 / 0)(X)
    assert methods() == before


def test_other_threads_have_scipys_own_answers_meanwhile():
    seen = []

    def work():
        seen.append((MATRIX @ HELD[0], SPLINE(1.5), scipy.stats.norm.logpdf(0.3)))

    def f(x):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(MATRIX @ x)

    expected = (MATRIX @ X, SPLINE(1.5), scipy.stats.norm.logpdf(0.3))
    np.testing.assert_array_equal(rg.grad(f)(X), X)
    for found, value in zip(seen[0], expected, strict=True):
        assert type(found) is type(value)
        np.testing.assert_array_equal(found, value)


def test_plain_arguments_get_scipys_own_answers_inside_a_trace():
    def f(x):
        plain = MATRIX @ HELD[0], SPLINE(1.5), scipy.stats.norm.logpdf(0.3), scipy.stats.norm.entropy()
        assert all(type(p) in (np.ndarray, np.float64, float) for p in plain)
        return x * plain[1] + plain[0]

    np.testing.assert_allclose(rg.jit(f)(X), X * SPLINE(1.5) + X * X)


def test_a_subclass_with_a_method_of_its_own_keeps_it():
    class Shifted(CubicSpline):
        def __call__(self, x, nu=0, extrapolate=None):
            return super().__call__(x, nu, extrapolate) + 10.0

    shifted = Shifted(np.arange(4.0), np.arange(4.0) ** 3)
    np.testing.assert_allclose(rg.jit(lambda x: 1.0 * shifted(x))(X), SPLINE(X) + 10.0)
    np.testing.assert_allclose(rg.grad(lambda x: np.sum(shifted(x)))(X), SPLINE(X, 1))
