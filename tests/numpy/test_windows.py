"""Sliding windows are views of their array, which NumPy does not write through."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import retrograd as rg
from retrograd import errors

X = np.linspace(0.0, 1.0, 7)


def test_a_write_into_the_array_shows_in_its_windows():
    def f(x):
        y = x * 2
        windows = sliding_window_view(y, 3)
        y[3] = x[0] ** 2
        return np.sum(windows * windows[::-1])

    np.testing.assert_allclose(rg.jit(f)(X), f(X), rtol=1e-14)
    rg.check_grads(f, (X,), order=2)


def test_windows_are_read_only():
    def f(x):
        windows = np.lib.stride_tricks.sliding_window_view(x * 1, 3)
        windows[0] = 0.0
        return windows

    with pytest.raises(errors.ReadOnlyError):
        rg.jit(f)(X)
    with pytest.raises(errors.UnsupportedError, match="writeable=True"):
        rg.jit(lambda x: sliding_window_view(x, 3, writeable=True))(X)


def test_windows_of_large_arrays_are_never_storage_of_results():
    x = np.random.default_rng(0).standard_normal(5000)

    def f(x):
        windows = sliding_window_view(np.sin(x), 4)
        return np.sum(np.exp(windows * 0.5) * np.cos(windows))

    step = np.random.default_rng(1).standard_normal(5000) * 1e-6
    assert np.sum(rg.grad(f)(x) * step) == pytest.approx((f(x + step) - f(x - step)) / 2, rel=1e-6)
    found = rg.jit(lambda x: sliding_window_view(x, 4))(x)
    found[0] = 7.0
    assert x[0] != 7.0
    assert found[1, 0] != 7.0


@pytest.mark.parametrize(("width", "axis"), [(8, None), (-1, None), ((2, 2), None), (2, 1), ((2, 3), 0)])
def test_wrong_windows_raise_what_numpy_raises(width, axis):
    try:
        sliding_window_view(X, width, axis)
    except (ValueError, np.exceptions.AxisError) as fault:
        with pytest.raises(type(fault)):
            rg.jit(lambda x: sliding_window_view(x, width, axis))(X)
