"""Smoothing of signals: Savitzky-Golay filters and trends; ``retrograd.scipy.signal`` has their names."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..ops import recurrences
from ..tracer.array import apply, shadow_of
from ..tracer.operands import astype, axis_of, lifted
from ..tracer.trace import unsupported
from .dispatch import Lazy, known, stands_for
from .filters import checked, given

_signal = Lazy("scipy.signal")

MODES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant", "interp": "constant"}


@stands_for("scipy.signal.savgol_coeffs")
def savgol_coeffs(
    window_length: Any, polyorder: Any, deriv: Any = 0, delta: Any = 1.0, pos: Any = None, use: str = "conv"
) -> Any:
    width, order, deriv = given("window_length", window_length), given("polyorder", polyorder), given("deriv", deriv)
    return _signal.savgol_coeffs(width, order, deriv, 1.0, given("pos", pos), use) / delta**deriv


@stands_for("scipy.signal.savgol_filter")
def savgol_filter(
    x: Any,
    window_length: Any,
    polyorder: Any,
    deriv: Any = 0,
    delta: Any = 1.0,
    axis: Any = -1,
    mode: str = "interp",
    cval: Any = 0.0,
) -> Any:
    width, order, deriv = given("window_length", window_length), given("polyorder", polyorder), given("deriv", deriv)
    checked(_signal.savgol_filter, x, width, order, deriv, delta, axis, mode, cval)
    (x,) = lifted(x, delta, cval)[:1]
    single = x.dtype == np.float32
    if x.dtype != np.float64:
        x = astype(x, np.float64)
    k = axis_of(x, axis)
    signal: Any = np.moveaxis(x, k, -1)
    weights = savgol_coeffs(width, order, deriv, 1.0)
    left = width // 2 - (width % 2 == 0)
    pads = [(0, 0)] * (x.ndim - 1) + [(left, width - 1 - left)]
    padding: Any = MODES[mode]
    fill = {"constant_values": cval} if mode == "constant" else {}
    found: Any = apply(recurrences.lfilter, lifted(weights, np.ones(1), np.pad(signal, pads, padding, **fill)))
    found = found[..., width - 1 :]
    if mode == "interp":
        half = width // 2
        first = signal[..., :width] @ _edge(width, order, deriv, np.arange(half)).T
        last = signal[..., -width:] @ _edge(width, order, deriv, np.arange(width - half, width)).T
        found = np.concatenate([first, found[..., half : x.shape[k] - half], last], axis=-1)
    found = np.moveaxis(found / delta**deriv if deriv else found, -1, k)
    return astype(found, np.float32) if single else found


def _edge(width: int, order: int, deriv: int, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The matrix that fits a polynomial to a window and gives its derivative at places in it."""
    fit = np.polyfit(np.arange(width, dtype=float), np.eye(width), order)
    powers = [np.asarray(places, float) ** max(k - deriv, 0) * math.perm(k, deriv) for k in range(order, -1, -1)]
    return np.stack(powers, axis=-1) @ fit


@stands_for("scipy.signal.detrend")
def detrend(data: Any, axis: Any = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    checked(_signal.detrend, data, axis, type, bp)
    if overwrite_data:
        raise unsupported("scipy.signal.detrend with overwrite_data=True", "leave it out, and use the result")
    (x,) = lifted(data)
    if type in ("constant", "c"):
        return x - np.mean(x, axis, keepdims=True)
    if not known(bp):
        raise unsupported("scipy.signal.detrend with traced bp=", "make bp plain numbers")
    if x.dtype.char not in "dfDF":
        x = astype(x, float)
    k = axis_of(x, axis)
    signal: Any = np.moveaxis(x, k, -1)
    breaks = np.unique([0, *np.atleast_1d(np.asarray(shadow_of(bp))), signal.shape[-1]]).astype(int)
    parts = []
    for start, stop in pairwise(breaks):
        n = stop - start
        lines = np.linalg.qr(np.stack([np.ones(n), np.arange(1, n + 1) / n], axis=-1))[0].astype(x.dtype)
        part = signal[..., start:stop]
        parts.append(part - (part @ lines) @ lines.T)
    return np.moveaxis(np.concatenate(parts, axis=-1), -1, k) if parts else x.copy()


FOUND = (detrend, savgol_coeffs, savgol_filter)
