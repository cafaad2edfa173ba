"""Filters of ``scipy.signal`` for traced signals and coefficients; ``retrograd.scipy.signal`` has their names.

All filters use one recurrence, in ``ops.recurrences``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops import recurrences
from ..tracer.array import Tracer, apply, shadow_of, tracers_in
from ..tracer.operands import axis_of, lifted
from ..tracer.trace import owner, unsupported
from ..tracer.tree import flatten, map_leaves
from .dispatch import Lazy, cast, known, stands_for

_signal = Lazy("scipy.signal")

EXTENSIONS = {"odd": -1, "even": 1, "constant": 0}


def checked(function: Callable[..., Any], *args: Any) -> None:
    """SciPy's error or warning about copies of the example values, where these decide anything."""
    if owner(tracers_in(flatten(args)[0])).runs:
        function(*map_leaves(lambda x: x.shadow.copy() if isinstance(x, Tracer) and x.ndim else shadow_of(x), args))


def given(name: str, value: Any) -> Any:
    """An option that must be a plain number."""
    if not known(value):
        raise unsupported(f"scipy.signal with a traced {name}=", f"make {name} a plain number")
    return shadow_of(value)


def _reversed(x: Any) -> Any:
    """``x`` backwards along its last axis."""
    return x[..., ::-1]


# ------------------------------------------------------------------------------------------------ recurrences


@stands_for("scipy.signal.lfilter")
def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    checked(_signal.lfilter, b, a, x, axis, zi)
    b, a, x, *rest = lifted(b, a, x, *([] if zi is None else [zi]))
    operands = cast([np.atleast_1d(b), np.atleast_1d(a), x, *rest], np.result_type(b, a, x, *rest))
    b, a, x = operands[:3]
    k = axis_of(x, axis)
    signal = np.moveaxis(x, k, -1)
    if zi is None:
        whole: Any = apply(recurrences.lfilter, [b, a, signal]) if x.size else signal.copy()
        return np.moveaxis(whole, -1, k)
    shape = (*signal.shape[:-1], max(b.size, a.size) - 1)
    found, left = _filtered_from(b, a, signal, np.broadcast_to(np.moveaxis(operands[3], k, -1), shape))
    return np.moveaxis(found, -1, k), np.moveaxis(left, -1, k)


def _filtered_from(b: Any, a: Any, x: Any, state: Any) -> tuple[Any, Any]:
    """The filtered signal, and the state after it: what the last inputs and outputs, and the old state, leave over."""
    if not x.size:
        return x.copy(), state.copy()
    found = apply(recurrences.lfilter_from, [b, a, x, state])
    m, n = state.shape[-1], x.shape[-1]
    if not m:
        return found, state
    quiet = np.zeros_like(state)
    ends = [np.concatenate([s[..., max(n - m, 0) :], quiet], axis=-1) for s in (x, found)]
    past, gone = (apply(recurrences.lfilter, [c, a[:1], s])[..., -m:] for c, s in zip((b, a), ends, strict=True))
    left = past - gone
    if m > n:
        left = left + np.concatenate([state[..., n:], quiet[..., :n]], axis=-1)
    return found, left


def _steady(b: Any, a: Any) -> Any:
    """The state of a filter whose input has been 1 for ever."""
    dtype = np.result_type(b, a)
    b, a = cast([b, a], dtype if dtype.kind in "fc" else np.dtype(float))
    b, a = b / a[0], a / a[0]
    n = max(b.size, a.size)
    b, a = (np.concatenate([c, np.zeros_like(c, shape=(n - c.size,))]) if c.size < n else c for c in (b, a))
    shift = np.eye(n - 1, dtype=b.dtype) - np.eye(n - 1, k=1, dtype=b.dtype)
    first = np.eye(1, n - 1, dtype=b.dtype)
    return np.linalg.solve(shift + a[1:, None] * first, b[1:] - a[1:] * b[0])


@stands_for("scipy.signal.lfilter_zi")
def lfilter_zi(b: Any, a: Any) -> Any:
    checked(_signal.lfilter_zi, b, a)
    b, a = map(np.atleast_1d, lifted(b, a))
    while a.size > 1 and a[0] == 0:
        a = a[1:]
    return _steady(b, a)


def _extended(x: Any, edge: int, padtype: Any) -> Any:
    """A signal with ``edge`` more entries at each end of its last axis, mirrored at a point or a line, or constant."""
    sign = EXTENSIONS[padtype]
    first, last = x[..., :1], x[..., -1:]
    if not sign:
        shape = (*x.shape[:-1], edge)
        return np.concatenate([np.broadcast_to(first, shape), x, np.broadcast_to(last, shape)], axis=-1)
    before, after = _reversed(x[..., 1 : edge + 1]), _reversed(x[..., -edge - 1 : -1])
    if sign < 0:
        before, after = 2 * first - before, 2 * last - after
    return np.concatenate([before, x, after], axis=-1)


