"""``np.pad``: axis by axis, slices joined."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer.array import Tracer, shadow_of
from ..tracer.creation import fresh
from ..tracer.operands import astype, lifted
from ..tracer.table import implements
from ..tracer.trace import unsupported
from ..tracer.ufuncs import copy
from .joining import concatenate
from .repeat import at_places, plain
from .shapes import broadcast_to

STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}
REMEDY = "write it with np.concatenate"


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    (x,) = lifted(array)
    return copy(_padded(x, pad_width, mode, options), "F" if x.shadow.flags.fnc else "C")


def _padded(x: Tracer, pad_width: Any, mode: Any, options: dict[str, Any]) -> Any:
    widths = _pairs(plain(pad_width, "pad_width"), x.ndim)
    if isinstance(mode, str):
        np.pad(np.zeros(1), 0, mode)  # type: ignore[call-overload]  # NumPy's own error for a mode that it does not know
    if not isinstance(mode, str) or mode == "empty":
        raise unsupported("np.pad with a function, or with mode 'empty'", REMEDY)
    if mode == "constant" and not np.ndim(shadow_of(options.get("constant_values", 0))):
        return _framed(x, widths, **options)
    for value in options.values():
        np.broadcast_to(shadow_of(value), (x.ndim, 2))  # NumPy's own error
    if not np.any(widths):
        return x
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = _along(x, axis, int(before), int(after), mode, options)
    return x


def _pairs(widths: Any, ndim: int) -> Any:
    """(before, after) for each axis, as NumPy reads ``pad_width``."""
    pairs: Any = [(0, 0)] * ndim
    if isinstance(widths, dict):
        for axis, width in widths.items():
            pairs[axis] = (width, width) if np.ndim(width) == 0 else tuple(width)
        widths = pairs
    if np.asarray(widths).dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(widths, (ndim, 2))
    if (pairs < 0).any():
        raise ValueError("index can't contain negative values")
    return pairs


def _framed(x: Tracer, widths: Any, constant_values: Any = 0) -> Any:
    """Put the array into a larger one that is filled with a number."""
    shape = tuple(int(n + b + a) for n, (b, a) in zip(x.shape, widths, strict=True))
    out = fresh(np.zeros(shape, x.dtype))
    if isinstance(constant_values, Tracer) or any(np.asarray(constant_values).tobytes()):  # -0.0 is no zero either
        out[...] = constant_values if isinstance(constant_values, Tracer) else np.asarray(constant_values)[()]
    out[tuple(slice(int(b), int(b) + n) for n, (b, _) in zip(x.shape, widths, strict=True))] = x
    return out


def _along(x: Tracer, axis: int, before: int, after: int, mode: Any, options: Any) -> Any:
    """Pad both sides of one axis."""
    n = x.shape[axis]
    if not n and mode != "constant":
        raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    if mode in {"edge", "reflect", "symmetric", "wrap"}:
        if options.get("reflect_type", "even") != "even":
            raise unsupported("np.pad with reflect_type='odd'", REMEDY)
        pad: Any = np.pad  # its stub lists modes one by one
        return at_places(x, pad(np.arange(n), (before, after), mode), axis)
    if mode == "constant":
        return _joined(x, axis, before, after, _sides(options.get("constant_values", 0), x.ndim, axis))
    if mode == "linear_ramp":
        ends = _sides(options.get("end_values", 0), x.ndim, axis)
        return concatenate(_ramps(x, axis, before, after, ends), axis)
    if mode in {"maximum", "minimum"} or (mode in STATISTICS and x.dtype.kind in "fc"):
        lengths = options.get("stat_length")
        sides = (None, None) if lengths is None else _sides(lengths, x.ndim, axis)
        return _joined(x, axis, before, after, [_statistic(x, axis, mode, k, m) for k, m in enumerate(sides)])
    raise unsupported(f"np.pad with mode {mode!r} of {x.dtype}", REMEDY)


def _sides(values: Any, ndim: int, axis: int) -> Any:
    """The two values of an option for the sides of an axis."""
    if isinstance(values, Tracer):
        return broadcast_to(values, (ndim, 2))[axis]
    return np.broadcast_to(values, (ndim, 2))[axis]


def _joined(x: Tracer, axis: int, before: int, after: int, sides: Any) -> Any:
    """Join a number or a slice to each side of an axis."""
    parts = [x]
    for k, width in enumerate((before, after)):
        shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
        side = broadcast_to(astype(lifted(x, sides[k])[1], x.dtype), shape)
        parts = [*parts, side] if k else [side, *parts]
    return concatenate([p for p in parts if p.shape[axis]], axis)


def _statistic(x: Tracer, axis: int, mode: str, side: int, length: Any) -> Any:
    n = x.shape[axis]
    m = n if length is None else min(int(length), n)
    part = slice(n - m, n) if side else slice(0, m)
    return STATISTICS[mode](x[(*(slice(None),) * axis, part)], axis=axis, keepdims=True)  # type: ignore[operator]  # NumPy's functions, by name


def _ramps(x: Tracer, axis: int, before: int, after: int, ends: Any) -> list[Any]:
    """Ramps from the end values to the edges, with ``x`` between them."""
    if x.dtype.kind not in "fc":
        raise unsupported("np.pad with mode 'linear_ramp' of integers", REMEDY)
    lead = (slice(None),) * axis
    parts = []
    for side, width in enumerate((before, after)):
        edge = x[(*lead, slice(-1, None) if side else slice(0, 1))]
        share = (np.arange(width)[::-1] if side else np.arange(width)) / max(width, 1)
        share = share.astype(x.dtype).reshape((width, *(1,) * (x.ndim - axis - 1)))
        end = astype(lifted(x, ends[side])[1], x.dtype)
        parts.append(end + (edge - end) * fresh(share))
    return [parts[0], x, parts[1]]
