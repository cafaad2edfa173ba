"""Frequencies in ``scipy.signal``: spectra by Welch's method, responses of filters, analytic signals.

``retrograd.scipy.signal`` has their names.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tracer.array import shadow_of
from ..tracer.operands import astype, axis_of, lifted
from ..tracer.trace import unsupported
from .dispatch import Lazy, stands_for
from .filters import checked, given, sections
from .smoothing import detrend

_signal = Lazy("scipy.signal")


def _window(window: Any, nperseg: Any, n: int) -> tuple[Any, int]:
    """The window and its length; one that is named is no longer than the signal."""
    if isinstance(window, (str, tuple)):
        length = min(256 if nperseg is None else int(nperseg), n)
        return _signal.get_window(window, length), length
    (window,) = lifted(window)
    return window, len(window)


def _spectrum(x: Any, window: Any, hop: int, nfft: int, trend: Any, onesided: bool) -> Any:
    """The transforms of the windows' contents, along two last axes: windows and frequencies."""
    width = window.shape[0]
    count = (x.shape[-1] - width) // hop + 1
    frames = x[..., np.arange(count)[:, None] * hop + np.arange(width)]
    if trend:
        frames = detrend(frames, type=trend)
    return (np.fft.rfft if onesided else np.fft.fft)(frames * window, nfft)


