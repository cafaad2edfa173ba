"""``np.interp``: straight lines between points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer.operands import astype, lifted, shadow_dtype
from ..tracer.table import implements


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = lifted(x, xp, fp)
    value = np.dtype(complex if fp.dtype.kind == "c" else float)  # whatever comes in, NumPy computes in these
    wanted = ((x, np.dtype(float)), (xp, np.dtype(float)), (fp, value))
    x, xp, fp = (v if v.dtype == dtype else astype(v, dtype) for v, dtype in wanted)
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        np.interp(x.shadow, xp.shadow, fp.shadow)  # NumPy's own error
    if period is not None:
        left = right = None
        x, xp, fp = _periodic(x, xp, fp, period)
    n = xp.size
    if n == 1:
        inside = np.broadcast_to(fp[0], x.shape)
    else:
        at = np.minimum(np.maximum(np.searchsorted(xp, x, "right") - 1, 0), n - 2)
        inside = _on_lines(at, x, xp, fp)
    if value.kind == "f":  # NumPy drops imaginary parts with a warning
        left, right = (v if v is None or shadow_dtype(v).kind != "c" else np.real(v) for v in (left, right))
    low, high = x < xp[0], x > xp[-1]
    first = fp[0] if left is None else np.where(low, left, fp[0])
    last = fp[-1] if right is None else np.where(high, right, fp[-1])
    ended = high | (x == np.inf)
    if n > 1 and not ((repeated := xp[-1] == xp[-2]).const and not repeated.shadow):
        ended = ended | (repeated & (x == xp[-1]) & ~low)  # there is no line
    found = np.where(ended, last, np.where(low | (x == -np.inf), first, inside))
    return found if x.ndim else found[()]


def _on_lines(at: Any, x: Any, xp: Any, fp: Any) -> Any:
    """The lines of the segments ``at``, from their left ends, or from their right ends if the left ones are infinite.

    Infinite ``x`` are outside, or knots themselves; here they get any finite number.
    """
    at_end = at + np.isinf(xp[at])
    off = np.where(np.isinf(x), 0.0, x - xp[at_end])
    return _slope(at, xp, fp) * off + fp[at_end]


def _slope(at: Any, xp: Any, fp: Any) -> Any:
    """The slopes of the segments ``at``; if there are fewer segments than points, all slopes are computed first."""
    if xp.size <= np.size(at):
        return (np.diff(fp) / np.diff(xp))[at]
    return (fp[at + 1] - fp[at]) / (xp[at + 1] - xp[at])


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """The points of one period, with a neighbour on each side."""
    if not np.any(period):
        raise ValueError("period must be a non-zero value")
    period = np.abs(period)
    x, xp = np.remainder(x, period), np.remainder(xp, period)
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    return x, np.concatenate([xp[-1:] - period, xp, xp[:1] + period]), np.concatenate([fp[-1:], fp, fp[:1]])
