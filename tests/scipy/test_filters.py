"""Filters at their edges: empty signals, zeros in front of a denominator, complex numbers, blocks of a stream."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal as s

import retrograd as rg
from retrograd import errors

rng = np.random.default_rng(3)
B, A = np.array([0.3, 0.2, -0.1]), np.array([1.3, -0.4, 0.2, 0.1])
X = rng.standard_normal(20)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("order", [1, 4])
def test_an_empty_signal_is_treated_as_scipy_treats_it(shape, order):
    x, a, state = np.ones(shape), A[:order], np.ones((*shape[:-1], max(2, order - 1)))
    for call in (lambda x: s.lfilter(B, a, x), lambda x: s.lfilter(B, a, x, zi=state)):
        try:
            expected = call(x)
        except ValueError as fault:
            with pytest.raises(ValueError, match=str(fault)):
                rg.jit(call)(x)
            continue
        found = rg.jit(call)(x)
        for y, e in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            assert (y.shape, y.dtype) == (e.shape, e.dtype)
            assert y.size == 0 or np.array_equal(y, state)  # SciPy's state after nothing is memory as it was


def test_a_denominator_that_begins_with_zero_raises_what_scipy_raises():
    f = rg.grad(lambda a: np.sum(s.lfilter(B, a, X)))
    assert np.isfinite(f(A)).all()
    with pytest.raises(ValueError, match="coefficient a"):
        f(A * np.array([0.0, 1, 1, 1]))


def test_nan_spreads_as_far_as_in_scipy():
    x = X.copy()
    x[5] = np.nan
    for b, a in ((B, A), (B, [2.0])):
        y, state = rg.jit(lambda x, b=b, a=a: s.lfilter(b, a, x, zi=np.ones(max(2, len(a) - 1))))(x)
        expected, left = s.lfilter(b, a, x, zi=np.ones(max(2, len(a) - 1)))
        np.testing.assert_array_equal(np.isnan(y), np.isnan(expected))
        np.testing.assert_array_equal(np.isnan(state), np.isnan(left))


@pytest.mark.costly
@pytest.mark.parametrize("complex_ones", ["b", "a", "x", "z", "bax"])
def test_complex_signals_and_coefficients(complex_ones):
    args = {"b": B, "a": A, "x": X, "z": np.array([0.3, -0.2, 0.5])}
    given = tuple(v * (1 + 0.3j) + 0.1j * (k in "bx") if k in complex_ones else v for k, v in args.items())

    def call(b, a, x, z):
        y, left = s.lfilter(b, a, x, zi=z)
        return np.concatenate([y, left])

    found = rg.jit(call)(*given)
    np.testing.assert_allclose(found, call(*given), rtol=1e-13, atol=1e-14)
    assert found.dtype == complex
    rg.check_grads(lambda *args: np.sum(np.abs(call(*args)) ** 2), given, order=2)


def test_a_stream_of_blocks_has_the_gradient_of_the_whole_signal():
    def blocks(b, a, x):
        state, found = np.zeros(3), []
        for k in range(0, 20, 5):
            y, state = s.lfilter(b, a, x[k : k + 5], zi=state)
            found.append(y)
        return np.sum(np.concatenate(found) ** 3)

    whole = rg.grad(lambda b, a, x: np.sum(s.lfilter(b, a, x) ** 3), (0, 1, 2))(B, A, X)
    for g, e in zip(rg.grad(blocks, (0, 1, 2))(B, A, X), whole, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-10, atol=1e-12)


def test_a_filter_that_is_a_step_of_a_scan():
    def step(state, x):
        y, state = s.lfilter(B, A, x, zi=state)
        return state, y

    found = rg.jit(lambda x: np.ravel(rg.scan(step, np.zeros(3), np.reshape(x, (4, 5)))[1]))(X)
    np.testing.assert_allclose(found, s.lfilter(B, A, X), rtol=1e-12)


def test_each_lane_has_its_own_filter():
    b, a = B * np.array([[1.0], [0.5]]), A + np.array([[0.0], [0.2]])
    found = rg.vmap(s.lfilter, in_axes=(0, 0, None))(b, a, X)
    np.testing.assert_allclose(found, [s.lfilter(p, q, X) for p, q in zip(b, a, strict=True)], rtol=1e-13)
    loss = lambda b, a, x: np.sum(s.lfilter(b, a, x) ** 2)  # noqa: E731 - one that vmap takes
    slopes = rg.vmap(rg.hessian(loss, argnums=1), in_axes=(0, 0, None))(b, a, X)
    np.testing.assert_allclose(slopes, [rg.hessian(loss, 1)(p, q, X) for p, q in zip(b, a, strict=True)], rtol=1e-10)


def test_a_long_recurrence_is_one_operation():
    source = rg.grad(lambda a: np.sum(s.lfilter(B, a, np.ones(5000)) ** 2)).source(A)
    assert source.count("scipy.signal.lfilter") <= 6
    assert "for t in range(5000)" not in source


def test_sections_whose_denominator_begins_otherwise_are_refused_at_a_later_call_too():
    sos = s.butter(4, 0.4, output="sos")
    f = rg.grad(lambda sos: np.sum(s.sosfilt(sos, X)))
    np.testing.assert_array_equal(f(sos)[:, 3], 0.0)
    with pytest.raises(ValueError, match="should be all ones"):
        f(sos * 2)


def test_what_is_not_built_is_refused_by_name():
    for call, name in (
        (lambda x: s.filtfilt(B, A, x, method="gust"), "method='gust'"),
        (lambda x: s.freqz(x, plot=print), "plot="),
        (lambda x: s.freqz(x, fs=x[0]), "traced fs="),
        (lambda x: s.welch(x, detrend=lambda d: d, nperseg=8), "function as detrend="),
        (lambda x: s.detrend(x, overwrite_data=True), "overwrite_data"),
        (lambda x: s.medfilt(x, 3), "medfilt"),
        (lambda x: s.stft(x, 2.0), "stft"),
    ):
        with pytest.raises((errors.UnsupportedError, errors.TracerConversionError), match=name):
            rg.jit(call)(X)


def test_retrograd_scipy_signal_has_the_names():
    for name in ("lfilter", "filtfilt", "welch"):
        assert getattr(rg.scipy.signal, name).__name__ == name
    table = [rg.scipy.signal.lfilter]
    np.testing.assert_allclose(rg.jit(lambda x: table[0](B, A, x))(X), s.lfilter(B, A, X))


def test_options_may_be_numbers_of_arrays_from_outside():
    rates = np.array([2.0])
    power = rg.jit(lambda x: s.welch(x, fs=rates[0], nperseg=8)[1])
    np.testing.assert_allclose(power(X), s.welch(X, fs=2.0, nperseg=8)[1], rtol=1e-12)
    rates[0] = 1.5
    np.testing.assert_allclose(power(X), s.welch(X, fs=1.5, nperseg=8)[1], rtol=1e-12)
    with pytest.raises(errors.UnsupportedError, match="traced fs="):
        rg.jit(lambda x, fs: s.welch(x, fs=fs, nperseg=8)[1])(X, 2.0)