def _averaged(power: Any, average: str) -> Any:
    """The average over windows; medians are divided by their bias."""
    count = power.shape[-2]
    if count == 1:
        return power[..., 0, :]
    if average == "mean":
        return np.mean(power, axis=-2)
    steps = 2 * np.arange(1.0, (count - 1) // 2 + 1)
    bias = 1 + np.sum(1 / (steps + 1) - 1 / steps)
    if power.dtype.kind != "c":
        return np.median(power, axis=-2) / bias
    return (np.median(power.real, axis=-2) + 1j * np.median(power.imag, axis=-2)) / bias


def _density(
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: Any,
    average: str,
) -> tuple[Any, Any]:
    """Frequencies, and the spectrum of one signal or, if there is a second one, of both."""
    fs = given("fs", fs)
    nperseg, noverlap, nfft = given("nperseg", nperseg), given("noverlap", noverlap), given("nfft", nfft)
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    checked(_signal.welch if y is None else _signal.csd, x, *([] if y is None else [y]), *options)
    if callable(detrend):
        raise unsupported("a function as detrend=", 'choose "constant", "linear" or False')
    signals = lifted(x) if y is None else lifted(x, y)
    dtype = np.result_type(*signals, np.complex64)
    if any(not u.size for u in signals):
        raise unsupported("the spectrum of an empty signal", "treat empty signals apart: if x.size")
    onesided = bool(return_onesided) and signals[0].dtype.kind != "c"
    wide = [astype(u, np.complex128 if u.dtype.kind == "c" else np.float64) for u in signals]
    turned = [np.moveaxis(u, axis_of(u, axis), -1) for u in wide]
    n = max(u.shape[-1] for u in turned)
    turned = [np.pad(u, [(0, 0)] * (u.ndim - 1) + [(0, n - u.shape[-1])]) if u.shape[-1] < n else u for u in turned]
    win, width = _window(window, nperseg, n)
    if width > n:
        raise unsupported("a spectrum with a window that is longer than the signal", "choose a shorter window")
    size = width if nfft is None else int(nfft)
    hop = width - (width // 2 if noverlap is None else int(noverlap))
    found = [_spectrum(u, win, hop, size, detrend, onesided) for u in turned]
    if y is None:
        (f,) = found
        power = np.square(f.real) + np.square(f.imag)
    else:
        power = np.conj(found[0]) * found[1]
    weights = np.ones(size // 2 + 1 if onesided else size)
    if onesided:
        weights[1 : -1 if size % 2 == 0 else None] = 2
    magnitude = np.square(np.real(win)) + np.square(np.imag(win)) if np.iscomplexobj(shadow_of(win)) else np.square(win)
    scale = 1 / (fs * np.sum(magnitude)) if scaling == "density" else 1 / np.square(np.abs(np.sum(win)))
    power = _averaged(power * (weights * scale), average)
    power = np.moveaxis(power, -1, axis_of(power, axis))
    dtype = np.empty(0, dtype).real.dtype if y is None else dtype
    frequencies = np.fft.rfftfreq(size, 1 / fs) if onesided else np.fft.fftfreq(size, 1 / fs)
    return frequencies, power if power.dtype == dtype else astype(power, dtype)


@stands_for("scipy.signal.csd")
def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
    average: str = "mean",
) -> Any:
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    if x is not y:
        return _density(x, y, *options)
    return welch(x, *options)


@stands_for("scipy.signal.welch")
def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
    average: str = "mean",
) -> Any:
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return _density(x, None, *options)


@stands_for("scipy.signal.periodogram")
def periodogram(
    x: Any,
    fs: Any = 1.0,
    window: Any = "boxcar",
    nfft: Any = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: Any = -1,
) -> Any:
    nfft = given("nfft", nfft)
    checked(_signal.periodogram, x, fs, window, nfft, detrend, return_onesided, scaling, axis)
    (x,) = lifted(x)
    k = axis_of(x, axis)
    if nfft is not None and nfft < x.shape[k]:
        x, nfft = x[(*(slice(None),) * k, slice(nfft))], None
    window = "boxcar" if window is None else window
    return welch(x, fs, window, x.shape[k], 0, nfft, detrend, return_onesided, scaling, axis)


@stands_for("scipy.signal.coherence")
def coherence(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Any = "constant",
    axis: Any = -1,
) -> Any:
    options: Any = {"nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend, "axis": axis}
    frequencies, own = welch(x, fs, window, **options)
    other, both = welch(y, fs, window, **options)[1], csd(x, y, fs, window, **options)[1]
    return frequencies, (np.square(both.real) + np.square(both.imag)) / own / other


def _horner(x: Any, c: Any) -> Any:
    """Σ c[k] xᵏ."""
    found = c[-1] + x * 0
    for k in range(2, len(c) + 1):
        found = c[-k] + found * x
    return found


@stands_for("scipy.signal.freqz")
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: Any = 2 * math.pi,
    include_nyquist: bool = False,
) -> Any:
    fs = given("fs", fs)
    if plot is not None:
        raise unsupported("scipy.signal.freqz with plot=", "return the response, and plot it outside")
    checked(_signal.freqz, b, a, worN, whole, None, fs, include_nyquist)
    b, a = lifted(b, a)
    if a.dtype.kind in "iu":
        a = astype(a, float)
    b, a = np.atleast_1d(b), np.atleast_1d(a)
    dtype = np.result_type(b, a)
    worN = 512 if worN is None else worN
    if isinstance(shadow_of(worN), (int, np.integer)):
        count = int(worN)
        like = (np.ones(1, b.dtype), np.ones(1, a.dtype))
        w = _signal.freqz(*like, count, whole, include_nyquist=include_nyquist)[0]
        length = count if whole else 2 * (count - 1) if include_nyquist else 2 * count
        if a.size == 1 and b.ndim == 1 and 0 < length >= b.size:
            spectrum = np.fft.fft(b, length)[:count]
            return w * (fs / (2 * math.pi)), astype(spectrum / a, spectrum.dtype)
    else:
        (w,) = lifted(b, worN)[1:]
        w = np.atleast_1d(w) if w.dtype == dtype else astype(np.atleast_1d(w), dtype)
        w = 2 * math.pi * w / fs
    turn = np.exp(-1j * w)
    return w * (fs / (2 * math.pi)), _horner(turn, b) / _horner(turn, a)


@stands_for("scipy.signal.freqz_sos")
def freqz_sos(sos: Any, worN: Any = 512, whole: bool = False, fs: Any = 2 * math.pi) -> Any:
    checked(_signal.freqz_sos, sos, worN, whole, given("fs", fs))
    (sos,) = lifted(sos)
    sos = sections(sos)
    w: Any = None
    found: Any = 1.0
    for k in range(len(sos)):
        w, one = freqz(sos[k, :3], sos[k, 3:], worN, whole, fs=fs)
        found = found * one
    return w, found


@stands_for("scipy.signal.sosfreqz")
def sosfreqz(*args: Any, **options: Any) -> Any:
    return freqz_sos(*args, **options)


@stands_for("scipy.signal.hilbert")
def hilbert(x: Any, N: Any = None, axis: Any = -1) -> Any:
    checked(_signal.hilbert, x, N, axis)
    (x,) = lifted(x)
    k = axis_of(x, axis)
    n = x.shape[k] if N is None else int(N)
    spectrum = np.fft.fft(np.moveaxis(x, k, -1), n)
    weights = np.zeros(n, np.real(shadow_of(spectrum)).dtype)
    weights[0] = 1
    weights[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        weights[n // 2] = 1
    return np.moveaxis(np.fft.ifft(spectrum * weights), -1, k)


FOUND = (coherence, csd, freqz, freqz_sos, hilbert, periodogram, sosfreqz, welch)