Filter = Callable[[Any, Any], tuple[Any, Any]]


def _both_ways(run: Filter, state: Any, x: Any, axis: Any, padtype: Any, edge: int) -> Any:
    """Filter forwards and backwards, each time from the steady state of the first entry."""
    k = axis_of(x, axis)
    x = np.moveaxis(x, k, -1)
    if padtype is None or edge < 1:
        wide, edge = x, edge if padtype is not None else 0
    else:
        wide = _extended(x, edge, padtype)
    forth = run(wide, state * wide[..., :1])[0]
    back = _reversed(run(_reversed(forth), state * forth[..., -1:])[0])
    return np.moveaxis(back[..., edge:-edge] if edge > 0 else back, -1, k)


@stands_for("scipy.signal.filtfilt")
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: Any = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    padlen = given("padlen", padlen)
    checked(_signal.filtfilt, b, a, x, axis, padtype, padlen, method, irlen)
    if method != "pad":
        raise unsupported(f"scipy.signal.filtfilt with method={method!r}", 'use method="pad"')
    b, a, x = lifted(b, a, x)
    b, a = np.atleast_1d(b), np.atleast_1d(a)
    state = _steady(b, a)
    b, a, x, state = cast([b, a, x, state], np.result_type(b, a, x, state))

    def run(signal: Any, start: Any) -> tuple[Any, Any]:
        return _filtered_from(b, a, signal, start)

    edge = 3 * max(b.size, a.size) if padlen is None else int(padlen)
    return _both_ways(run, state, x, axis, padtype, edge)


# --------------------------------------------------------------------------------------- second-order sections


def sections(sos: Any) -> Any:
    """The sections, of which each must have a first denominator of 1, as SciPy demands."""
    sos = np.atleast_2d(sos)
    if not np.all(sos[:, 3] == 1):
        raise ValueError("sos[:, 3] should be all ones")
    return sos


def _section(row: Any) -> tuple[Any, Any]:
    """Numerator and denominator; SciPy's loop does not read the 1."""
    return row[:3], np.concatenate([np.ones_like(row, shape=(1,)), row[4:]])


def _cascade(sos: Any, x: Any, states: Any) -> tuple[Any, list[Any]]:
    """One section after the other; without states they start at rest."""
    left = []
    for k in range(len(sos)):
        b, a = _section(sos[k])
        if states is None:
            x = apply(recurrences.lfilter, [b, a, x]) if x.size else x.copy()
        else:
            x, end = _filtered_from(b, a, x, states[k])
            left.append(end)
    return x, left


@stands_for("scipy.signal.sosfilt")
def sosfilt(sos: Any, x: Any, axis: Any = -1, zi: Any = None) -> Any:
    checked(_signal.sosfilt, sos, x, axis, zi)
    operands = lifted(sos, x, *([] if zi is None else [zi]))
    sos, x, *rest = cast(operands, np.result_type(*operands))
    sos, k = sections(sos), axis_of(x, axis)
    states = np.moveaxis(rest[0], k + 1, -1) if rest else None
    found, left = _cascade(sos, np.moveaxis(x, k, -1), states)
    found = np.moveaxis(found, -1, k)
    return found if states is None else (found, np.moveaxis(np.stack(left), -1, k + 1))


def _steady_sections(sos: Any) -> Any:
    """The state of each section whose input has been 1 for ever."""
    found, gain = [], 1.0
    for k in range(len(sos)):
        row = sos[k]
        found.append(gain * _steady(row[:3], row[3:]))
        gain = gain * (np.sum(row[:3]) / np.sum(row[3:]))
    return np.stack(found)


@stands_for("scipy.signal.sosfilt_zi")
def sosfilt_zi(sos: Any) -> Any:
    checked(_signal.sosfilt_zi, sos)
    (sos,) = lifted(sos)
    return _steady_sections(sos)


@stands_for("scipy.signal.sosfiltfilt")
def sosfiltfilt(sos: Any, x: Any, axis: Any = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    padlen = given("padlen", padlen)
    checked(_signal.sosfiltfilt, sos, x, axis, padtype, padlen)
    sos, x = lifted(sos, x)
    sos, x = cast([sos, x], np.result_type(sos, x))
    sos = sections(sos)
    if padlen is None:
        zeros = min(int(np.sum(sos[:, 2] == 0)), int(np.sum(sos[:, 5] == 0)))
        padlen = 3 * (2 * len(sos) + 1 - zeros)
    states = np.reshape(_steady_sections(sos), (len(sos), *(1,) * (x.ndim - 1), 2))

    def run(signal: Any, start: Any) -> tuple[Any, Any]:
        return _cascade(sos, signal, start)

    return _both_ways(run, states, x, axis, padtype, int(padlen))


FOUND = (filtfilt, lfilter, lfilter_zi, sosfilt, sosfilt_zi, sosfiltfilt)
