"""Functions that take elements from fixed places along an axis: repeat, tile, roll, insert, delete, resize, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.roll import roll as rolled
from ..tracer.array import apply, shadow_of, wrap
from ..tracer.index_arrays import is_traced
from ..tracer.operands import Axis, astype, axes_of, axis_of, lifted
from ..tracer.table import implements
from ..tracer.trace import owner, unsupported
from ..tracer.ufuncs import copy
from .joining import concatenate
from .shapes import broadcast_to, expand_dims, ravel, reshape

FEW = 32  # the most traced integers that are asked for their values
RUNS = 8  # the most runs that are joined as slices


def plain(x: Any, what: str) -> Any:
    """Make numbers plain: traced integers are asked for their values. UnsupportedError for floats or many integers."""
    if is_traced(x):
        if x.dtype.kind in "iub" and x.size <= FEW:
            return np.reshape([int(v) for v in x.reshape(-1)], x.shape).astype(x.dtype)[()]
        raise unsupported(f"a traced value as {what}", "pass plain numbers")
    return shadow_of(x)


def at_places(x: Any, places: Any, axis: int) -> Any:
    """The elements at these positions along an axis, as joined slices, or as one gather if there are many runs."""
    runs = _runs(places)
    if len(runs) > RUNS:
        return x[(*(slice(None),) * axis, list(places))]
    parts = [_run(x, axis, *run) for run in runs or [(0, 1, 0)]]
    return concatenate(parts, axis) if len(parts) > 1 else copy(parts[0])


def _run(x: Any, axis: int, first: int, step: int, count: int) -> Any:
    """``count`` elements along an axis, by steps of 1, -1 or 0."""
    lead = (slice(None),) * axis
    if not step:
        return broadcast_to(x[(*lead, slice(first, first + 1))], (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    stop = first + step * count
    return x[(*lead, slice(first, stop if stop >= 0 else None, None if step == 1 else step))]


def _runs(places: Any) -> list[tuple[int, int, int]]:
    """Runs of positions (first, step, length) that count up, count down or stay."""
    found: list[tuple[int, int, int]] = []
    at, items = 0, [int(p) for p in places]
    while at < len(items):
        step = items[at + 1] - items[at] if at + 1 < len(items) else 1
        step = step if step in (-1, 0, 1) else 1
        end = at + 1
        while end < len(items) and items[end] - items[end - 1] == step:
            end += 1
        found.append((items[at], step, end - at))
        at = end
    return found


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Axis = None) -> Any:
    x, counts = lifted(a)[0], np.asarray(plain(repeats, "the number of repeats"))
    x = ravel(x) if axis is None or not x.ndim else x
    k = axis_of(x, 0 if axis is None else axis)
    n = x.shape[k]
    counts = counts if counts.size else counts.astype(int)
    if counts.size != 1:
        return at_places(x, np.repeat(np.arange(n), counts), k)
    count = int(counts.reshape(-1)[0])
    if count < 0:
        raise ValueError("repeats may not contain negative values.")
    wide = broadcast_to(expand_dims(x, k + 1), (*x.shape[: k + 1], count, *x.shape[k + 1 :]))
    return copy(reshape(wide, (*x.shape[:k], n * count, *x.shape[k + 1 :])), "C")


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    (x,) = lifted(A)
    counts = tuple(int(r) for r in np.atleast_1d(plain(reps, "the number of repetitions")))
    ndim = max(x.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - x.ndim) + x.shape
    if all(c == 1 for c in counts):
        return copy(reshape(x, shape))
    wide = reshape(x, tuple(n for s in shape for n in (1, s)))
    wide = broadcast_to(wide, tuple(n for pair in zip(counts, shape, strict=True) for n in pair))
    return copy(reshape(wide, tuple(c * s for c, s in zip(counts, shape, strict=True))), "C")


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    x = ravel(a)
    shape = tuple(np.atleast_1d(new_shape).tolist())
    size = int(np.prod(shape, dtype=int))
    if not x.size or not size:
        return wrap(owner([x]), None, np.resize(np.zeros(x.size, x.dtype), shape), None)
    return reshape(at_places(tile(x, -(-size // x.size)), range(size), 0), shape)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Axis = None) -> Any:
    (x,) = lifted(a)
    shift = plain(shift, "shift")
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    shifts, axes = np.broadcast_arrays(shift, axis)
    if shifts.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    total = [0] * x.ndim
    for by, k in zip(shifts.reshape(-1), axes.reshape(-1), strict=True):
        total[axes_of(x, int(k))[0]] += int(by)
    out = x
    for k, by in enumerate(total):
        if x.shape[k] and by % x.shape[k]:
            out = apply(rolled, [out], axis=k, shift=by % x.shape[k])
    return copy(x) if out is x else out


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Axis = None) -> Any:
    (x,) = lifted(arr)
    x = ravel(x) if axis is None else x
    k = axis_of(x, 0 if axis is None else axis)
    return at_places(x, np.delete(np.arange(x.shape[k]), plain(obj, "obj of np.delete")), k)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Axis = None) -> Any:
    obj = plain(obj, "obj of np.insert")
    x, v = lifted(arr, values)
    x = ravel(x) if axis is None else x
    k = axis_of(x, 0 if axis is None else axis)
    v = astype(v, x.dtype)
    v = np.reshape(v, (1,) * (x.ndim - np.ndim(v)) + np.shape(v))
    if not isinstance(obj, slice) and np.ndim(obj) == 0:
        v = np.moveaxis(v, 0, k)
    n, count = x.shape[k], _count(obj, x.shape[k], v.shape[k])
    places = np.insert(np.arange(n), obj, -1 - np.arange(count))
    fresh = np.broadcast_to(v, (*x.shape[:k], count, *x.shape[k + 1 :]))
    runs = _runs(np.where(places < 0, n - places, places))  # values begin at n + 1, so that no run joins the two
    if len(runs) > RUNS:
        found = at_places(concatenate([x, fresh], k), np.where(places < 0, n - 1 - places, places), k)
    else:
        parts = [_run(fresh, k, at - n - 1, step, m) if at > n else _run(x, k, at, step, m) for at, step, m in runs]
        found = concatenate(parts, k) if len(parts) > 1 else parts[0] if parts else x
    return copy(found, "F" if x.shadow.flags.fnc else "C")


def _count(obj: Any, length: int, given: int) -> int:
    """The number of elements to insert along the axis."""
    if isinstance(obj, slice):
        return len(range(*obj.indices(length)))
    at = np.asarray(obj)
    return int(at.sum()) if at.dtype == np.bool_ else at.size if at.size != 1 else given
